"""Thread placement on Linux, as LLVM IR; elsewhere the system places threads.

A system may wake a worker on the caller's own processor, where the two alternate for milliseconds: every sum then took one
thread's time. So the caller bars sleeping workers from its processor while it wakes them, and a worker that finds itself there
moves away before it begins. Measured: softmax of 2048 x 2048 stays at 1.0 ms in place of 2.2.
"""

from __future__ import annotations

import platform
import sys

# Barring the caller's processor: sums of 4M numbers after a pause took 215 us in half of the loops, then 90 to 120 in nearly
# all.
_GETTID = 178 if platform.machine() in ("aarch64", "arm64") else 186  # the system call; C libraries have it since lately

_LINUX = """
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

_ELSEWHERE = """
define internal i64 @processor() { ret i64 -1 }
define internal void @make_room(i64 %taken) { ret void }
define internal i64 @thread() { ret i64 0 }
define internal void @place_workers(ptr %team, i64 %helpers, i64 %taken) { ret void }
"""

PROCESSORS = _LINUX.replace("GETTID", str(_GETTID)) if sys.platform == "linux" else _ELSEWHERE
