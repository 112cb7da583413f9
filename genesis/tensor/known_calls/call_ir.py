"""A call that the trie knows, as LLVM IR: its key, its step of the trace, and the tensor of its result, without Python.

A line `  get %a = Trace.step of %t` loads a slot of the object %t, whose place is %a.at.
"""

from __future__ import annotations

import re

from genesis.runtime.chunk_ir import with_fields
from genesis.runtime.object_words import slot_offset
from genesis.runtime.owning_ir import owning_ir
from genesis.tensor.known_calls.key_ir import call_key_ir
from genesis.tensor.known_calls.setting_ir import setting_token_ir
from genesis.tensor.known_calls.tensor_ir import tensor_token_ir

OBJECTS = (
    "tensor.class", "array.class", "int.class", "float.class", "bool.class", "str.class", "tuple.class", "dtype.class",
    "array.name", "base.name", "requires.name", "changes.name", "seen.name", "operands.name", "static.name", "scalar.name",
    "none", "true", "false", "busy", "nothing", "int64", "default.dtype", "plain.classes", "token",
)

_KNOWN_CALL = """
; A function of CPython's; %self is a tuple that begins with the address of OBJECTS and, behind them, of object.__new__. It
; returns the call's key, and has no further effect, unless %finishes and the call is a known one of a single result.
define ptr @genesis_known_call(ptr %self, ptr %given, i64 %count) {
entry:
  %objects.number = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %objects = call ptr @PyLong_AsVoidPtr(ptr %objects.number)
  load %objects: ALL_OBJECTS, OBJECT_NEW ptr object.new
  load %given: 0 ptr trace, 1 ptr operation, 2 ptr mode, 3 ptr arguments, 4 ptr recorder, 5 ptr finishes
  load %given: 6 ptr code, 7 ptr offset, 8 ptr scope
  %key = call ptr @call_key(ptr %objects, ptr %trace, ptr %operation, ptr %mode, ptr %arguments, ptr %recorder)
  %no.key = icmp eq ptr %key, null
  br i1 %no.key, label %raise, label %ask
ask:
  get %closed = Trace.closed of %trace
  %is.open = icmp eq ptr %closed, %busy
  %is.simple = icmp eq ptr %finishes, %true
  %may.finish = and i1 %is.open, %is.simple
  br i1 %may.finish, label %find, label %give.key
find:
  get %step = Trace.step of %trace
  get %children = TrieNode.children of %step
  %found = call ptr @PyDict_GetItemWithError(ptr %children, ptr %key)
  %is.new = icmp eq ptr %found, null
  br i1 %is.new, label %give.new, label %known
give.new:
  %problem = call ptr @PyErr_Occurred()
  %is.hashable = icmp eq ptr %problem, null
  br i1 %is.hashable, label %give.key, label %fail.key
give.key:
  ret ptr %key

known:
  get %result = TrieNode.result of %found
  get %elements = TrieNode.elements of %found
  %result.class.at = getelementptr ptr, ptr %result, i64 1
  %result.class = load ptr, ptr %result.class.at
  %is.single = icmp eq ptr %result.class, %int.class
  %is.unchecked = icmp eq ptr %elements, %nothing
  %is.plain = and i1 %is.single, %is.unchecked
  br i1 %is.plain, label %append, label %give.key
append:
  %first = call ptr @advance(ptr %trace, ptr %found)
  %not.appended = icmp eq ptr %first, null
  br i1 %not.appended, label %fail.key, label %append.line
append.line:
  %line = call ptr (i64, ...) @PyTuple_Pack(i64 5, ptr %first, ptr %code, ptr %offset, ptr %scope, ptr %key)
  call void @disown(ptr %first)
  %no.line = icmp eq ptr %line, null
  br i1 %no.line, label %fail.key, label %line.made
line.made:
  get %lines = Trace.lines of %trace
  %unlisted = call i32 @PyList_Append(ptr %lines, ptr %line)
  call void @disown(ptr %line)
  %no.list = icmp ne i32 %unlisted, 0
  br i1 %no.list, label %fail.key, label %array.make
array.make:
  %array = call ptr @PyType_GenericAlloc(ptr %array.class, i64 0)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %fail.key, label %array.made
array.made:
  get %nodes = Trace.nodes of %trace
  %index = call i64 @PyLong_AsSsize_t(ptr %result)
  %node = call ptr @PyList_GetItem(ptr %nodes, i64 %index)
  get %no.trace = Array.trace of %array
  get %no.index = Array.index of %array
  get %no.node = Array.node of %array
  get %no.value = Array.memory of %array
  call void @own(ptr %trace)
  store ptr %trace, ptr %no.trace.at
  call void @own(ptr %result)
  store ptr %result, ptr %no.index.at
  call void @own(ptr %node)
  store ptr %node, ptr %no.node.at
  call void @own(ptr %none)
  store ptr %none, ptr %no.value.at
  get %arrays = Trace.arrays of %trace
  %uncounted = call i32 @PyList_Append(ptr %arrays, ptr %array)
  %no.count = icmp ne i32 %uncounted, 0
  br i1 %no.count, label %fail.array, label %handle
handle:
  %tensor = call ptr %object.new(ptr %tensor.class, ptr %nothing, ptr null)
  %no.tensor = icmp eq ptr %tensor, null
  br i1 %no.tensor, label %fail.array, label %tensor.made
tensor.made:
  get %differentiable = Node.differentiable of %node
  %unset.array = call i32 @PyObject_SetAttr(ptr %tensor, ptr %array.name, ptr %array)
  %unset.requires = call i32 @PyObject_SetAttr(ptr %tensor, ptr %requires.name, ptr %differentiable)
  %unset = or i32 %unset.array, %unset.requires
  %is.unset = icmp ne i32 %unset, 0
  br i1 %is.unset, label %fail.tensor, label %made
made:
  call void @disown(ptr %array)
  call void @disown(ptr %key)
  ret ptr %tensor

fail.tensor:
  call void @disown(ptr %tensor)
  br label %fail.array
fail.array:
  call void @disown(ptr %array)
  br label %fail.key
fail.key:
  call void @disown(ptr %key)
  br label %raise
raise:
  ret ptr null
}
"""

_DECLARATIONS = """
declare double @llvm.fabs.f64(double)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsSsize_t(ptr)
declare i64 @PySequence_Size(ptr)
declare i64 @PyTuple_Size(ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i32 @PyList_Append(ptr, ptr)
declare i32 @PyObject_SetAttr(ptr, ptr, ptr)
declare i32 @PySequence_Contains(ptr, ptr)
declare i32 @PySet_Contains(ptr, ptr)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromSsize_t(i64)
declare ptr @PyNumber_Add(ptr, ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PySequence_GetItem(ptr, i64)
declare ptr @PySequence_InPlaceConcat(ptr, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare ptr @PyTuple_Pack(i64, ...)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyWeakref_GetObject(ptr)
declare void @PyErr_Clear()
"""


def known_call_ir(kinds: dict[str, type]) -> str:
    """The module that defines `PyObject* genesis_known_call(self, arguments, count)`, for classes with slots by their names."""
    def slot(line: re.Match[str]) -> str:
        name, kind, attribute, owner = line.groups()
        offset = slot_offset(kinds[kind], attribute)
        return f"  %{name}.at = getelementptr i8, ptr %{owner}, i64 {offset}\n  %{name} = load ptr, ptr %{name}.at"

    structs = f"%objects = type {{ {', '.join(['ptr'] * (len(OBJECTS) + 1))} }}\n%given = type {{ {', '.join(['ptr'] * 9)} }}\n"
    objects = ", ".join(f"{number} ptr {name}" for number, name in enumerate(OBJECTS))
    functions = tensor_token_ir() + setting_token_ir() + call_key_ir() + _KNOWN_CALL
    functions = functions.replace("ALL_OBJECTS", objects).replace("OBJECT_NEW", str(len(OBJECTS)))
    text = re.sub(r"^  get %(\S+) = (\w+)\.(\w+) of %(\S+)$", slot, with_fields(functions), flags=re.MULTILINE)
    return structs + text + owning_ir() + _DECLARATIONS
