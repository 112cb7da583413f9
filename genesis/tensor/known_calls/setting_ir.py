"""Tokens of numbers, names, dtypes and tuples of ints as LLVM IR."""

SETTING_TOKEN = """
; The token of an argument of this class at position %k; null without an error if Python has to find it.
define internal ptr @setting_token(ptr %objects, ptr %trace, ptr %operation, i64 %k, ptr %argument, ptr %class) {
  %is.float = icmp eq ptr %class, %float.class
  if %is.float or ptr %class == %int.class: %number
  if ptr %class == %bool.class: %pack
  if ptr %class == %str.class or ptr %class == %dtype.class or ptr %argument == %none: %itself
  if ptr %class == %tuple.class: %tuple else %other

tuple:                                            ; of what equals nothing else
  %members = call i64 @PyTuple_Size(ptr %argument)
  for %m = 0 slt %members:
  %one = call ptr @PyTuple_GetItem(ptr %argument, i64 %m)
  %one.class = load ptr, ptr %one[1]
  unless ptr %one.class == %int.class or ptr %one.class == %str.class or ptr %one == %none: %other
  next %m
itself:
  own %argument
  ret ptr %argument

number:                                           ; an operand, but for 0, 1 and -1, is an argument of the program
  get %operands, %static = Operation.operands, static_scalars of %operation
  %position = call ptr @PyLong_FromSsize_t(i64 %k)
  %is.operand = call i32 @PySequence_Contains(ptr %operands, ptr %position)
  drop %position
  %is.in = icmp eq i32 %is.operand, 1
  %is.free = icmp eq ptr %static, %false
  %is.argument = and i1 %is.in, %is.free
  unless %is.float: %integer
float:
  %real = call double @PyFloat_AsDouble(ptr %argument)
  %size = call double @llvm.fabs.f64(double %real)
  %is.zero = fcmp oeq double %real, 0.0
  %is.one = fcmp oeq double %size, 1.0
  %is.literal.float = or i1 %is.zero, %is.one
  %is.float.setting = select i1 %is.argument, i1 %is.literal.float, i1 true
  %float.dtype = call ptr @PyList_GetItem(ptr %default.dtype, i64 0)
  unless %is.float.setting: %scalar
float.setting:                                    ; -0.0 and NaN are text: `of_float`
  %real.bits = bitcast double %real to i64
  if i64 %real.bits == 0 or double %real one 0.0: %pack else %other
integer:
  unless %is.argument: %pack
integer.argument:
  %int = call i64 @PyLong_AsLongLong(ptr %argument)
  %int.above = add i64 %int, 1
  if i64 %int.above uge 3: %scalar
integer.literal:                                  ; or one beyond 64 bits
  %error = call ptr @PyErr_Occurred() else %pack
  call void @PyErr_Clear()
  br label %other
pack:
  %setting = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %class, ptr %argument)
  ret ptr %setting

scalar:
  %number.dtype = phi ptr [ %float.dtype, %float ], [ %int64, %integer.argument ]
  %scalar.kind = call ptr (i64, ...) @PyTuple_Pack(i64 3, ptr %scalar.name, ptr %number.dtype, ptr %class) else %other
  get %scalar.step = Trace.step of %trace
  get %scalar.children = TrieNode.children of %scalar.step
  %scalar.child = call ptr @PyDict_GetItemWithError(ptr %scalar.children, ptr %scalar.kind)
  drop %scalar.kind
  if ptr %scalar.child == null: %other
  %scalar.index = call ptr @advance(ptr %trace, ptr %scalar.child) else %other
  get %scalars = Trace.scalars of %trace
  %unset.scalar = call i32 @PyList_Append(ptr %scalars, ptr %argument)
  if i32 %unset.scalar != 0: %fail.scalar
  ret ptr %scalar.index
fail.scalar:
  drop %scalar.index
other:
  ret ptr null
}
"""
