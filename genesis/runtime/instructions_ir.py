"""Instructions over Python objects as LLVM IR: they check a call's guards and run its program without the interpreter.

    table         {registers, constants, in use, Exception, MISSED, first instruction, constants.., instructions..}
    instruction   {operation, a, b, c, d}

Registers own references: 0 and 1 are the call's `args` and `kwargs` at first; the constants come last. Operands are registers,
addresses of objects that the table's owner keeps alive, addresses of words, or numbers. `OPERATIONS` lists operations in the
order of their numbers.

A failing guard ends the call with MISSED. So does MISS, after a failed program is undone, and an ordinary exception before
ENTER. From ENTER on the table is in use: a nested call, from a finalizer, gets MISSED, too, and exceptions are raised. RUN
keeps the GIL: no other thread and no signal handler runs between instructions, except where CALL runs Python code.
"""

from __future__ import annotations

import re

from genesis.runtime.chunk_ir import with_fields
from genesis.runtime.executor_ir import program_ir
from genesis.runtime.object_words import VERSION
from genesis.runtime.owning_ir import owning_ir

OPERATIONS = """
    ATTRIBUTE   a = getattr(b, name c); d is 0, or where {class, offset} of a slot is: instances hold it there
    ITEM        a = b[object c]
    MOVE        a = what register b holds
    OBJECT      a = the object that the word at b points to
    CALL        a = object b(registers c, c + 1, .. of which there are d)
    TUPLE       a = (registers c, c + 1, .. of which there are d)
    NEW         a = object.__new__(b); c is that function, d the tuple ()
    IS          a is object b
    IS_NOT      a is not object b
    SAME        a is what register b holds
    APART       a is not what register b holds
    CLASS       the class of a is object b
    SIZE        len(a) == number b
    EQUAL       a == object b
    FALSE       not a
    WORD        the word at a is number b
    HELD        of the objects in list a, those marked in the words at b {how many, 0 or 1..} have other owners, and no others
    BYTES       the c bytes at the address in the word at a are those at b
    SKIP_IS     if a is object b: go on c instructions further down
    SKIP_OTHER  if a is not the object that the word at b points to: go on c instructions further down
    SKIP_HALF   if the 32 bits at a are number b: go on c instructions further down
    SKIP_SAME   if the version of dict a is the word at b: go on c instructions further down
    SKIP_ALONE  if the objects at a {how many, objects.., counts..} have these counts: go on c instructions further down
    ENTER       the table is in use from here on
    SET         setattr(a, name b, what register c holds); d as in ATTRIBUTE
    ADDRESS     the word at a = the address that b, an int, is, plus number c
    INTEGER     the word at a = the int that b is
    REAL        the word at a = the float that b is, as a double
    COPY        the word at a = the word at b
    STORE       the word at a = number b
    VERSION     the word at a = the version of dict b
    ADD         the word at a += number b
    RUN         run the program at a; if none of its kernels has reported a fault: go on c instructions further down
    MISS        the call is missed
    RETURN      return a
"""

NUMBER_OF = {line.split()[0]: number for number, line in enumerate(OPERATIONS.strip().splitlines())}
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
  load %table: 1 i64 constants.count, 3 ptr exception, 4 ptr missed.object, 5 ptr first
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
  br label %take
take:
  %t = phi i64 [ 0, %entry ], [ %t.next, %take.one ]
  %taking = icmp ult i64 %t, %count
  br i1 %taking, label %take.one, label %next
take.one:
  %given.at = getelementptr ptr, ptr %given, i64 %t
  %taken.at = getelementptr ptr, ptr %registers, i64 %t
  %taken = load ptr, ptr %given.at
  store ptr %taken, ptr %taken.at
  call void @own(ptr %taken)
  %t.next = add i64 %t, 1
  br label %take

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

ATTRIBUTE:
  %owner = load ptr, ptr %b.register
  %slot.at = inttoptr i64 %d to ptr
  %no.slot = icmp eq i64 %d, 0
  br i1 %no.slot, label %attribute.any, label %attribute.class
attribute.class:
  %owner.class.at = getelementptr ptr, ptr %owner, i64 1
  %owner.class = load ptr, ptr %owner.class.at
  %slot.class = load ptr, ptr %slot.at
  %has.slot = icmp eq ptr %owner.class, %slot.class
  br i1 %has.slot, label %attribute.slot, label %attribute.any
attribute.slot:
  %offset.at = getelementptr i64, ptr %slot.at, i64 1
  %slot.offset = load i64, ptr %offset.at
  %slot.value.at = getelementptr i8, ptr %owner, i64 %slot.offset
  %slot.value = load ptr, ptr %slot.value.at
  %is.unset = icmp eq ptr %slot.value, null
  br i1 %is.unset, label %attribute.any, label %attribute.take
attribute.take:
  call void @own(ptr %slot.value)
  br label %put
attribute.any:
  %attribute = call ptr @PyObject_GetAttr(ptr %owner, ptr %c.object)
  br label %put
ITEM:
  %container = load ptr, ptr %b.register
  %item = call ptr @PyObject_GetItem(ptr %container, ptr %c.object)
  br label %put
MOVE:
  %moved = load ptr, ptr %b.register
  call void @own(ptr %moved)
  br label %put
OBJECT:
  %pointed = load ptr, ptr %b.object
  call void @own(ptr %pointed)
  br label %put
NEW:
  %new.class = load ptr, ptr %b.register
  %no.arguments = inttoptr i64 %d to ptr
  %new = call ptr %c.object(ptr %new.class, ptr %no.arguments, ptr null)
  br label %put
CALL:
  %called = call ptr @PyObject_Vectorcall(ptr %b.object, ptr %c.register, i64 %d, ptr null)
  br label %put
TUPLE:
  %tuple = call ptr @PyTuple_New(i64 %d)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %problem, label %fill
fill:
  %m = phi i64 [ 0, %TUPLE ], [ %m.next, %fill.one ]
  %filling = icmp ult i64 %m, %d
  br i1 %filling, label %fill.one, label %put
fill.one:
  %member.at = getelementptr ptr, ptr %c.register, i64 %m
  %member = load ptr, ptr %member.at
  call void @own(ptr %member)
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %m, ptr %member)
  %m.next = add i64 %m, 1
  br label %fill
put:
  %value = phi ptr [ %attribute, %attribute.any ], [ %slot.value, %attribute.take ], [ %item, %ITEM ], [ %moved, %MOVE ],
                  [ %pointed, %OBJECT ], [ %called, %CALL ], [ %tuple, %fill ], [ %new, %NEW ]
  %nothing = icmp eq ptr %value, null
  br i1 %nothing, label %problem, label %put.value
put.value:
  %former = load ptr, ptr %a.register
  store ptr %value, ptr %a.register
  call void @disown(ptr %former)
  br label %next

IS:
  %is.left = load ptr, ptr %a.register
  %is = icmp eq ptr %is.left, %b.object
  br label %require
IS_NOT:
  %is.not.left = load ptr, ptr %a.register
  %is.not = icmp ne ptr %is.not.left, %b.object
  br label %require
SAME:
  %same.left = load ptr, ptr %a.register
  %same.right = load ptr, ptr %b.register
  %same = icmp eq ptr %same.left, %same.right
  br label %require
APART:
  %apart.left = load ptr, ptr %a.register
  %apart.right = load ptr, ptr %b.register
  %apart = icmp ne ptr %apart.left, %apart.right
  br label %require
CLASS:
  %classed = load ptr, ptr %a.register
  %class.at = getelementptr ptr, ptr %classed, i64 1
  %class = load ptr, ptr %class.at
  %is.class = icmp eq ptr %class, %b.object
  br label %require
SIZE:
  %sized = load ptr, ptr %a.register
  %size = call i64 @PyObject_Size(ptr %sized)
  %is.size = icmp eq i64 %size, %b
  %no.size = icmp slt i64 %size, 0
  br i1 %no.size, label %problem, label %require
EQUAL:
  %equal.left = load ptr, ptr %a.register
  %compared = call i32 @PyObject_RichCompareBool(ptr %equal.left, ptr %b.object, i32 2)
  %is.equal = icmp eq i32 %compared, 1
  %no.comparison = icmp slt i32 %compared, 0
  br i1 %no.comparison, label %problem, label %require
FALSE:
  %asked = load ptr, ptr %a.register
  %truth = call i32 @PyObject_IsTrue(ptr %asked)
  %is.false = icmp eq i32 %truth, 0
  %no.truth = icmp slt i32 %truth, 0
  br i1 %no.truth, label %problem, label %require
WORD:
  %word = load i64, ptr %a.word
  %is.word = icmp eq i64 %word, %b
  br label %require
HELD:
  %list = load ptr, ptr %a.register
  %list.size = call i64 @PyList_Size(ptr %list)
  %marks = load i64, ptr %b.object
  %marks.at = getelementptr i64, ptr %b.object, i64 1
  %no.list = icmp slt i64 %list.size, 0
  %is.size.held = icmp eq i64 %list.size, %marks
  br i1 %no.list, label %problem, label %held.size
held.size:
  br i1 %is.size.held, label %held, label %missed
held:
  %h = phi i64 [ 0, %held.size ], [ %h.next, %held.one ]
  %h.end = icmp eq i64 %h, %marks
  br i1 %h.end, label %next, label %held.one
held.one:
  %held.object = call ptr @PyList_GetItem(ptr %list, i64 %h)
  %held.count = load i32, ptr %held.object
  %is.held = icmp ne i32 %held.count, 1
  %mark.at = getelementptr i64, ptr %marks.at, i64 %h
  %mark = load i64, ptr %mark.at
  %is.marked = icmp ne i64 %mark, 0
  %is.as.marked = icmp eq i1 %is.held, %is.marked
  %h.next = add i64 %h, 1
  br i1 %is.as.marked, label %held, label %missed
BYTES:
  %bytes.at = load ptr, ptr %a.word
  %bytes.order = call i32 @memcmp(ptr %bytes.at, ptr %b.object, i64 %c)
  %is.bytes = icmp eq i32 %bytes.order, 0
  br label %require
require:
  %holds = phi i1 [ %is, %IS ], [ %is.not, %IS_NOT ], [ %same, %SAME ], [ %apart, %APART ], [ %is.class, %CLASS ],
                  [ %is.size, %SIZE ], [ %is.equal, %EQUAL ], [ %is.false, %FALSE ], [ %is.word, %WORD ], [ %is.bytes, %BYTES ]
  br i1 %holds, label %next, label %missed

SKIP_IS:
  %skip.left = load ptr, ptr %a.register
  %skip.is = icmp eq ptr %skip.left, %b.object
  br i1 %skip.is, label %skip, label %next
SKIP_OTHER:
  %other.left = load ptr, ptr %a.register
  %other.right = load ptr, ptr %b.object
  %skip.other = icmp ne ptr %other.left, %other.right
  br i1 %skip.other, label %skip, label %next
SKIP_HALF:
  %half = load i32, ptr %a.word
  %half.wanted = trunc i64 %b to i32
  %skip.half = icmp eq i32 %half, %half.wanted
  br i1 %skip.half, label %skip, label %next
SKIP_SAME:
  %names = load ptr, ptr %a.register
  %names.version.at = getelementptr i8, ptr %names, i64 VERSION_OFFSET
  %names.version = load i64, ptr %names.version.at
  %known.version = load i64, ptr %b.object
  %is.same.version = icmp eq i64 %names.version, %known.version
  br i1 %is.same.version, label %skip, label %next
SKIP_ALONE:
  %objects = load i64, ptr %a.word
  %objects.at = getelementptr i64, ptr %a.word, i64 1
  %counts.at = getelementptr i64, ptr %objects.at, i64 %objects
  br label %alone
alone:
  %o = phi i64 [ 0, %SKIP_ALONE ], [ %o.next, %alone.one ]
  %counting = icmp ult i64 %o, %objects
  br i1 %counting, label %alone.one, label %skip
alone.one:                                        ; counts have 32 bits in CPython 3.12 and later
  %object.at = getelementptr i64, ptr %objects.at, i64 %o
  %object = load ptr, ptr %object.at
  %owners = load i32, ptr %object
  %count.at = getelementptr i64, ptr %counts.at, i64 %o
  %owners.wanted = load i32, ptr %count.at
  %o.next = add i64 %o, 1
  %is.alone = icmp eq i32 %owners, %owners.wanted
  br i1 %is.alone, label %alone, label %next
skip:
  %further = getelementptr %instruction, ptr %following, i64 %c
  store ptr %further, ptr %instruction.at
  br label %next

ENTER:
  %others = load i64, ptr %in.use
  %is.free = icmp eq i64 %others, 0
  br i1 %is.free, label %enter, label %missed
enter:
  store i64 1, ptr %in.use
  store i1 true, ptr %entered.at
  br label %next
SET:
  %changed = load ptr, ptr %a.register
  %set.value = load ptr, ptr %c.register
  %set.slot.at = inttoptr i64 %d to ptr
  %set.no.slot = icmp eq i64 %d, 0
  br i1 %set.no.slot, label %set.any, label %set.class
set.class:
  %changed.class.at = getelementptr ptr, ptr %changed, i64 1
  %changed.class = load ptr, ptr %changed.class.at
  %set.slot.class = load ptr, ptr %set.slot.at
  %set.has.slot = icmp eq ptr %changed.class, %set.slot.class
  br i1 %set.has.slot, label %set.slot, label %set.any
set.slot:
  %set.offset.at = getelementptr i64, ptr %set.slot.at, i64 1
  %set.offset = load i64, ptr %set.offset.at
  %set.at = getelementptr i8, ptr %changed, i64 %set.offset
  %set.former = load ptr, ptr %set.at
  call void @own(ptr %set.value)
  store ptr %set.value, ptr %set.at
  call void @disown(ptr %set.former)
  br label %next
set.any:
  %set = call i32 @PyObject_SetAttr(ptr %changed, ptr %b.object, ptr %set.value)
  %not.set = icmp ne i32 %set, 0
  br i1 %not.set, label %problem, label %next
ADDRESS:
  %address.number = load ptr, ptr %b.register
  %address = call ptr @PyLong_AsVoidPtr(ptr %address.number)
  %address.word = ptrtoint ptr %address to i64
  %address.sum = add i64 %address.word, %c
  store i64 %address.sum, ptr %a.word
  br label %next
INTEGER:
  %integer.number = load ptr, ptr %b.register
  %integer = call i64 @PyLong_AsLongLong(ptr %integer.number)
  store i64 %integer, ptr %a.word
  %integer.odd = icmp eq i64 %integer, -1
  br i1 %integer.odd, label %number, label %next
REAL:
  %real.number = load ptr, ptr %b.register
  %real = call double @PyFloat_AsDouble(ptr %real.number)
  store double %real, ptr %a.word
  %real.odd = fcmp oeq double %real, -1.0
  br i1 %real.odd, label %number, label %next
number:                                           ; -1 may stand for an error
  %error = call ptr @PyErr_Occurred()
  %no.error = icmp eq ptr %error, null
  br i1 %no.error, label %next, label %problem
COPY:
  %copied = load i64, ptr %b.object
  store i64 %copied, ptr %a.word
  br label %next
STORE:
  store i64 %b, ptr %a.word
  br label %next
VERSION:
  %passed = load ptr, ptr %b.register
  %passed.version.at = getelementptr i8, ptr %passed, i64 VERSION_OFFSET
  %passed.version = load i64, ptr %passed.version.at
  store i64 %passed.version, ptr %a.word
  br label %next
ADD:
  %before = load i64, ptr %a.word
  %sum = add i64 %before, %b
  store i64 %sum, ptr %a.word
  br label %next
RUN:
  %flag = call i64 @run(ptr %a.word, i1 false, ptr null)
  %has.run = icmp eq i64 %flag, 0
  br i1 %has.run, label %skip, label %next
MISS:
  br label %missed
RETURN:
  %returned = load ptr, ptr %a.register
  call void @own(ptr %returned)
  br label %leave

problem:                                          ; a guard that raises does not hold, but an interrupt is one
  %is.entered = load i1, ptr %entered.at
  br i1 %is.entered, label %leave.raising, label %exception.kind
exception.kind:
  %is.ordinary = call i32 @PyErr_ExceptionMatches(ptr %exception)
  %ordinary = icmp ne i32 %is.ordinary, 0
  br i1 %ordinary, label %clear, label %leave.raising
clear:
  call void @PyErr_Clear()
  br label %missed
leave.raising:
  br label %leave
missed:
  call void @own(ptr %missed.object)
  br label %leave

leave:
  %result = phi ptr [ %returned, %RETURN ], [ null, %leave.raising ], [ %missed.object, %missed ]
  %was.entered = load i1, ptr %entered.at
  br i1 %was.entered, label %free, label %drop
free:
  store i64 0, ptr %in.use
  br label %drop
drop:
  %r = phi i64 [ 0, %leave ], [ 0, %free ], [ %r.next, %drop.one ]
  %dropping = icmp ult i64 %r, %registers.count
  br i1 %dropping, label %drop.one, label %end
drop.one:
  %dropped.at = getelementptr ptr, ptr %registers, i64 %r
  %dropped = load ptr, ptr %dropped.at
  call void @disown(ptr %dropped)
  %r.next = add i64 %r, 1
  br label %drop
end:
  ret ptr %result
}

OWNING

declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_GetItem(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i64 @PyObject_Size(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare i32 @PyObject_SetAttr(ptr, ptr, ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_ExceptionMatches(ptr)
declare void @PyErr_Clear()
declare i32 @memcmp(ptr, ptr, i64)
"""


def interpret_ir() -> str:
    """The module that defines `PyObject* genesis_interpret(self, arguments, count)`."""
    cases = " ".join(f"i64 {number}, label %{name}" for name, number in NUMBER_OF.items())
    parts = {"CASES": cases, "OWNING": owning_ir(), "VERSION_OFFSET": str(VERSION or 0)}
    return program_ir() + with_fields(re.sub("|".join(parts), lambda name: parts[name[0]], _INTERPRET))
