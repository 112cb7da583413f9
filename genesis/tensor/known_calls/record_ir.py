"""A call's step of the trace and the tensors of its results as LLVM IR."""

from __future__ import annotations

_RECORD = """
; The tensor of the value at a position of the trace, which is a new reference.
define internal ptr @pending(ptr %objects, ptr %trace, ptr %index) {
entry:
  load %objects: ALL_OBJECTS, OBJECT_NEW ptr object.new
  %array = call ptr @PyType_GenericAlloc(ptr %array.class, i64 0)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %raise, label %array.made
array.made:
  get %nodes = Trace.nodes of %trace
  %number = call i64 @PyLong_AsSsize_t(ptr %index)
  %node = call ptr @PyList_GetItem(ptr %nodes, i64 %number)
  get %no.trace = Array.trace of %array
  get %no.index = Array.index of %array
  get %no.node = Array.node of %array
  get %no.value = Array.memory of %array
  call void @replace(ptr %no.trace.at, ptr %trace)
  call void @replace(ptr %no.index.at, ptr %index)
  call void @replace(ptr %no.node.at, ptr %node)
  call void @replace(ptr %no.value.at, ptr %none)
  get %arrays = Trace.arrays of %trace
  %uncounted = call i32 @PyList_Append(ptr %arrays, ptr %array)
  %no.count = icmp ne i32 %uncounted, 0
  br i1 %no.count, label %fail, label %handle
handle:
  %tensor = call ptr %object.new(ptr %tensor.class, ptr %nothing, ptr null)
  %no.tensor = icmp eq ptr %tensor, null
  br i1 %no.tensor, label %fail, label %tensor.made
tensor.made:
  get %differentiable = Node.differentiable of %node
  %unset.array = call i32 @PyObject_SetAttr(ptr %tensor, ptr %array.name, ptr %array)
  %unset.requires = call i32 @PyObject_SetAttr(ptr %tensor, ptr %requires_grad.name, ptr %differentiable)
  %unset = or i32 %unset.array, %unset.requires
  %is.unset = icmp ne i32 %unset, 0
  br i1 %is.unset, label %fail.tensor, label %made
made:
  call void @disown(ptr %array)
  ret ptr %tensor
fail.tensor:
  call void @disown(ptr %tensor)
  br label %fail
fail:
  call void @disown(ptr %array)
  br label %raise
raise:
  ret ptr null
}

; The tuple, or named tuple, of the tensors of a call with several results, whose positions are %result. On the stack until the
; last one is made: no tuple has empty places that others may see.
define internal ptr @all_pending(ptr %objects, ptr %trace, ptr %result, i64 %count) {
entry:
  load %objects: ALL_OBJECTS
  %tensors = alloca ptr, i64 %count
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %all
one:
  %index = call ptr @PyTuple_GetItem(ptr %result, i64 %k)
  %tensor = call ptr @pending(ptr %objects, ptr %trace, ptr %index)
  %no.tensor = icmp eq ptr %tensor, null
  br i1 %no.tensor, label %drop, label %put
put:
  %tensor.at = getelementptr ptr, ptr %tensors, i64 %k
  store ptr %tensor, ptr %tensor.at
  %k.next = add i64 %k, 1
  br label %next
all:
  %results = call ptr @tuple_of(ptr null, ptr null, ptr %tensors, i64 %count)
  %class = call ptr @class_of(ptr %result)
  %is.unnamed = icmp eq ptr %class, %tuple.class
  %no.results = icmp eq ptr %results, null
  %is.done = or i1 %is.unnamed, %no.results
  br i1 %is.done, label %done, label %name
name:
  %named = call ptr @PyObject_CallObject(ptr %class, ptr %results)
  call void @disown(ptr %results)
  ret ptr %named
done:
  ret ptr %results
drop:
  call void @disown_all(ptr %tensors, i64 %k)
  ret ptr null
}

; The number of results, if they are tensors alone; -1 for what Python has to hand out.
define internal i64 @results_of(ptr %objects, ptr %result) {
entry:
  load %objects: ALL_OBJECTS
  %is.tuple = call i32 @PyObject_IsInstance(ptr %result, ptr %tuple.class)
  %is.either = icmp eq i32 %is.tuple, 1
  br i1 %is.either, label %several, label %no
several:
  %count = call i64 @PyTuple_Size(ptr %result)
  br label %next
next:
  %k = phi i64 [ 0, %several ], [ %k.next, %one ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %yes
one:
  %index = call ptr @PyTuple_GetItem(ptr %result, i64 %k)
  %class = call ptr @class_of(ptr %index)
  %is.position = icmp eq ptr %class, %int.class
  %k.next = add i64 %k, 1
  br i1 %is.position, label %next, label %no
yes:
  ret i64 %count
no:
  ret i64 -1
}

; The result of a call in an open trace. Python goes on with its key where the trie does not know it, or its result is no plain
; tensors.
define internal ptr @record(
  ptr %objects, ptr %trace, ptr %mode, ptr %grad, ptr %given, ptr %code, ptr %offset, ptr %scope
) {
entry:
  %continued = alloca [8 x ptr]
  load %objects: ALL_OBJECTS
  load %given: 0 ptr operation, 1 ptr arguments, 2 ptr attributes, 3 ptr bare
  %key = call ptr @tuple_of_tokens(ptr %objects, ptr %trace, ptr %mode, ptr %operation, ptr %arguments)
  %no.key = icmp eq ptr %key, null
  br i1 %no.key, label %raise, label %ask
ask:
  get %closed = Trace.closed of %trace
  %spread = call i64 @PySet_Size(ptr %spreading)
  %more = call i32 @PyObject_IsTrue(ptr %attributes)
  %is.open = icmp eq ptr %closed, %busy
  %is.unmarked = icmp ne ptr %grad, %none
  %has.handles = icmp eq ptr %bare, %false
  %has.one.class = icmp eq i64 %spread, 0
  %is.plain.mode = and i1 %is.open, %is.unmarked
  %is.plain.class = and i1 %has.handles, %has.one.class
  %is.positional = icmp eq i32 %more, 0
  %is.plain.call = and i1 %is.plain.class, %is.positional
  %may.finish = and i1 %is.plain.mode, %is.plain.call
  br i1 %may.finish, label %find, label %go.on
find:
  get %step = Trace.step of %trace
  get %children = TrieNode.children of %step
  %found = call ptr @PyDict_GetItemWithError(ptr %children, ptr %key)
  %is.new = icmp eq ptr %found, null
  br i1 %is.new, label %new, label %known
new:
  %problem = call ptr @PyErr_Occurred()
  %is.hashable = icmp eq ptr %problem, null
  br i1 %is.hashable, label %go.on, label %fail
known:
  get %result = TrieNode.result of %found
  get %elements = TrieNode.elements of %found
  %result.class = call ptr @class_of(ptr %result)
  %is.single = icmp eq ptr %result.class, %int.class
  %is.unchecked = icmp eq ptr %elements, %nothing
  br i1 %is.unchecked, label %unchecked, label %go.on
unchecked:
  br i1 %is.single, label %append, label %several
several:
  %count = call i64 @results_of(ptr %objects, ptr %result)
  %is.other = icmp slt i64 %count, 0
  br i1 %is.other, label %go.on, label %append
append:
  %results = phi i64 [ 1, %unchecked ], [ %count, %several ]
  call void @own(ptr %result)
  %first = call ptr @advance(ptr %trace, ptr %found)
  %not.appended = icmp eq ptr %first, null
  br i1 %not.appended, label %fail.result, label %append.line
append.line:
  %line = call ptr (i64, ...) @PyTuple_Pack(i64 5, ptr %first, ptr %code, ptr %offset, ptr %scope, ptr %key)
  call void @disown(ptr %first)
  %no.line = icmp eq ptr %line, null
  br i1 %no.line, label %fail.result, label %line.made
line.made:
  get %lines = Trace.lines of %trace
  %unlisted = call i32 @PyList_Append(ptr %lines, ptr %line)
  call void @disown(ptr %line)
  %no.list = icmp ne i32 %unlisted, 0
  br i1 %no.list, label %fail.result, label %hand.out
hand.out:
  br i1 %is.single, label %hand.one, label %hand.all
hand.one:
  %one = call ptr @pending(ptr %objects, ptr %trace, ptr %result)
  br label %done
hand.all:
  %all = call ptr @all_pending(ptr %objects, ptr %trace, ptr %result, i64 %results)
  br label %done
done:
  %made = phi ptr [ %one, %hand.one ], [ %all, %hand.all ]
  call void @disown(ptr %result)
  call void @disown(ptr %key)
  ret ptr %made

go.on:
  %continued.next = call ptr @put_all(ptr %continued, ptr %trace, ptr %key, ptr %operation, ptr %arguments)
  %continued.last = call ptr @put_all(ptr %continued.next, ptr %attributes, ptr %bare, ptr %code, ptr %offset)
  %gone.on = call ptr @PyObject_Vectorcall(ptr %continue.call, ptr %continued, i64 8, ptr null)
  call void @disown(ptr %key)
  ret ptr %gone.on
fail.result:
  call void @disown(ptr %result)
  br label %fail
fail:
  call void @disown(ptr %key)
  br label %raise
raise:
  ret ptr null
}
"""


def record_ir() -> str:
    """The definition of `PyObject* record(objects, trace, mode, grad, given, code, offset, scope)`."""
    return _RECORD
