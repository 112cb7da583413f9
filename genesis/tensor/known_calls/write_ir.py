"""Writes as LLVM IR, to memory that a tensor alone owns: NumPy sets elements or combines them, a program draws them."""

from __future__ import annotations

from genesis.runtime.short_ir import with_words

MOST_BYTES = 1 << 18  # kernels write more, by several threads

WRITE = with_words("""
; The number of bytes of an array.
define internal i64 @bytes_of(ptr %objects, ptr %node) {
  get %shape, %dtype = Node.shape, dtype of %node
  get %itemsize = DType.itemsize of %dtype
  %size = call i64 @PyLong_AsSsize_t(ptr %itemsize)
  %count = call i64 @elements_of(ptr %shape)
  %bytes = mul i64 %count, %size
  ret i64 %bytes
}

; An array of NumPy's over contiguous memory on the host; null, perhaps with an error, for other memory and dtypes of others.
define internal ptr @array_over(ptr %objects, ptr %array) {
  get %memory, %node = Array.memory, node of %array
  get %strides, %buffer, %pointer = Memory.strides, buffer, pointer of %memory
  get %device = Buffer.device of %buffer
  get %shape, %dtype = Node.shape, dtype of %node
  get %numpy = DType._numpy of %dtype
  unless ptr %strides == %none and ptr %device == %cpu.device and ptr %numpy != %none: ret ptr null
  %at = call ptr @PyLong_AsVoidPtr(ptr %pointer)
  %bytes = call i64 @bytes_of(ptr %objects, ptr %node)
  %there = call ptr @PyMemoryView_FromMemory(ptr %at, i64 %bytes, i32 512) else ret ptr null
  %made = python %ndarray.class(%shape, %numpy, %there)
  ret ptr %made dropping %there
}

; Whether an array with so many owners is over memory that a tensor alone has: so many arrays are over its buffer, which neither
; the outside nor a trace knows.
define internal i1 @is_sole(ptr %objects, ptr %array, i32 %owners, i32 %arrays) {
  get %trace, %memory = Array.trace, memory of %array
  if ptr %memory == %none: ret i1 false
  get %buffer = Memory.buffer of %memory
  get %origin, %device = Buffer.origin, device of %buffer
  %is.shared = call i1 @is_shared(ptr %objects, ptr %buffer)
  %array.owners = load i32, ptr %array
  %memory.owners = load i32, ptr %memory
  %buffer.owners = load i32, ptr %buffer
  if ptr %trace != %none or ptr %origin != %none or ptr %device != %cpu.device or %is.shared: ret i1 false
  unless i32 %array.owners == %owners and i32 %memory.owners == 1 and i32 %buffer.owners == %arrays: ret i1 false
  ret i1 true
}

; Whether a tensor and its root alone own the memory of %array, the tensor's, and a write there changes nothing else. A view of
; the root may have an array over it, too, if that is the %source of the value. The caller owns both arrays.
define internal i1 @is_owned(ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %value, ptr %source) {
  %class = call ptr @class_of(ptr %root)
  %is.view = icmp ne ptr %root, %tensor
  %is.more = zext i1 %is.view to i32
  %least = add i32 %is.more, 1
  get %memory, %node = Array.memory, node of %array
  get %buffer = Memory.buffer of %memory
  if ptr %class != %tensor.class: ret i1 false
  %root has base none, versions none, requires_grad false, keeps_derivation false, is_inference false else ret i1 false
  if ptr %source == null: %apart
  get %source.memory = Array.memory of %source
  get %source.buffer = Memory.buffer of %source.memory
  if ptr %source.buffer != %buffer: %apart
  %most = add i32 %least, 1
  %value has base root, detached false, versions none else ret i1 false
  %is.part = call i1 @is_sole(ptr %objects, ptr %source, i32 2, i32 %most)
  unless %is.part: ret i1 false
part:
  br label %count
apart:
count:
  %arrays = phi i32 [ %least, %apart ], [ %most, %part ]
  %is.own = call i1 @is_sole(ptr %objects, ptr %array, i32 2, i32 %arrays)
  unless %is.view and %is.own: ret i1 %is.own
  %tensor has requires_grad false, detached false, versions none, element_map none else ret i1 false
  %whole = call ptr @present_array(ptr %objects, ptr %root) else ret i1 false
  drop %whole
  get %whole.node = Array.node of %whole
  get %dtype = Node.dtype of %node
  get %whole.dtype = Node.dtype of %whole.node
  if ptr %dtype != %whole.dtype: ret i1 false
  %is.whole.own = call i1 @is_sole(ptr %objects, ptr %whole, i32 1, i32 %arrays)
  ret i1 %is.whole.own
}

; The array of a tensor whose values NumPy puts where one with %node is, of the same shape if all is copied; null, perhaps with
; an error, if Python has to write them.
define internal ptr @source_for(ptr %objects, ptr %value, ptr %node, i1 %is.copy) {
  %value has requires_grad false, element_map none else ret ptr null
  %source = call ptr @present_array(ptr %objects, ptr %value) else ret ptr null
  get %source.node, %memory = Array.node, memory of %source
  get %dtype = Node.dtype of %node
  get %source.dtype, %is.derived = Node.dtype, differentiable of %source.node
  %is.alike = call i1 @is_alike(ptr %objects, ptr %node, ptr %source.node)
  %may.differ = xor i1 %is.copy, true
  %fits = or i1 %is.alike, %may.differ
  if ptr %source.dtype == %dtype and ptr %is.derived == %false and %fits and ptr %memory != %none: ret ptr %source
  ret ptr null dropping %source
}

; Write everywhere without NumPy: zeros, a number in few float32, values over the %source of a tensor like this one, or what a
; program of memory and two numbers draws. Returns 0 if that was done, 1 if not, -1 with an error.
define internal i32 @fill(ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %program, ptr %value, ptr %how, ptr %source) {
  get %memory, %node = Array.memory, node of %array
  get %pointer = Memory.pointer of %memory
  get %dtype = Node.dtype of %node
  %is.owned = call i1 @is_owned(ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %value, ptr %source)
  unless %is.owned: ret i32 1
  %at = call ptr @PyLong_AsVoidPtr(ptr %pointer)
  %bytes = call i64 @bytes_of(ptr %objects, ptr %node)
  if ptr %how == %draw.name: %draw
  if ptr %source != null: %values
  if ptr %value == %zero: %zeros
  if ptr %dtype != %float32 or i64 %bytes ugt 4096: ret i32 1
  %real = call double @PyFloat_AsDouble(ptr %value)
  %single = fptrunc double %real to float
  %count = lshr i64 %bytes, 2
  for %k = 0 ult %count:
  store float %single, ptr %at[%k]
  next %k
  ret i32 0
draw:
  %factor = call ptr @PyTuple_GetItem(ptr %value, i64 1)
  %shift = call ptr @PyTuple_GetItem(ptr %value, i64 2)
  %drawn = python %program(%memory, %factor, %shift) else ret i32 -1
  drop %drawn
  if ptr %drawn == %none: ret i32 0 else %missed
missed:
  ret i32 1
values:
  get %source.memory = Array.memory of %source
  get %source.strides, %from, %buffer = Memory.strides, pointer, buffer of %source.memory
  get %device = Buffer.device of %buffer
  unless ptr %source.strides == %none and ptr %device == %cpu.device: %missed
  %start = call ptr @PyLong_AsVoidPtr(ptr %from)
  call void @llvm.memmove.p0.p0.i64(ptr %at, ptr %start, i64 %bytes, i1 false)
  ret i32 0
zeros:
  call void @llvm.memset.p0.i64(ptr %at, i8 0, i64 %bytes, i1 false)
  ret i32 0
}

; Have NumPy set what an index refers to, or combine all that is there, with a number or values over the %source of a tensor.
; Returns 0 if that was done.
define internal i32 @put(ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %at, ptr %value, ptr %how, ptr %source) {
entry:
  %target = call ptr @array_over(ptr %objects, ptr %array)
  own %value
  if ptr %source == null: %look
over.source:
  drop %value
  %values = call ptr @array_over(ptr %objects, ptr %source)
look:
  %given = phi ptr [ %value, %entry ], [ %values, %over.source ]
  %is.owned = call i1 @is_owned(ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %value, ptr %source)
  unless ptr %target != null and ptr %given != null and %is.owned: %end
  if ptr %how != %none: %combine
set:
  %error = call i32 @PyObject_SetItem(ptr %target, ptr %at, ptr %given)
  %unset = icmp ne i32 %error, 0
  br label %end
combine:
  get %function = Operation.reference of %how
  %made = python %run.quietly(%function, %target, %given, %target)
  drop %made
  %uncombined = icmp eq ptr %made, null
end:
  %missed = phi i1 [ true, %look ], [ %unset, %set ], [ %uncombined, %combine ]
  drop %given, %target
  call void @PyErr_Clear()
  %result = zext i1 %missed to i32
  ret i32 %result
}

; Where to write, as NumPy takes it: an int, an ellipsis, or what Python makes of other indices; None if Python has to write,
; null with an error. A draw's program stays as it is.
define internal ptr @place_for(ptr %objects, ptr %array, ptr %index, ptr %how) {
  get %node = Array.node of %array
  get %dtype, %shape = Node.dtype, shape of %node
  %class = call ptr @class_of(ptr %index)
  %bytes = call i64 @bytes_of(ptr %objects, ptr %node)
  %rank = call i64 @PyTuple_Size(ptr %shape)
  %is.common = call i32 @PySequence_Contains(ptr %looked.at, ptr %dtype)
  if ptr %how == %draw.name: %itself
  if ptr %how != %none and i32 %is.common != 1: %unknown
  if i64 %bytes ule MOST_BYTES: %few
  if ptr %class != %int.class or i64 %rank == 0: %unknown
  %extent = call ptr @PyTuple_GetItem(ptr %shape, i64 0)
  %rows = call i64 @PyLong_AsSsize_t(ptr %extent)
  %most = mul i64 %rows, MOST_BYTES
  if i64 %bytes ugt %most: %unknown
few:
  if ptr %class == %int.class or ptr %index == %ellipsis: %itself
  %place = python %index.for(%index)
  ret ptr %place
itself:
  own %index
  ret ptr %index
unknown:
  own %none
  ret ptr %none
}

; What to write: a tensor, a draw, or a number that NumPy writes as kernels do; None if Python has to write it, null with an
; error.
define internal ptr @value_for(ptr %objects, ptr %array, ptr %value, ptr %how) {
  get %node = Array.node of %array
  get %dtype = Node.dtype of %node
  %class = call ptr @class_of(ptr %value)
  if ptr %class == %tensor.class or ptr %how == %draw.name or ptr %value == %zero or ptr %value == %number.one: %itself
  if ptr %class != %float.class or ptr %dtype != %float32: %other
  %real = call double @PyFloat_AsDouble(ptr %value)
  if double %real olt 1.0e+18 and double %real ogt -1.0e+18: %itself
other:
  %number = python %number.for(%value, %dtype)
  ret ptr %number
itself:
  own %value
  ret ptr %value
}

; Write a value that `value_for` has found, unless Python that has run since has written. Returns as `fill` does.
define internal i32 @written(
    ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %at, ptr %value, ptr %how, ptr %source, i1 %is.copy) {
  %present = call ptr @present_array(ptr %objects, ptr %tensor)
  drop %present
  if ptr %present != %array or ptr %value == %none: ret i32 1
  unless %is.copy or ptr %how == %draw.name: %part
  %unfilled = call i32 @fill(ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %at, ptr %value, ptr %how, ptr %source)
  if i32 %unfilled == 0 or ptr %how == %draw.name: ret i32 %unfilled
part:
  %unput = call i32 @put(ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %at, ptr %value, ptr %how, ptr %source)
  ret i32 %unput
}

; Write to memory that a tensor and its root alone own, as `set_in_memory` does, and count that. Returns as `fill` does.
define internal i32 @counted(
    ptr %objects, ptr %tensor, ptr %array, ptr %at, ptr %value, ptr %how, ptr %source, i1 %is.copy) {
  if ptr %at == %none: ret i32 1
  %what = call ptr @value_for(ptr %objects, ptr %array, ptr %value, ptr %how) else ret i32 -1
  %base = call ptr @PyObject_GetAttr(ptr %tensor, ptr %base.name)
  %is.root = icmp eq ptr %base, %none
  %root = select i1 %is.root, ptr %tensor, ptr %base
  %missed = call i32 @written(
    ptr %objects, ptr %tensor, ptr %root, ptr %array, ptr %at, ptr %what, ptr %how, ptr %source, i1 %is.copy)
  drop %what
  if i32 %missed != 0: ret i32 %missed dropping %base
  %changes = call ptr @PyObject_GetAttr(ptr %root, ptr %changes.name)
  drop %changes
  %more = call ptr @PyNumber_Add(ptr %changes, ptr %number.one) else ret i32 -1 dropping %base
  %uncounted = set changes more of %root
  %unseen = set seen more of %tensor
  %undone = or i32 %uncounted, %unseen
  ret i32 %undone dropping %more, %base
}

; Set what an index refers to, draw into all of a tensor, or combine that with a value: in memory that it alone owns. Python
; writes to other memory. What may run signal handlers comes first.
define internal ptr @write(ptr %objects, ptr %given) {
  load %given: 0 ptr tensor, 1 ptr index, 2 ptr value, 3 ptr how
  thread %recorder, %deferred, %eager else ret ptr null
  %class = call ptr @class_of(ptr %tensor)
  %value.class = call ptr @class_of(ptr %value)
  %is.all = icmp eq ptr %index, %ellipsis
  %is.set = icmp eq ptr %how, %none
  %is.copy = and i1 %is.all, %is.set
  if ptr %recorder != %none or ptr %deferred != %false or ptr %eager != %false or ptr %class != %tensor.class: %python
  %array = call ptr @present_array(ptr %objects, ptr %tensor) else %python
  get %memory, %node = Array.memory, node of %array
  if ptr %memory == %none: %other
  get %strides = Memory.strides of %memory
  if ptr %strides != %none: %other
given.value:
  if ptr %value.class != %tensor.class: %place
tensors:
  %found = call ptr @source_for(ptr %objects, ptr %value, ptr %node, i1 %is.copy) else %other
place:
  %source = phi ptr [ null, %given.value ], [ %found, %tensors ]
  %at = call ptr @place_for(ptr %objects, ptr %array, ptr %index, ptr %how) else ret ptr null dropping %array, %source
  %missed = call i32 @counted(
    ptr %objects, ptr %tensor, ptr %array, ptr %at, ptr %value, ptr %how, ptr %source, i1 %is.copy)
  drop %at, %array, %source
  if i32 %missed sgt 0: %python
  if i32 %missed slt 0: ret ptr null
  own %tensor
  ret ptr %tensor
other:
  drop %array
python:
  %by.python = python %write.by.python(%tensor, %index, %value, %how)
  ret ptr %by.python
}
""", MOST_BYTES=MOST_BYTES)
