"""A launch as LLVM IR: alone, by the team, or launches that are repeated.

    moving      {address of a word, slot, byte offset, bytes further each time}
    repeat      {null, number of launches, launches, times, number of moving words, 0 chunks, 0}: for a launch; the moving
                words follow its launches
"""

from __future__ import annotations

# What is repeated is one launch to all others: no handler of a signal runs within, and its time is that of all rounds.
_LAUNCH = """
%moving = type { ptr, i64, i64, i64 }

; Run a launch. Of launches that are repeated, one that sets the fault record is the last.
define internal void @run_launch(ptr %team, ptr %launch, ptr %slots, ptr %fault) {
entry:
  load %launch: 1 i64 count, 2 ptr inside, 3 i64 times, 4 i64 moving.count, 5 i64 chunks
  %moving.words = getelementptr %launch, ptr %inside, i64 %count
  if i64 %chunks == 0: %rounds
  PARALLEL
  call void @run_chunk(ptr %launch, i64 0, i64 0)
  ret void

rounds:
  for %t = 0 ult %times:
  for %m = 0 ult %moving.count:
  %moving = getelementptr %moving, ptr %moving.words, i64 %m
  %word.at = load ptr, ptr %moving
  load %moving: 1 i64 slot, 2 i64 offset, 3 i64 stride
  %value = load i64, ptr %slots[%slot]
  %moved = mul i64 %t, %stride
  %further = add i64 %offset, %moved
  %word = add i64 %value, %further
  store i64 %word, ptr %word.at
  next %m
  for %l = 0 ult %count:
  %one = getelementptr %launch, ptr %inside, i64 %l
  call void @run_launch(ptr %team, ptr %one, ptr %slots, ptr %fault)
  %flag = load i64, ptr %fault
  if i64 %flag != 0: ret void
  next %l
  next %t
  ret void
}
"""
_PARALLEL = """if i64 %chunks == 1: %alone
  call void @fork_join(ptr %team, ptr %launch)
  ret void
alone:"""


def launch_ir(by_team: bool) -> str:
    """`void @run_launch(team, launch, slots, fault record)`."""
    return _LAUNCH.replace("PARALLEL", _PARALLEL if by_team else "")
