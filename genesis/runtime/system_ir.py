"""Machine code's calls to the operating system, as LLVM IR: mutexes, conditions, the clock, sleep, placement of threads.

    void lock(mutex), unlock(mutex), sleep(condition, mutex), wake(condition), wake_all(condition)
    void read_clock({seconds, nanoseconds}), rest(nanoseconds)
    i64 processor(), void make_room(processor), i64 thread(), void place_workers(team, helpers, processor)

A mutex is the address of a CPython lock, and a condition the list of sleeping threads, each with its own lock. `sleep` may
wake spuriously: callers check again.

Placement is Linux' alone: a system may wake a worker on the caller's own processor, where the two alternate for milliseconds:
every sum then took one thread's time. So the caller bars sleeping workers from its processor while it wakes them, and a worker
that finds itself there moves away before it begins. Measured: softmax of 2048 x 2048 stays at 1.0 ms instead of 2.2.
"""

from __future__ import annotations

import platform
import sys

from genesis.runtime.short_ir import with_words
from genesis.runtime.system import IS_ARM, IS_LINUX

# An instruction for loops that wait for another thread's word.
if IS_ARM:
    PAUSE, _DECLARE_PAUSE = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)\n"
elif platform.machine().lower() in ("x86_64", "amd64"):
    PAUSE, _DECLARE_PAUSE = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()\n"
else:
    PAUSE, _DECLARE_PAUSE = "", ""

_GETTID = 178 if IS_ARM else 186  # the system call; C libraries have it since lately

_LOCKS = """
%sleeper = type { ptr, ptr }                      ; the next one, and the lock that it waits for

define internal void @lock(ptr %mutex) {
  %lock = load ptr, ptr %mutex
  call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  ret void
}

define internal void @unlock(ptr %mutex) {
  %lock = load ptr, ptr %mutex
  call void @PyThread_release_lock(ptr %lock)
  ret void
}

; The lock is freed with the mutex held: whoever released it has left it by then.
define internal void @sleep(ptr %condition, ptr %mutex) {
  %sleeper = alloca %sleeper
  %lock = call ptr @PyThread_allocate_lock()
  if ptr %lock != null: %enter
  call void @unlock(ptr %mutex)
  call void @lock(ptr %mutex)
  ret void
enter:
  call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  %next = load ptr, ptr %condition
  store ptr %next, ptr %sleeper
  %lock.at = getelementptr %sleeper, ptr %sleeper, i32 0, i32 1
  store ptr %lock, ptr %lock.at
  store ptr %sleeper, ptr %condition
  call void @unlock(ptr %mutex)
  call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  call void @lock(ptr %mutex)
  call void @PyThread_release_lock(ptr %lock)
  call void @PyThread_free_lock(ptr %lock)
  ret void
}

define internal void @wake(ptr %condition) {
  %sleeper = load ptr, ptr %condition
  if ptr %sleeper == null: ret void
  %next = load ptr, ptr %sleeper
  store ptr %next, ptr %condition
  load %sleeper: 1 ptr lock
  call void @PyThread_release_lock(ptr %lock)
  ret void
}

define internal void @wake_all(ptr %condition) {
entry:
look:
  %sleeper = load ptr, ptr %condition
  if ptr %sleeper == null: ret void
  call void @wake(ptr %condition)
  br label %look
}
"""

_CLOCK = """
define internal void @read_clock(ptr %time) {
  NOW
  %seconds = sdiv i64 %now, 1000000000
  %nanoseconds = srem i64 %now, 1000000000
  store i64 %seconds, ptr %time
  store i64 %nanoseconds, ptr %time[1]
  ret void
}
"""

# Sleep: wait for a lock that is never released.
REST = """
define internal void @rest(i64 %nanoseconds) {
  %lock = call ptr @PyThread_allocate_lock() else ret void
  %microseconds = udiv i64 %nanoseconds, 1000
  call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  call i32 @PyThread_acquire_lock_timed(ptr %lock, i64 %microseconds, i32 0)
  call void @PyThread_release_lock(ptr %lock)
  call void @PyThread_free_lock(ptr %lock)
  ret void
}
"""

# Barring the caller's processor: sums of 4M numbers after a pause took 215 us in half of the loops, then 90 to 120 in nearly
# all.
_PLACEMENT = """

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
  %allowed = alloca [128 x i8], align 8
  %elsewhere = alloca [128 x i8], align 8
  %here = call i64 @processor()
  unless i64 %here == %taken and i64 %here ult 1024: ret void
  store [128 x i8] zeroinitializer, ptr %allowed, align 8
  call i32 @sched_getaffinity(i32 0, i64 128, ptr %allowed)
  call void @llvm.memcpy.p0.p0.i64(ptr %elsewhere, ptr %allowed, i64 128, i1 false)
  call void @bar(ptr %elsewhere, i64 %here)
  %refused = call i32 @sched_setaffinity(i32 0, i64 128, ptr %elsewhere)   ; EINVAL, if there is no other
  call i32 @sched_setaffinity(i32 0, i64 128, ptr %allowed)
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
  %processors = alloca [128 x i8], align 8
  store [128 x i8] zeroinitializer, ptr %processors, align 8
  call i32 @sched_getaffinity(i32 0, i64 128, ptr %processors)
  if i64 %taken uge 1024: %place
  call void @bar(ptr %processors, i64 %taken)
place:
  for %p = 1 ule %helpers:
  %thread.at = getelementptr %team, ptr %team, i32 0, i32 13, i64 %p, i64 3
  %thread = load atomic i64, ptr %thread.at monotonic, align 8
  %narrow = trunc i64 %thread to i32
  call i32 @sched_setaffinity(i32 %narrow, i64 128, ptr %processors)   ; EINVAL, if that leaves none
  next %p
  ret void
}
"""

_NO_PLACEMENT = """
define internal i64 @processor() { ret i64 -1 }
define internal void @make_room(i64 %taken) { ret void }
define internal i64 @thread() { ret i64 0 }
define internal void @place_workers(ptr %team, i64 %helpers, i64 %taken) { ret void }
"""


def _clock() -> str:
    """The clock of `time.monotonic_ns`."""
    if sys.version_info < (3, 13):
        return with_words(_CLOCK, NOW="%now = call i64 @_PyTime_GetMonotonicClock()") + (
            "declare i64 @_PyTime_GetMonotonicClock()\n")
    read = "%at = alloca i64\n  call i32 @PyTime_MonotonicRaw(ptr %at)\n  %now = load i64, ptr %at"
    return with_words(_CLOCK, NOW=read) + "declare i32 @PyTime_MonotonicRaw(ptr)\n"


LOCKS = _LOCKS + _DECLARE_PAUSE
CLOCK = _clock()
PLACEMENT = with_words(_PLACEMENT, GETTID=_GETTID) if IS_LINUX else _NO_PLACEMENT
