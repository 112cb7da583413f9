"""Tokens of tensors as LLVM IR: of roots in memory that nobody else sees, leaves among them, of their views, and of what is in
the trace.

Only making a tuple may run finalizers, so nothing is borrowed across that but what the call itself owns.
"""

from __future__ import annotations

_TENSOR_TOKEN = """
; Append a step to a trace. Returns the position of its first node.
define internal ptr @advance(ptr %trace, ptr %added) {
  call void @own(ptr %added)
  get %step = Trace.step of %trace
  store ptr %added, ptr %step.at
  call void @disown(ptr %step)
  get %nodes = Trace.nodes of %trace
  %length = call i64 @PyList_Size(ptr %nodes)
  %first = call ptr @PyLong_FromSsize_t(i64 %length)
  get %added.nodes = TrieNode.nodes of %added
  %longer = call ptr @PySequence_InPlaceConcat(ptr %nodes, ptr %added.nodes)
  call void @disown(ptr %longer)
  get %weight = Trace.weight of %trace
  get %added.weight = TrieNode.weight of %added
  %heavier = call ptr @PyNumber_Add(ptr %weight, ptr %added.weight)
  %no.first = icmp eq ptr %first, null
  %no.longer = icmp eq ptr %longer, null
  %no.heavier = icmp eq ptr %heavier, null
  %no.numbers = or i1 %no.first, %no.heavier
  %no.memory = or i1 %no.numbers, %no.longer
  br i1 %no.memory, label %fail, label %done
done:
  store ptr %heavier, ptr %weight.at
  call void @disown(ptr %weight)
  ret ptr %first
fail:
  call void @disown(ptr %heavier)
  call void @disown(ptr %first)
  ret ptr null
}

; The position of a tensor in the trace, which it enters; null without an error if Python has to find it. That of a leaf is its
; variable's, which follows its input.
define internal ptr @tensor_token(ptr %objects, ptr %trace, ptr %mode, ptr %argument) {
entry:
  load %objects: ALL_OBJECTS
  %array = call ptr @present_array(ptr %objects, ptr %argument)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %left, label %tensor.array
left:
  ret ptr null
tensor.array:
  %requires = call ptr @PyObject_GetAttr(ptr %argument, ptr %requires_grad.name)
  call void @disown(ptr %requires)
  %no.requires = icmp eq ptr %requires, null
  br i1 %no.requires, label %unmade, label %attributes
unmade:                                           ; a tensor without attributes: Python raises for it
  call void @PyErr_Clear()
  br label %other.array
attributes:
  %is.constant = icmp eq ptr %requires, %false
  br i1 %is.constant, label %root, label %derived
derived:                                          ; a view that requires a gradient is Python's
  %base = call ptr @PyObject_GetAttr(ptr %argument, ptr %base.name)
  call void @disown(ptr %base)
  %is.root = icmp eq ptr %base, %none
  br i1 %is.root, label %root, label %other.array
root:
  get %of = Array.trace of %array
  %is.here = icmp eq ptr %of, %trace
  br i1 %is.here, label %here, label %entering

here:
  get %here.node = Array.node of %array
  get %here.differentiable = Node.differentiable of %here.node
  %is.derived = icmp eq ptr %here.differentiable, %true
  %is.usable = or i1 %is.derived, %is.constant
  br i1 %is.usable, label %here.index, label %other.array
here.index:
  get %index.here = Array.index of %array
  call void @own(ptr %index.here)
  br label %put

entering:
  get %is.flushed = Trace.done of %trace
  get %is.left = Trace.backward_done of %trace
  %open = icmp eq ptr %is.flushed, %false
  %forward = icmp eq ptr %is.left, %false
  %takes = and i1 %open, %forward
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
  %takes.either = and i1 %takes, %is.either
  br i1 %takes.either, label %entering.kind, label %other.array
entering.kind:
  %kind = call ptr @PyTuple_New(i64 5)
  %no.kind = icmp eq ptr %kind, null
  br i1 %no.kind, label %other.array, label %entering.memory
entering.memory:
  get %memory = Array.memory of %array
  %is.pending = icmp eq ptr %memory, %none
  br i1 %is.pending, label %other.kind, label %entering.buffer
entering.buffer:
  get %buffer = Memory.buffer of %memory
  get %buffer.device = Buffer.device of %buffer
  get %trace.device = Trace.device of %trace
  get %owner = Buffer._owner of %buffer
  get %flat = Buffer._flat of %buffer
  %is.beside = icmp eq ptr %buffer.device, %trace.device
  %is.unowned = icmp eq ptr %owner, %none
  %is.own = and i1 %is.unowned, %is.beside
  %was.never.lent = icmp eq ptr %flat, %none
  br i1 %is.own, label %entering.own, label %other.kind
entering.own:
  br i1 %was.never.lent, label %known, label %lent
lent:
  %borrower = call ptr @PyWeakref_GetObject(ptr %flat)
  %is.back = icmp eq ptr %borrower, %none
  br i1 %is.back, label %known, label %other.kind
known:
  get %entered = Trace.entered of %trace
  %known.index = call ptr @PyDict_GetItemWithError(ptr %entered, ptr %array)
  %is.new = icmp eq ptr %known.index, null
  br i1 %is.new, label %new, label %known.before
known.before:
  call void @disown(ptr %kind)
  br i1 %is.leaf, label %known.leaf, label %known.put
known.leaf:                                       ; {its input, its variable}
  %known.pair = call ptr @PyDict_GetItemWithError(ptr %entered, ptr %argument)
  %no.pair = icmp eq ptr %known.pair, null
  br i1 %no.pair, label %other.array, label %known.pair.take
known.pair.take:
  %known.source = call ptr @PyTuple_GetItem(ptr %known.pair, i64 0)
  %known.variable = call ptr @PyTuple_GetItem(ptr %known.pair, i64 1)
  %is.of.input = icmp eq ptr %known.source, %known.index
  br i1 %is.of.input, label %known.put, label %other.array
known.put:
  %known.position = phi ptr [ %known.index, %known.before ], [ %known.variable, %known.pair.take ]
  call void @own(ptr %known.position)
  br label %put

new:
  get %node = Array.node of %array
  get %shape = Node.shape of %node
  get %dtype = Node.dtype of %node
  get %differentiable = Node.differentiable of %node
  get %strides = Memory.strides of %memory
  call void @own(ptr %shape)
  call i32 @PyTuple_SetItem(ptr %kind, i64 0, ptr %shape)
  call void @own(ptr %dtype)
  call i32 @PyTuple_SetItem(ptr %kind, i64 1, ptr %dtype)
  call void @own(ptr %strides)
  call i32 @PyTuple_SetItem(ptr %kind, i64 2, ptr %strides)
  call void @own(ptr %differentiable)
  call i32 @PyTuple_SetItem(ptr %kind, i64 3, ptr %differentiable)
  %leaf.mark = select i1 %is.leaf, ptr %true, ptr %false
  call void @own(ptr %leaf.mark)
  call i32 @PyTuple_SetItem(ptr %kind, i64 4, ptr %leaf.mark)
  get %step = Trace.step of %trace
  get %children = TrieNode.children of %step
  %child = call ptr @PyDict_GetItemWithError(ptr %children, ptr %kind)
  %no.child = icmp eq ptr %child, null
  br i1 %no.child, label %other.kind, label %append
append:
  call void @disown(ptr %kind)
  %index = call ptr @advance(ptr %trace, ptr %child)
  %no.index = icmp eq ptr %index, null
  br i1 %no.index, label %other.array, label %note
note:
  get %input_at = Trace.input_at of %trace
  get %versions = Trace.versions of %trace
  get %version = Buffer.version of %buffer
  %unset.input = call i32 @PyDict_SetItem(ptr %input_at, ptr %index, ptr %array)
  %unset.version = call i32 @PyDict_SetItem(ptr %versions, ptr %index, ptr %version)
  %unset.entered = call i32 @PyDict_SetItem(ptr %entered, ptr %array, ptr %index)
  %unset.either = or i32 %unset.input, %unset.version
  %unset.any = or i32 %unset.either, %unset.entered
  %is.unset = icmp ne i32 %unset.any, 0
  br i1 %is.unset, label %fail.note, label %note.kind
note.kind:
  br i1 %is.leaf, label %note.leaf, label %noted
note.leaf:
  %source.number = call i64 @PyLong_AsSsize_t(ptr %index)
  %variable.number = add i64 %source.number, 1
  %variable = call ptr @PyLong_FromSsize_t(i64 %variable.number)
  %no.variable = icmp eq ptr %variable, null
  br i1 %no.variable, label %fail.note, label %note.pair
note.pair:
  %pair = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %index, ptr %variable)
  %no.new.pair = icmp eq ptr %pair, null
  br i1 %no.new.pair, label %fail.variable, label %note.variable
note.variable:
  get %variables = Trace.variables of %trace
  get %entered.now = Trace.entered of %trace
  %unset.variable = call i32 @PyDict_SetItem(ptr %variables, ptr %variable, ptr %argument)
  %unset.pair = call i32 @PyDict_SetItem(ptr %entered.now, ptr %argument, ptr %pair)
  call void @disown(ptr %pair)
  %unset.leaf = or i32 %unset.variable, %unset.pair
  %is.unset.leaf = icmp ne i32 %unset.leaf, 0
  br i1 %is.unset.leaf, label %fail.variable, label %note.done
note.done:
  call void @disown(ptr %index)
  br label %noted
noted:
  %noted.index = phi ptr [ %index, %note.kind ], [ %variable, %note.done ]
  br label %put

put:
  %token.found = phi ptr [ %index.here, %here.index ], [ %known.position, %known.put ], [ %noted.index, %noted ]
  call void @disown(ptr %array)
  ret ptr %token.found
fail.variable:
  call void @disown(ptr %variable)
  br label %fail.note
fail.note:
  call void @disown(ptr %index)
  br label %other.array
other.kind:
  call void @disown(ptr %kind)
  br label %other.array
other.array:
  call void @disown(ptr %array)
  ret ptr null
}
"""


def tensor_token_ir() -> str:
    """The definitions of `PyObject* tensor_token(objects, trace, mode, tensor)` and `PyObject* advance(trace, step)`."""
    return _TENSOR_TOKEN
