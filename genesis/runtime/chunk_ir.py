"""One chunk of a launch's items, as LLVM IR: the kernel is called for each block's part of the chunk.

    kernel      void (i64 lo, i64 hi, ptr words, i64 worker)     does items lo..hi-1 of the block that `words` describes
    block       {words, items}
    launch      {kernel, number of blocks, blocks, total items, workers, chunks, every worker}

A launch's items are one index space over all its blocks, and chunk c of C is [total*c/C, total*(c+1)/C). Which items a chunk
has depends on nothing else, so partial results per chunk have the same bits whichever worker computes them.
"""

from __future__ import annotations

__all__ = ["CHUNK"]

CHUNK = """
%launch = type { ptr, i64, ptr, i64, i64, i64, i64 }
%block = type { ptr, i64 }

; Run chunk %chunk of the launch as worker %worker: each block's part of the chunk's range of items.
define internal void @run_chunk(ptr %launch, i64 %chunk, i64 %worker) {
entry:
  %kernel = load ptr, ptr %launch
  load %launch: 1 i64 count, 2 ptr blocks, 3 i64 total, 5 i64 chunks, 6 i64 every
  %scaled = mul i64 %total, %chunk
  %begin = udiv i64 %scaled, %chunks
  %scaled.next = add i64 %scaled, %total
  %end = udiv i64 %scaled.next, %chunks
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
  load %block: 1 i64 items
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
