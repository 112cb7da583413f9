"""The shorter forms of LLVM IR: what compiled code of them does."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from genesis.runtime.kernel_cache import compiled
from genesis.runtime.short_ir import spelled_out

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


@pytest.mark.parametrize("line", [
    "if %c: %a else ret void", "if %c: %a  else %b", "if %c: %a, %b", "if %c %a", "unless %c: ret", "load %s: 1 a",
    "load %s: i64 a", "load %s: 1 i64 a,2 i64 b", "fields %s: 1 i64 a",
])
def test_what_is_none_of_the_forms_is_refused(line):
    with pytest.raises(ValueError, match="line 2 is none of the shorter forms"):
        spelled_out(f"entry:\n  {line}\n  ret void")


def test_a_return_may_have_an_alternative():
    assert spelled_out("  if %c: ret void else %b  ; or b") == (
        "  br i1 %c, label %return.0, label %b\nreturn.0:\n  ret void")
