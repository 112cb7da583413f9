"""The native half of the runtime as LLVM IR: it runs a program, launch after launch.

All structures consist of 8-byte words, laid out by `native.py` (those of a launch are in `chunk_ir`, of the team in `team_ir`):

    relocation  {address of a word, slot, byte offset}
    program     {number of launches, launches, number of relocations, relocations, slots, fault, team, clock}
    clock       {time at the start, after the first launch, ..}  seconds and nanoseconds, of the latest run
    slots       {address of the outcome word, values...}
"""

from __future__ import annotations

import time

from genesis.runtime.chunk_ir import with_fields
from genesis.runtime.team_ir import fork_join_ir

FAULT_WORDS = 4

# Relocations run before all launches: argument blocks are complete, so launches need no look-ups.
# Python is not entered between launches: a table of 100 small kernels takes 1.1 us, where ctypes takes 0.5 us for each call.
_RUN = """
%program = type { i64, ptr, i64, ptr, ptr, ptr, ptr, ptr }
%relocation = type { ptr, i64, i64 }

; Run the launches in order. Return the fault record's flag: 0 if all ran, else the launch that set it was the last.
define internal i64 @run(ptr %program) {
entry:
  %launches.count = load i64, ptr %program
  load %program: 1 ptr launches, 2 i64 relocations.count, 3 ptr relocations, 4 ptr slots, 5 ptr fault, 6 ptr team, 7 ptr clock
  call void @llvm.memset.p0.i64(ptr %fault, i8 0, i64 FAULT_BYTES, i1 false)
  br label %relocate

relocate:
  %r = phi i64 [ 0, %entry ], [ %r.next, %relocate.one ]
  %relocating = icmp ult i64 %r, %relocations.count
  br i1 %relocating, label %relocate.one, label %launch.next
relocate.one:
  %relocation = getelementptr %relocation, ptr %relocations, i64 %r
  %word.at = load ptr, ptr %relocation
  load %relocation: 1 i64 slot, 2 i64 offset
  %value.at = getelementptr i64, ptr %slots, i64 %slot
  %value = load i64, ptr %value.at
  %word = add i64 %value, %offset
  store i64 %word, ptr %word.at
  %r.next = add i64 %r, 1
  br label %relocate

launch.next:
  %l = phi i64 [ 0, %relocate ], [ %l.next, %launched ]
  %time.at = getelementptr [2 x i64], ptr %clock, i64 %l
  call i32 @clock_gettime(i32 CLOCK, ptr %time.at)
  %launching = icmp ult i64 %l, %launches.count
  br i1 %launching, label %launch.one, label %finished
launch.one:
  %launch = getelementptr %launch, ptr %launches, i64 %l
  load %launch: 4 i64 workers
  %serial = icmp ule i64 %workers, 1
  br i1 %serial, label %alone, label %parallel
alone:
  call void @run_chunk(ptr %launch, i64 0, i64 0)
  br label %launched
parallel:
  call void @fork_join(ptr %team, ptr %launch, i64 %workers)
  br label %launched
launched:
  %l.next = add i64 %l, 1
  %flag = load i64, ptr %fault
  %faulted = icmp ne i64 %flag, 0
  br i1 %faulted, label %failed, label %launch.next

failed:
  ret i64 %flag
finished:
  %outcome = load ptr, ptr %slots
  store i64 1, ptr %outcome
  ret i64 0
}

; A function of CPython's: run the program at an address, a Python number, while other threads may have the interpreter.
define ptr @genesis_run(ptr %self, ptr %address) {
  %program = call ptr @PyLong_AsVoidPtr(ptr %address)
  %thread = call ptr @PyEval_SaveThread()
  %flag = call i64 @run(ptr %program)
  call void @PyEval_RestoreThread(ptr %thread)
  %result = call ptr @PyLong_FromLongLong(i64 %flag)
  ret ptr %result
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @clock_gettime(i32, ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
"""


def run_ir() -> str:
    """The module that defines `PyObject* genesis_run(self, address of a program)`, which returns `run`'s flag."""
    run = _RUN.replace("FAULT_BYTES", str(8 * FAULT_WORDS)).replace("CLOCK", str(time.CLOCK_MONOTONIC))
    return fork_join_ir() + with_fields(run)
