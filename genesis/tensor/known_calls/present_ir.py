"""The present array of a tensor as LLVM IR, and what is common to all that reads tensors."""

PRESENT = """
; Store an object where another one was.
define internal void @replace(ptr %at, ptr %object) alwaysinline {
  %former = load ptr, ptr %at
  own %object
  store ptr %object, ptr %at
  ret void dropping %former
}

; Whether an attribute of a tensor is an object; false where it has none.
define internal i1 @has(ptr %tensor, ptr %name, ptr %wanted) {
  %found = call ptr @PyObject_GetAttr(ptr %tensor, ptr %name)
  %is.wanted = icmp eq ptr %found, %wanted
  drop %found
  if ptr %found != null: ret i1 %is.wanted
  call void @PyErr_Clear()
  ret i1 %is.wanted
}

; The number of elements of a shape.
define internal i64 @elements_of(ptr %shape) {
entry:
  %rank = call i64 @PyTuple_Size(ptr %shape)
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %one ]
  %product = phi i64 [ 1, %entry ], [ %product.next, %one ]
  if i64 %k sge %rank: ret i64 %product
one:
  %extent.object = call ptr @PyTuple_GetItem(ptr %shape, i64 %k)
  %extent = call i64 @PyLong_AsSsize_t(ptr %extent.object)
  %product.next = mul i64 %product, %extent
  %k.next = add i64 %k, 1
  br label %next
}

; Whether two nodes have one shape and dtype, and no derivation.
define internal i1 @is_alike(ptr %objects, ptr %node, ptr %other) {
  get %shape, %dtype, %derived = Node.shape, dtype, differentiable of %node
  get %other.shape, %other.dtype, %other.derived = Node.shape, dtype, differentiable of %other
  unless ptr %dtype == %other.dtype and ptr %derived == %false and ptr %other.derived == %false: ret i1 false
  %is.same = call i32 @PyObject_RichCompareBool(ptr %shape, ptr %other.shape, i32 2)
  %is.alike = icmp eq i32 %is.same, 1
  ret i1 %is.alike
}

; Whether the outside sees the memory of a buffer.
define internal i1 @is_shared(ptr %objects, ptr %buffer) {
  get %owner, %flat = Buffer._owner, _flat of %buffer
  if ptr %owner != %none: ret i1 true
  if ptr %flat == %none: ret i1 false
  %borrower = call ptr @PyWeakref_GetObject(ptr %flat)
  %is.lent = icmp ne ptr %borrower, %none
  ret i1 %is.lent
}

; Whether machine code reads tensors of this class: Tensor, or one that adds no attribute to it.
define internal i1 @is_plain_class(ptr %objects, ptr %class) {
  if ptr %class == %tensor.class: ret i1 true
  %known = call i32 @PySet_Contains(ptr %plain.classes, ptr %class)
  %is.known = icmp eq i32 %known, 1
  ret i1 %is.known
}

; The array of a root, or of a view that is up to date, in its root's memory or pending, which is a new reference; null without
; an error if Python has to find it.
define internal ptr @present_array(ptr %objects, ptr %tensor) {
  %array = call ptr @PyObject_GetAttr(ptr %tensor, ptr %array.name)
  %base = call ptr @PyObject_GetAttr(ptr %tensor, ptr %base.name)
  drop %base
  unless ptr %array == null or ptr %base == null: %tensor.array
unmade:                                           ; a tensor without attributes: Python raises for it
  call void @PyErr_Clear()
  br label %other
tensor.array:
  %kind = call ptr @class_of(ptr %array)
  if ptr %kind != %array.class: %other
  if ptr %base == %none: ret ptr %array
  %changes = call ptr @PyObject_GetAttr(ptr %base, ptr %changes.name)
  %seen = call ptr @PyObject_GetAttr(ptr %tensor, ptr %seen.name)
  %whole = call ptr @PyObject_GetAttr(ptr %base, ptr %array.name)
  drop %changes, %seen, %whole
  if ptr %whole == null: %unmade
  if ptr %changes != %seen: %other
  get %whole.memory = Array.memory of %whole
  get %part.memory = Array.memory of %array
  if ptr %whole.memory == %none or ptr %part.memory == %none: ret ptr %array
  get %whole.buffer = Memory.buffer of %whole.memory
  get %part.buffer = Memory.buffer of %part.memory
  if ptr %whole.buffer != %part.buffer: %other
  ret ptr %array
other:
  ret ptr null dropping %array
}

; An array of these fields, which is a new reference.
define internal ptr @array_of(ptr %objects, ptr %trace, ptr %index, ptr %node, ptr %memory) {
  %array = call ptr @PyType_GenericAlloc(ptr %array.class, i64 0) else ret ptr null
  put %trace, %index, %node, %memory = Array.trace, index, node, memory of %array
  ret ptr %array
}

; The tensor of an array, which is a new reference.
define internal ptr @tensor_of(ptr %objects, ptr %array, ptr %requires) {
  %tensor = call ptr %object.new(ptr %tensor.class, ptr %nothing, ptr null) else ret ptr null
  %unset = set array array, requires_grad requires of %tensor
  if i32 %unset == 0: ret ptr %tensor
  ret ptr null dropping %tensor
}
"""
