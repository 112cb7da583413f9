"""A tensor takes the result of a call, as LLVM IR. What a recording, or backward, may still ask for is left to Python."""

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

; What `last_change` returns, a new reference; null, perhaps without an error, if Python has to find it.
define internal ptr @change_by(ptr %objects, ptr %value) {
  get %trace, %index = Array.trace, index of %value
  if ptr %trace == %none: ret ptr null
  %line = call ptr @line_of(ptr %trace, ptr %index) else ret ptr null
  get %reference = Trace.reference of %trace
  own %line, %reference
  %change = call ptr @PyType_GenericAlloc(ptr %change.class, i64 2) else ret ptr null dropping %line, %reference
  call i32 @PyTuple_SetItem(ptr %change, i64 0, ptr %reference)
  call i32 @PyTuple_SetItem(ptr %change, i64 1, ptr %line)
  ret ptr %change
}

; What restores a tensor's array if a flush fails: of a pending one, which nothing may refer to, the position.
define internal ptr @restoring(ptr %objects, ptr %target, ptr %before, ptr %changes) {
  get %memory, %index = Array.memory, index of %before
  if ptr %memory == %none: %pending
  %entry = call ptr (i64, ...) @PyTuple_Pack(i64 3, ptr %target, ptr %before, ptr %changes)
  ret ptr %entry
pending:
  own %index
  %reference = call ptr @PyWeakref_NewRef(ptr %target, ptr null) else ret ptr null dropping %index
  %weak.entry = call ptr (i64, ...) @PyTuple_Pack(i64 3, ptr %reference, ptr %index, ptr %changes)
  ret ptr %weak.entry dropping %reference, %index
}

; Whether a tensor is a root with this array, after so many changes, that no derivation, mode or `.data` has a say in.
define internal i1 @is_bare(ptr %objects, ptr %tensor, ptr %grad, ptr %before, ptr %count) {
  %class = call ptr @class_of(ptr %tensor)
  %is.plain = call i1 @is_plain_class(ptr %objects, ptr %class)
  unless %is.plain: ret i1 false
  %tensor has array before, changes count, base none, versions none, keeps_derivation false else ret i1 false
  %tensor has retains_grad false, is_inference false else ret i1 false
  if ptr %grad == %false: ret i1 true
  %tensor has requires_grad false else ret i1 false
  ret i1 true
}

; Have a trace restore a tensor's array if its flush fails, and backward know of the change. Returns 0 if it has, 1 if Python
; has to, -1 with an error.
define internal i32 @noted(ptr %objects, ptr %trace, ptr %before, ptr %entry, ptr %change) {
  get %memory, %of, %index = Array.memory, trace, index of %before
  get %written, %changed = Trace.written, changed of %trace
  if ptr %memory == %none: %pending
  get %buffer = Memory.buffer of %memory
  get %origin, %version = Buffer.origin, version of %buffer
  %is.shared = call i1 @is_shared(ptr %objects, ptr %buffer)
  if ptr %of != %none or ptr %origin != %none or %is.shared: ret i32 1
  %newer = call ptr @PyNumber_Add(ptr %version, ptr %number.one) else ret i32 -1
  put %newer, %change = Buffer.version, change of %buffer
  drop %newer
  br label %append
pending:
  if ptr %of != %trace: ret i32 1
  %unset = call i32 @PyDict_SetItem(ptr %changed, ptr %index, ptr %change)
  if i32 %unset != 0: ret i32 -1
append:
  %unlisted = call i32 @PyList_Append(ptr %written, ptr %entry)
  ret i32 %unlisted
}

; Give a tensor the array of a call's result, as `_is_replaced` does. Returns 0 if it was, 1 if Python has to, -1 with an error.
; What is made for it comes first: finalizers may run meanwhile, and change all that is looked at then.
define internal i32 @taken(ptr %objects, ptr %target, ptr %result, ptr %grad) {
  %target has base none else ret i32 1
  %class = call ptr @class_of(ptr %result)
  if ptr %class != %tensor.class: ret i32 1
  %before = call ptr @present_array(ptr %objects, ptr %target) else ret i32 1
  %value = call ptr @present_array(ptr %objects, ptr %result) else ret i32 1 dropping %before
  %changes = call ptr @PyObject_GetAttr(ptr %target, ptr %changes.name)
  %more = call ptr @PyNumber_Add(ptr %changes, ptr %number.one)
  %entry = call ptr @restoring(ptr %objects, ptr %target, ptr %before, ptr %changes)
  %change = call ptr @change_by(ptr %objects, ptr %value)
  if ptr %entry == null or ptr %change == null or ptr %more == null: %unmade
made:
  get %trace, %node = Array.trace, node of %value
  get %own = Array.node of %before
  %is.bare = call i1 @is_bare(ptr %objects, ptr %target, ptr %grad, ptr %before, ptr %changes)
  %is.alike = call i1 @is_alike(ptr %objects, ptr %own, ptr %node)
  unless ptr %trace != %none and %is.bare and %is.alike: %end
look:
  get %done = Trace.done of %trace
  if ptr %done != %false: %end
note:
  %missed = call i32 @noted(ptr %objects, ptr %trace, ptr %before, ptr %entry, ptr %change)
  if i32 %missed != 0: %end
set:
  %unset = set array value, changes more of %target
  br label %end
unmade:
  %problem = call ptr @PyErr_Occurred()
  %is.python.s = icmp eq ptr %problem, null
  %else = select i1 %is.python.s, i32 1, i32 -1
end:
  %ended = phi i32 [ 1, %made ], [ 1, %look ], [ %missed, %note ], [ %unset, %set ], [ %else, %unmade ]
  ret i32 %ended dropping %change, %entry, %more, %changes, %value, %before
}

; The result of a call; the tensor that is to take it, if it has.
define internal ptr @call_into(ptr %objects, ptr %given) {
  %made = call ptr @call_in_thread(ptr %objects, ptr %given) else ret ptr null
  %target = load ptr, ptr %given[4]
  if ptr %target == %none: ret ptr %made
  thread %recorder, %multi_device, %grad_enabled else ret ptr null dropping %made
  unless ptr %recorder == %none and ptr %multi_device == %false: ret ptr %made
  %missed = call i32 @taken(ptr %objects, ptr %target, ptr %made, ptr %grad_enabled)
  if i32 %missed sgt 0: ret ptr %made
  drop %made
  if i32 %missed slt 0: ret ptr null
  own %target
  ret ptr %target
}
"""
