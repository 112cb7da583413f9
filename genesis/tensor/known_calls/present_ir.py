"""The present array of a tensor as LLVM IR, and what is common to all that reads tensors."""

from __future__ import annotations

_PRESENT = """
; Store an object where another one was.
define internal void @replace(ptr %at, ptr %object) alwaysinline {
  %former = load ptr, ptr %at
  call void @own(ptr %object)
  store ptr %object, ptr %at
  call void @disown(ptr %former)
  ret void
}

define internal ptr @class_of(ptr %object) alwaysinline {
  %class.at = getelementptr ptr, ptr %object, i64 1
  %class = load ptr, ptr %class.at
  ret ptr %class
}

; Whether machine code reads tensors of this class: Tensor, or one that adds no attribute to it.
define internal i1 @is_plain_class(ptr %objects, ptr %class) {
entry:
  load %objects: ALL_OBJECTS
  %is.tensor = icmp eq ptr %class, %tensor.class
  br i1 %is.tensor, label %yes, label %ask
ask:
  %known = call i32 @PySet_Contains(ptr %plain.classes, ptr %class)
  %is.known = icmp eq i32 %known, 1
  ret i1 %is.known
yes:
  ret i1 true
}

; The array of a root, or of a view that is up to date, in its root's memory or pending, which is a new reference; null without
; an error if Python has to find it.
define internal ptr @present_array(ptr %objects, ptr %tensor) {
entry:
  load %objects: ALL_OBJECTS
  %array = call ptr @PyObject_GetAttr(ptr %tensor, ptr %array.name)
  %base = call ptr @PyObject_GetAttr(ptr %tensor, ptr %base.name)
  call void @disown(ptr %base)
  %no.array = icmp eq ptr %array, null
  %no.base = icmp eq ptr %base, null
  %no.either = or i1 %no.array, %no.base
  br i1 %no.either, label %unmade, label %tensor.array
unmade:                                           ; a tensor without attributes: Python raises for it
  call void @PyErr_Clear()
  br label %other
tensor.array:
  %kind = call ptr @class_of(ptr %array)
  %is.array = icmp eq ptr %kind, %array.class
  br i1 %is.array, label %known, label %other
known:
  %is.root = icmp eq ptr %base, %none
  br i1 %is.root, label %present, label %view
view:
  %changes = call ptr @PyObject_GetAttr(ptr %base, ptr %changes.name)
  %seen = call ptr @PyObject_GetAttr(ptr %tensor, ptr %seen.name)
  %whole = call ptr @PyObject_GetAttr(ptr %base, ptr %array.name)
  %is.present = icmp eq ptr %changes, %seen
  call void @disown(ptr %changes)
  call void @disown(ptr %seen)
  call void @disown(ptr %whole)
  %no.whole = icmp eq ptr %whole, null
  br i1 %no.whole, label %unmade, label %view.present
view.present:
  br i1 %is.present, label %view.memory, label %other
view.memory:
  get %whole.memory = Array.memory of %whole
  get %part.memory = Array.memory of %array
  %is.whole.pending = icmp eq ptr %whole.memory, %none
  %is.part.pending = icmp eq ptr %part.memory, %none
  %is.either.pending = or i1 %is.whole.pending, %is.part.pending
  br i1 %is.either.pending, label %present, label %view.buffer
view.buffer:
  get %whole.buffer = Memory.buffer of %whole.memory
  get %part.buffer = Memory.buffer of %part.memory
  %is.inside = icmp eq ptr %whole.buffer, %part.buffer
  br i1 %is.inside, label %present, label %other
present:
  ret ptr %array
other:
  call void @disown(ptr %array)
  ret ptr null
}
"""


def present_ir() -> str:
    """The definition of `PyObject* present_array(objects, tensor)`, and functions of classes and references."""
    return _PRESENT
