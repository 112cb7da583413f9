"""One collective as LLVM IR: begun by a call of MPI's by its address, and awaited without taking a processor or forever.

    words       {state, pairs, site, fault, into, from, bytes, function, twelve arguments,
                 comparison: function, twelve arguments, what it finds}
    state       {phase, owner, broken, timeout, deadline, request, flag, spin, status, MPI_Test}

A collective has two phases. In the first, ranks compare numbers: a digest of what they are about to do, and how much they send
to each other. The largest of all ranks' and of their negatives, a pair, are one number's only if all are equal; two ranks each
find the other's number beside the negative of their own. Counts or dtypes that differ would be garbage, or a wait without end.
The second is the collective itself. Every function of MPI's is called with twelve words, for a callee reads no more than it
has: a handle is a word, be it a number (MPICH) or an address (Open MPI).

Where a wait takes longer than a slice, the launch says AGAIN and returns. The executor lets handlers of signals run, and
launches it once more; it then goes on waiting. The phase says where it is.
"""

from __future__ import annotations

import re
import time

from genesis.runtime.chunk_ir import with_fields
from genesis.runtime.executor_ir import AGAIN

ARGUMENTS = 12
STATE_WORDS = 10
PHASE, OWNER, BROKEN, TIMEOUT, DEADLINE, REQUEST, FLAG, SPIN, STATUS, TEST = range(10)
DIFFERENT, LATE, REFUSED, UNUSABLE = 1, 2, 3, 4  # the flags of faults

# A rank that waits sleeps for 50 us at a time: at once where ranks are more than processors, after a millisecond otherwise. (A
# blocking wait of MPI's takes a processor for as long as it lasts.) It does not yield: on a machine that does other things too,
# the processor comes back after milliseconds (an all_reduce of 64 MB in pieces took 300 ms so).
LONG_SPIN, SHORT_SPIN, NAP, SLICE = 1_000_000, 10_000, 50_000, 20_000_000

_COLLECTIVE = """
%arguments = type { ptr, [ARGUMENTS x i64] }
%words = type { ptr, i64, i64, ptr, ptr, ptr, i64, %arguments, %arguments, ptr }
%state = type { i64, i64, i64, i64, i64, i64, i64, i64, ptr, ptr }

; Begin what the arguments say.
define internal i32 @begin(ptr %call) {
entry:
  %function = load ptr, ptr %call
ARGUMENT_LOADS
  %code = call i32 %function(ARGUMENT_LIST)
  ret i32 %code
}

define internal i64 @now() {
entry:
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}

define internal void @fail(ptr %words, i64 %flag, i64 %value) {
entry:
  load %words: 2 i64 site, 3 ptr fault
  store i64 %flag, ptr %fault
  %site.of = getelementptr i64, ptr %fault, i64 1
  store i64 %site, ptr %site.of
  %value.of = getelementptr i64, ptr %fault, i64 2
  store i64 %value, ptr %value.of
  ret void
}

define void @genesis_collective(i64 %lo, i64 %hi, ptr %words, i64 %worker) {
entry:
  %nap = alloca [2 x i64]
  store i64 0, ptr %nap
  %nap.rest = getelementptr i64, ptr %nap, i64 1
  store i64 NAP, ptr %nap.rest
  %state = load ptr, ptr %words
  load %state: 0 i64 phase, 1 i64 owner, 2 i64 broken, 3 i64 timeout, 4 i64 deadline.before
  fields %state: 5 request, 6 flag
  load %state: 7 i64 spins, 8 ptr status, 9 ptr test
  load %words: 1 i64 pairs
  fields %words: 7 itself, 8 compare
  %self = ptrtoint ptr %words to i64
  %usable = icmp eq i64 %broken, 0
  br i1 %usable, label %whose, label %unusable
whose:
  %idle = icmp eq i64 %phase, 0
  %ours = icmp eq i64 %owner, %self
  %goes.on = or i1 %idle, %ours
  br i1 %goes.on, label %which, label %unusable
unusable:
  call void @fail(ptr %words, i64 UNUSABLE, i64 %broken)
  ret void
which:
  br i1 %idle, label %new, label %wait

new:
  store i64 %self, ptr %owner.at
  %start = call i64 @now()
  %deadline.new = add i64 %start, %timeout
  store i64 %deadline.new, ptr %deadline.before.at
  load %words: 4 ptr into, 5 ptr from, 6 i64 bytes
  call void @llvm.memmove.p0.p0.i64(ptr %into, ptr %from, i64 %bytes, i1 false)
  %nothing = icmp eq i64 %pairs, 0
  br i1 %nothing, label %proper, label %comparing
comparing:
  store i64 1, ptr %phase.at
  %code.first = call i32 @begin(ptr %compare)
  br label %begun
proper:
  store i64 2, ptr %phase.at
  %code.second = call i32 @begin(ptr %itself)
  br label %begun
begun:
  %code = phi i32 [ %code.first, %comparing ], [ %code.second, %proper ]
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %wait, label %refused
refused:
  %reason = phi i32 [ %code, %begun ], [ %code.test, %look ]
  %reason.wide = zext i32 %reason to i64
  call void @fail(ptr %words, i64 REFUSED, i64 %reason.wide)
  ret void

wait:
  %since = call i64 @now()
  br label %look
look:
  %code.test = call i32 %test(ptr %request, ptr %flag, ptr %status)
  %tested = icmp eq i32 %code.test, 0
  br i1 %tested, label %looked, label %refused
looked:
  %there = load i32, ptr %flag
  %ended = icmp ne i32 %there, 0
  br i1 %ended, label %complete, label %longer
longer:
  %time.now = call i64 @now()
  %waited = sub i64 %time.now, %since
  %patient = icmp slt i64 %waited, %spins
  br i1 %patient, label %look, label %clock
clock:
  %deadline = load i64, ptr %deadline.before.at
  %late = icmp sgt i64 %time.now, %deadline
  br i1 %late, label %too.late, label %slice
too.late:
  call void @fail(ptr %words, i64 LATE, i64 0)
  ret void
slice:
  %over = icmp sgt i64 %waited, SLICE
  br i1 %over, label %leave, label %sleep
sleep:
  call i32 @nanosleep(ptr %nap, ptr null)
  br label %look
leave:
  call void @fail(ptr %words, i64 AGAIN, i64 0)
  ret void

complete:
  %phase.now = load i64, ptr %phase.at
  %compared = icmp eq i64 %phase.now, 1
  br i1 %compared, label %check, label %done
check:
  load %words: 9 ptr found
  br label %pair
pair:
  %k = phi i64 [ 0, %check ], [ %k.next, %pair ]
  %k.next = add i64 %k, 1
  %at = getelementptr [2 x i64], ptr %found, i64 %k
  %most = load i64, ptr %at
  %negative.at = getelementptr i64, ptr %at, i64 1
  %least.negative = load i64, ptr %negative.at
  %least = sub i64 0, %least.negative
  %equal = icmp eq i64 %most, %least
  %left = icmp ult i64 %k.next, %pairs
  %goes = and i1 %equal, %left
  br i1 %goes, label %pair, label %compared.all
compared.all:
  br i1 %equal, label %proper, label %different
different:
  call void @fail(ptr %words, i64 DIFFERENT, i64 0)
  ret void
done:
  store i64 0, ptr %phase.at
  ret void
}

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @clock_gettime(i32, ptr)
declare i32 @nanosleep(ptr, ptr)
"""


def collective_ir() -> str:
    """The module that defines `void genesis_collective(i64, i64, words, i64)`, a kernel of one item."""
    numbers = {"CLOCK": time.CLOCK_MONOTONIC, "NAP": NAP, "SLICE": SLICE, "AGAIN": AGAIN,
               "ARGUMENTS": ARGUMENTS, "DIFFERENT": DIFFERENT, "LATE": LATE, "REFUSED": REFUSED, "UNUSABLE": UNUSABLE}
    loads = "\n".join(
        f"  %a{n}.at = getelementptr %arguments, ptr %call, i32 0, i32 1, i32 {n}\n  %a{n} = load i64, ptr %a{n}.at"
        for n in range(ARGUMENTS))
    text = _COLLECTIVE.replace("ARGUMENT_LOADS", loads)
    text = text.replace("ARGUMENT_LIST", ", ".join(f"i64 %a{n}" for n in range(ARGUMENTS)))
    return with_fields(re.sub("|".join(rf"\b{name}\b" for name in numbers), lambda name: str(numbers[name[0]]), text))
