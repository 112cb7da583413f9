"""The key of a call as LLVM IR: the tuple of its operation, its mode, and the tokens of its arguments."""

from __future__ import annotations

from genesis.runtime.short_ir import with_words

LONGEST = 4096  # of a list of tensors: tokens lie on the stack

KEY = with_words("""
define internal void @disown_all(ptr %items, i64 %count) {
entry:
  for %k = 0 slt %count:
  %item = load ptr, ptr %items[%k]
  drop %item
  next %k
  ret void
}

; The tuple of up to two objects and of items, whose references it takes.
define internal ptr @tuple_of(ptr %first, ptr %second, ptr %items, i64 %count) {
  %no.first = icmp eq ptr %first, null
  %no.second = icmp eq ptr %second, null
  %one = select i1 %no.first, i64 0, i64 1
  %two = select i1 %no.second, i64 0, i64 1
  %heads = add i64 %one, %two
  %size = add i64 %heads, %count
  %tuple = call ptr @PyTuple_New(i64 %size) else %fail
  if %no.first: %next
  own %first
  call i32 @PyTuple_SetItem(ptr %tuple, i64 0, ptr %first)
  if %no.second: %next
  own %second
  call i32 @PyTuple_SetItem(ptr %tuple, i64 1, ptr %second)
next:
  for %k = 0 slt %count:
  %item = load ptr, ptr %items[%k]
  %place = add i64 %k, %heads
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %place, ptr %item)
  next %k
  ret ptr %tuple
fail:
  call void @disown_all(ptr %items, i64 %count)
  ret ptr null
}

; The key of a call; without an operation, the token of a list of tensors. Other tokens are Python's: token(trace, operation,
; position, argument). Meanwhile others may see all objects that the collector knows, so tokens lie on the stack until the last
; one is found: no tuple has empty places.
define internal ptr @tuple_of_tokens(ptr %objects, ptr %trace, ptr %mode, ptr %operation, ptr %arguments) {
  %is.list = icmp eq ptr %operation, %none
  %arguments.count = call i64 @PySequence_Size(ptr %arguments)
  if i64 %arguments.count slt 0: ret ptr null
  %tokens = alloca ptr, i64 %arguments.count

  for %k = 0 slt %arguments.count:
  %argument = call ptr @PySequence_GetItem(ptr %arguments, i64 %k) else %fail
  %class = call ptr @class_of(ptr %argument)
  %is.tensor = call i1 @is_plain_class(ptr %objects, ptr %class)
  if %is.tensor: %tensor
  if %is.list: %other
  unless ptr %class == %list.class or ptr %class == %tuple.class: %setting
  %members = call i64 @PySequence_Size(ptr %argument)
  %members.less = sub i64 %members, 1
  if i64 %members.less uge LONGEST: %setting
  %member = call ptr @PySequence_GetItem(ptr %argument, i64 0)
  %member.class = call ptr @class_of(ptr %member)
  %is.of.tensors = call i1 @is_plain_class(ptr %objects, ptr %member.class)
  drop %member
  if %is.of.tensors: %list else %setting

tensor:
  %tensor.token = call ptr @tensor_token(ptr %objects, ptr %trace, ptr %mode, ptr %argument)
  br label %found
list:
  %list.token = call ptr @tuple_of_tokens(ptr %objects, ptr %trace, ptr %mode, ptr %none, ptr %argument)
  br label %found
setting:
  %setting.token = call ptr @setting_token(ptr %objects, ptr %trace, ptr %operation, i64 %k, ptr %argument, ptr %class)
found:
  %token.found = phi ptr [ %tensor.token, %tensor ], [ %list.token, %list ], [ %setting.token, %setting ]
  if ptr %token.found != null: %put
  %problem = call ptr @PyErr_Occurred()
  if ptr %problem == null: %other else %fail.argument

put:
  %given.token = phi ptr [ %token.found, %found ], [ %asked, %ask ]
  store ptr %given.token, ptr %tokens[%k]
  drop %argument
  next %k
  %first = select i1 %is.list, ptr %tensors.name, ptr %operation
  %second = select i1 %is.list, ptr null, ptr %mode
  %key = call ptr @tuple_of(ptr %first, ptr %second, ptr %tokens, i64 %arguments.count)
  ret ptr %key

other:
  %position = call ptr @PyLong_FromSsize_t(i64 %k) else %fail.argument
ask:
  %asked = python %token(%trace, %operation, %position, %argument)
  drop %position
  if ptr %asked == null: %fail.argument else %put

fail.argument:
  drop %argument
fail:
  call void @disown_all(ptr %tokens, i64 %k)
  ret ptr null
}
""", LONGEST=LONGEST)
