"""A function of CPython's as LLVM IR that holds LOCK."""

from __future__ import annotations

_LOCKED = """
; `self` is a tuple that begins with the address of the objects and, behind them, of object.__new__.
define ptr @NAME(ptr %self, ptr %given, i64 %count) {
  %kind.at = alloca ptr
  %error.at = alloca ptr
  %traceback.at = alloca ptr
  %objects.number = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %objects = call ptr @PyLong_AsVoidPtr(ptr %objects.number)
  load %objects: ALL_OBJECTS
  %acquired = call ptr @PyObject_CallNoArgs(ptr %acquire)
  drop %acquired
  if ptr %acquired == null: ret ptr null
  %result = call ptr @FUNCTION(ptr %objects, ptr %given)
  call void @PyErr_Fetch(ptr %kind.at, ptr %error.at, ptr %traceback.at)
  %released = call ptr @PyObject_CallNoArgs(ptr %release)
  drop %released
  %kind = load ptr, ptr %kind.at
  %error = load ptr, ptr %error.at
  %traceback = load ptr, ptr %traceback.at
  call void @PyErr_Restore(ptr %kind, ptr %error, ptr %traceback)
  ret ptr %result
}
"""


def locked_ir(name: str, function: str) -> str:
    """The definition of `PyObject* name(self, given, count)`: `function(objects, given)`, whose caller holds LOCK."""
    return _LOCKED.replace("NAME", name).replace("FUNCTION", function)
