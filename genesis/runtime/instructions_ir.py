"""Instructions over Python objects as LLVM IR: they check a call's guards and run its program without the interpreter.

    table         {registers, constants, in use, FAILURES, MISSED, first instruction, constants.., instructions..}
    instruction   {operation, a, b, c, d}

Registers own references: 0 and 1 are the call's `args` and `kwargs` at first; the constants come last. Operands are registers,
addresses of objects that the table's owner keeps alive, addresses of words, or numbers (`instruction_set`).

A failing guard ends the call with MISSED. So does MISS, after a failed program is undone, and one of the FAILURES before
ENTER. From ENTER on the table is in use: a nested call, from a finalizer, gets MISSED, too, and exceptions are raised. No
signal handler runs between instructions, except where CALL runs Python code, and no other thread, except beside RUN_BESIDE.
"""

from __future__ import annotations

from genesis.runtime.executor_ir import program_ir
from genesis.runtime.instruction_set import INSTRUCTIONS
from genesis.runtime.object_words import VERSION
from genesis.runtime.owning_ir import OWNING
from genesis.runtime.short_ir import with_words

NUMBER_OF = {instruction.name: number for number, instruction in enumerate(INSTRUCTIONS)}
HEADER_WORDS, WORDS = 6, 5  # of a table, and of an instruction

_INTERPRET = """
%instruction = type { i64, i64, i64, i64, i64 }
%table = type { i64, i64, i64, ptr, ptr, ptr, [0 x ptr] }

; A function of CPython's, of `args` and `kwargs`; %self is a tuple that begins with the table's address.
define ptr @genesis_interpret(ptr %self, ptr %given, i64 %count) {
entry:
  %table.number = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %table = call ptr @PyLong_AsVoidPtr(ptr %table.number)
  %registers.count = load i64, ptr %table
  load %table: 1 i64 constants.count, 3 ptr failures, 4 ptr missed.object, 5 ptr first
  fields %table: 2 in.use, 6 constants
  %all.count = add i64 %registers.count, %constants.count
  %registers = alloca ptr, i64 %all.count
  %entered.at = alloca i1
  %instruction.at = alloca ptr
  %bytes = mul i64 %registers.count, 8
  call void @llvm.memset.p0.i64(ptr %registers, i8 0, i64 %bytes, i1 false)
  %constant.registers = getelementptr ptr, ptr %registers, i64 %registers.count
  %constant.bytes = mul i64 %constants.count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %constant.registers, ptr %constants, i64 %constant.bytes, i1 false)
  store i1 false, ptr %entered.at
  store ptr %first, ptr %instruction.at
  for %t = 0 ult %count:
  %taken = load ptr, ptr %given[%t]
  store ptr %taken, ptr %registers[%t]
  call void @own(ptr %taken)
  next %t

next:
  %instruction = load ptr, ptr %instruction.at
  %operation = load i64, ptr %instruction
  load %instruction: 1 i64 a, 2 i64 b, 3 i64 c, 4 i64 d
  %following = getelementptr %instruction, ptr %instruction, i64 1
  store ptr %following, ptr %instruction.at
  %a.register = getelementptr ptr, ptr %registers, i64 %a
  %b.register = getelementptr ptr, ptr %registers, i64 %b
  %c.register = getelementptr ptr, ptr %registers, i64 %c
  %a.word = inttoptr i64 %a to ptr
  %b.object = inttoptr i64 %b to ptr
  %c.object = inttoptr i64 %c to ptr
  switch i64 %operation, label %missed [ CASES ]

BODIES
put:
  %value = phi ptr VALUES
  if ptr %value == null: %problem
  %former = load ptr, ptr %a.register
  store ptr %value, ptr %a.register
  call void @disown(ptr %former)
  br label %next
skip:
  %further = getelementptr %instruction, ptr %following, i64 %c
  store ptr %further, ptr %instruction.at
  br label %next

doubt:                                            ; -1 may stand for an exception
  %error = call ptr @PyErr_Occurred() else %next
problem:                                          ; a guard that raises does not hold, but a handler's exception is one
  %is.entered = load i1, ptr %entered.at
  if %is.entered: %leave.raising
  %is.failure = call i32 @PyErr_ExceptionMatches(ptr %failures)
  if i32 %is.failure == 0: %leave.raising
  call void @PyErr_Clear()
  br label %missed
leave.raising:
  br label %leave
missed:
  call void @own(ptr %missed.object)

leave:
  %result = phi ptr [ %RETURN.a.held, %RETURN ], [ null, %leave.raising ], [ %missed.object, %missed ]
  %was.entered = load i1, ptr %entered.at
  unless %was.entered: %drop
  store i64 0, ptr %in.use
drop:
  for %r = 0 ult %registers.count:
  %dropped = load ptr, ptr %registers[%r]
  call void @disown(ptr %dropped)
  next %r
  ret ptr %result
}

; Where the slot that %slot {class, offset} describes is in %object; null if it describes none, or one of another class.
define internal ptr @slot_of(ptr %object, i64 %slot) alwaysinline {
  %slot.at = inttoptr i64 %slot to ptr
  if i64 %slot == 0: ret ptr null
  %class = call ptr @class_of(ptr %object)
  %slot.class = load ptr, ptr %slot.at
  if ptr %class != %slot.class: ret ptr null
  %offset = load i64, ptr %slot.at[1]
  %value.at = getelementptr i8, ptr %object, i64 %offset
  ret ptr %value.at
}
"""


def interpret_ir() -> str:
    """The module that defines `PyObject* genesis_interpret(self, arguments, count)`."""
    return program_ir() + with_words(
        _INTERPRET,
        CASES=" ".join(f"i64 {number}, label %{name}" for name, number in NUMBER_OF.items()),
        BODIES=with_words("\n".join(instruction.blocks for instruction in INSTRUCTIONS), VERSION_OFFSET=VERSION or 0),
        VALUES=", ".join(f"[ %{name}.value, %{putting} ]" for name, _, _, putting in INSTRUCTIONS if putting),
    ) + OWNING
