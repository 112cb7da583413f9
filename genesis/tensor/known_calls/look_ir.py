"""A look at values as LLVM IR: known ones are computed by the instructions of their plan, and read, without Python."""

from __future__ import annotations

_LOOK = """
; Have an array's trace flushed by instructions that know it. Returns 1 if it was, 0 if Python has to, -1 with an error.
define internal i64 @flushed(ptr %objects, ptr %array) {
entry:
  %given = alloca ptr
  load %objects: ALL_OBJECTS
  get %trace = Array.trace of %array
  %hooks = call i64 @PyList_Size(ptr %flush.hooks)
  %no.trace = icmp eq ptr %trace, %none
  %is.observed = icmp ne i64 %hooks, 0
  %is.other = or i1 %no.trace, %is.observed
  br i1 %is.other, label %no, label %open
open:
  get %done = Trace.done of %trace
  get %closed = Trace.closed of %trace
  get %step = Trace.step of %trace
  get %plans = TrieNode.plans of %step
  %replays = call ptr @PyDict_GetItemWithError(ptr %plans, ptr %none)
  %no.replays = icmp eq ptr %replays, null
  %is.pending = icmp eq ptr %done, %false
  %is.free = icmp ne ptr %closed, %busy
  %is.known = xor i1 %no.replays, true
  %may.a = and i1 %is.pending, %is.free
  %may = and i1 %may.a, %is.known
  br i1 %may, label %begin, label %no
begin:
  call void @own(ptr %trace)
  call void @own(ptr %replays)
  store ptr %trace, ptr %given
  %count = call i64 @PyTuple_Size(ptr %replays)
  br label %next
next:
  %k = phi i64 [ 0, %begin ], [ %k.next, %missed ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %end
one:
  %replay = call ptr @PyTuple_GetItem(ptr %replays, i64 %k)
  %answer = call ptr @PyObject_Vectorcall(ptr %replay, ptr %given, i64 1, ptr null)
  call void @disown(ptr %answer)
  %is.raised = icmp eq ptr %answer, null
  %is.done = icmp eq ptr %answer, %none
  %is.over = or i1 %is.raised, %is.done
  br i1 %is.over, label %end, label %missed
missed:
  %k.next = add i64 %k, 1
  br label %next
end:
  %ended = phi i64 [ 0, %next ], [ 1, %one ]
  %failed = phi i1 [ false, %next ], [ %is.raised, %one ]
  %result = select i1 %failed, i64 -1, i64 %ended
  call void @disown(ptr %replays)
  call void @disown(ptr %trace)
  ret i64 %result
no:
  ret i64 0
}

; The number at an address.
define internal ptr @number_at(ptr %objects, ptr %dtype, ptr %at) {
entry:
  load %objects: ALL_OBJECTS
  %is.float32 = icmp eq ptr %dtype, %float32
  br i1 %is.float32, label %single, label %no.single
single:
  %float = load float, ptr %at
  %widened = fpext float %float to double
  br label %real
no.single:
  %is.float64 = icmp eq ptr %dtype, %float64
  br i1 %is.float64, label %double, label %no.real
double:
  %wide = load double, ptr %at
  br label %real
real:
  %number = phi double [ %widened, %single ], [ %wide, %double ]
  %a.float = call ptr @PyFloat_FromDouble(double %number)
  ret ptr %a.float
no.real:
  %is.int64 = icmp eq ptr %dtype, %int64
  br i1 %is.int64, label %long, label %no.long
long:
  %an.i64 = load i64, ptr %at
  br label %whole
no.long:
  %is.int32 = icmp eq ptr %dtype, %int32
  br i1 %is.int32, label %int, label %small
int:
  %an.i32 = load i32, ptr %at
  %extended = sext i32 %an.i32 to i64
  br label %whole
small:
  %byte = load i8, ptr %at
  %is.bool = icmp eq ptr %dtype, %boolean
  br i1 %is.bool, label %truth, label %byte.found
byte.found:
  %a.byte = zext i8 %byte to i64
  br label %whole
whole:
  %integer = phi i64 [ %an.i64, %long ], [ %extended, %int ], [ %a.byte, %byte.found ]
  %an.int = call ptr @PyLong_FromLongLong(i64 %integer)
  ret ptr %an.int
truth:
  %is.true = icmp ne i8 %byte, 0
  %chosen = select i1 %is.true, ptr %true, ptr %false
  call void @own(ptr %chosen)
  ret ptr %chosen
}

; The numbers from the address at %cursor on, which is moved behind them, as lists along the axes from %axis on. Only a list of
; numbers has empty places for a while: nothing runs before they are filled.
define internal ptr @listed(ptr %objects, ptr %shape, i64 %axis, ptr %dtype, i64 %size, ptr %cursor) {
entry:
  %rank = call i64 @PyTuple_Size(ptr %shape)
  %extent.object = call ptr @PyTuple_GetItem(ptr %shape, i64 %axis)
  %extent = call i64 @PyLong_AsSsize_t(ptr %extent.object)
  %inner = add i64 %axis, 1
  %is.last = icmp eq i64 %inner, %rank
  %places = select i1 %is.last, i64 %extent, i64 0
  %list = call ptr @PyList_New(i64 %places)
  %no.list = icmp eq ptr %list, null
  br i1 %no.list, label %raise, label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.number, %put ], [ %k.part, %append ]
  %more = icmp slt i64 %k, %extent
  br i1 %more, label %one, label %done
one:
  br i1 %is.last, label %number, label %part
number:
  %at = load ptr, ptr %cursor
  %at.next = getelementptr i8, ptr %at, i64 %size
  store ptr %at.next, ptr %cursor
  %number.found = call ptr @number_at(ptr %objects, ptr %dtype, ptr %at)
  %no.number = icmp eq ptr %number.found, null
  br i1 %no.number, label %fail, label %put
put:
  call i32 @PyList_SetItem(ptr %list, i64 %k, ptr %number.found)
  %k.number = add i64 %k, 1
  br label %next
part:
  %part.list = call ptr @listed(ptr %objects, ptr %shape, i64 %inner, ptr %dtype, i64 %size, ptr %cursor)
  %no.part = icmp eq ptr %part.list, null
  br i1 %no.part, label %fail, label %append
append:
  %unlisted = call i32 @PyList_Append(ptr %list, ptr %part.list)
  call void @disown(ptr %part.list)
  %is.unlisted = icmp ne i32 %unlisted, 0
  %k.part = add i64 %k, 1
  br i1 %is.unlisted, label %fail, label %next
done:
  ret ptr %list
fail:
  call void @disown(ptr %list)
  br label %raise
raise:
  ret ptr null
}

; Whether an array of this shape is one number.
define internal i1 @is_one(ptr %shape) {
entry:
  %rank = call i64 @PyTuple_Size(ptr %shape)
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %one ]
  %more = icmp slt i64 %k, %rank
  br i1 %more, label %one, label %yes
one:
  %extent.object = call ptr @PyTuple_GetItem(ptr %shape, i64 %k)
  %extent = call i64 @PyLong_AsSsize_t(ptr %extent.object)
  %is.single = icmp eq i64 %extent, 1
  %k.next = add i64 %k, 1
  br i1 %is.single, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The values in memory; null without an error for those that Python reads: strided, of another device or dtype, or several
; numbers where one is wanted.
define internal ptr @read(ptr %objects, ptr %array, ptr %memory, ptr %is.number) {
entry:
  %cursor = alloca ptr
  load %objects: ALL_OBJECTS
  get %buffer = Memory.buffer of %memory
  get %device = Buffer.device of %buffer
  get %strides = Memory.strides of %memory
  get %node = Array.node of %array
  get %dtype = Node.dtype of %node
  get %layout = Memory.layout of %memory
  %shape = call ptr @PyTuple_GetItem(ptr %layout, i64 0)
  %is.host = icmp eq ptr %device, %cpu.device
  %is.plain = icmp eq ptr %strides, %none
  %is.here = and i1 %is.host, %is.plain
  br i1 %is.here, label %kind, label %no
kind:
  %is.understood = call i32 @PySequence_Contains(ptr %looked.at, ptr %dtype)
  %is.kind = icmp eq i32 %is.understood, 1
  br i1 %is.kind, label %address, label %no
address:
  get %pointer = Memory.pointer of %memory
  %at = call ptr @PyLong_AsVoidPtr(ptr %pointer)
  %rank = call i64 @PyTuple_Size(ptr %shape)
  %is.scalar = icmp eq i64 %rank, 0
  br i1 %is.scalar, label %scalar, label %several
several:
  %is.asked = icmp eq ptr %is.number, %true
  br i1 %is.asked, label %single, label %list
single:
  %is.one = call i1 @is_one(ptr %shape)
  br i1 %is.one, label %scalar, label %no
scalar:
  %number = call ptr @number_at(ptr %objects, ptr %dtype, ptr %at)
  ret ptr %number
list:
  get %itemsize = DType.itemsize of %dtype
  %size = call i64 @PyLong_AsSsize_t(ptr %itemsize)
  store ptr %at, ptr %cursor
  call void @own(ptr %shape)
  %lists = call ptr @listed(ptr %objects, ptr %shape, i64 0, ptr %dtype, i64 %size, ptr %cursor)
  call void @disown(ptr %shape)
  ret ptr %lists
no:
  ret ptr null
}

; The values of a tensor as nested lists; its number, if that is wanted. Python reads them for a recording, and what it alone
; knows.
define internal ptr @look(ptr %objects, ptr %given) {
entry:
  load %objects: ALL_OBJECTS
  load %given: 0 ptr tensor, 1 ptr is.number
  %class = call ptr @class_of(ptr %tensor)
  %is.plain = call i1 @is_plain_class(ptr %objects, ptr %class)
  br i1 %is.plain, label %thread, label %python
thread:
  %state = call ptr @PyObject_GetAttr(ptr %thread.state, ptr %dict.name)
  %no.state = icmp eq ptr %state, null
  br i1 %no.state, label %raise, label %thread.found
thread.found:
  %recorder = call ptr @PyDict_GetItemWithError(ptr %state, ptr %recorder.name)
  call void @disown(ptr %state)
  %is.unheard = icmp eq ptr %recorder, %none
  br i1 %is.unheard, label %find, label %python
find:
  %array = call ptr @present_array(ptr %objects, ptr %tensor)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %python, label %ask
ask:
  get %memory.before = Array.memory of %array
  %is.pending = icmp eq ptr %memory.before, %none
  br i1 %is.pending, label %flush, label %computed
flush:
  %done = call i64 @flushed(ptr %objects, ptr %array)
  %is.raised = icmp slt i64 %done, 0
  br i1 %is.raised, label %fail, label %computed
computed:
  get %memory = Array.memory of %array
  %is.lost = icmp eq ptr %memory, %none
  br i1 %is.lost, label %left, label %read
read:
  call void @own(ptr %memory)
  %values = call ptr @read(ptr %objects, ptr %array, ptr %memory, ptr %is.number)
  call void @disown(ptr %memory)
  %is.unread = icmp eq ptr %values, null
  br i1 %is.unread, label %unread, label %done.array
done.array:
  call void @disown(ptr %array)
  ret ptr %values
unread:
  %problem = call ptr @PyErr_Occurred()
  %is.other = icmp eq ptr %problem, null
  br i1 %is.other, label %left, label %fail
left:
  call void @disown(ptr %array)
  br label %python
python:
  %by.python = call ptr @PyObject_Vectorcall(ptr %look.by.python, ptr %given, i64 2, ptr null)
  ret ptr %by.python
fail:
  call void @disown(ptr %array)
  br label %raise
raise:
  ret ptr null
}
"""


def look_ir() -> str:
    """The definition of `PyObject* look(objects, given)`, of a tensor, and whether it is to be read as one number."""
    return _LOOK
