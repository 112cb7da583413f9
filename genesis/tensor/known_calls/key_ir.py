"""The key of a call as LLVM IR."""

from __future__ import annotations

_CALL_KEY = """
; The key of a call. Other arguments' tokens are Python's: token(trace, operation, position, argument). Meanwhile others may see
; all objects that the collector knows, so tokens lie on the stack until the last one is found: no tuple has empty places.
define internal ptr @call_key(ptr %objects, ptr %trace, ptr %operation, ptr %mode, ptr %arguments, ptr %recorder) {
entry:
  %others.given = alloca [4 x ptr]
  load %objects: ALL_OBJECTS
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
  %class.at = getelementptr ptr, ptr %argument, i64 1
  %class = load ptr, ptr %class.at
  %is.tensor = icmp eq ptr %class, %tensor.class
  br i1 %is.tensor, label %tensor, label %no.tensor
no.tensor:
  %is.plain.class = call i32 @PySet_Contains(ptr %plain.classes, ptr %class)
  %is.parameter = icmp eq i32 %is.plain.class, 1
  br i1 %is.parameter, label %tensor, label %setting

tensor:
  %tensor.token = call ptr @tensor_token(ptr %objects, ptr %trace, ptr %mode, ptr %argument, ptr %recorder)
  br label %found
setting:
  %setting.token = call ptr @setting_token(ptr %objects, ptr %trace, ptr %operation, i64 %k, ptr %argument, ptr %class)
  br label %found
found:
  %token.found = phi ptr [ %tensor.token, %tensor ], [ %setting.token, %setting ]
  %is.unknown = icmp eq ptr %token.found, null
  br i1 %is.unknown, label %unknown, label %put
unknown:
  %problem = call ptr @PyErr_Occurred()
  %is.left.to.python = icmp eq ptr %problem, null
  br i1 %is.left.to.python, label %other, label %fail.argument

put:
  %given.token = phi ptr [ %token.found, %found ], [ %asked, %ask.done ]
  %taken.at = getelementptr ptr, ptr %tokens, i64 %k
  store ptr %given.token, ptr %taken.at
  call void @disown(ptr %argument)
  %k.next = add i64 %k, 1
  br label %next

all:
  %key.size = add i64 %arguments.count, 2
  %key = call ptr @PyTuple_New(i64 %key.size)
  %no.key = icmp eq ptr %key, null
  br i1 %no.key, label %fail, label %key.made
key.made:
  call void @own(ptr %operation)
  call i32 @PyTuple_SetItem(ptr %key, i64 0, ptr %operation)
  call void @own(ptr %mode)
  call i32 @PyTuple_SetItem(ptr %key, i64 1, ptr %mode)
  br label %move
move:
  %m = phi i64 [ 0, %key.made ], [ %m.next, %move.one ]
  %moving = icmp slt i64 %m, %arguments.count
  br i1 %moving, label %move.one, label %done
move.one:
  %moved.at = getelementptr ptr, ptr %tokens, i64 %m
  %moved = load ptr, ptr %moved.at
  %m.place = add i64 %m, 2
  call i32 @PyTuple_SetItem(ptr %key, i64 %m.place, ptr %moved)
  %m.next = add i64 %m, 1
  br label %move
done:
  ret ptr %key

other:
  %position = call ptr @PyLong_FromSsize_t(i64 %k)
  %others.second = getelementptr ptr, ptr %others.given, i64 1
  %others.third = getelementptr ptr, ptr %others.given, i64 2
  %others.fourth = getelementptr ptr, ptr %others.given, i64 3
  store ptr %trace, ptr %others.given
  store ptr %operation, ptr %others.second
  store ptr %position, ptr %others.third
  store ptr %argument, ptr %others.fourth
  %no.position = icmp eq ptr %position, null
  br i1 %no.position, label %fail.argument, label %ask
ask:
  %asked = call ptr @PyObject_Vectorcall(ptr %token, ptr %others.given, i64 4, ptr null)
  call void @disown(ptr %position)
  %no.answer = icmp eq ptr %asked, null
  br i1 %no.answer, label %fail.argument, label %ask.done
ask.done:
  br label %put

fail.argument:
  call void @disown(ptr %argument)
  br label %fail
fail:
  %d = phi i64 [ %k, %one ], [ %k, %fail.argument ], [ %arguments.count, %all ], [ %d.last, %drop ]
  %dropped = icmp eq i64 %d, 0
  br i1 %dropped, label %raise, label %drop
drop:
  %d.last = sub i64 %d, 1
  %drop.at = getelementptr ptr, ptr %tokens, i64 %d.last
  %drop.token = load ptr, ptr %drop.at
  call void @disown(ptr %drop.token)
  br label %fail
raise:
  ret ptr null
}
"""


def call_key_ir() -> str:
    """The definition of `PyObject* call_key(objects, trace, operation, mode, arguments, recorder)`."""
    return _CALL_KEY
