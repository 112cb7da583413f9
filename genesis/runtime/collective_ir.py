"""Collectives as LLVM IR: started by calling MPI's function, and awaited with a deadline and without occupying a processor.

    words       {state, how, entry, pairs, site, fault, into, from, bytes, function, twelve arguments,
                 comparison: function, twelve arguments, what it finds}
    state       {phase, first, last, broken, timeout, request, flag, spin, status, MPI_Test | mutex | condition}
    entry       {whether it is under way or has ended, next, deadline, a copy of the words}

A collective has two phases. In the first, ranks compare numbers: a digest of what they are about to do, and how much they send
to each other. They take the maximum of each number and of its negative, which belong to one number only if all ranks agree; two
ranks exchange theirs. Otherwise differing counts or dtypes would give garbage, or an endless wait. The second phase is the
collective itself. MPI's functions are called with twelve words, as callees ignore surplus arguments; a handle is a word, a
number in MPICH and an address in Open MPI.

A launch STARTS a collective, AWAITS it, or both. Started collectives wait in a queue, in program order, which is the same on
all ranks; a group runs one at a time. MPI makes progress only when it is tested. While launches compute, a thread of the group,
the attendant, does that and sleeps in between.

If a wait takes longer than a slice, the launch returns with AGAIN. The executor lets signal handlers run, and launches it once
more to continue the wait.
"""

from __future__ import annotations

from genesis.runtime.executor_ir import AGAIN, clock_ir
from genesis.runtime.short_ir import with_words
from genesis.runtime.system_ir import LOCKS, REST

ARGUMENTS = 12
MUTEX_WORDS = CONDITION_WORDS = 8  # at least what a system's take
PHASE, FIRST, LAST, BROKEN, TIMEOUT, REQUEST, FLAG, SPIN, STATUS, TEST, MUTEX = range(11)
CONDITION = MUTEX + MUTEX_WORDS
STATE_WORDS = CONDITION + CONDITION_WORDS
WORDS = 10 + 2 * (1 + ARGUMENTS)
ENTRY_WORDS = 3 + WORDS
NEXT, DEADLINE = 1, 2  # of an entry
COMPARING = 1  # the phase
STARTS, AWAITS = 1, 2  # how
DIFFERENT, LATE, REFUSED, UNUSABLE = 1, 2, 3, 4  # the flags of faults
FAILED = 5  # that of what a GPU's library refused, or found failed

# A waiting rank sleeps for 50 us at a time: immediately if there are more ranks than processors, else after a millisecond. (A
# blocking wait in MPI occupies a processor.) It does not yield, as on a busy machine it would get the processor back only after
# milliseconds (an all_reduce of 64 MB in pieces then took 300 ms).
LONG_SPIN, SHORT_SPIN, NAP, SLICE = 1_000_000, 10_000, 50_000, 20_000_000
PAUSE = 100_000  # nanoseconds that the attendant sleeps: MPICH needs several tests for the messages of a piece

_SHARED = """
%arguments = type { ptr, [ARGUMENTS x i64] }
%words = type { ptr, i64, ptr, i64, i64, ptr, ptr, ptr, i64, %arguments, %arguments, ptr }
%state = type { i64, ptr, ptr, i64, i64, i64, i64, i64, ptr, ptr, [MUTEX_WORDS x i64], [CONDITION_WORDS x i64] }
%entry = type { i64, ptr, i64, %words }

; Begin what the arguments say.
define internal i32 @begin(ptr %call) {
  %function = load ptr, ptr %call
ARGUMENT_LOADS
  %code = call i32 %function(ARGUMENT_LIST)
  ret i32 %code
}

define internal void @fail(ptr %words, i64 %flag, i64 %value) {
  load %words: 4 i64 site, 5 ptr fault
  store i64 %flag, ptr %fault
  store i64 %site, ptr %fault[1]
  store i64 %value, ptr %fault[2]
  ret void
}

; Whether the largest numbers and the largest negatives are pairs of one number each.
define internal i1 @alike(ptr %words) {
entry:
  load %words: 3 i64 pairs, 11 ptr found
  for %k = 0 ult %pairs:
  %at = getelementptr [2 x i64], ptr %found, i64 %k
  %most = load i64, ptr %at
  %least.negative = load i64, ptr %at[1]
  %least = sub i64 0, %least.negative
  if i64 %most != %least: ret i1 false
  next %k
  ret i1 true
}

; Begin the next phase of the first in line: return 0, or why MPI refused.
define internal i64 @go_on(ptr %state) {
entry:
  load %state: 0 i64 phase, 1 ptr first
  %words = getelementptr %entry, ptr %first, i32 0, i32 3
  load %words: 3 i64 pairs
  fields %words: 9 itself.at, 10 compare.at
  %nothing = icmp eq i64 %pairs, 0
  %compared = icmp eq i64 %phase, 1
  %is.proper = or i1 %nothing, %compared
  %phase.next = select i1 %is.proper, i64 2, i64 1
  store i64 %phase.next, ptr %phase.at
  %call = select i1 %is.proper, ptr %itself.at, ptr %compare.at
  %code = call i32 @begin(ptr %call)
  %wide = zext i32 %code to i64
  ret i64 %wide
}

; Go on as far as MPI is: return whether nothing has failed. Who calls has the mutex.
define internal i1 @pump(ptr %state) {
entry:
  load %state: 8 ptr status, 9 ptr test
  fields %state: 0 phase.at, 1 first.at, 2 last.at, 5 request.at, 6 flag.at
look:
  %first = load ptr, ptr %first.at
  if ptr %first == null: ret i1 true
  %words = getelementptr %entry, ptr %first, i32 0, i32 3
  %phase = load i64, ptr %phase.at
  if i64 %phase == 0: %begin.next
  %code.test = call i32 %test(ptr %request.at, ptr %flag.at, ptr %status)
  if i32 %code.test != 0: %untested
  %there = load i32, ptr %flag.at
  if i32 %there != 0: %complete
  ret i1 true
complete:
  if i64 %phase != 1: %done
  %equal = call i1 @alike(ptr %words)
  unless %equal: %different
begin.next:
  %code = call i64 @go_on(ptr %state)
  if i64 %code == 0: %look else %refused
done:
  store i64 0, ptr %phase.at
  %following.at = getelementptr %entry, ptr %first, i32 0, i32 1
  %following = load ptr, ptr %following.at
  store i64 2, ptr %first
  store ptr %following, ptr %first.at
  if ptr %following != null: %look
  store ptr null, ptr %last.at
  ret i1 true

untested:
  %code.wide = zext i32 %code.test to i64
refused:
  %reason = phi i64 [ %code, %begin.next ], [ %code.wide, %untested ]
  call void @fail(ptr %words, i64 REFUSED, i64 %reason)
  ret i1 false
different:
  call void @fail(ptr %words, i64 DIFFERENT, i64 0)
  ret i1 false
}

; Put what `words` say, with its entry, behind all that is under way. Who calls has the mutex.
define internal void @line_up(ptr %state, ptr %words) {
  load %words: 2 ptr entry, 6 ptr into, 7 ptr from, 8 i64 bytes
  call void @llvm.memmove.p0.p0.i64(ptr %into, ptr %from, i64 %bytes, i1 false)
  load %entry: 1 ptr next, 2 i64 deadline
  fields %entry: 3 copy
  call void @llvm.memmove.p0.p0.i64(ptr %copy, ptr %words, i64 WORDS_BYTES, i1 false)
  store i64 1, ptr %entry
  store ptr null, ptr %next.at
  store i64 0, ptr %deadline.at
  load %state: 2 ptr last
  fields %state: 1 first.at
  %last.next = getelementptr %entry, ptr %last, i32 0, i32 1
  %alone = icmp eq ptr %last, null
  %link = select i1 %alone, ptr %first.at, ptr %last.next
  store ptr %entry, ptr %link
  store ptr %entry, ptr %last.at
  ret void
}
"""

_LAUNCH = """
define void @genesis_collective(i64 %lo, i64 %hi, ptr %words, i64 %worker) {
  %state = load ptr, ptr %words
  load %words: 1 i64 how, 2 ptr entry
  load %state: 4 i64 timeout, 7 i64 spins
  fields %state: 3 broken.at, 10 mutex, 11 condition
  %deadline.at = getelementptr %entry, ptr %entry, i32 0, i32 2
  %starts = trunc i64 %how to i1
  %awaits = icmp uge i64 %how, AWAITS
  %since = call i64 @now()
  call void @lock(ptr %mutex)
  %broken = load i64, ptr %broken.at
  if i64 %broken == 0: %which
unusable:
  call void @fail(ptr %words, i64 UNUSABLE, i64 %broken)
  br label %leave
which:
  %under.way = load i64, ptr %entry
  if i64 %under.way == 0: %new
known:                                            ; it was started, here or by an earlier launch, and is awaited
  if %awaits: %look else %unusable
new:
  unless %starts: %unusable
  call void @line_up(ptr %state, ptr %words)
  if %awaits: %look
  call i1 @pump(ptr %state)
  call void @wake(ptr %condition)
  br label %leave

look:
  %well = call i1 @pump(ptr %state)
  unless %well: %leave
  %now.is = load i64, ptr %entry
  if i64 %now.is != 2: %patience
  store i64 0, ptr %entry
  br label %leave
patience:
  %time.now = call i64 @now()
  %waited = sub i64 %time.now, %since
  %patient = icmp slt i64 %waited, %spins
  if %patient: %rest
  %deadline.known = load i64, ptr %deadline.at
  %deadline.new = add i64 %since, %timeout
  %is.known = icmp ne i64 %deadline.known, 0
  %deadline = select i1 %is.known, i64 %deadline.known, i64 %deadline.new
  store i64 %deadline, ptr %deadline.at
  if i64 %time.now sle %deadline: %slice
  call void @fail(ptr %words, i64 LATE, i64 0)
  br label %leave
slice:
  if i64 %waited sle SLICE: %rest
  call void @fail(ptr %words, i64 AGAIN, i64 0)
  br label %leave
rest:
  call void @unlock(ptr %mutex)
  if %patient: %rested
  call void @rest(i64 NAP)
rested:
  call void @lock(ptr %mutex)
  br label %look

leave:
  call void @unlock(ptr %mutex)
  ret void
}
"""

_ATTENDANT = """
; The body of an attendant: until its group is closed, it has MPI go on with what is under way.
define ptr @genesis_attendant(ptr %state) {
  fields %state: 1 first.at, 3 broken.at, 10 mutex, 11 condition
take:
  call void @lock(ptr %mutex)
look:
  %broken = load i64, ptr %broken.at
  if i64 %broken != 0: %closed
  %first = load ptr, ptr %first.at
  if ptr %first != null: %ask
  call void @sleep(ptr %condition, ptr %mutex)
  br label %look
ask:
  call i1 @pump(ptr %state)
  call void @unlock(ptr %mutex)
  call void @rest(i64 PAUSE)
  br label %take
closed:
  call void @unlock(ptr %mutex)
  ret ptr null
}
"""


def collective_ir() -> str:
    """The module that defines `void genesis_collective(i64, i64, words, i64)`, a kernel of one item."""
    return _module(_LAUNCH)


def attendant_ir() -> str:
    """The module that defines `ptr genesis_attendant(state)`, the body of a thread."""
    return _module(_ATTENDANT)


def _module(function: str) -> str:
    given = range(ARGUMENTS)
    return clock_ir() + LOCKS + REST + with_words(
        _SHARED + function, NAP=NAP, SLICE=SLICE, PAUSE=PAUSE, AGAIN=AGAIN, AWAITS=AWAITS, WORDS_BYTES=8 * WORDS,
        MUTEX_WORDS=MUTEX_WORDS, CONDITION_WORDS=CONDITION_WORDS, DIFFERENT=DIFFERENT, LATE=LATE, REFUSED=REFUSED,
        UNUSABLE=UNUSABLE, ARGUMENTS=ARGUMENTS, ARGUMENT_LIST=", ".join(f"i64 %a{n}" for n in given),
        ARGUMENT_LOADS="\n".join(
            f"  %a{n}.at = getelementptr %arguments, ptr %call, i32 0, i32 1, i32 {n}\n  %a{n} = load i64, ptr %a{n}.at"
            for n in given))
