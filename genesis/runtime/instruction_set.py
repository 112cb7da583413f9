"""The instructions over Python objects, each with what it does in LLVM IR; `instructions_ir` makes a loop of them.

An instruction is {operation, a, b, c, d}. Its operands are registers, which own references, addresses of objects that are
kept alive, addresses of words, or numbers: `%a` is the number, `%a.register` the address of that register, `%a.held` the object
in it as the instruction begins, `%b.object` and `%a.word` the number as an address.

A body that defines `%value` is one that puts it into register a; null stands for an exception. Where it defines `%holds`, the
call is missed unless that is true, and where it defines `%skips`, a true one goes on c instructions further down. Bodies that
end otherwise jump to `%next`, `%skip`, `%problem` (an exception is set), `%doubt` (one may be set) or `%missed`. `%begin` is a
body's first block; its names and labels are its own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ROWS = """
ATTRIBUTE   a = getattr(b, name c); d is 0, or where {class, offset} of a slot is: instances hold it there
  %slot.at = call ptr @slot_of(ptr %b.held, i64 %d) else %any
slot:
  %held = load ptr, ptr %slot.at
  if ptr %held == null: %any
take:
  call void @own(ptr %held)
  br label %found
any:
  %looked.up = call ptr @PyObject_GetAttr(ptr %b.held, ptr %c.object)
found:
  %value = phi ptr [ %held, %take ], [ %looked.up, %any ]

ITEM        a = b[object c]
  %value = call ptr @PyObject_GetItem(ptr %b.held, ptr %c.object)

MOVE        a = what register b holds
  %value = load ptr, ptr %b.register
  call void @own(ptr %value)

OBJECT      a = the object that the word at b points to
  %value = load ptr, ptr %b.object
  call void @own(ptr %value)

CALL        a = object b(registers c, c + 1, .. of which there are d)
  %value = call ptr @PyObject_Vectorcall(ptr %b.object, ptr %c.register, i64 %d, ptr null)

TUPLE       a = (registers c, c + 1, .. of which there are d)
  %value = call ptr @PyTuple_New(i64 %d) else %problem
fill:
  for %place = 0 ult %d:
  %member = load ptr, ptr %c.register[%place]
  call void @own(ptr %member)
  call i32 @PyTuple_SetItem(ptr %value, i64 %place, ptr %member)
  next %place
filled:

NEW         a = object.__new__(b); c is that function, d the tuple ()
  %arguments = inttoptr i64 %d to ptr
  %value = call ptr %c.object(ptr %b.held, ptr %arguments, ptr null)

IS          a is object b
  %holds = icmp eq ptr %a.held, %b.object

IS_NOT      a is not object b
  %holds = icmp ne ptr %a.held, %b.object

SAME        a is what register b holds
  %holds = icmp eq ptr %a.held, %b.held

APART       a is not what register b holds
  %holds = icmp ne ptr %a.held, %b.held

CLASS       the class of a is object b
  %class = call ptr @class_of(ptr %a.held)
  %holds = icmp eq ptr %class, %b.object

SIZE        len(a) == number b
  %size = call i64 @PyObject_Size(ptr %a.held)
  if i64 %size slt 0: %problem
  %holds = icmp eq i64 %size, %b

EQUAL       a == object b
  %answer = call i32 @PyObject_RichCompareBool(ptr %a.held, ptr %b.object, i32 2)
  if i32 %answer slt 0: %problem
  %holds = icmp eq i32 %answer, 1

FALSE       not a
  %answer = call i32 @PyObject_IsTrue(ptr %a.held)
  if i32 %answer slt 0: %problem
  %holds = icmp eq i32 %answer, 0

WORD        the word at a is number b
  %word = load i64, ptr %a.word
  %holds = icmp eq i64 %word, %b

HELD        of the objects in list a, those marked in the words at b {how many, 0 or 1..} have other owners, and no others
  %size = call i64 @PyList_Size(ptr %a.held)
  %marks = load i64, ptr %b.object
  %marks.at = getelementptr i64, ptr %b.object, i64 1
  if i64 %size slt 0: %problem
  if i64 %size != %marks: %missed
  for %mark.number = 0 ult %marks:
  %object = call ptr @PyList_GetItem(ptr %a.held, i64 %mark.number)
  %owners = load i32, ptr %object
  %is.held = icmp ne i32 %owners, 1
  %mark = load i64, ptr %marks.at[%mark.number]
  %is.marked = icmp ne i64 %mark, 0
  if i1 %is.held != %is.marked: %missed
  next %mark.number
  br label %next

BYTES       the c bytes at the address in the word at a are those at b
  %bytes = load ptr, ptr %a.word
  %order = call i32 @memcmp(ptr %bytes, ptr %b.object, i64 %c)
  %holds = icmp eq i32 %order, 0

SKIP_IS     if a is object b: go on c instructions further down
  %skips = icmp eq ptr %a.held, %b.object

SKIP_OTHER  if a is not the object that the word at b points to: go on c instructions further down
  %right = load ptr, ptr %b.object
  %skips = icmp ne ptr %a.held, %right

SKIP_APART  if a is not what register b holds: go on c instructions further down
  %skips = icmp ne ptr %a.held, %b.held

SKIP_HALF   if the 32 bits at a are number b: go on c instructions further down
  %half = load i32, ptr %a.word
  %wanted = trunc i64 %b to i32
  %skips = icmp eq i32 %half, %wanted

SKIP_SAME   if the version of dict a is the word at b: go on c instructions further down
  %version.at = getelementptr i8, ptr %a.held, i64 VERSION_OFFSET
  %version = load i64, ptr %version.at
  %known = load i64, ptr %b.object
  %skips = icmp eq i64 %version, %known

SKIP_ALONE  if the objects at a {how many, objects.., counts..} have these counts: go on c instructions further down
  %objects = load i64, ptr %a.word
  %objects.at = getelementptr i64, ptr %a.word, i64 1
  %counts.at = getelementptr i64, ptr %objects.at, i64 %objects
  for %o = 0 ult %objects:                        ; counts have 32 bits in CPython 3.12 and later
  %object.at = getelementptr i64, ptr %objects.at, i64 %o
  %object = load ptr, ptr %object.at
  %owners = load i32, ptr %object
  %count.at = getelementptr i64, ptr %counts.at, i64 %o
  %wanted = load i32, ptr %count.at
  if i32 %owners != %wanted: %next
  next %o
  br label %skip

ENTER       the table is in use from here on
  %others = load i64, ptr %in.use
  if i64 %others != 0: %missed
  store i64 1, ptr %in.use
  store i1 true, ptr %entered.at
  br label %next

SET         setattr(a, name b, what register c holds); d as in ATTRIBUTE
  %slot.at = call ptr @slot_of(ptr %a.held, i64 %d) else %any
  %former = load ptr, ptr %slot.at
  call void @own(ptr %c.held)
  store ptr %c.held, ptr %slot.at
  call void @disown(ptr %former)
  br label %next
any:
  %failed = call i32 @PyObject_SetAttr(ptr %a.held, ptr %b.object, ptr %c.held)
  if i32 %failed != 0: %problem else %next

ADDRESS     the word at a = the address that b, an int, is, plus number c
  %address = call ptr @PyLong_AsVoidPtr(ptr %b.held)
  %word = ptrtoint ptr %address to i64
  %sum = add i64 %word, %c
  store i64 %sum, ptr %a.word
  br label %next

INTEGER     the word at a = the int that b is
  %word = call i64 @PyLong_AsLongLong(ptr %b.held)
  store i64 %word, ptr %a.word
  if i64 %word == -1: %doubt else %next

REAL        the word at a = the float that b is, as a double
  %word = call double @PyFloat_AsDouble(ptr %b.held)
  store double %word, ptr %a.word
  if double %word oeq -1.0: %doubt else %next

COPY        the word at a = the word at b
  %word = load i64, ptr %b.object
  store i64 %word, ptr %a.word
  br label %next

STORE       the word at a = number b
  store i64 %b, ptr %a.word
  br label %next

VERSION     the word at a = the version of dict b
  %version.at = getelementptr i8, ptr %b.held, i64 VERSION_OFFSET
  %version = load i64, ptr %version.at
  store i64 %version, ptr %a.word
  br label %next

ADD         the word at a += number b
  %before = load i64, ptr %a.word
  %sum = add i64 %before, %b
  store i64 %sum, ptr %a.word
  br label %next

RUN         run the program at a; if none of its kernels has reported a fault: go on c instructions further down
  %fault = call i64 @run(ptr %a.word, ptr null)
  %skips = icmp eq i64 %fault, 0

RUN_BESIDE  RUN while other threads may have the interpreter
  %fault = call i64 @run_beside_threads(ptr %a.word, i1 false)
  %skips = icmp eq i64 %fault, 0

MISS        the call is missed
  br label %missed

RETURN      return a
  call void @own(ptr %a.held)
  br label %leave
"""


class Instruction(NamedTuple):
    """A row: what an instruction does, and its blocks of IR, of which the first is named as the instruction is."""

    name: str
    meaning: str
    blocks: str
    putting: str | None  # the block from which its value goes into register a, if it has one


_ENDS = {
    "value": "  br label %put",
    "holds": "  br i1 %holds, label %next, label %missed",
    "skips": "  br i1 %skips, label %skip, label %next",
}


def _instruction(row: str) -> Instruction:
    heading, body = row.split("\n", 1)
    name, meaning = heading.split(maxsplit=1)
    body = "".join(f"  %{x}.held = load ptr, ptr %{x}.register\n" for x in "abc" if f"%{x}.held" in body) + body
    defined = {*re.findall(r"^(?:  %)?([\w.]+)(?=:| =)", body, re.MULTILINE)}
    lines = [*body.rstrip().splitlines(), *(end for result, end in _ENDS.items() if result in defined)]
    own = re.compile(rf"(^|%)({'|'.join(map(re.escape, defined)) or 'begin'})(?![\w.])")
    blocks = "\n".join(own.sub(rf"\1{name}.\2", line) for line in lines).replace("%begin ", f"%{name} ")
    labels = [name, *re.findall(r"^([\w.]+):", blocks, re.MULTILINE)]
    return Instruction(name, meaning, f"{name}:\n{blocks}\n", labels[-1] if "value" in defined else None)


INSTRUCTIONS = [_instruction(row) for row in re.split(r"\n\n(?=[A-Z])", _ROWS.strip())]
