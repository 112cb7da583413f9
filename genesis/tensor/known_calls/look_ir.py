"""A look at values as LLVM IR: known ones are computed by the instructions of their plan, and read, without Python."""

LOOK = """
; Have an array's trace flushed by instructions that know it. Returns 1 if it was, 0 if Python has to, -1 with an error.
define internal i64 @flushed(ptr %objects, ptr %array) {
  get %trace = Array.trace of %array
  %hooks = call i64 @PyList_Size(ptr %flush.hooks)
  if ptr %trace == %none or i64 %hooks != 0: ret i64 0
  get %done, %closed, %step = Trace.done, closed, step of %trace
  get %plans = TrieNode.plans of %step
  %replays = call ptr @PyDict_GetItemWithError(ptr %plans, ptr %none)
  %no.replays = icmp eq ptr %replays, null
  %is.known = xor i1 %no.replays, true
  unless ptr %done == %false and ptr %closed != %busy and %is.known: ret i64 0
  own %trace, %replays
  %count = call i64 @PyTuple_Size(ptr %replays)
  for %k = 0 slt %count:
  %replay = call ptr @PyTuple_GetItem(ptr %replays, i64 %k)
  %answer = python %replay(%trace)
  drop %answer
  %is.raised = icmp eq ptr %answer, null
  if %is.raised or ptr %answer == %none: %end
  next %k
end:
  %ended = phi i64 [ 0, %end.k ], [ 1, %do.k ]
  %failed = phi i1 [ false, %end.k ], [ %is.raised, %do.k ]
  %result = select i1 %failed, i64 -1, i64 %ended
  ret i64 %result dropping %replays, %trace
}

; The number at an address.
define internal ptr @number_at(ptr %objects, ptr %dtype, ptr %at) {
  if ptr %dtype != %float32: %no.single
single:
  %float = load float, ptr %at
  %widened = fpext float %float to double
  br label %real
no.single:
  if ptr %dtype != %float64: %no.real
double:
  %wide = load double, ptr %at
real:
  %number = phi double [ %widened, %single ], [ %wide, %double ]
  %a.float = call ptr @PyFloat_FromDouble(double %number)
  ret ptr %a.float
no.real:
  if ptr %dtype != %int64: %no.long
long:
  %an.i64 = load i64, ptr %at
  br label %whole
no.long:
  if ptr %dtype != %int32: %small
int:
  %an.i32 = load i32, ptr %at
  %extended = sext i32 %an.i32 to i64
  br label %whole
small:
  %byte = load i8, ptr %at
  if ptr %dtype == %boolean: %truth
byte.found:
  %a.byte = zext i8 %byte to i64
whole:
  %integer = phi i64 [ %an.i64, %long ], [ %extended, %int ], [ %a.byte, %byte.found ]
  %an.int = call ptr @PyLong_FromLongLong(i64 %integer)
  ret ptr %an.int
truth:
  %is.true = icmp ne i8 %byte, 0
  %chosen = select i1 %is.true, ptr %true, ptr %false
  own %chosen
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
  %list = call ptr @PyList_New(i64 %places) else ret ptr null
  for %k = 0 slt %extent:
  unless %is.last: %part
  %at = load ptr, ptr %cursor
  %at.next = getelementptr i8, ptr %at, i64 %size
  store ptr %at.next, ptr %cursor
  %number.found = call ptr @number_at(ptr %objects, ptr %dtype, ptr %at) else %fail
  call i32 @PyList_SetItem(ptr %list, i64 %k, ptr %number.found)
  br label %next.k
part:
  %part.list = call ptr @listed(ptr %objects, ptr %shape, i64 %inner, ptr %dtype, i64 %size, ptr %cursor) else %fail
  %unlisted = call i32 @PyList_Append(ptr %list, ptr %part.list)
  drop %part.list
  if i32 %unlisted != 0: %fail
  next %k
  ret ptr %list
fail:
  ret ptr null dropping %list
}

; The values in memory; null without an error for those that Python reads: strided, of another device or dtype, or several
; numbers where one is wanted.
define internal ptr @read(ptr %objects, ptr %array, ptr %memory, ptr %is.number) {
  %cursor = alloca ptr
  get %buffer, %strides, %layout = Memory.buffer, strides, layout of %memory
  get %device = Buffer.device of %buffer
  get %node = Array.node of %array
  get %dtype = Node.dtype of %node
  %shape = call ptr @PyTuple_GetItem(ptr %layout, i64 0)
  unless ptr %device == %cpu.device and ptr %strides == %none: ret ptr null
  %is.understood = call i32 @PySequence_Contains(ptr %looked.at, ptr %dtype)
  if i32 %is.understood != 1: ret ptr null
  get %pointer = Memory.pointer of %memory
  %at = call ptr @PyLong_AsVoidPtr(ptr %pointer)
  %rank = call i64 @PyTuple_Size(ptr %shape)
  if i64 %rank == 0: %scalar
  if ptr %is.number != %true: %list
  %count = call i64 @elements_of(ptr %shape)
  if i64 %count != 1: ret ptr null
scalar:
  %number = call ptr @number_at(ptr %objects, ptr %dtype, ptr %at)
  ret ptr %number
list:
  get %itemsize = DType.itemsize of %dtype
  %size = call i64 @PyLong_AsSsize_t(ptr %itemsize)
  store ptr %at, ptr %cursor
  own %shape
  %lists = call ptr @listed(ptr %objects, ptr %shape, i64 0, ptr %dtype, i64 %size, ptr %cursor)
  ret ptr %lists dropping %shape
}

; The values of a tensor as nested lists; its number, if that is wanted. Python reads them for a recording, and what it alone
; knows.
define internal ptr @look(ptr %objects, ptr %given) {
  load %given: 0 ptr tensor, 1 ptr is.number
  %class = call ptr @class_of(ptr %tensor)
  %is.plain = call i1 @is_plain_class(ptr %objects, ptr %class)
  unless %is.plain: %python
  thread %recorder else ret ptr null
  if ptr %recorder != %none: %python
  %array = call ptr @present_array(ptr %objects, ptr %tensor) else %python
  get %memory.before = Array.memory of %array
  if ptr %memory.before != %none: %computed
  %done = call i64 @flushed(ptr %objects, ptr %array)
  if i64 %done slt 0: ret ptr null dropping %array
computed:
  get %memory = Array.memory of %array
  if ptr %memory == %none: %left
  own %memory
  %values = call ptr @read(ptr %objects, ptr %array, ptr %memory, ptr %is.number)
  drop %memory
  if ptr %values == null: %unread
  ret ptr %values dropping %array
unread:
  %problem = call ptr @PyErr_Occurred()
  if ptr %problem != null: ret ptr null dropping %array
left:
  drop %array
python:
  %by.python = call ptr @PyObject_Vectorcall(ptr %look.by.python, ptr %given, i64 2, ptr null)
  ret ptr %by.python
}
"""
