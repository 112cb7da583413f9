"""A tensor takes the result of a call, as LLVM IR. What a recording, or backward, may still ask for is left to Python."""

IS_ALIKE = """
; Whether two nodes have one shape and dtype, and no derivation.
define internal i1 @is_alike(ptr %objects, ptr %node, ptr %other) {
  load %objects: ALL_OBJECTS
  get %shape = Node.shape of %node
  get %other.shape = Node.shape of %other
  get %dtype = Node.dtype of %node
  get %other.dtype = Node.dtype of %other
  get %differentiable = Node.differentiable of %node
  get %other.differentiable = Node.differentiable of %other
  unless ptr %dtype == %other.dtype and ptr %differentiable == %false and ptr %other.differentiable == %false: ret i1 false
  %is.same = call i32 @PyObject_RichCompareBool(ptr %shape, ptr %other.shape, i32 2)
  %is.alike = icmp eq i32 %is.same, 1
  ret i1 %is.alike
}
"""

TAKE = """
; The last line of a trace, unless a signal handler has recorded behind the value at %index; null then.
define internal ptr @line_of(ptr %trace, ptr %index) {
  get %lines = Trace.lines of %trace
  %count = call i64 @PyList_Size(ptr %lines)
  if i64 %count == 0: ret ptr null
  %last = sub i64 %count, 1
  %line = call ptr @PyList_GetItem(ptr %lines, i64 %last)
  %first.object = call ptr @PyTuple_GetItem(ptr %line, i64 0)
  %first = call i64 @PyLong_AsSsize_t(ptr %first.object)
  %position = call i64 @PyLong_AsSsize_t(ptr %index)
  if i64 %first sle %position: ret ptr %line
  ret ptr null
}

; What `last_change` returns, a new reference; null without an error if Python has to find it.
define internal ptr @change_by(ptr %objects, ptr %trace, ptr %index) {
  load %objects: ALL_OBJECTS
  %line = call ptr @line_of(ptr %trace, ptr %index) else ret ptr null
  %change = call ptr @PyType_GenericAlloc(ptr %change.class, i64 2) else ret ptr null
  get %reference = Trace.reference of %trace
  call void @own(ptr %reference)
  call i32 @PyTuple_SetItem(ptr %change, i64 0, ptr %reference)
  call void @own(ptr %line)
  call i32 @PyTuple_SetItem(ptr %change, i64 1, ptr %line)
  ret ptr %change
}

; Whether a tensor is a root that no derivation, mode or `.data` has a say in.
define internal i1 @is_bare(ptr %objects, ptr %tensor, ptr %grad) {
  load %objects: ALL_OBJECTS
  %class = call ptr @class_of(ptr %tensor)
  %is.plain = call i1 @is_plain_class(ptr %objects, ptr %class)
  unless %is.plain: ret i1 false
  %tensor has base none, untracked false, keeps_derivation false, retains_grad false, is_inference false else ret i1 false
  if ptr %grad == %false: ret i1 true
  %tensor has requires_grad false else ret i1 false
  ret i1 true
}

; Have a trace restore a tensor's array if its flush fails, and backward know of the change. Returns 0 if it has, 1 if Python
; has to, -1 with an error.
define internal i32 @noted(ptr %objects, ptr %trace, ptr %target, ptr %before, ptr %changes, ptr %change) {
  load %objects: ALL_OBJECTS
  get %memory, %of = Array.memory, trace of %before
  get %written = Trace.written of %trace
  if ptr %memory == %none: %pending
  get %buffer = Memory.buffer of %memory
  get %origin, %owner, %flat = Buffer.origin, _owner, _flat of %buffer
  unless ptr %of == %none and ptr %origin == %none and ptr %owner == %none and ptr %flat == %none: ret i32 1
  %entry = call ptr (i64, ...) @PyTuple_Pack(i64 3, ptr %target, ptr %before, ptr %changes) else ret i32 -1
  get %version = Buffer.version of %buffer
  %newer = call ptr @PyNumber_Add(ptr %version, ptr %number.one)
  %unset = call i32 @PyList_Append(ptr %written, ptr %entry)
  drop %entry
  if ptr %newer == null or i32 %unset != 0: %fail
  get %former = Buffer.change of %buffer
  call void @replace(ptr %version.at, ptr %newer)
  call void @replace(ptr %former.at, ptr %change)
  drop %newer
  ret i32 0
fail:
  drop %newer
  ret i32 -1
pending:                                          ; by its position: nothing refers to a pending array
  if ptr %of != %trace: ret i32 1
  get %changed = Trace.changed of %trace
  get %index = Array.index of %before
  %reference = call ptr @PyWeakref_NewRef(ptr %target, ptr null) else ret i32 -1
  %weak.entry = call ptr (i64, ...) @PyTuple_Pack(i64 3, ptr %reference, ptr %index, ptr %changes)
  drop %reference
  if ptr %weak.entry == null: ret i32 -1
  %unset.weak = call i32 @PyList_Append(ptr %written, ptr %weak.entry)
  drop %weak.entry
  if i32 %unset.weak != 0: ret i32 -1
  %unset.changed = call i32 @PyDict_SetItem(ptr %changed, ptr %index, ptr %change)
  ret i32 %unset.changed
}

; Give a tensor the array of a call's result, as `_is_replaced` does. Returns 0 if it was, 1 if Python has to, -1 with an error.
define internal i32 @taken(ptr %objects, ptr %target, ptr %made, ptr %grad) {
  load %objects: ALL_OBJECTS
  %class = call ptr @class_of(ptr %made)
  %is.bare = call i1 @is_bare(ptr %objects, ptr %target, ptr %grad)
  unless %is.bare: ret i32 1
  if ptr %class != %tensor.class: ret i32 1
  %before = call ptr @present_array(ptr %objects, ptr %target) else ret i32 1
  %value = call ptr @present_array(ptr %objects, ptr %made) else %left
  get %trace, %index, %node = Array.trace, index, node of %value
  get %own = Array.node of %before
  if ptr %trace == %none: %left.value
  get %done = Trace.done of %trace
  %is.alike = call i1 @is_alike(ptr %objects, ptr %own, ptr %node)
  unless ptr %done == %false and %is.alike: %left.value
  %change = call ptr @change_by(ptr %objects, ptr %trace, ptr %index) else %left.value
note:
  %changes = call ptr @PyObject_GetAttr(ptr %target, ptr %changes.name)
  %more = call ptr @PyNumber_Add(ptr %changes, ptr %number.one)
  %missed = call i32 @noted(ptr %objects, ptr %trace, ptr %target, ptr %before, ptr %changes, ptr %change)
  if i32 %missed != 0: %end
set:
  %unset.array = call i32 @PyObject_SetAttr(ptr %target, ptr %array.name, ptr %value)
  %unset.changes = call i32 @PyObject_SetAttr(ptr %target, ptr %changes.name, ptr %more)
  %unset = or i32 %unset.array, %unset.changes
end:
  %result = phi i32 [ %missed, %note ], [ %unset, %set ]
  drop %more, %changes, %change, %value, %before
  ret i32 %result
left.value:
  drop %value
left:
  drop %before
  ret i32 1
}

; The result of a call; the tensor that is to take it, if it has.
define internal ptr @call_into(ptr %objects, ptr %given) {
  load %objects: ALL_OBJECTS
  %made = call ptr @call_in_thread(ptr %objects, ptr %given) else ret ptr null
  %target = load ptr, ptr %given[4]
  if ptr %target == %none: ret ptr %made
  %state = call ptr @PyObject_GetAttr(ptr %thread.state, ptr %dict.name) else %fail
  %recorder = call ptr @PyDict_GetItemWithError(ptr %state, ptr %recorder.name)
  %several = call ptr @PyDict_GetItemWithError(ptr %state, ptr %multi_device.name)
  %grad = call ptr @PyDict_GetItemWithError(ptr %state, ptr %grad_enabled.name)
  drop %state
  unless ptr %recorder == %none and ptr %several == %false: ret ptr %made
  %missed = call i32 @taken(ptr %objects, ptr %target, ptr %made, ptr %grad)
  if i32 %missed sgt 0: ret ptr %made
  drop %made
  if i32 %missed slt 0: ret ptr null
  call void @own(ptr %target)
  ret ptr %target
fail:
  drop %made
  ret ptr null
}
"""
