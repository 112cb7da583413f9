"""Tokens of numbers, names, dtypes and tuples of ints as LLVM IR."""

from __future__ import annotations

_SETTING_TOKEN = """
; The token of an argument of this class at position %k; null without an error if Python has to find it.
define internal ptr @setting_token(ptr %objects, ptr %trace, ptr %operation, i64 %k, ptr %argument, ptr %class) {
entry:
  load %objects: ALL_OBJECTS
  %is.float = icmp eq ptr %class, %float.class
  %is.int = icmp eq ptr %class, %int.class
  %is.number = or i1 %is.float, %is.int
  br i1 %is.number, label %number, label %no.number
no.number:
  %is.bool = icmp eq ptr %class, %bool.class
  br i1 %is.bool, label %pack, label %no.bool
no.bool:
  %is.name = icmp eq ptr %class, %str.class
  %is.dtype = icmp eq ptr %class, %dtype.class
  %is.none = icmp eq ptr %argument, %none
  %is.either = or i1 %is.name, %is.dtype
  %is.itself = or i1 %is.either, %is.none
  br i1 %is.itself, label %itself, label %no.name
no.name:
  %is.tuple = icmp eq ptr %class, %tuple.class
  br i1 %is.tuple, label %tuple, label %other

tuple:                                            ; of what equals nothing else
  %members = call i64 @PyTuple_Size(ptr %argument)
  br label %member.next
member.next:
  %m = phi i64 [ 0, %tuple ], [ %m.next, %member ]
  %more.members = icmp slt i64 %m, %members
  br i1 %more.members, label %member, label %itself
member:
  %one = call ptr @PyTuple_GetItem(ptr %argument, i64 %m)
  %one.class.at = getelementptr ptr, ptr %one, i64 1
  %one.class = load ptr, ptr %one.class.at
  %is.member.int = icmp eq ptr %one.class, %int.class
  %is.member.name = icmp eq ptr %one.class, %str.class
  %is.member.none = icmp eq ptr %one, %none
  %is.member.either = or i1 %is.member.int, %is.member.name
  %is.distinct = or i1 %is.member.either, %is.member.none
  %m.next = add i64 %m, 1
  br i1 %is.distinct, label %member.next, label %other
itself:
  call void @own(ptr %argument)
  ret ptr %argument

number:                                           ; an operand, but for 0, 1 and -1, is an argument of the program
  get %operands = Operation.operands of %operation
  get %static = Operation.static_scalars of %operation
  %position = call ptr @PyLong_FromSsize_t(i64 %k)
  %is.operand = call i32 @PySequence_Contains(ptr %operands, ptr %position)
  call void @disown(ptr %position)
  %is.in = icmp eq i32 %is.operand, 1
  %is.free = icmp eq ptr %static, %false
  %is.argument = and i1 %is.in, %is.free
  br i1 %is.float, label %float, label %integer
float:
  %real = call double @PyFloat_AsDouble(ptr %argument)
  %size = call double @llvm.fabs.f64(double %real)
  %is.zero = fcmp oeq double %real, 0.0
  %is.one = fcmp oeq double %size, 1.0
  %is.literal.float = or i1 %is.zero, %is.one
  %is.float.setting = select i1 %is.argument, i1 %is.literal.float, i1 true
  %float.dtype = call ptr @PyList_GetItem(ptr %default.dtype, i64 0)
  br i1 %is.float.setting, label %float.setting, label %scalar
float.setting:                                    ; -0.0 and NaN are text: `of_float`
  %real.bits = bitcast double %real to i64
  %is.plus.zero = icmp eq i64 %real.bits, 0
  %is.nonzero = fcmp one double %real, 0.0
  %is.number.itself = or i1 %is.plus.zero, %is.nonzero
  br i1 %is.number.itself, label %pack, label %other
integer:
  br i1 %is.argument, label %integer.argument, label %pack
integer.argument:
  %int = call i64 @PyLong_AsLongLong(ptr %argument)
  %int.above = add i64 %int, 1
  %is.literal.integer = icmp ult i64 %int.above, 3
  br i1 %is.literal.integer, label %integer.literal, label %scalar
integer.literal:                                  ; or one beyond 64 bits
  %error = call ptr @PyErr_Occurred()
  %fits = icmp eq ptr %error, null
  br i1 %fits, label %pack, label %integer.beyond
integer.beyond:
  call void @PyErr_Clear()
  br label %other
pack:
  %setting = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %class, ptr %argument)
  ret ptr %setting

scalar:
  %number.dtype = phi ptr [ %float.dtype, %float ], [ %int64, %integer.argument ]
  %scalar.kind = call ptr (i64, ...) @PyTuple_Pack(i64 3, ptr %scalar.name, ptr %number.dtype, ptr %class)
  %no.scalar.kind = icmp eq ptr %scalar.kind, null
  br i1 %no.scalar.kind, label %other, label %scalar.find
scalar.find:
  get %scalar.step = Trace.step of %trace
  get %scalar.children = TrieNode.children of %scalar.step
  %scalar.child = call ptr @PyDict_GetItemWithError(ptr %scalar.children, ptr %scalar.kind)
  call void @disown(ptr %scalar.kind)
  %no.scalar.child = icmp eq ptr %scalar.child, null
  br i1 %no.scalar.child, label %other, label %scalar.append
scalar.append:
  %scalar.index = call ptr @advance(ptr %trace, ptr %scalar.child)
  %no.scalar.index = icmp eq ptr %scalar.index, null
  br i1 %no.scalar.index, label %other, label %scalar.note
scalar.note:
  get %scalars = Trace.scalars of %trace
  %unset.scalar = call i32 @PyList_Append(ptr %scalars, ptr %argument)
  %is.unset.scalar = icmp ne i32 %unset.scalar, 0
  br i1 %is.unset.scalar, label %fail.scalar, label %scalar.done
scalar.done:
  ret ptr %scalar.index
fail.scalar:
  call void @disown(ptr %scalar.index)
  br label %other
other:
  ret ptr null
}
"""


def setting_token_ir() -> str:
    """The definition of `PyObject* setting_token(objects, trace, operation, position, argument, class)`."""
    return _SETTING_TOKEN
