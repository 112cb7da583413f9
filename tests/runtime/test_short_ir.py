"""The shorter forms of LLVM IR: what compiled code of them does."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from genesis.runtime.kernel_cache import compiled

_COUNT = """
%pair = type { i64, i64 }

define i64 @test_short_ir(ptr %numbers, i64 %count, ptr %pair) {
entry:
  load %pair: 0 i64 low, 1 i64 high
  if i64 %count slt 0 or i64 %high slt %low: ret i64 -1
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %skip ]
  %found = phi i64 [ 0, %entry ], [ %found.next, %skip ]
  if i64 %k == %count: %end
  %number = load i64, ptr %numbers[%k]
  %more = add i64 %found, 1
  unless i64 %number sge %low and i64 %number slt %high: %outside

stored:
  store i64 0, ptr %numbers[%k]
  %is.third = icmp eq i64 %k, 2
  %one.more = select i1 %is.third, i64 %found, i64 %more
  if %is.third: %outside else %inside
outside:                                          ; or the third
inside:
  %found.inside = phi i64 [ %found, %outside ], [ %one.more, %stored ]
skip:
  %found.next = add i64 %found.inside, 0
  %k.next = add i64 %k, 1
  br label %next
end:
  ret i64 %found
}
"""


@pytest.mark.parametrize(("low", "high", "found"), [(0, 10, 2), (3, 2, -1), (5, 6, 1)])
def test_branches_elements_and_fields(low, high, found):
    numbers, pair = np.array([5, 11, 5, -3, 9]), np.array([low, high])
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    function = kind(compiled("test_short_ir", _COUNT))
    inside = (numbers >= low) & (numbers < high)
    wanted = np.where(inside, 0, numbers) if found >= 0 else numbers.copy()
    assert function(numbers.ctypes.data, len(numbers), pair.ctypes.data) == found
    assert (numbers == wanted).all()
