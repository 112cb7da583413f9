"""A thread's open trace as LLVM IR."""

from __future__ import annotations

from genesis.runtime.object_words import slot_offset
from genesis.runtime.short_ir import with_words
from genesis.tracing.trace import Trace

_TRACE = """
; A new trace, as `Trace(CPU)` makes it: like the prototype, with lists and dicts of its own.
define internal ptr @new_trace(ptr %objects, ptr %root) {
entry:
  %trace = call ptr @PyType_GenericAlloc(ptr %trace.class, i64 0) else ret ptr null
next:
  %at = phi i64 [ FIRST, %entry ], [ %at.next, %put ]
  if i64 %at sgt LAST: %all
  %common.at = getelementptr i8, ptr %prototype, i64 %at
  %common = load ptr, ptr %common.at
  %class = call ptr @class_of(ptr %common)
  if ptr %class != %list.class: %no.list
list:
  %a.list = call ptr @PyList_New(i64 0)
  br label %put
no.list:
  if ptr %class != %dict.class: %share
dict:
  %a.dict = call ptr @PyDict_New()
  br label %put
share:
  own %common
put:
  %own = phi ptr [ %a.list, %list ], [ %a.dict, %dict ], [ %common, %share ]
  %own.at = getelementptr i8, ptr %trace, i64 %at
  store ptr %own, ptr %own.at
  %at.next = add i64 %at, 8
  if ptr %own == null: %fail else %next
all:
  %reference = call ptr @PyWeakref_NewRef(ptr %trace, ptr null) else %fail
  put %reference, %root = Trace.reference, step of %trace
  ret ptr %trace dropping %reference
fail:
  ret ptr null dropping %trace
}

; What `open_trace` returns, which runs where the thread is not simply between two traces.
define internal ptr @open_trace(ptr %objects, ptr %state) {
  %traces = call ptr @PyDict_GetItemWithError(ptr %state, ptr %traces.name)
  %weight = call ptr @PyDict_GetItemWithError(ptr %state, ptr %weight.name)
  %eager = call ptr @PyDict_GetItemWithError(ptr %state, ptr %eager.name)
  %latest = call ptr @PyDict_GetItemWithError(ptr %traces, ptr %cpu.name)
  %dtype = call ptr @PyList_GetItem(ptr %default.dtype, i64 0)
  %root = call ptr @PyDict_GetItemWithError(ptr %roots, ptr %dtype)
  get %running = _Critical.running of %critical
  if ptr %latest != null or ptr %root == null: %python
  unless ptr %weight == %zero and ptr %eager == %false and ptr %running == %false: %python
  own %root
  %trace = call ptr @new_trace(ptr %objects, ptr %root)   ; a finalizer may clear the roots meanwhile
  drop %root
  if ptr %trace == null: ret ptr null
  get %reference = Trace.reference of %trace
  %unset.latest = call i32 @PyDict_SetItem(ptr %traces, ptr %cpu.name, ptr %trace)
  %unset.begun = call i32 @PySet_Add(ptr %begun, ptr %reference)
  %unset.open = call i32 @PyDict_SetItem(ptr %state, ptr %trace.name, ptr %trace)
  %unset.either = or i32 %unset.latest, %unset.begun
  %unset = or i32 %unset.either, %unset.open
  if i32 %unset == 0: ret ptr %trace
  ret ptr null dropping %trace
python:
  %by.python = call ptr @PyObject_CallNoArgs(ptr %open.trace)
  ret ptr %by.python
}
"""


def trace_ir() -> str:
    """The definition of `PyObject* open_trace(objects, state)`."""
    places = [slot_offset(Trace, name) for name in Trace.__slots__ if name != "__weakref__"]
    known = sorted(place for place in places if place is not None)
    assert len(known) == len(places) and known == [*range(known[0], known[-1] + 8, 8)]
    return with_words(_TRACE, FIRST=known[0], LAST=known[-1])
