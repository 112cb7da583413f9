"""Small kernels written by hand in LLVM IR, and what else the runtime's tests share."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

from genesis.runtime.kernel_cache import KernelSource, get_or_compile

LOOP = """
define void @SYMBOL(i64 %lo, i64 %hi, ptr %words, i64 %worker) {
entry:
  %array = load ptr, ptr %words
  %word1.at = getelementptr i64, ptr %words, i64 1
  %word2.at = getelementptr i64, ptr %words, i64 2
  %word3.at = getelementptr i64, ptr %words, i64 3
  br label %next
next:
  %i = phi i64 [ %lo, %entry ], [ %i.next, %latch ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %one, label %finished
one:
  %at = getelementptr i64, ptr %array, i64 %i
  BODY
  br label %latch
latch:
  %i.next = add i64 %i, 1
  br label %next
finished:
  ret void
}
declare i32 @raise(i32)
"""

BODIES = {
    # words = {array, step}: array[i] += step
    "increment": """
  %step = load i64, ptr %word1.at
  %before = load i64, ptr %at
  %after = add i64 %before, %step
  store i64 %after, ptr %at""",
    # words = {array}: array[i] = worker
    "stamp": """
  store i64 %worker, ptr %at""",
    # words = {array, signal}: the thread that runs this gets the signal
    "signal": """
  %number = load i64, ptr %word1.at
  %signal = trunc i64 %number to i32
  call i32 @raise(i32 %signal)""",
    # words = {doubles, factor as the bits of a double}: doubles[i] *= factor
    "scale": """
  %factor = load double, ptr %word1.at
  %before = load double, ptr %at
  %after = fmul double %before, %factor
  store double %after, ptr %at""",
    # words = {array, partials}: partials[worker] += array[i]
    "partial_sums": """
  %partials = load ptr, ptr %word1.at
  %partial.at = getelementptr i64, ptr %partials, i64 %worker
  %before = load i64, ptr %partial.at
  %value = load i64, ptr %at
  %after = add i64 %before, %value
  store i64 %after, ptr %partial.at""",
    # words = {array, extent, fault, site}: report array[i] unless it is below the extent
    "check": """
  %extent = load i64, ptr %word1.at
  %value = load i64, ptr %at
  %fine = icmp slt i64 %value, %extent
  br i1 %fine, label %latch, label %report
report:
  %fault = load ptr, ptr %word2.at
  %site = load i64, ptr %word3.at
  %fault.site = getelementptr i64, ptr %fault, i64 1
  %fault.value = getelementptr i64, ptr %fault, i64 2
  %fault.extent = getelementptr i64, ptr %fault, i64 3
  store i64 %site, ptr %fault.site
  store i64 %value, ptr %fault.value
  store i64 %extent, ptr %fault.extent
  store i64 1, ptr %fault""",
    # words = {doubles, row length}: every element of row i is replaced by its square
    "square_rows": """
  %columns = load i64, ptr %word1.at
  %start = mul i64 %i, %columns
  br label %column
column:
  %j = phi i64 [ 0, %one ], [ %j.next, %column ]
  %index = add i64 %start, %j
  %element.at = getelementptr double, ptr %array, i64 %index
  %element = load double, ptr %element.at
  %square = fmul double %element, %element
  store double %square, ptr %element.at
  %j.next = add i64 %j, 1
  %columns.left = icmp slt i64 %j.next, %columns
  br i1 %columns.left, label %column, label %latch.before
latch.before:""",
}


def source(name: str, symbol: str | None = None) -> KernelSource:
    """The kernel `name` before it is compiled."""
    text = LOOP.replace("SYMBOL", symbol or f"test_{name}").replace("BODY", BODIES[name])
    return KernelSource(symbol or f"test_{name}", text, lambda: text)


def kernel(name: str) -> int:
    """The kernel's address."""
    [address] = get_or_compile([source(name)])
    return address


def bits(value: float) -> int:
    """The word that holds a double."""
    return struct.unpack("=q", struct.pack("=d", value))[0]


def run_python(code: str, **environment: str) -> str:
    """What a fresh interpreter prints. Its failure is the test's."""
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()
