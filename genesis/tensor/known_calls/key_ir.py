"""The key of a call as LLVM IR: the tuple of its operation, its mode, and the tokens of its arguments."""

from __future__ import annotations

LONGEST = 4096  # of a list of tensors: tokens lie on the stack

_KEY = """
; Store four objects, as arguments of a function; returns the place for the next one.
define internal ptr @put_all(ptr %at, ptr %first, ptr %second, ptr %third, ptr %fourth) alwaysinline {
  %second.at = getelementptr ptr, ptr %at, i64 1
  %third.at = getelementptr ptr, ptr %at, i64 2
  %fourth.at = getelementptr ptr, ptr %at, i64 3
  %next = getelementptr ptr, ptr %at, i64 4
  store ptr %first, ptr %at
  store ptr %second, ptr %second.at
  store ptr %third, ptr %third.at
  store ptr %fourth, ptr %fourth.at
  ret ptr %next
}

define internal void @disown_all(ptr %items, i64 %count) {
entry:
  br label %next
next:
  %k = phi i64 [ %count, %entry ], [ %k.last, %drop ]
  %is.end = icmp eq i64 %k, 0
  br i1 %is.end, label %end, label %drop
drop:
  %k.last = sub i64 %k, 1
  %item.at = getelementptr ptr, ptr %items, i64 %k.last
  %item = load ptr, ptr %item.at
  call void @disown(ptr %item)
  br label %next
end:
  ret void
}

; The tuple of up to two objects and of items, whose references it takes.
define internal ptr @tuple_of(ptr %first, ptr %second, ptr %items, i64 %count) {
entry:
  %no.first = icmp eq ptr %first, null
  %no.second = icmp eq ptr %second, null
  %one = select i1 %no.first, i64 0, i64 1
  %two = select i1 %no.second, i64 0, i64 1
  %heads = add i64 %one, %two
  %size = add i64 %heads, %count
  %tuple = call ptr @PyTuple_New(i64 %size)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %fail, label %made
made:
  br i1 %no.first, label %next, label %put.first
put.first:
  call void @own(ptr %first)
  call i32 @PyTuple_SetItem(ptr %tuple, i64 0, ptr %first)
  br i1 %no.second, label %next, label %put.second
put.second:
  call void @own(ptr %second)
  call i32 @PyTuple_SetItem(ptr %tuple, i64 1, ptr %second)
  br label %next
next:
  %k = phi i64 [ 0, %made ], [ 0, %put.first ], [ 0, %put.second ], [ %k.next, %put ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %put, label %done
put:
  %item.at = getelementptr ptr, ptr %items, i64 %k
  %item = load ptr, ptr %item.at
  %place = add i64 %k, %heads
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %place, ptr %item)
  %k.next = add i64 %k, 1
  br label %next
done:
  ret ptr %tuple
fail:
  call void @disown_all(ptr %items, i64 %count)
  ret ptr null
}

; The key of a call; without an operation, the token of a list of tensors. Other tokens are Python's: token(trace, operation,
; position, argument). Meanwhile others may see all objects that the collector knows, so tokens lie on the stack until the last
; one is found: no tuple has empty places.
define internal ptr @tuple_of_tokens(ptr %objects, ptr %trace, ptr %mode, ptr %operation, ptr %arguments) {
entry:
  %others.given = alloca [4 x ptr]
  load %objects: ALL_OBJECTS
  %is.list = icmp eq ptr %operation, %none
  %arguments.count = call i64 @PySequence_Size(ptr %arguments)
  %no.arguments = icmp slt i64 %arguments.count, 0
  br i1 %no.arguments, label %raise, label %begin
begin:
  %tokens = alloca ptr, i64 %arguments.count
  br label %next

next:
  %k = phi i64 [ 0, %begin ], [ %k.next, %put ]
  %more = icmp slt i64 %k, %arguments.count
  br i1 %more, label %one, label %all
one:
  %argument = call ptr @PySequence_GetItem(ptr %arguments, i64 %k)
  %no.argument = icmp eq ptr %argument, null
  br i1 %no.argument, label %fail, label %one.class
one.class:
  %class = call ptr @class_of(ptr %argument)
  %is.tensor = call i1 @is_plain_class(ptr %objects, ptr %class)
  br i1 %is.tensor, label %tensor, label %no.tensor
no.tensor:
  br i1 %is.list, label %other, label %no.member
no.member:
  %is.a.list = icmp eq ptr %class, %list.class
  %is.a.tuple = icmp eq ptr %class, %tuple.class
  %is.sequence = or i1 %is.a.list, %is.a.tuple
  br i1 %is.sequence, label %sequence, label %setting
sequence:
  %members = call i64 @PySequence_Size(ptr %argument)
  %members.less = sub i64 %members, 1
  %is.short = icmp ult i64 %members.less, LONGEST
  br i1 %is.short, label %sequence.first, label %setting
sequence.first:
  %member = call ptr @PySequence_GetItem(ptr %argument, i64 0)
  %member.class = call ptr @class_of(ptr %member)
  %is.of.tensors = call i1 @is_plain_class(ptr %objects, ptr %member.class)
  call void @disown(ptr %member)
  br i1 %is.of.tensors, label %list, label %setting

tensor:
  %tensor.token = call ptr @tensor_token(ptr %objects, ptr %trace, ptr %mode, ptr %argument)
  br label %found
list:
  %list.token = call ptr @tuple_of_tokens(ptr %objects, ptr %trace, ptr %mode, ptr %none, ptr %argument)
  br label %found
setting:
  %setting.token = call ptr @setting_token(ptr %objects, ptr %trace, ptr %operation, i64 %k, ptr %argument, ptr %class)
  br label %found
found:
  %token.found = phi ptr [ %tensor.token, %tensor ], [ %list.token, %list ], [ %setting.token, %setting ]
  %is.unknown = icmp eq ptr %token.found, null
  br i1 %is.unknown, label %unknown, label %put
unknown:
  %problem = call ptr @PyErr_Occurred()
  %is.left.to.python = icmp eq ptr %problem, null
  br i1 %is.left.to.python, label %other, label %fail.argument

put:
  %given.token = phi ptr [ %token.found, %found ], [ %asked, %ask ]
  %taken.at = getelementptr ptr, ptr %tokens, i64 %k
  store ptr %given.token, ptr %taken.at
  call void @disown(ptr %argument)
  %k.next = add i64 %k, 1
  br label %next

all:
  %first = select i1 %is.list, ptr %tensors.name, ptr %operation
  %second = select i1 %is.list, ptr null, ptr %mode
  %key = call ptr @tuple_of(ptr %first, ptr %second, ptr %tokens, i64 %arguments.count)
  ret ptr %key

other:
  %position = call ptr @PyLong_FromSsize_t(i64 %k)
  %no.position = icmp eq ptr %position, null
  br i1 %no.position, label %fail.argument, label %ask
ask:
  %others.next = call ptr @put_all(ptr %others.given, ptr %trace, ptr %operation, ptr %position, ptr %argument)
  %asked = call ptr @PyObject_Vectorcall(ptr %token, ptr %others.given, i64 4, ptr null)
  call void @disown(ptr %position)
  %no.answer = icmp eq ptr %asked, null
  br i1 %no.answer, label %fail.argument, label %put

fail.argument:
  call void @disown(ptr %argument)
  br label %fail
fail:
  call void @disown_all(ptr %tokens, i64 %k)
  br label %raise
raise:
  ret ptr null
}
"""


def key_ir() -> str:
    """The definition of `PyObject* tuple_of_tokens(objects, trace, mode, operation, arguments)`."""
    return _KEY.replace("LONGEST", str(LONGEST))
