"""A call's step of the trace and the tensors of its results as LLVM IR."""

RECORD = """
; The tensor of the value at a position of the trace, which is a new reference.
define internal ptr @pending(ptr %objects, ptr %trace, ptr %index) {
  get %nodes = Trace.nodes of %trace
  %number = call i64 @PyLong_AsSsize_t(ptr %index)
  %node = call ptr @PyList_GetItem(ptr %nodes, i64 %number)
  %array = call ptr @array_of(ptr %objects, ptr %trace, ptr %index, ptr %node, ptr %none) else ret ptr null
  get %arrays = Trace.arrays of %trace
  %uncounted = call i32 @PyList_Append(ptr %arrays, ptr %array)
  if i32 %uncounted != 0: ret ptr null dropping %array
  get %differentiable = Node.differentiable of %node
  %tensor = call ptr @tensor_of(ptr %objects, ptr %array, ptr %differentiable) else ret ptr null dropping %array
  ret ptr %tensor dropping %array
}

; The tuple, or named tuple, of the tensors of a call with several results, whose positions are %result. On the stack until the
; last one is made: no tuple has empty places that others may see.
define internal ptr @all_pending(ptr %objects, ptr %trace, ptr %result, i64 %count) {
entry:
  %tensors = alloca ptr, i64 %count
  for %k = 0 slt %count:
  %index = call ptr @PyTuple_GetItem(ptr %result, i64 %k)
  %tensor = call ptr @pending(ptr %objects, ptr %trace, ptr %index) else %drop
  store ptr %tensor, ptr %tensors[%k]
  next %k
  %results = call ptr @tuple_of(ptr null, ptr null, ptr %tensors, i64 %count)
  %class = call ptr @class_of(ptr %result)
  if ptr %class == %tuple.class or ptr %results == null: ret ptr %results
  %named = call ptr @PyObject_CallObject(ptr %class, ptr %results)
  ret ptr %named dropping %results
drop:
  call void @disown_all(ptr %tensors, i64 %k)
  ret ptr null
}

; The number of results, if they are tensors alone; -1 for what Python has to hand out.
define internal i64 @results_of(ptr %objects, ptr %result) {
  %is.tuple = call i32 @PyObject_IsInstance(ptr %result, ptr %tuple.class)
  if i32 %is.tuple != 1: %no
  %count = call i64 @PyTuple_Size(ptr %result)
  for %k = 0 slt %count:
  %index = call ptr @PyTuple_GetItem(ptr %result, i64 %k)
  %class = call ptr @class_of(ptr %index)
  if ptr %class != %int.class: %no
  next %k
  ret i64 %count
no:
  ret i64 -1
}

; The result of a call in an open trace. Python goes on with its key where the trie does not know it, or its result is no plain
; tensors.
define internal ptr @record(
  ptr %objects, ptr %trace, ptr %mode, ptr %grad, ptr %given, ptr %code, ptr %offset, ptr %scope
) {
  load %given: 0 ptr operation, 1 ptr arguments, 2 ptr attributes, 3 ptr bare
  %key = call ptr @tuple_of_tokens(ptr %objects, ptr %trace, ptr %mode, ptr %operation, ptr %arguments) else ret ptr null
  get %closed = Trace.closed of %trace
  %spread = call i64 @PySet_Size(ptr %spreading)
  %more = call i32 @PyObject_IsTrue(ptr %attributes)
  unless ptr %closed == %busy and ptr %grad != %none and ptr %bare == %false and i64 %spread == 0 and i32 %more == 0: %go.on
  get %step = Trace.step of %trace
  get %children = TrieNode.children of %step
  %found = call ptr @PyDict_GetItemWithError(ptr %children, ptr %key)
  if ptr %found != null: %known
  %problem = call ptr @PyErr_Occurred()
  if ptr %problem == null: %go.on else %fail
known:
  get %result, %elements = TrieNode.result, elements of %found
  %result.class = call ptr @class_of(ptr %result)
  %is.single = icmp eq ptr %result.class, %int.class
  %are.checked = icmp ne ptr %elements, %nothing
  if %is.single: %append
several:
  %count = call i64 @results_of(ptr %objects, ptr %result)
  if i64 %count slt 0: %go.on
append:
  %results = phi i64 [ 1, %known ], [ %count, %several ]
  own %result
  %first = call ptr @advance(ptr %trace, ptr %found) else %fail.result
  %line = call ptr (i64, ...) @PyTuple_Pack(i64 5, ptr %first, ptr %code, ptr %offset, ptr %scope, ptr %key)
  drop %first
  if ptr %line == null: %fail.result
  get %lines = Trace.lines of %trace
  %unlisted = call i32 @PyList_Append(ptr %lines, ptr %line)
  drop %line
  if i32 %unlisted != 0: %fail.result
  unless %are.checked: %hand
  %answer = python %refuse.elements(%trace, %operation, %arguments, %attributes)
  drop %answer
  if ptr %answer == null: %fail.result
hand:
  unless %is.single: %hand.all
hand.one:
  %one = call ptr @pending(ptr %objects, ptr %trace, ptr %result)
  br label %done
hand.all:
  %all = call ptr @all_pending(ptr %objects, ptr %trace, ptr %result, i64 %results)
done:
  %made = phi ptr [ %one, %hand.one ], [ %all, %hand.all ]
  ret ptr %made dropping %result, %key

go.on:
  %gone.on = python %continue.call(%trace, %key, %operation, %arguments, %attributes, %bare, %code, %offset)
  ret ptr %gone.on dropping %key
fail.result:
  drop %result
fail:
  ret ptr null dropping %key
}
"""
