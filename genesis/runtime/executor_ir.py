"""The native half of the runtime as LLVM IR: it runs a program, launch after launch.

All structures consist of 8-byte words, laid out by `native.py` (those of a launch are in `launch_ir`, of the
team in `team_ir`):

    relocation  {address of a word, slot, byte offset}
    program     {number of launches, launches, number of relocations, relocations, slots, fault, team, clock}
    clock       {time at the start, after the first launch, ..}  seconds and nanoseconds, of the latest run but for those by
                instructions: each reading takes 25 ns
    slots       {address of the outcome word, values...}
    outcome     1 once all have run; twice the number of launches that have, if the run was left between two

A launch that waits for another process may set the fault record's flag to AGAIN: it is launched once more, after handlers of
signals have had their moment.

Python's handlers of signals run when native code returns. So that a long program need not end first, every PATIENCE between
two launches is a moment for them, for which the time is known anyway: what they do meanwhile may be another run of the same
program, or the rest of this one. If one of them raises, the run is left there, and can be taken up again.
"""

from __future__ import annotations

from genesis.runtime.launch_ir import launch_ir
from genesis.runtime.short_ir import with_words
from genesis.runtime.system_ir import CLOCK
from genesis.runtime.team_ir import TEAM_UNDER_WAY, fork_join_ir

FAULT_WORDS = 4
PATIENCE = 50_000_000  # nanoseconds that a run lets signals wait
SHARE = 16  # after a wait for the interpreter, which another thread may have, a run goes on for so many times as long
AGAIN = -2  # the flag of a launch that waits
_RAISED = -1

def relocate_ir(count: str) -> str:
    """The loop that writes `count` addresses of %slots where %relocations want them, before launches, which need no look-ups
    then.
    """
    return f"""  for %r = 0 ult {count}:
  %relocation = getelementptr %relocation, ptr %relocations, i64 %r
  %word.at = load ptr, ptr %relocation
  load %relocation: 1 i64 slot, 2 i64 offset
  %value = load i64, ptr %slots[%slot]
  %word = add i64 %value, %offset
  store i64 %word, ptr %word.at
  next %r
"""


# Python is not entered between launches: a table of 100 small kernels takes 1.1 us, where ctypes takes 0.5 us for each call.
_RUN = """
%program = type { i64, ptr, i64, ptr, ptr, ptr, ptr, ptr }
%relocation = type { ptr, i64, i64 }

; Run the launches in order, from the one on that the outcome says. Return the fault record's flag: 0 if all ran, else the
; launch that set it was the last; or RAISED, as the interpreter's thread, if a handler of signals has raised. Without a
; thread it is not left.
define internal i64 @run(ptr %program, ptr %thread) {
entry:
  %launches.count = load i64, ptr %program
  load %program: 1 ptr launches, 2 i64 relocations.count, 3 ptr relocations, 4 ptr slots, 5 ptr fault, 6 ptr team, 7 ptr clock
  call void @llvm.memset.p0.i64(ptr %fault, i8 0, i64 FAULT_BYTES, i1 false)
  %outcome = load ptr, ptr %slots
  %before = load i64, ptr %outcome
  %begin = lshr i64 %before, 1
  %is.timed = icmp ne ptr %thread, null             ; else nobody asks for the time
RELOCATE
launch.next:
  %l = phi i64 [ %begin, %end.r ], [ %l.next, %launched ], [ %l, %waiting ], [ %l.left, %return ]
  %deadline = phi i64 [ 0, %end.r ], [ %deadline.now, %launched ], [ %deadline.now, %waiting ], [ 0, %return ]
  %patience = phi i64 [ PATIENCE, %end.r ], [ %patience, %launched ], [ %patience, %waiting ], [ %patience.next, %return ]
  %time.at = getelementptr [2 x i64], ptr %clock, i64 %l
  unless %is.timed: %launch.or.end
  call void @read_clock(ptr %time.at)
launch.or.end:
  if i64 %l uge %launches.count: %finished
mind.time:
  %now = call i64 @nanoseconds(ptr %time.at)
  if i64 %now sge %deadline: %passed else %launch.one

passed:
  if i64 %deadline != 0: %leave
start.time:
  %deadline.new = add i64 %now, %patience
  %deadline.first = select i1 %is.timed, i64 %deadline.new, i64 MOST
  br label %launch.one
leave:
  %come.to = shl i64 %l, 1
  store i64 %come.to, ptr %outcome
  call void @PyEval_RestoreThread(ptr %thread)
  call void @read_clock(ptr %time.at)
  %after = call i64 @nanoseconds(ptr %time.at)
  %raised = call i32 @PyErr_CheckSignals()
  if i32 %raised == 0: %return
  ret i64 RAISED
return:                                           ; a handler may have run the rest, or some of it
  call ptr @PyEval_SaveThread()
  %waited = sub i64 %after, %now
  %waited.share = mul i64 %waited, SHARE
  %patience.next = call i64 @llvm.umax.i64(i64 %waited.share, i64 PATIENCE)
  %come.to.now = load i64, ptr %outcome
  %l.left = lshr i64 %come.to.now, 1
  %ended = trunc i64 %come.to.now to i1
  if %ended: %over else %launch.next

launch.one:
  %deadline.now = phi i64 [ %deadline, %mind.time ], [ %deadline.first, %start.time ]
  %launch = getelementptr %launch, ptr %launches, i64 %l
  call void @run_launch(ptr %team, ptr %launch, ptr %slots, ptr %fault)
launched:
  %l.next = add i64 %l, 1
  %flag = load i64, ptr %fault
  if i64 %flag != 0: %failed else %launch.next

failed:
  if i64 %flag != AGAIN: ret i64 %flag
waiting:
  store i64 0, ptr %fault
  br label %launch.next
finished:
  store i64 1, ptr %outcome
over:
  ret i64 0
}

; Run a program while other threads may have the interpreter, and handlers of signals, if it %is.left for them, their moments.
define internal i64 @run_beside_threads(ptr %program, i1 %is.left) {
  load %program: 6 ptr team
  %under.way = getelementptr i64, ptr %team, i64 UNDER_WAY
  %outer = load i64, ptr %under.way                ; a handler of signals within a run may run another
  store i64 1, ptr %under.way
  %thread = call ptr @PyEval_SaveThread()
  %interrupted = select i1 %is.left, ptr %thread, ptr null
  %flag = call i64 @run(ptr %program, ptr %interrupted)
  if i64 %flag == RAISED: %ended                    ; as the interpreter's thread
  call void @PyEval_RestoreThread(ptr %thread)
ended:
  store i64 %outer, ptr %under.way
  ret i64 %flag
}
"""

_AS_PYTHON_FUNCTION = """
; A function of CPython's: run the program at an address, a Python number, while other threads may have the interpreter.
define ptr @genesis_run(ptr %self, ptr %address) {
  %program = call ptr @PyLong_AsVoidPtr(ptr %address)
  %flag = call i64 @run_beside_threads(ptr %program, i1 true)
  if i64 %flag == RAISED: ret ptr null              ; the handler's exception is the interpreter's
  %result = call ptr @PyLong_FromLongLong(i64 %flag)
  ret ptr %result
}
"""


_TIMES = """
define internal i64 @nanoseconds(ptr %time) {
  %seconds = load i64, ptr %time
  %rest = load i64, ptr %time[1]
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}

define internal i64 @now() {
  %time = alloca [2 x i64]
  call void @read_clock(ptr %time)
  %sum = call i64 @nanoseconds(ptr %time)
  ret i64 %sum
}
"""


def clock_ir() -> str:
    """`i64 nanoseconds(time)` of a time from `read_clock`, and `i64 now()`."""
    return CLOCK + _TIMES


def program_ir() -> str:
    """`i64 run(program, thread)`, and `i64 run_beside_threads(program, whether handlers of signals get their moments)`."""
    run = with_words(
        _RUN, FAULT_BYTES=8 * FAULT_WORDS, PATIENCE=PATIENCE, SHARE=SHARE, RELOCATE=relocate_ir("%relocations.count"),
        UNDER_WAY=TEAM_UNDER_WAY, AGAIN=AGAIN, RAISED=_RAISED, MOST=(1 << 63) - 1)
    return fork_join_ir() + launch_ir(by_team=True) + clock_ir() + run


def run_ir() -> str:
    """The module that defines `PyObject* genesis_run(self, address of a program)`, which returns `run`'s flag."""
    return program_ir() + with_words(_AS_PYTHON_FUNCTION, RAISED=_RAISED)
