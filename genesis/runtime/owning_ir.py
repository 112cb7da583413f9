"""Any object as LLVM IR: `void own(object)`, `void disown(object)`, which accepts null, and `ptr class_of(object)`."""

from __future__ import annotations

import sys

_OWNING = """
define internal void @own(ptr %object) alwaysinline {
  %count = load i64, ptr %object
  %more = add i64 %count, 1
  store i64 %more, ptr %object
  ret void
}
define internal void @disown(ptr %object) alwaysinline {
  if ptr %object == null: ret void
  %count = load i64, ptr %object
  %less = sub i64 %count, 1
  store i64 %less, ptr %object
  if i64 %less != 0: ret void
  call void @_Py_Dealloc(ptr %object)
  ret void
}
"""

# From CPython 3.12 on immortal objects have fixed counts.
_OWNING_BY_CALLS = """
define internal void @own(ptr %object) alwaysinline {
  call void @Py_IncRef(ptr %object)
  ret void
}
define internal void @disown(ptr %object) alwaysinline {
  call void @Py_DecRef(ptr %object)
  ret void
}
"""

OWNING = (_OWNING if sys.version_info < (3, 12) else _OWNING_BY_CALLS) + """
define internal ptr @class_of(ptr %object) alwaysinline {
  %class = load ptr, ptr %object[1]
  ret ptr %class
}
"""
