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


_LOOPS = """
define i64 @test_loops(ptr %numbers, i64 %count, i64 %last) {
entry:
  %total = alloca i64
  store i64 0, ptr %total
  for %i = 1 ule %count:                          ; from 1 to %count
  for %j = 0 slt %i by 2:
  %number = load i64, ptr %numbers[%j]
  if i64 %number slt 0: %next.j
  if i64 %number == %last: %end.j
  %before = load i64, ptr %total
  %after = add i64 %before, %number
  store i64 %after, ptr %total
  next %j
  %sum = load i64, ptr %total
  if i64 %sum sgt 100: ret i64 %i
  next %i
  %all = load i64, ptr %total
  ret i64 %all
}
"""


@pytest.mark.parametrize("last", [99, 9])
def test_loops_go_on_with_the_next_and_are_left(last):
    numbers = np.array([5, 7, -5, 7, 9, 7, 2])
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function, total = kind(compiled("test_loops", _LOOPS)), 0
    for count in range(8):
        total, found = 0, None
        for i in range(1, count + 1):
            for j in range(0, i, 2):
                if numbers[j] < 0:
                    continue
                if numbers[j] == last:
                    break
                total += numbers[j]
            if total > 100:
                found = i
                break
        assert function(numbers.ctypes.data, count, last) == (total if found is None else found)


@pytest.mark.parametrize("line", [
    "if %c: %a else ret void", "if %c: %a  else %b", "if %c: %a, %b", "if %c %a", "unless %c: ret", "load %s: 1 a",
    "load %s: i64 a", "load %s: 1 i64 a,2 i64 b", "fields %s: 1 i64 a", "for %k = 0 %n:", "next %k",
])
def test_what_is_none_of_the_forms_is_refused(line):
    with pytest.raises(ValueError, match="line 2 is none of the shorter forms"):
        spelled_out(f"entry:\n  {line}\n  ret void")


def test_a_return_may_have_an_alternative():
    assert spelled_out("  if %c: ret void else %b  ; or b") == (
        "  br i1 %c, label %return.0, label %b\nreturn.0:\n  ret void")
