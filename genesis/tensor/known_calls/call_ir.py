"""Modules of LLVM IR: of a call that the trie knows, which is recorded, and of a look at values, both without Python.

A line `  get %a = Trace.step of %t` loads a slot of the object %t, whose place is %a.at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from genesis.runtime.object_words import slot_offset
from genesis.runtime.owning_ir import OWNING
from genesis.tensor.known_calls.key_ir import KEY
from genesis.tensor.known_calls.lock_ir import locked_ir
from genesis.tensor.known_calls.look_ir import LOOK
from genesis.tensor.known_calls.present_ir import PRESENT
from genesis.tensor.known_calls.record_ir import RECORD
from genesis.tensor.known_calls.setting_ir import SETTING_TOKEN
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
"""


Names = Sequence[str]  # of the objects that machine code refers to
Slotted = Mapping[str, type]  # classes with slots, by their names


def call_ir(kinds: Slotted, names: Names) -> str:
    """The module that defines `genesis_call(self, given, count)` of `operation`, `arguments`, `attributes`, `bare`."""
    functions = TENSOR_TOKEN + SETTING_TOKEN + KEY + RECORD + trace_ir() + THREAD
    return _module(functions + locked_ir("genesis_call", "call_in_thread"), kinds, names)


def look_at_values_ir(kinds: Slotted, names: Names) -> str:
    """The module that defines `PyObject* genesis_look(self, given, count)`, of a tensor, and whether it is read as a number."""
    return _module(LOOK + locked_ir("genesis_look", "look"), kinds, names)


def views_ir(kinds: Slotted, names: Names) -> str:
    """The module that defines `genesis_view(self, given, count)` of a tensor, a layout rule's name and its arguments."""
    return _module(view_ir() + locked_ir("genesis_view", "view"), kinds, names)


def _module(functions: str, kinds: Slotted, names: Names) -> str:
    def slot(line: re.Match[str]) -> str:
        name, kind, attribute, owner = line.groups()
        offset = slot_offset(kinds[kind], attribute)
        return f"  %{name}.at = getelementptr i8, ptr %{owner}, i64 {offset}\n  %{name} = load ptr, ptr %{name}.at"

    structs = f"%objects = type {{ {', '.join(['ptr'] * (len(names) + 1))} }}\n%given = type {{ ptr, ptr, ptr, ptr }}\n"
    def with_objects(function: str) -> str:
        used = [f"{number} ptr {name}" for number, name in enumerate(names) if f"%{name}" in function]
        return function.replace("ALL_OBJECTS", ", ".join(used))

    functions = "".join(map(with_objects, re.split("^(?=define )", PRESENT + functions, flags=re.MULTILINE)))
    functions = functions.replace("OBJECT_NEW", str(len(names)))
    text = re.sub(r"^  get %(\S+) = (\w+)\.(\w+) of %(\S+)$", slot, functions, flags=re.MULTILINE)
    return structs + text + OWNING + _DECLARATIONS
