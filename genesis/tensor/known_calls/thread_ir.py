"""A call in its thread as LLVM IR: the open trace, modes, and the user's line."""

THREAD = """
; The code object of the nearest caller outside genesis, and its instruction, as `user_line` finds them.
define internal ptr @user_line(ptr %objects, ptr %offset.at) {
entry:
  %nearest = python %get.frame(%number.one)
  if ptr %nearest != null: %look.at
  call void @PyErr_Clear()
  own %none
  br label %nobody
look.at:
  %at = phi ptr [ %nearest, %entry ], [ %around, %back ]
  %code = call ptr @PyFrame_GetCode(ptr %at)
  %file = call ptr @PyObject_GetAttr(ptr %code, ptr %co_filename.name)
  %is.inside = call ptr @PyObject_GetItem(ptr %inside.files, ptr %file)
  drop %file, %is.inside
  if ptr %is.inside == null: ret ptr null dropping %code, %at
  if ptr %is.inside != %true: %found
back:
  drop %code
  %around = call ptr @PyFrame_GetBack(ptr %at)
  drop %at
  if ptr %around != null: %look.at
nobody:
  own %zero
  store ptr %zero, ptr %offset.at
  ret ptr %none
found:
  %instruction = call i32 @PyFrame_GetLasti(ptr %at)
  %offset.number = sext i32 %instruction to i64
  %offset = call ptr @PyLong_FromSsize_t(i64 %offset.number)
  drop %at
  store ptr %offset, ptr %offset.at
  ret ptr %code
}

; Whether gradients are recorded; with the dtype that autocast computes in, for an operation that it applies to.
define internal ptr @mode_of(ptr %objects, ptr %operation, ptr %grad) {
  get %policy = Operation.autocast of %operation
  if ptr %policy == %none: %simple
  %low = call ptr @PyObject_GetAttr(ptr %thread.state, ptr %autocast.name)
  drop %low
  if ptr %low == null: ret ptr null
  if ptr %low != %none: %both
simple:
  own %grad
  ret ptr %grad
both:
  %pair = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %grad, ptr %low)
  ret ptr %pair
}

; The call in the thread's open trace. Python records it for `genesis.compile`, and where the thread has several devices.
define internal ptr @call_in_thread(ptr %objects, ptr %given) {
  %offset.at = alloca ptr
  %operation = load ptr, ptr %given
  thread %recorder, %multi_device, %grad_enabled, %trace, %scope else ret ptr null
  if ptr %recorder == %none and ptr %multi_device == %false: %look
  %by.python = call ptr @PyObject_Vectorcall(ptr %call.by.python, ptr %given, i64 4, ptr null)
  ret ptr %by.python
look:
  own %trace, %grad_enabled, %scope
  if ptr %trace == %none: %open
look.closed:
  get %is.closed = Trace.closed of %trace
  if ptr %is.closed == %false: %enter
open:
  drop %trace
  %opened = call ptr @open_trace(ptr %objects, ptr %state) else ret ptr null dropping %scope, %grad_enabled

enter:                                            ; signal handlers and finalizers record into a trace of their own
  %entered = phi ptr [ %trace, %look.closed ], [ %opened, %open ]
  put %busy = Trace.closed of %entered
  store ptr null, ptr %offset.at
  %code = call ptr @user_line(ptr %objects, ptr %offset.at) else %end
line.found:
  %offset = load ptr, ptr %offset.at
  %mode = call ptr @mode_of(ptr %objects, ptr %operation, ptr %grad_enabled) else %end
record:
  %made = call ptr @record(
    ptr %objects, ptr %entered, ptr %mode, ptr %grad_enabled, ptr %given, ptr %code, ptr %offset, ptr %scope)
  drop %mode

end:                                              ; the trace is open again, unless the call has closed it
  %result = phi ptr [ null, %enter ], [ null, %line.found ], [ %made, %record ]
  %code.held = phi ptr [ null, %enter ], [ %code, %line.found ], [ %code, %record ]
  %offset.held = load ptr, ptr %offset.at
  get %closed.now = Trace.closed of %entered
  %is.busy = icmp eq ptr %closed.now, %busy
  %closed.then = select i1 %is.busy, ptr %false, ptr %closed.now
  put %closed.then = Trace.closed of %entered
  if ptr %result == null: %leave
weigh:
  get %weight, %limit = Trace.weight, limit of %entered
  %is.heavy = call i32 @PyObject_RichCompareBool(ptr %weight, ptr %limit, i32 4)
  if i32 %is.heavy == 0: %leave
long:
  %flushed = python %flush.long(%entered, %operation, %code.held, %offset.held)
  drop %flushed
  if ptr %flushed != null: %leave
drop:
  drop %result
leave:
  %left = phi ptr [ null, %end ], [ %result, %weigh ], [ %result, %long ], [ null, %drop ]
  ret ptr %left dropping %code.held, %offset.held, %scope, %grad_enabled, %entered
}
"""
