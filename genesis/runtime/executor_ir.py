"""The native half of the runtime as LLVM IR: what runs a program, and what a worker does.

Everything native shares 8-byte words. The structures, as `native.py` lays them out:

    kernel      void (i64 lo, i64 hi, ptr words, i64 worker)     does items lo..hi-1 of the block that `words` describes
    block       {words, items}
    launch      {kernel, number of blocks, blocks, total items, workers, shares, every worker}
    relocation  {address of a word, slot, byte offset}
    program     {number of launches, launches, number of relocations, relocations, slots, fault, team, clock}
    clock       {time at the start, after the first launch, ..}  seconds and nanoseconds, of the latest run
    slots       {address of the outcome word, values...}
    team        {size, launch, ticket, processor | parked | pending, caller parked | next share | mutex | work | done | boxes}
    mailbox     {ticket, team, index, thread}                    one cache line each; the caller's, 0, is not used

A launch's items are one index space over all its blocks, and share s of S is [total*s/S, total*(s+1)/S): which share
has which items depends on nothing else. To hand out a launch the caller puts an odd ticket, higher than any before it,
into each mailbox; whoever turns it even has claimed it: the worker, who takes part, or the caller, who has come to the
end. Since the launch cannot end before all who take part are done, a worker that wakes late finds an even ticket and
touches nothing.

Where every worker has sums of its own (a loop over tiles that adds up), share w is worker w's, and the caller does those whose
ticket he claims. Else there are several shares for each worker, and who takes part takes the next one until there are
none: a worker that wakes late, or is slow, delays nobody.

Waiting is bounded spinning, then sleep: a worker on `work`, the caller on `done`. The counts `parked` and `caller
parked` tell the other side whether there is anyone to wake; both sides write theirs before they read the other's
(sequentially consistent).

A system that wakes a worker may put it on the very processor that the caller runs on, where the two then take turns for
many milliseconds. So the caller bars sleeping workers from its own while it wakes them, and a worker that finds itself there
moves to another processor first.
"""

from __future__ import annotations

import platform
import sys
import time

# Offsets, in words, into the team: where native.py writes.
TEAM_SIZE, TEAM_TICKET, TEAM_MUTEX, TEAM_WORK, TEAM_DONE, TEAM_MAILBOXES = 0, 2, 32, 48, 64, 80
MAILBOX_WORDS = 8
FAULT_WORDS = 4

WORKER_SPINS = 10_000  # of 20 to 50 ns: a training loop comes back before the worker has gone to sleep
CALLER_SPINS = 1000

if platform.machine() in ("aarch64", "arm64"):
    _PAUSE, _DECLARE_PAUSE = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
else:
    _PAUSE, _DECLARE_PAUSE = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"

_GETTID = 178 if platform.machine() in ("aarch64", "arm64") else 186  # the system call; C libraries have it since lately

_SHARE = """
%launch = type { ptr, i64, ptr, i64, i64, i64, i64 }
%block = type { ptr, i64 }

; Do share %share of the launch, as worker %worker: each block's part of the share's range of items.
define internal void @run_share(ptr %launch, i64 %share, i64 %worker) {
entry:
  %kernel = load ptr, ptr %launch
  %count.at = getelementptr %launch, ptr %launch, i32 0, i32 1
  %count = load i64, ptr %count.at
  %blocks.at = getelementptr %launch, ptr %launch, i32 0, i32 2
  %blocks = load ptr, ptr %blocks.at
  %total.at = getelementptr %launch, ptr %launch, i32 0, i32 3
  %total = load i64, ptr %total.at
  %shares.at = getelementptr %launch, ptr %launch, i32 0, i32 5
  %shares = load i64, ptr %shares.at
  %every.at = getelementptr %launch, ptr %launch, i32 0, i32 6
  %every = load i64, ptr %every.at
  %scaled = mul i64 %total, %share
  %begin = udiv i64 %scaled, %shares
  %scaled.next = add i64 %scaled, %total
  %end = udiv i64 %scaled.next, %shares
  %every.worker = icmp ne i64 %every, 0
  br i1 %every.worker, label %whole, label %next

whole:                                            ; a single block; its kernel runs even on an empty range
  %only = load ptr, ptr %blocks
  call void %kernel(i64 %begin, i64 %end, ptr %only, i64 %worker)
  ret void

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %skip ]
  %first = phi i64 [ 0, %entry ], [ %last, %skip ]
  %inside = icmp ult i64 %first, %end
  %some = icmp ult i64 %i, %count
  %more = and i1 %inside, %some
  br i1 %more, label %one, label %finished
one:
  %block = getelementptr %block, ptr %blocks, i64 %i
  %items.at = getelementptr %block, ptr %block, i32 0, i32 1
  %items = load i64, ptr %items.at
  %last = add i64 %first, %items
  %i.next = add i64 %i, 1
  %from = call i64 @llvm.umax.i64(i64 %begin, i64 %first)
  %to = call i64 @llvm.umin.i64(i64 %end, i64 %last)
  %overlap = icmp ult i64 %from, %to
  br i1 %overlap, label %call, label %skip
call:
  %lo = sub i64 %from, %first
  %hi = sub i64 %to, %first
  %words = load ptr, ptr %block
  call void %kernel(i64 %lo, i64 %hi, ptr %words, i64 %worker)
  br label %skip
skip:
  br label %next
finished:
  ret void
}

declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
"""

_TEAM = """
%line = type [8 x i64]
%team = type { i64, ptr, i64, i64, [4 x i64], i64, [7 x i64], i64, i64, [6 x i64], i64, [7 x i64],
               [16 x i64], [16 x i64], [16 x i64], [0 x %line] }

; Take part in the launch as worker %worker: do its share, or share after share until none is left.
define internal void @take_part(ptr %team, ptr %launch, i64 %worker) {
entry:
  %shares.at = getelementptr %launch, ptr %launch, i32 0, i32 5
  %shares = load i64, ptr %shares.at
  %every.at = getelementptr %launch, ptr %launch, i32 0, i32 6
  %every = load i64, ptr %every.at
  %next = getelementptr %team, ptr %team, i32 0, i32 10
  %every.worker = icmp ne i64 %every, 0
  br i1 %every.worker, label %own, label %take
own:
  call void @run_share(ptr %launch, i64 %worker, i64 %worker)
  ret void
take:
  %share = atomicrmw add ptr %next, i64 1 monotonic
  %left = icmp ult i64 %share, %shares
  br i1 %left, label %one, label %finished
one:
  call void @run_share(ptr %launch, i64 %share, i64 %worker)
  br label %take
finished:
  ret void
}

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
DECLARE_PAUSE
PROCESSORS
"""

_PROCESSORS = """
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)

; The processor that this thread runs on.
define internal i64 @processor() {
  %number = call i32 @sched_getcpu()
  %wide = sext i32 %number to i64
  ret i64 %wide
}

; Take a processor out of the set at %processors.
define internal void @bar(ptr %processors, i64 %processor) {
  %byte = lshr i64 %processor, 3
  %byte.at = getelementptr i8, ptr %processors, i64 %byte
  %bit = and i64 %processor, 7
  %bit.narrow = trunc i64 %bit to i8
  %mask = shl i8 1, %bit.narrow
  %inverse = xor i8 %mask, -1
  %before = load i8, ptr %byte.at
  %after = and i8 %before, %inverse
  store i8 %after, ptr %byte.at
  ret void
}

; Leave processor %taken, if this thread runs there and may run elsewhere.
define internal void @make_room(i64 %taken) {
entry:
  %allowed = alloca [128 x i8], align 8
  %elsewhere = alloca [128 x i8], align 8
  %here = call i64 @processor()
  %same = icmp eq i64 %here, %taken
  %known = icmp ult i64 %here, 1024
  %must = and i1 %same, %known
  br i1 %must, label %ask, label %stay
ask:
  store [128 x i8] zeroinitializer, ptr %allowed, align 8
  call i32 @sched_getaffinity(i32 0, i64 128, ptr %allowed)
  call void @llvm.memcpy.p0.p0.i64(ptr %elsewhere, ptr %allowed, i64 128, i1 false)
  call void @bar(ptr %elsewhere, i64 %here)
  %refused = call i32 @sched_setaffinity(i32 0, i64 128, ptr %elsewhere)   ; EINVAL, if there is no other
  call i32 @sched_setaffinity(i32 0, i64 128, ptr %allowed)
  br label %stay
stay:
  ret void
}

; What the system calls this thread.
define internal i64 @thread() {
  %number = call i64 (i64, ...) @syscall(i64 GETTID)
  ret i64 %number
}

; Let the workers up to %helpers run where this thread may, but not on processor %taken (-1: none is).
define internal void @place_workers(ptr %team, i64 %helpers, i64 %taken) {
entry:
  %places = alloca [128 x i8], align 8
  store [128 x i8] zeroinitializer, ptr %places, align 8
  call i32 @sched_getaffinity(i32 0, i64 128, ptr %places)
  %known = icmp ult i64 %taken, 1024
  br i1 %known, label %bar, label %next
bar:
  call void @bar(ptr %places, i64 %taken)
  br label %next
next:
  %p = phi i64 [ 1, %entry ], [ 1, %bar ], [ %p.next, %one ]
  %more = icmp ule i64 %p, %helpers
  br i1 %more, label %one, label %finished
one:
  %thread.at = getelementptr %team, ptr %team, i32 0, i32 15, i64 %p, i64 3
  %thread = load atomic i64, ptr %thread.at monotonic, align 8
  %narrow = trunc i64 %thread to i32
  call i32 @sched_setaffinity(i32 %narrow, i64 128, ptr %places)   ; EINVAL, if that leaves none
  %p.next = add i64 %p, 1
  br label %next
finished:
  ret void
}

declare i64 @syscall(i64, ...)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_NO_PROCESSORS = """
define internal i64 @processor() {
  ret i64 -1
}

define internal void @make_room(i64 %taken) {
  ret void
}

define internal i64 @thread() {
  ret i64 0
}

define internal void @place_workers(ptr %team, i64 %helpers, i64 %taken) {
  ret void
}
"""

_WORKER = """
; A worker's life: wait for a ticket, claim the share, do it, tell the caller if it was the last.
define ptr @genesis_worker(ptr %mailbox) {
entry:
  %team.at = getelementptr i64, ptr %mailbox, i64 1
  %team = load ptr, ptr %team.at
  %index.at = getelementptr i64, ptr %mailbox, i64 2
  %index = load i64, ptr %index.at
  %thread.at = getelementptr i64, ptr %mailbox, i64 3
  %thread = call i64 @thread()
  store atomic i64 %thread, ptr %thread.at monotonic, align 8
  %launch.at = getelementptr %team, ptr %team, i32 0, i32 1
  %parked = getelementptr %team, ptr %team, i32 0, i32 5
  %pending = getelementptr %team, ptr %team, i32 0, i32 7
  %caller.parked = getelementptr %team, ptr %team, i32 0, i32 8
  %mutex = getelementptr %team, ptr %team, i32 0, i32 12
  %work = getelementptr %team, ptr %team, i32 0, i32 13
  %done = getelementptr %team, ptr %team, i32 0, i32 14
  br label %wait

wait:
  br label %spin
spin:
  %spins = phi i64 [ 0, %wait ], [ %spins.next, %pause ]
  %seen = load atomic i64, ptr %mailbox acquire, align 8
  %seen.odd = trunc i64 %seen to i1
  br i1 %seen.odd, label %claim, label %pause
pause:
  PAUSE
  %spins.next = add i64 %spins, 1
  %patient = icmp ult i64 %spins.next, WORKER_SPINS
  br i1 %patient, label %spin, label %park
park:
  call i32 @pthread_mutex_lock(ptr %mutex)
  atomicrmw add ptr %parked, i64 1 seq_cst
  br label %asleep
asleep:
  %woken = load atomic i64, ptr %mailbox seq_cst, align 8
  %woken.odd = trunc i64 %woken to i1
  br i1 %woken.odd, label %unpark, label %sleep
sleep:
  call i32 @pthread_cond_wait(ptr %work, ptr %mutex)
  br label %asleep
unpark:
  atomicrmw sub ptr %parked, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %claim

claim:
  %ticket = phi i64 [ %seen, %spin ], [ %woken, %unpark ]
  %even = sub i64 %ticket, 1
  %claim.result = cmpxchg ptr %mailbox, i64 %ticket, i64 %even acquire monotonic
  %claimed = extractvalue { i64, i1 } %claim.result, 1
  br i1 %claimed, label %mine, label %wait
mine:
  %processor.at = getelementptr %team, ptr %team, i32 0, i32 3
  %processor = load i64, ptr %processor.at
  call void @make_room(i64 %processor)
  %launch = load ptr, ptr %launch.at
  call void @take_part(ptr %team, ptr %launch, i64 %index)
  %left = atomicrmw sub ptr %pending, i64 1 seq_cst
  %was.last = icmp eq i64 %left, 1
  br i1 %was.last, label %tell, label %wait
tell:
  %asleep.caller = load atomic i64, ptr %caller.parked seq_cst, align 8
  %must.wake = icmp ne i64 %asleep.caller, 0
  br i1 %must.wake, label %wake, label %wait
wake:
  call i32 @pthread_mutex_lock(ptr %mutex)
  call i32 @pthread_cond_signal(ptr %done)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %wait
}
"""

_RUN = """
%program = type { i64, ptr, i64, ptr, ptr, ptr, ptr, ptr }
%relocation = type { ptr, i64, i64 }

; Run the launches in order. Return the fault record's flag: 0 if all ran, else the launch that set it was the last.
define i64 @genesis_run(ptr %program) {
entry:
  %launches.count = load i64, ptr %program
  %launches.at = getelementptr %program, ptr %program, i32 0, i32 1
  %launches = load ptr, ptr %launches.at
  %relocations.count.at = getelementptr %program, ptr %program, i32 0, i32 2
  %relocations.count = load i64, ptr %relocations.count.at
  %relocations.at = getelementptr %program, ptr %program, i32 0, i32 3
  %relocations = load ptr, ptr %relocations.at
  %slots.at = getelementptr %program, ptr %program, i32 0, i32 4
  %slots = load ptr, ptr %slots.at
  %fault.at = getelementptr %program, ptr %program, i32 0, i32 5
  %fault = load ptr, ptr %fault.at
  %team.at = getelementptr %program, ptr %program, i32 0, i32 6
  %team = load ptr, ptr %team.at
  %clock.at = getelementptr %program, ptr %program, i32 0, i32 7
  %clock = load ptr, ptr %clock.at
  call void @llvm.memset.p0.i64(ptr %fault, i8 0, i64 FAULT_BYTES, i1 false)
  br label %relocate

relocate:
  %r = phi i64 [ 0, %entry ], [ %r.next, %relocate.one ]
  %relocating = icmp ult i64 %r, %relocations.count
  br i1 %relocating, label %relocate.one, label %launch.next
relocate.one:
  %relocation = getelementptr %relocation, ptr %relocations, i64 %r
  %word.at = load ptr, ptr %relocation
  %slot.at = getelementptr %relocation, ptr %relocation, i32 0, i32 1
  %slot = load i64, ptr %slot.at
  %offset.at = getelementptr %relocation, ptr %relocation, i32 0, i32 2
  %offset = load i64, ptr %offset.at
  %value.at = getelementptr i64, ptr %slots, i64 %slot
  %value = load i64, ptr %value.at
  %word = add i64 %value, %offset
  store i64 %word, ptr %word.at
  %r.next = add i64 %r, 1
  br label %relocate

launch.next:
  %l = phi i64 [ 0, %relocate ], [ %l.next, %launched ]
  %time.at = getelementptr [2 x i64], ptr %clock, i64 %l
  call i32 @clock_gettime(i32 CLOCK, ptr %time.at)
  %launching = icmp ult i64 %l, %launches.count
  br i1 %launching, label %launch.one, label %finished
launch.one:
  %launch = getelementptr %launch, ptr %launches, i64 %l
  %workers.at = getelementptr %launch, ptr %launch, i32 0, i32 4
  %workers = load i64, ptr %workers.at
  %serial = icmp ule i64 %workers, 1
  br i1 %serial, label %alone, label %together
alone:
  call void @run_share(ptr %launch, i64 0, i64 0)
  br label %launched
together:
  call void @fork_join(ptr %team, ptr %launch, i64 %workers)
  br label %launched
launched:
  %l.next = add i64 %l, 1
  %flag = load i64, ptr %fault
  %faulted = icmp ne i64 %flag, 0
  br i1 %faulted, label %failed, label %launch.next

failed:
  ret i64 %flag
finished:
  %outcome = load ptr, ptr %slots
  store i64 1, ptr %outcome
  ret i64 0
}

; Hand the launch's shares to the team, do the caller's own and whatever nobody claims, and wait for the rest.
define internal void @fork_join(ptr %team, ptr %launch, i64 %workers) {
entry:
  %size = load i64, ptr %team
  %launch.at = getelementptr %team, ptr %team, i32 0, i32 1
  %ticket.at = getelementptr %team, ptr %team, i32 0, i32 2
  %parked = getelementptr %team, ptr %team, i32 0, i32 5
  %pending = getelementptr %team, ptr %team, i32 0, i32 7
  %caller.parked = getelementptr %team, ptr %team, i32 0, i32 8
  %next = getelementptr %team, ptr %team, i32 0, i32 10
  %mutex = getelementptr %team, ptr %team, i32 0, i32 12
  %work = getelementptr %team, ptr %team, i32 0, i32 13
  %done = getelementptr %team, ptr %team, i32 0, i32 14
  %every.at = getelementptr %launch, ptr %launch, i32 0, i32 6
  %every = load i64, ptr %every.at
  %every.worker = icmp ne i64 %every, 0
  %processor = call i64 @processor()
  %processor.at = getelementptr %team, ptr %team, i32 0, i32 3
  store i64 %processor, ptr %processor.at
  %others = sub i64 %workers, 1
  %helpers = call i64 @llvm.umin.i64(i64 %others, i64 %size)
  store ptr %launch, ptr %launch.at
  store atomic i64 0, ptr %next monotonic, align 8
  store atomic i64 %helpers, ptr %pending monotonic, align 8
  %ticket.before = load i64, ptr %ticket.at
  %ticket = add i64 %ticket.before, 2
  store i64 %ticket, ptr %ticket.at
  br label %post

post:
  %p = phi i64 [ 1, %entry ], [ %p.next, %post.one ]
  %posting = icmp ule i64 %p, %helpers
  br i1 %posting, label %post.one, label %posted
post.one:
  %post.to = getelementptr %team, ptr %team, i32 0, i32 15, i64 %p
  store atomic i64 %ticket, ptr %post.to release, align 8
  %p.next = add i64 %p, 1
  br label %post
posted:
  fence seq_cst
  %sleepers = load atomic i64, ptr %parked seq_cst, align 8
  %any.asleep = icmp ne i64 %sleepers, 0
  br i1 %any.asleep, label %wake, label %own
wake:
  call void @place_workers(ptr %team, i64 %helpers, i64 %processor)
  call i32 @pthread_mutex_lock(ptr %mutex)
  call i32 @pthread_cond_broadcast(ptr %work)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @place_workers(ptr %team, i64 %helpers, i64 -1)
  br label %own

own:
  call void @take_part(ptr %team, ptr %launch, i64 0)
  %unmanned = add i64 %helpers, 1
  br i1 %every.worker, label %extra, label %steal
extra:                                            ; shares of workers beyond the team
  %e = phi i64 [ %unmanned, %own ], [ %e.next, %extra.one ]
  %extras = icmp ult i64 %e, %workers
  br i1 %extras, label %extra.one, label %steal
extra.one:
  call void @run_share(ptr %launch, i64 %e, i64 %e)
  %e.next = add i64 %e, 1
  br label %extra

steal:                                            ; workers that have not begun: their tickets, and shares of their own
  %s = phi i64 [ 1, %extra ], [ 1, %own ], [ %s.next, %stolen ]
  %stealing = icmp ule i64 %s, %helpers
  br i1 %stealing, label %steal.one, label %wait
steal.one:
  %steal.from = getelementptr %team, ptr %team, i32 0, i32 15, i64 %s
  %even = sub i64 %ticket, 1
  %steal.result = cmpxchg ptr %steal.from, i64 %ticket, i64 %even acquire monotonic
  %got = extractvalue { i64, i1 } %steal.result, 1
  br i1 %got, label %steal.run, label %stolen
steal.run:
  br i1 %every.worker, label %steal.share, label %steal.none
steal.share:
  call void @run_share(ptr %launch, i64 %s, i64 %s)
  br label %steal.none
steal.none:
  atomicrmw sub ptr %pending, i64 1 seq_cst
  br label %stolen
stolen:
  %s.next = add i64 %s, 1
  br label %steal

wait:
  %spins = phi i64 [ 0, %steal ], [ %spins.next, %pause ]
  %left = load atomic i64, ptr %pending acquire, align 8
  %joined = icmp eq i64 %left, 0
  br i1 %joined, label %finished, label %pause
pause:
  PAUSE
  %spins.next = add i64 %spins, 1
  %patient = icmp ult i64 %spins.next, CALLER_SPINS
  br i1 %patient, label %wait, label %park
park:
  call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 1, ptr %caller.parked seq_cst, align 8
  br label %asleep
asleep:
  %left.asleep = load atomic i64, ptr %pending seq_cst, align 8
  %joined.asleep = icmp eq i64 %left.asleep, 0
  br i1 %joined.asleep, label %unpark, label %sleep
sleep:
  call i32 @pthread_cond_wait(ptr %done, ptr %mutex)
  br label %asleep
unpark:
  store atomic i64 0, ptr %caller.parked seq_cst, align 8
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %finished
finished:
  ret void
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @clock_gettime(i32, ptr)
"""

def run_ir() -> str:
    """The module that defines `i64 genesis_run(program)`."""
    return _fill(_SHARE + _TEAM + _RUN, FAULT_BYTES=8 * FAULT_WORDS, CALLER_SPINS=CALLER_SPINS, CLOCK=time.CLOCK_MONOTONIC)


def worker_ir() -> str:
    """The module that defines `ptr genesis_worker(mailbox)`, the body of a worker's thread."""
    return _fill(_SHARE + _TEAM + _WORKER, WORKER_SPINS=WORKER_SPINS)


def _fill(text: str, **values: object) -> str:
    processors = _PROCESSORS if sys.platform == "linux" else _NO_PROCESSORS
    values = {"DECLARE_PAUSE": _DECLARE_PAUSE, "PAUSE": _PAUSE, "PROCESSORS": processors, "GETTID": _GETTID, **values}
    for name, value in values.items():
        text = text.replace(name, str(value))
    return text
