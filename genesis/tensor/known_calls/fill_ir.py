"""Writes of a number, of random ones, or of another tensor's values, as LLVM IR: into memory that a tensor alone owns."""

from __future__ import annotations

from genesis.runtime.short_ir import with_words

MOST_BYTES = 1 << 18  # kernels write more, by several threads

FILL = with_words("""
; Whether memory is contiguous and on the host.
define internal i1 @is_simple(ptr %objects, ptr %memory) {
  if ptr %memory == %none: ret i1 false
  get %strides, %buffer = Memory.strides, buffer of %memory
  get %device = Buffer.device of %buffer
  unless ptr %strides == %none and ptr %device == %cpu.device: ret i1 false
  ret i1 true
}

; Whether an array, which the caller owns, is over memory that a tensor alone has: so many arrays of this caller are over its
; buffer, which neither the outside nor a trace knows.
define internal i1 @is_sole(ptr %objects, ptr %array, i32 %arrays) {
  get %trace, %memory = Array.trace, memory of %array
  %is.simple = call i1 @is_simple(ptr %objects, ptr %memory)
  unless %is.simple: ret i1 false
  get %buffer = Memory.buffer of %memory
  get %origin = Buffer.origin of %buffer
  %is.shared = call i1 @is_shared(ptr %objects, ptr %buffer)
  %array.owners = load i32, ptr %array
  %memory.owners = load i32, ptr %memory
  %buffer.owners = load i32, ptr %buffer
  if ptr %trace != %none or ptr %origin != %none or %is.shared: ret i1 false
  unless i32 %array.owners == 2 and i32 %memory.owners == 1 and i32 %buffer.owners == %arrays: ret i1 false
  ret i1 true
}

; What writes a number: 16 bytes of elements; for a draw (kind, factor, shift), its function of memory and the two numbers. None
; if Python has to write it, null with an error. Of -0.0, Python's cache knows 0.0.
define internal ptr @pattern_for(ptr %objects, ptr %tensor, ptr %value) {
  %class = call ptr @class_of(ptr %value)
  if ptr %class == %tuple.class: %draw
  if ptr %class == %int.class or ptr %class == %bool.class: %ask
  if ptr %class != %float.class: %unknown
  %real = call double @PyFloat_AsDouble(ptr %value)
  %bits = bitcast double %real to i64
  if i64 %bits == -9223372036854775808: %unknown
ask:
  %array = call ptr @present_array(ptr %objects, ptr %tensor) else %unknown
  get %node = Array.node of %array
  get %dtype = Node.dtype of %node
  %pattern = python %element.pattern(%value, %dtype)
  drop %array
  ret ptr %pattern
draw:
  %drawn.array = call ptr @present_array(ptr %objects, ptr %tensor) else %unknown
  get %drawn.node = Array.node of %drawn.array
  get %drawn.shape, %drawn.dtype = Node.shape, dtype of %drawn.node
  %kind = call ptr @PyTuple_GetItem(ptr %value, i64 0)
  %number = call i64 @elements_of(ptr %drawn.shape)
  %count = call ptr @PyLong_FromSsize_t(i64 %number)
  %key = call ptr (i64, ...) @PyTuple_Pack(i64 3, ptr %kind, ptr %drawn.dtype, ptr %count)
  %program = call ptr @PyObject_GetItem(ptr %draw.programs, ptr %key)
  drop %key, %count, %drawn.array
  ret ptr %program
unknown:
  call void @own(ptr %none)
  ret ptr %none
}

; Write 16 bytes over and over, so many bytes in all.
define internal void @repeat(ptr %pattern, ptr %at, i64 %bytes) {
entry:
  %pattern.at = call ptr @PyBytes_AsString(ptr %pattern)
  %sixteen = load <16 x i8>, ptr %pattern.at, align 1
  %most = sub i64 %bytes, 16
  for %k = 0 sle %most by 16:
  %place = getelementptr i8, ptr %at, i64 %k
  store <16 x i8> %sixteen, ptr %place, align 1
  next %k
  %left = sub i64 %bytes, %k
  %rest = getelementptr i8, ptr %at, i64 %k
  call void @llvm.memmove.p0.p0.i64(ptr %rest, ptr %pattern.at, i64 %left, i1 false)
  ret void
}

; Write the values of another tensor, like the one with %node in %buffer; whether that was done.
define internal i1 @copied(ptr %objects, ptr %value, ptr %node, ptr %buffer, ptr %at, i64 %bytes) {
  %value has requires_grad false, element_map none else ret i1 false
  %source = call ptr @present_array(ptr %objects, ptr %value) else ret i1 false
  drop %source
  get %source.node, %memory = Array.node, memory of %source
  %is.alike = call i1 @is_alike(ptr %objects, ptr %node, ptr %source.node)
  %is.simple = call i1 @is_simple(ptr %objects, ptr %memory)
  unless %is.alike and %is.simple: ret i1 false
  get %from, %source.buffer = Memory.pointer, buffer of %memory
  if ptr %source.buffer == %buffer: ret i1 false
  %source.at = call ptr @PyLong_AsVoidPtr(ptr %from)
  call void @llvm.memmove.p0.p0.i64(ptr %at, ptr %source.at, i64 %bytes, i1 false)
  ret i1 true
}

; Write a pattern or a draw, or without one the values of a tensor, into the memory of an array; whether that was done.
define internal i1 @put(ptr %objects, ptr %array, ptr %value, ptr %pattern) {
  get %memory, %node = Array.memory, node of %array
  get %shape, %dtype = Node.shape, dtype of %node
  get %itemsize = DType.itemsize of %dtype
  get %pointer, %buffer = Memory.pointer, buffer of %memory
  %at = call ptr @PyLong_AsVoidPtr(ptr %pointer)
  %size = call i64 @PyLong_AsSsize_t(ptr %itemsize)
  %count = call i64 @elements_of(ptr %shape)
  %bytes = mul i64 %count, %size
  if i64 %bytes ugt MOST_BYTES: ret i1 false
  %value.class = call ptr @class_of(ptr %value)
  if ptr %value.class == %tuple.class: %draw
  if ptr %pattern == %none: %copy
  call void @repeat(ptr %pattern, ptr %at, i64 %bytes)
  ret i1 true
draw:
  %factor = call ptr @PyTuple_GetItem(ptr %value, i64 1)
  %shift = call ptr @PyTuple_GetItem(ptr %value, i64 2)
  %drawn = python %pattern(%memory, %factor, %shift)
  drop %drawn
  %is.drawn = icmp eq ptr %drawn, %none
  if ptr %drawn != null: ret i1 %is.drawn
  call void @PyErr_Clear()
  ret i1 false
copy:
  %is.copied = call i1 @copied(ptr %objects, ptr %value, ptr %node, ptr %buffer, ptr %at, i64 %bytes)
  ret i1 %is.copied
}

; Write to memory that a tensor and its root alone own, as `set_in_memory` does. Returns 0 if that was done, 1 if Python has to,
; -1 with an error.
define internal i32 @filled(ptr %objects, ptr %tensor, ptr %value, ptr %pattern) {
  %base = call ptr @PyObject_GetAttr(ptr %tensor, ptr %base.name) else ret i32 -1
  drop %base
  %is.root = icmp eq ptr %base, %none
  %root = select i1 %is.root, ptr %tensor, ptr %base
  %arrays = select i1 %is.root, i32 1, i32 2
  %root.class = call ptr @class_of(ptr %root)
  if ptr %root.class != %tensor.class: ret i32 1
  %root has base none, versions none, requires_grad false, keeps_derivation false, is_inference false else ret i32 1
  if %is.root: %look
  %tensor has requires_grad false, detached false, versions none, element_map none else ret i32 1
look:
  %array = call ptr @present_array(ptr %objects, ptr %tensor) else ret i32 1
  %is.sole = call i1 @is_sole(ptr %objects, ptr %array, i32 %arrays)
  unless %is.sole: %left
  if %is.root: %write
  %whole = call ptr @present_array(ptr %objects, ptr %root) else %left
  %whole.sole = call i1 @is_sole(ptr %objects, ptr %whole, i32 2)
  drop %whole
  get %node = Array.node of %array
  get %whole.node = Array.node of %whole
  get %dtype = Node.dtype of %node
  get %whole.dtype = Node.dtype of %whole.node
  unless %whole.sole and ptr %dtype == %whole.dtype: %left
write:
  %is.put = call i1 @put(ptr %objects, ptr %array, ptr %value, ptr %pattern)
  drop %array
  unless %is.put: ret i32 1
  %changes = call ptr @PyObject_GetAttr(ptr %root, ptr %changes.name)
  %more = call ptr @PyNumber_Add(ptr %changes, ptr %number.one)
  drop %changes
  if ptr %more == null: ret i32 -1
count:
  %uncounted = set changes more of %root
  if %is.root or i32 %uncounted != 0: %end
see:
  %unseen = set seen more of %tensor
end:
  %missed = phi i32 [ %uncounted, %count ], [ %unseen, %see ]
  drop %more
  ret i32 %missed
left:
  drop %array
  ret i32 1
}

; Fill memory that a tensor alone owns with a number, random ones or a tensor's values. Python fills other memory. Finding the
; pattern may run signal handlers, so it comes first.
define internal ptr @fill(ptr %objects, ptr %given) {
  load %given: 0 ptr tensor, 1 ptr value
  thread %recorder, %deferred, %eager else ret ptr null
  %class = call ptr @class_of(ptr %tensor)
  %value.class = call ptr @class_of(ptr %value)
  %is.plain = icmp eq ptr %class, %tensor.class
  unless ptr %recorder == %none and ptr %deferred == %false and ptr %eager == %false and %is.plain: %python
  %pattern = call ptr @pattern_for(ptr %objects, ptr %tensor, ptr %value) else ret ptr null
  if ptr %pattern == %none and ptr %value.class != %tensor.class: %unknown
  %missed = call i32 @filled(ptr %objects, ptr %tensor, ptr %value, ptr %pattern)
  drop %pattern
  if i32 %missed sgt 0: %python
  if i32 %missed slt 0: ret ptr null
  call void @own(ptr %tensor)
  ret ptr %tensor
unknown:
  drop %pattern
python:
  %by.python = call ptr @PyObject_Vectorcall(ptr %fill.by.python, ptr %given, i64 2, ptr null)
  ret ptr %by.python
}
""", MOST_BYTES=MOST_BYTES)
