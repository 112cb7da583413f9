"""Views of tensors in memory as LLVM IR."""

from __future__ import annotations

from genesis.runtime.short_ir import with_words

MOST = 8  # arguments of a view

_VIEW = """
; An array over %buffer, as `Array.laid(buffer, *placed)`.
define internal ptr @placed_array(ptr %objects, ptr %buffer, ptr %placed) {
  %layout = call ptr @PyTuple_GetItem(ptr %placed, i64 0)
  %node = call ptr @PyTuple_GetItem(ptr %placed, i64 1)
  %start = call ptr @PyTuple_GetItem(ptr %placed, i64 2)
  %strides = call ptr @PyTuple_GetItem(ptr %placed, i64 3)
  %memory = call ptr @PyType_GenericAlloc(ptr %memory.class, i64 0) else ret ptr null
  get %address = Buffer.ptr of %buffer
  %pointer = call ptr @PyNumber_Add(ptr %address, ptr %start) else ret ptr null dropping %memory
  put %buffer, %layout, %pointer, %strides = Memory.buffer, layout, pointer, strides of %memory
  %array = call ptr @array_of(ptr %objects, ptr %none, ptr %minus.one, ptr %node, ptr %memory)
  ret ptr %array dropping %pointer, %memory
}

; The storage of a root, which is a new reference; made if there is none.
define internal ptr @storage_of(ptr %objects, ptr %root) {
  %former = call ptr @PyObject_GetAttr(ptr %root, ptr %storage.name)
  if ptr %former != %none: ret ptr %former
  drop %former
  %fresh = call ptr @PyObject_CallNoArgs(ptr %storage.class) else ret ptr null
  %unset = set storage fresh of %root
  if i32 %unset == 0: ret ptr %fresh
  ret ptr null dropping %fresh
}

; Make a tensor a view of %root when that had counted so many %changes, as `share_storage` does. Returns 0, or another number
; with an error.
define internal i32 @share(ptr %objects, ptr %view, ptr %root, ptr %layout, ptr %changes) {
  %storage = call ptr @storage_of(ptr %objects, ptr %root) else ret i32 -1
  %unset = set base root, layout layout, seen changes, storage storage of %view
  ret i32 %unset dropping %storage
}

; The layout of a tensor in its root; null, perhaps without an error, unless it is that of its memory, and it is a plain view.
define internal ptr @layout_in_memory(ptr %objects, ptr %tensor, ptr %base, ptr %shape, ptr %layout) {
  if ptr %base == %none: %root else %view
root:
  %whole = python %contiguous.layout(%shape)
  br label %found
view:
  %tensor has detached false, versions none, element_map none else ret ptr null
plain:
  %part = call ptr @PyObject_GetAttr(ptr %tensor, ptr %layout.name)
found:
  %at = phi ptr [ %whole, %root ], [ %part, %plain ]
  if ptr %at == null: ret ptr null
  %is.same = call i32 @PyObject_RichCompareBool(ptr %at, ptr %layout, i32 2)
  if i32 %is.same == 1: ret ptr %at
  ret ptr null dropping %at
}

; Whether arguments are ints, None and tuples of these.
define internal i1 @are_plain(ptr %objects, ptr %arguments) {
entry:
  %count = call i64 @PyTuple_Size(ptr %arguments)
  for %k = 0 slt %count:
  %argument = call ptr @PyTuple_GetItem(ptr %arguments, i64 %k)
  %class = call ptr @class_of(ptr %argument)
  if ptr %class == %int.class or ptr %argument == %none: %next.k
  if ptr %class != %tuple.class: ret i1 false
  %are.inner.plain = call i1 @are_plain(ptr %objects, ptr %argument)
  unless %are.inner.plain: ret i1 false
  next %k
  ret i1 true
}

; A view of a tensor in memory that needs no derivation; others are Python's.
define internal ptr @view(ptr %objects, ptr %given) {
  %asked = alloca [ASKED x ptr]
  load %given: 0 ptr tensor, 1 ptr name, 2 ptr arguments
  %class = call ptr @class_of(ptr %tensor)
  %count = call i64 @PyTuple_Size(ptr %arguments)
  %is.constant = call i1 @has(ptr %tensor, ptr %requires_grad.name, ptr %false)
  %are.plain = call i1 @are_plain(ptr %objects, ptr %arguments)
  unless ptr %class == %tensor.class and i64 %count ule MOST and %is.constant and %are.plain: %python
  %array = call ptr @present_array(ptr %objects, ptr %tensor) else %python
  get %memory, %node = Array.memory, node of %array
  if ptr %memory == %none: %left
  get %buffer, %layout = Memory.buffer, layout of %memory
  get %shape, %dtype = Node.shape, dtype of %node
  %base = call ptr @PyObject_GetAttr(ptr %tensor, ptr %base.name)
  %is.root = icmp eq ptr %base, %none
  %root = select i1 %is.root, ptr %tensor, ptr %base
  %changes = call ptr @PyObject_GetAttr(ptr %root, ptr %changes.name)
  own %buffer, %layout
  %at = call ptr @layout_in_memory(ptr %objects, ptr %tensor, ptr %base, ptr %shape, ptr %layout)
  drop %layout
  if ptr %at == null: %unknown else %put
put:
  store ptr %name, ptr %asked
  store ptr %at, ptr %asked[1]
  store ptr %dtype, ptr %asked[2]
  for %k = 0 ult %count:
  %argument = call ptr @PyTuple_GetItem(ptr %arguments, i64 %k)
  %place = add i64 %k, 3
  store ptr %argument, ptr %asked[%place]
  next %k
  %all = add i64 %count, 3
  %placed = call ptr @PyObject_Vectorcall(ptr %placed.remembered, ptr %asked, i64 %all, ptr null)
  drop %at
  if ptr %placed == null: %unknown
  if ptr %placed == %none: %copied else %all.made
all.made:
  %made = call ptr @viewing(ptr %objects, ptr %root, ptr %buffer, ptr %placed, ptr %changes)
  drop %placed
  br label %end
copied:
  drop %placed
  br label %again
unknown:                                          ; an interrupt is raised here, what the rule raises by Python
  %problem = call ptr @PyErr_Occurred()
  if ptr %problem == null: %again else %unknown.problem
unknown.problem:
  %is.rules = call i32 @PyErr_ExceptionMatches(ptr %layout.errors)
  if i32 %is.rules == 0: %end else %clear
clear:
  call void @PyErr_Clear()
again:
  %remade = call ptr @PyObject_Vectorcall(ptr %view.by.python, ptr %given, i64 3, ptr null)
end:
  %result = phi ptr [ %made, %all.made ], [ null, %unknown.problem ], [ %remade, %again ]
  ret ptr %result dropping %changes, %buffer, %base, %array
left:
  drop %array
python:
  %by.python = call ptr @PyObject_Vectorcall(ptr %view.by.python, ptr %given, i64 3, ptr null)
  ret ptr %by.python
}

; The tensor that views %root in %buffer as %placed says.
define internal ptr @viewing(ptr %objects, ptr %root, ptr %buffer, ptr %placed, ptr %changes) {
  %array = call ptr @placed_array(ptr %objects, ptr %buffer, ptr %placed) else ret ptr null
  %view = call ptr @tensor_of(ptr %objects, ptr %array, ptr %false)
  drop %array
  if ptr %view == null: ret ptr null
  %layout = call ptr @PyTuple_GetItem(ptr %placed, i64 0)
  %unset = call i32 @share(ptr %objects, ptr %view, ptr %root, ptr %layout, ptr %changes)
  if i32 %unset == 0: ret ptr %view
  ret ptr null dropping %view
}
"""


def view_ir() -> str:
    """The definition of `PyObject* view(objects, given)`, of a tensor, a layout rule's name and its arguments."""
    return with_words(_VIEW, ASKED=MOST + 4, MOST=MOST)
