"""Tokens of tensors as LLVM IR: of roots in memory that nobody else sees, leaves among them, of their views, and of what is in
the trace.

Only making a tuple may run finalizers, so nothing is borrowed across that but what the call itself owns.
"""

TENSOR_TOKEN = """
; Append a step to a trace. Returns the position of its first node.
define internal ptr @advance(ptr %trace, ptr %added) {
  put %added = Trace.step of %trace
  get %nodes = Trace.nodes of %trace
  %length = call i64 @PyList_Size(ptr %nodes)
  %first = call ptr @PyLong_FromSsize_t(i64 %length)
  get %added.nodes = TrieNode.nodes of %added
  %longer = call ptr @PySequence_InPlaceConcat(ptr %nodes, ptr %added.nodes)
  drop %longer
  get %weight = Trace.weight of %trace
  get %added.weight = TrieNode.weight of %added
  %heavier = call ptr @PyNumber_Add(ptr %weight, ptr %added.weight)
  if ptr %first == null or ptr %heavier == null or ptr %longer == null: ret ptr null dropping %heavier, %first
  store ptr %heavier, ptr %weight.at
  ret ptr %first dropping %weight
}

; Put an object into an empty place of a tuple.
define internal void @put_part(ptr %tuple, i64 %place, ptr %object) {
  own %object
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %place, ptr %object)
  ret void
}

; The position of a tensor in the trace, which it enters; null without an error if Python has to find it. That of a leaf is its
; variable's, which follows its input.
define internal ptr @tensor_token(ptr %objects, ptr %trace, ptr %mode, ptr %argument) {
  %array = call ptr @present_array(ptr %objects, ptr %argument)
  if ptr %array != null: %tensor.array
  ret ptr null
tensor.array:
  %requires = call ptr @PyObject_GetAttr(ptr %argument, ptr %requires_grad.name)
  drop %requires
  if ptr %requires != null: %attributes
unmade:                                           ; a tensor without attributes: Python raises for it
  call void @PyErr_Clear()
  br label %other.array
attributes:
  %is.constant = icmp eq ptr %requires, %false
  if %is.constant: %root
derived:                                          ; a view that requires a gradient is Python's
  %base = call ptr @PyObject_GetAttr(ptr %argument, ptr %base.name)
  drop %base
  if ptr %base != %none: %other.array
root:
  get %of = Array.trace of %array
  if ptr %of == %trace: %here else %entering

here:
  get %here.node = Array.node of %array
  get %here.differentiable = Node.differentiable of %here.node
  unless ptr %here.differentiable == %true or %is.constant: %other.array
here.index:
  get %index.here = Array.index of %array
  own %index.here
  br label %put

entering:
  get %is.flushed, %is.left = Trace.done, backward_done of %trace
  get %entering.node = Array.node of %array
  get %entering.derived = Node.differentiable of %entering.node
  %is.underived = icmp eq ptr %entering.derived, %false
  %requires.some = icmp eq ptr %requires, %true
  %with.gradients = icmp eq ptr %mode, %true
  %without.gradients = icmp eq ptr %mode, %false
  %is.simple.mode = or i1 %with.gradients, %without.gradients
  %is.understood = and i1 %requires.some, %is.simple.mode
  %requires.leaf = and i1 %requires.some, %is.underived
  %is.leaf = and i1 %requires.leaf, %with.gradients
  %is.either = or i1 %is.constant, %is.understood
  unless ptr %is.flushed == %false and ptr %is.left == %false and %is.either: %other.array
  %kind = call ptr @PyTuple_New(i64 5) else %other.array
  get %memory = Array.memory of %array
  if ptr %memory == %none: %other.kind
  get %buffer = Memory.buffer of %memory
  get %buffer.device = Buffer.device of %buffer
  get %trace.device = Trace.device of %trace
  %is.shared = call i1 @is_shared(ptr %objects, ptr %buffer)
  if %is.shared or ptr %buffer.device != %trace.device: %other.kind
  get %entered = Trace.entered of %trace
  %known.index = call ptr @PyDict_GetItemWithError(ptr %entered, ptr %array) else %new
known.before:
  drop %kind
  unless %is.leaf: %known.put
known.leaf:                                       ; {its input, its variable}
  %known.pair = call ptr @PyDict_GetItemWithError(ptr %entered, ptr %argument) else %other.array
known.pair.take:
  %known.source = call ptr @PyTuple_GetItem(ptr %known.pair, i64 0)
  %known.variable = call ptr @PyTuple_GetItem(ptr %known.pair, i64 1)
  if ptr %known.source != %known.index: %other.array
known.put:
  %known.position = phi ptr [ %known.index, %known.before ], [ %known.variable, %known.pair.take ]
  own %known.position
  br label %put

new:
  get %node = Array.node of %array
  get %shape, %dtype, %differentiable = Node.shape, dtype, differentiable of %node
  get %strides = Memory.strides of %memory
  call void @put_part(ptr %kind, i64 0, ptr %shape)
  call void @put_part(ptr %kind, i64 1, ptr %dtype)
  call void @put_part(ptr %kind, i64 2, ptr %strides)
  call void @put_part(ptr %kind, i64 3, ptr %differentiable)
  %leaf.mark = select i1 %is.leaf, ptr %true, ptr %false
  call void @put_part(ptr %kind, i64 4, ptr %leaf.mark)
  get %step = Trace.step of %trace
  get %children = TrieNode.children of %step
  %child = call ptr @PyDict_GetItemWithError(ptr %children, ptr %kind) else %other.kind
  drop %kind
  %index = call ptr @advance(ptr %trace, ptr %child) else %other.array
  get %input_at, %versions = Trace.input_at, versions of %trace
  get %version = Buffer.version of %buffer
  %unset.input = call i32 @PyDict_SetItem(ptr %input_at, ptr %index, ptr %array)
  %unset.version = call i32 @PyDict_SetItem(ptr %versions, ptr %index, ptr %version)
  %unset.entered = call i32 @PyDict_SetItem(ptr %entered, ptr %array, ptr %index)
  %unset.either = or i32 %unset.input, %unset.version
  %unset.any = or i32 %unset.either, %unset.entered
  if i32 %unset.any != 0: %fail.note
note.kind:
  unless %is.leaf: %noted
  %source.number = call i64 @PyLong_AsSsize_t(ptr %index)
  %variable.number = add i64 %source.number, 1
  %variable = call ptr @PyLong_FromSsize_t(i64 %variable.number) else %fail.note
  %pair = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %index, ptr %variable) else %fail.variable
  get %variables, %entered.now = Trace.variables, entered of %trace
  %unset.variable = call i32 @PyDict_SetItem(ptr %variables, ptr %variable, ptr %argument)
  %unset.pair = call i32 @PyDict_SetItem(ptr %entered.now, ptr %argument, ptr %pair)
  drop %pair
  %unset.leaf = or i32 %unset.variable, %unset.pair
  if i32 %unset.leaf != 0: %fail.variable
note.done:
  drop %index
noted:
  %noted.index = phi ptr [ %index, %note.kind ], [ %variable, %note.done ]

put:
  %token.found = phi ptr [ %index.here, %here.index ], [ %known.position, %known.put ], [ %noted.index, %noted ]
  ret ptr %token.found dropping %array
fail.variable:
  drop %variable
fail.note:
  drop %index
  br label %other.array
other.kind:
  drop %kind
other.array:
  ret ptr null dropping %array
}
"""
