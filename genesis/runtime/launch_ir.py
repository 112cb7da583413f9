"""A launch as LLVM IR: alone, by the team, or launches that are repeated; a chunk of its items, block by block; and the kernel
of loops, tile by tile.

    kernel      void (i64 lo, i64 hi, ptr words, i64 worker)     does items lo..hi-1 of the block that `words` describes
    block       {words, items}
    launch      {kernel, number of blocks, blocks, total items, workers, chunks, numbered}
    moving      {address of a word, slot, byte offset, bytes further each time}
    repeat      {null, number of launches, launches, times, number of moving words, 0 chunks, 0}: for a launch; the moving
                words follow its launches

A launch's items are one index space over all its blocks, and chunk c of C is [total*c/C, total*(c+1)/C). Which items a chunk
has depends on nothing else. Where chunks are `numbered`, the kernel gets the chunk's number instead of the worker's: partial
results per chunk do not depend on the worker that computes them.
"""

from __future__ import annotations

from genesis.runtime.short_ir import spelled_out, with_words

# Tried without gain: reversed chunks at every second launch; two memory streams at once (322 to 402 us for a sum after a pause,
# 326 to 482 with one).
CHUNK = """
%launch = type { ptr, i64, ptr, i64, i64, i64, i64 }
%block = type { ptr, i64 }

; Run chunk %chunk of the launch as worker %worker: each block's part of the chunk's range of items.
define internal void @run_chunk(ptr %launch, i64 %chunk, i64 %worker) {
entry:
  %kernel = load ptr, ptr %launch
  load %launch: 1 i64 count, 2 ptr blocks, 3 i64 total, 5 i64 chunks, 6 i64 numbered
  %scaled = mul i64 %total, %chunk
  %begin = udiv i64 %scaled, %chunks
  %scaled.next = add i64 %scaled, %total
  %end = udiv i64 %scaled.next, %chunks
  if i64 %numbered != 0: %whole else %next

whole:                                            ; a single block; its kernel runs even on an empty range
  %only = load ptr, ptr %blocks
  call void %kernel(i64 %begin, i64 %end, ptr %only, i64 %chunk)
  ret void

next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %skip ]
  %first = phi i64 [ 0, %entry ], [ %last, %skip ]
  unless i64 %first ult %end and i64 %i ult %count: ret void
  %block = getelementptr %block, ptr %blocks, i64 %i
  load %block: 1 i64 items
  %last = add i64 %first, %items
  %i.next = add i64 %i, 1
  %from = call i64 @llvm.umax.i64(i64 %begin, i64 %first)
  %to = call i64 @llvm.umin.i64(i64 %end, i64 %last)
  if i64 %from uge %to: %skip
  %lo = sub i64 %from, %first
  %hi = sub i64 %to, %first
  %words = load ptr, ptr %block
  call void %kernel(i64 %lo, i64 %hi, ptr %words, i64 %worker)
skip:
  br label %next
}

declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
"""


_LOOP = """
; words {number of calls, table}: for each worker the address of its calls
; call {kernel, words, items of a tile, items, number of patches, patches}
; patch {number of a word, base, step}: the word is base + tile * step
%call = type { ptr, ptr, i64, i64, i64, ptr }
%patch = type { i64, i64, i64 }

define void @genesis_loop(i64 %first, i64 %end, ptr %words, i64 %worker) {
entry:
  %count = load i64, ptr %words
  %table = load ptr, ptr %words[1]
  %calls = load ptr, ptr %table[%worker]
  for %tile = %first slt %end:
  for %c = 0 slt %count:
  %call = getelementptr %call, ptr %calls, i64 %c
  %kernel = load ptr, ptr %call
  load %call: 1 ptr block, 2 i64 tile.items, 3 i64 items, 4 i64 patches.count, 5 ptr patches
  for %p = 0 slt %patches.count:
  %patch = getelementptr %patch, ptr %patches, i64 %p
  %number = load i64, ptr %patch
  load %patch: 1 i64 base, 2 i64 step
  %moved = mul i64 %tile, %step
  %value = add i64 %base, %moved
  store i64 %value, ptr %block[%number]
  next %p
  %lo = mul i64 %tile, %tile.items
  %lo.next = add i64 %lo, %tile.items
  %short = icmp slt i64 %lo.next, %items
  %hi = select i1 %short, i64 %lo.next, i64 %items
  call void %kernel(i64 %lo, i64 %hi, ptr %block, i64 %worker)
  next %c
  next %tile
  ret void
}
"""


def loop_ir() -> str:
    """The module that defines `genesis_loop`."""
    return spelled_out(_LOOP)


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
    return with_words(_LAUNCH, PARALLEL=_PARALLEL if by_team else "")
