"""The team as LLVM IR: how the caller hands out a launch, and the loop of a worker.

    team        {size, launch, ticket, processor, .., under way | parked | pending, caller parked | mutex | work | done |
                 mailboxes}
    mailbox     {ticket, team, index, thread, log, next, end}    one cache line each; of the caller's, 0, only next and end
    log         {entries, most of them, (begin, end) ..}         times in seconds and nanoseconds; null while no profiler asks

To hand out a launch the caller writes an odd ticket, higher than any before it, into each mailbox. Whoever makes it even by
compare-and-swap has claimed it: the worker, which takes part, or the caller, once no chunk is left. The launch cannot end
before all participants are done, so a worker that wakes late finds an even ticket and touches nothing.

There are more chunks than workers, and each participant has a range of them: next to end. It takes these, one after another,
and then what is left of the others', so a worker that wakes late, or is slow, delays nobody. In the usual case it does the same
part of each launch, and reads what it wrote itself: its cache has that.

Waiting is bounded spinning, then sleep: a worker on `work`, the caller on `done`. The counts `parked` and `caller parked` tell
the other side whether to wake anyone. Both sides write their count before they read the other's word, sequentially
consistent: with a weaker order each could miss the other, and both would sleep.
"""

from __future__ import annotations

from genesis.runtime.launch_ir import CHUNK
from genesis.runtime.short_ir import with_words
from genesis.runtime.system_ir import CLOCK, LOCKS, PAUSE, PLACEMENT

# Offsets, in words, into the team: where team.py writes.
TEAM_SIZE, TEAM_TICKET, TEAM_UNDER_WAY, TEAM_MUTEX, TEAM_WORK, TEAM_DONE, TEAM_MAILBOXES = 0, 2, 7, 32, 48, 64, 80
MAILBOX_WORDS, MAILBOX_LOG = 8, 4

# A worker spins for 0.2 to 0.5 ms, in pauses of 20 to 50 ns: a training step's kernels find it awake after the 0.3 ms of Python
# between two steps. A wake-up takes 2 us, from sleep 25 to 60.
# Measured, against 30 us of spinning: a 784-512-512-10 step from 0.87 to 0.82 of JAX, a 1-10-1 step 267 to 194 us.
WORKER_SPINS = 10_000
CALLER_SPINS = 1000

_TAKE_PART = """
%line = type [8 x i64]
%team = type { i64, ptr, i64, i64, [4 x i64], i64, [7 x i64], i64, i64, [14 x i64], [16 x i64], [16 x i64], [16 x i64],
               [0 x %line] }

; Take part in the launch as worker %worker: run its own chunks, then those that are left of the others'.
define internal void @take_part(ptr %team, ptr %launch, i64 %worker) {
entry:
  %participants = call i64 @participants(ptr %team, ptr %launch)
  for %r = 0 ult %participants:
  %further = add i64 %worker, %r
  %whose = urem i64 %further, %participants
  %next.at = getelementptr %team, ptr %team, i32 0, i32 13, i64 %whose, i64 5
  %end.at = getelementptr %team, ptr %team, i32 0, i32 13, i64 %whose, i64 6
  %end = load atomic i64, ptr %end.at monotonic, align 8
look:                                             ; before a write, which would take the line from all others
  %next = load atomic i64, ptr %next.at monotonic, align 8
  if i64 %next uge %end: %next.r
  %chunk = atomicrmw add ptr %next.at, i64 1 monotonic
  if i64 %chunk uge %end: %next.r
  call void @run_chunk(ptr %launch, i64 %chunk, i64 %worker)
  br label %look
  next %r
  ret void
}

; How many take part in a launch, the caller included.
define internal i64 @participants(ptr %team, ptr %launch) alwaysinline {
  %size = load i64, ptr %team
  load %launch: 4 i64 workers
  %others = sub i64 %workers, 1
  %helpers = call i64 @llvm.umin.i64(i64 %others, i64 %size)
  %participants = add i64 %helpers, 1
  ret i64 %participants
}
"""

_TAKE_PART_LOGGED = """
; As take_part; notes when it began and ended in the worker's log, if there is one that is not full.
define internal void @take_part_logged(ptr %log, ptr %team, ptr %launch, i64 %worker) {
  if ptr %log == null: %untimed
  %entries = load i64, ptr %log
  %most = load i64, ptr %log[1]
  if i64 %entries uge %most: %untimed
  %words = shl i64 %entries, 2
  %begin.word = add i64 %words, 2
  %end.word = add i64 %words, 4
  %begin.at = getelementptr i64, ptr %log, i64 %begin.word
  %end.at = getelementptr i64, ptr %log, i64 %end.word
  call void @read_clock(ptr %begin.at)
  call void @take_part(ptr %team, ptr %launch, i64 %worker)
  call void @read_clock(ptr %end.at)
  %entries.next = add i64 %entries, 1
  store i64 %entries.next, ptr %log
  ret void
untimed:
  call void @take_part(ptr %team, ptr %launch, i64 %worker)
  ret void
}
"""

_WORKER = """
; A worker's loop: wait for a ticket, claim it, take part, wake the caller if it was the last to finish.
define ptr @genesis_worker(ptr %mailbox) {
  %team = load ptr, ptr %mailbox[1]
  %index = load i64, ptr %mailbox[2]
  %thread = call i64 @thread()
  store atomic i64 %thread, ptr %mailbox[3] monotonic, align 8
  fields %team: 1 launch.at, 5 parked, 7 pending, 8 caller.parked, 10 mutex, 11 work, 12 done

wait:
spin:
  %spins = phi i64 [ 0, %wait ], [ %spins.next, %pause ]
  %seen = load atomic i64, ptr %mailbox acquire, align 8
  %seen.odd = trunc i64 %seen to i1
  if %seen.odd: %claim
pause:
  PAUSE
  %spins.next = add i64 %spins, 1
  if i64 %spins.next ult WORKER_SPINS: %spin
  call void @lock(ptr %mutex)
  atomicrmw add ptr %parked, i64 1 seq_cst
asleep:
  %woken = load atomic i64, ptr %mailbox seq_cst, align 8
  %woken.odd = trunc i64 %woken to i1
  if %woken.odd: %unpark
  call void @sleep(ptr %work, ptr %mutex)
  br label %asleep
unpark:
  atomicrmw sub ptr %parked, i64 1 seq_cst
  call void @unlock(ptr %mutex)

claim:
  %ticket = phi i64 [ %seen, %spin ], [ %woken, %unpark ]
  %even = sub i64 %ticket, 1
  %claim.result = cmpxchg ptr %mailbox, i64 %ticket, i64 %even acquire monotonic
  %claimed = extractvalue { i64, i1 } %claim.result, 1
  unless %claimed: %wait
  load %team: 3 i64 processor
  call void @make_room(i64 %processor)
  %launch = load ptr, ptr %launch.at
  %log = load ptr, ptr %mailbox[LOG_WORD]
  call void @take_part_logged(ptr %log, ptr %team, ptr %launch, i64 %index)
  %left = atomicrmw sub ptr %pending, i64 1 seq_cst
  if i64 %left != 1: %wait
  %asleep.caller = load atomic i64, ptr %caller.parked seq_cst, align 8
  if i64 %asleep.caller == 0: %wait
  call void @lock(ptr %mutex)
  call void @wake(ptr %done)
  call void @unlock(ptr %mutex)
  br label %wait
}
"""

_FORK_JOIN = """
; Hand the launch's chunks to the team, run the caller's own and what nobody claims, and wait for the rest.
define internal void @fork_join(ptr %team, ptr %launch) {
entry:
  fields %team: 1 launch.at, 2 ticket.at, 5 parked, 7 pending, 8 caller.parked, 10 mutex, 11 work, 12 done
  %processor = call i64 @processor()
  %processor.at = getelementptr %team, ptr %team, i32 0, i32 3
  store i64 %processor, ptr %processor.at
  %participants = call i64 @participants(ptr %team, ptr %launch)
  %helpers = sub i64 %participants, 1
  store ptr %launch, ptr %launch.at
  store atomic i64 %helpers, ptr %pending monotonic, align 8
  %ticket.before = load i64, ptr %ticket.at
  %ticket = add i64 %ticket.before, 2
  store i64 %ticket, ptr %ticket.at
  load %launch: 5 i64 chunks

  for %d = 0 ult %participants:                   ; all before the first ticket: who has one may read any range
  %scaled = mul i64 %chunks, %d
  %begin = udiv i64 %scaled, %participants
  %scaled.next = add i64 %scaled, %chunks
  %end = udiv i64 %scaled.next, %participants
  %next.at = getelementptr %team, ptr %team, i32 0, i32 13, i64 %d, i64 5
  %end.at = getelementptr %team, ptr %team, i32 0, i32 13, i64 %d, i64 6
  store atomic i64 %begin, ptr %next.at monotonic, align 8
  store atomic i64 %end, ptr %end.at monotonic, align 8
  next %d
  for %p = 1 ule %helpers:
  %post.to = getelementptr %team, ptr %team, i32 0, i32 13, i64 %p
  store atomic i64 %ticket, ptr %post.to release, align 8
  next %p
  fence seq_cst
  %sleepers = load atomic i64, ptr %parked seq_cst, align 8
  if i64 %sleepers == 0: %own
  call void @place_workers(ptr %team, i64 %helpers, i64 %processor)
  call void @lock(ptr %mutex)
  call void @wake_all(ptr %work)
  call void @unlock(ptr %mutex)
  call void @place_workers(ptr %team, i64 %helpers, i64 -1)

own:
  call void @take_part(ptr %team, ptr %launch, i64 0)

  for %s = 1 ule %helpers:                        ; steal the tickets of workers that have not begun
  %steal.from = getelementptr %team, ptr %team, i32 0, i32 13, i64 %s
  %even = sub i64 %ticket, 1
  %steal.result = cmpxchg ptr %steal.from, i64 %ticket, i64 %even acquire monotonic
  %got = extractvalue { i64, i1 } %steal.result, 1
  unless %got: %next.s
  atomicrmw sub ptr %pending, i64 1 seq_cst
  next %s

wait:
  %spins = phi i64 [ 0, %end.s ], [ %spins.next, %pause ]
  %left = load atomic i64, ptr %pending acquire, align 8
  if i64 %left == 0: ret void
pause:
  PAUSE
  %spins.next = add i64 %spins, 1
  if i64 %spins.next ult CALLER_SPINS: %wait
  call void @lock(ptr %mutex)
  store atomic i64 1, ptr %caller.parked seq_cst, align 8
asleep:
  %left.asleep = load atomic i64, ptr %pending seq_cst, align 8
  if i64 %left.asleep == 0: %unpark
  call void @sleep(ptr %done, ptr %mutex)
  br label %asleep
unpark:
  store atomic i64 0, ptr %caller.parked seq_cst, align 8
  call void @unlock(ptr %mutex)
  ret void
}
"""


def fork_join_ir() -> str:
    """The functions that run a launch: `void @run_chunk` alone, `void @fork_join` with the team."""
    return _shared() + with_words(_FORK_JOIN, PAUSE=PAUSE, CALLER_SPINS=CALLER_SPINS)


def worker_ir() -> str:
    """The module that defines `ptr genesis_worker(mailbox)`, the body of a worker's thread."""
    return _shared() + CLOCK + _TAKE_PART_LOGGED + with_words(
        _WORKER, PAUSE=PAUSE, WORKER_SPINS=WORKER_SPINS, LOG_WORD=MAILBOX_LOG)


def _shared() -> str:
    return CHUNK + _TAKE_PART + LOCKS + PLACEMENT
