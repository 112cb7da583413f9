"""Modules of LLVM IR: of a call that the trie knows, which is recorded, and of a look at values, both without Python.

A line `  get %a, %b = Trace.step, nodes of %t` loads slots of the object %t, whose places are %a.at and %b.at; a line
`  %t has base none, seen zero else ret i1 false` returns unless these are the attributes of a tensor;
`  drop %a, %b` disowns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from genesis.runtime.object_words import slot_offset
from genesis.runtime.owning_ir import OWNING
from genesis.tensor.known_calls.fill_ir import FILL
from genesis.tensor.known_calls.key_ir import KEY
from genesis.tensor.known_calls.lock_ir import locked_ir
from genesis.tensor.known_calls.look_ir import LOOK
from genesis.tensor.known_calls.present_ir import PRESENT
from genesis.tensor.known_calls.record_ir import RECORD
from genesis.tensor.known_calls.setting_ir import SETTING_TOKEN
from genesis.tensor.known_calls.take_ir import IS_ALIKE, TAKE
from genesis.tensor.known_calls.tensor_ir import TENSOR_TOKEN
from genesis.tensor.known_calls.thread_ir import THREAD
from genesis.tensor.known_calls.trace_ir import trace_ir
from genesis.tensor.known_calls.view_ir import view_ir

_DECLARATIONS = """
declare double @llvm.fabs.f64(double)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsSsize_t(ptr)
declare i64 @PySequence_Size(ptr)
declare i64 @PySet_Size(ptr)
declare i64 @PyTuple_Size(ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i32 @PyErr_ExceptionMatches(ptr)
declare i32 @PyList_Append(ptr, ptr)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i32 @PyObject_IsInstance(ptr, ptr)
declare i32 @PyObject_IsTrue(ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare i32 @PyObject_SetAttr(ptr, ptr, ptr)
declare i32 @PySequence_Contains(ptr, ptr)
declare i32 @PySet_Add(ptr, ptr)
declare i32 @PySet_Contains(ptr, ptr)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyBytes_AsString(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyDict_New()
declare ptr @PyErr_Occurred()
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromSsize_t(i64)
declare ptr @PyNumber_Add(ptr, ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyObject_CallObject(ptr, ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_GetItem(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PySequence_GetItem(ptr, i64)
declare ptr @PySequence_InPlaceConcat(ptr, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare ptr @PyTuple_Pack(i64, ...)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyWeakref_GetObject(ptr)
declare ptr @PyWeakref_NewRef(ptr, ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""


Names = Sequence[str]  # of the objects that machine code refers to
Slotted = Mapping[str, type]  # classes with slots, by their names


def call_ir(kinds: Slotted, names: Names) -> str:
    """The module that defines `genesis_call(self, given, count)` of what `KnownCalls.call` takes in `dispatch`."""
    functions = TENSOR_TOKEN + SETTING_TOKEN + KEY + RECORD + trace_ir() + THREAD + IS_ALIKE + TAKE
    return _module(functions + locked_ir("genesis_call", "call_into"), kinds, names)


def fill_ir(kinds: Slotted, names: Names) -> str:
    """The module that defines `PyObject* genesis_fill(self, given, count)`, of a tensor, and a number or a tensor's values."""
    return _module(IS_ALIKE + FILL + locked_ir("genesis_fill", "fill"), kinds, names)


def look_at_values_ir(kinds: Slotted, names: Names) -> str:
    """The module that defines `PyObject* genesis_look(self, given, count)`, of a tensor, and whether it is read as a number."""
    return _module(LOOK + locked_ir("genesis_look", "look"), kinds, names)


def views_ir(kinds: Slotted, names: Names) -> str:
    """The module that defines `genesis_view(self, given, count)` of a tensor, a layout rule's name and its arguments."""
    return _module(view_ir() + locked_ir("genesis_view", "view"), kinds, names)


def _module(functions: str, kinds: Slotted, names: Names) -> str:
    def slots(line: re.Match[str]) -> str:
        names, kind, attributes, owner = line.groups()
        return "\n".join([
            f"  {name}.at = getelementptr i8, ptr %{owner}, i64 {slot_offset(kinds[kind], attribute)}\n"
            f"  {name} = load ptr, ptr {name}.at"
            for name, attribute in zip(names.split(", "), attributes.split(", "), strict=True)])

    def dropped(line: re.Match[str]) -> str:
        return "\n".join([f"  call void @disown(ptr {name})" for name in line[1].split(", ")])

    def attributes(line: re.Match[str]) -> str:
        """An early return where one of the attributes is another object."""
        number, owner, wanted, otherwise = line.start(), *line.groups()
        return "\n".join([
            f"  %has.{number}.{k} = call i1 @has(ptr %{owner}, ptr %{name}.name, ptr %{value})\n"
            f"  unless %has.{number}.{k}: {otherwise}"
            for k, (name, value) in enumerate(pair.split() for pair in wanted.split(", "))])

    structs = f"%objects = type {{ {', '.join(['ptr'] * (len(names) + 1))} }}\n%given = type {{ ptr, ptr, ptr, ptr }}\n"
    def with_objects(function: str) -> str:
        used = [f"{number} ptr {name}" for number, name in enumerate(names) if f"%{name}" in function]
        return function.replace("ALL_OBJECTS", ", ".join(used))

    functions = re.sub(r"^  %(\S+) has (.+) else (.+)$", attributes, PRESENT + functions, flags=re.MULTILINE)
    functions = re.sub(r"^  drop (.+)$", dropped, functions, flags=re.MULTILINE)
    functions = "".join(map(with_objects, re.split("^(?=define )", functions, flags=re.MULTILINE)))
    functions = functions.replace("OBJECT_NEW", str(len(names)))
    text = re.sub(r"^  get (%.+) = (\w+)\.(.+) of %(\S+)$", slots, functions, flags=re.MULTILINE)
    return structs + text + OWNING + _DECLARATIONS
