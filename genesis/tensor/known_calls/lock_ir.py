"""A function of CPython's as LLVM IR that holds LOCK."""

from __future__ import annotations

from genesis.runtime.short_ir import with_words

_LOCKED = """
; `self` is a tuple that begins with the address of the objects and, behind them, of object.__new__.
define ptr @NAME(ptr %self, ptr %given, i64 %count) {
  %kind.at = alloca ptr
  %error.at = alloca ptr
  %traceback.at = alloca ptr
  %objects.number = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %objects = call ptr @PyLong_AsVoidPtr(ptr %objects.number)
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
OTHERWISE  ret ptr %result
}
"""
IF_NOT_DENSE = """
  if ptr %result != null: %done
  %is.not.dense = call i32 @PyErr_ExceptionMatches(ptr %not.dense)
  if i32 %is.not.dense != 1: %done
  call void @PyErr_Fetch(ptr %kind.at, ptr %error.at, ptr %traceback.at)
  call void @PyErr_NormalizeException(ptr %kind.at, ptr %error.at, ptr %traceback.at)
  %met.kind = load ptr, ptr %kind.at
  %met = load ptr, ptr %error.at
  %met.traceback = load ptr, ptr %traceback.at
  load %given: 0 ptr operation, 1 ptr arguments, 2 ptr attributes
  %computed = python %by.parts(%met, %operation, %arguments, %attributes)
  ret ptr %computed dropping %met.kind, %met, %met.traceback
done:
"""


def locked_ir(name: str, function: str, otherwise: str = "") -> str:
    """The definition of `PyObject* name(self, given, count)`: `function(objects, given)`, whose caller holds LOCK; after a
    failure `otherwise`, without it."""
    return with_words(_LOCKED, NAME=name, FUNCTION=function, OTHERWISE=otherwise)
