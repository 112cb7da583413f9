"""The kernel of loops as LLVM IR: for each tile, one call after the other, on the tile's items.

Patches move addresses from tile to tile. Each worker has its own calls and argument blocks, since it writes the patches.
"""

from __future__ import annotations

from genesis.runtime.fields_ir import with_fields

__all__ = ["loop_ir"]

_LOOP = """
; words {number of calls, table}: for each worker the address of its calls
; call {kernel, words, items of a tile, items, number of patches, patches}
; patch {number of a word, base, step}: the word is base + tile * step
%call = type { ptr, ptr, i64, i64, i64, ptr }
%patch = type { i64, i64, i64 }

define void @genesis_loop(i64 %first, i64 %end, ptr %words, i64 %worker) {
entry:
  %count = load i64, ptr %words
  %table.at = getelementptr i64, ptr %words, i64 1
  %table = load ptr, ptr %table.at
  %calls.at = getelementptr ptr, ptr %table, i64 %worker
  %calls = load ptr, ptr %calls.at
  br label %tiles
tiles:
  %tile = phi i64 [ %first, %entry ], [ %tile.next, %tile.done ]
  %more.tiles = icmp slt i64 %tile, %end
  br i1 %more.tiles, label %calling, label %finished
calling:
  %c = phi i64 [ 0, %tiles ], [ %c.next, %call.now ]
  %more.calls = icmp slt i64 %c, %count
  br i1 %more.calls, label %call.one, label %tile.done
call.one:
  %call = getelementptr %call, ptr %calls, i64 %c
  %kernel = load ptr, ptr %call
  load %call: 1 ptr block, 2 i64 tile.items, 3 i64 items, 4 i64 patches.count, 5 ptr patches
  br label %patching
patching:
  %p = phi i64 [ 0, %call.one ], [ %p.next, %patch.one ]
  %more.patches = icmp slt i64 %p, %patches.count
  br i1 %more.patches, label %patch.one, label %call.now
patch.one:
  %patch = getelementptr %patch, ptr %patches, i64 %p
  %number = load i64, ptr %patch
  load %patch: 1 i64 base, 2 i64 step
  %moved = mul i64 %tile, %step
  %value = add i64 %base, %moved
  %word = getelementptr i64, ptr %block, i64 %number
  store i64 %value, ptr %word
  %p.next = add i64 %p, 1
  br label %patching
call.now:
  %lo = mul i64 %tile, %tile.items
  %lo.next = add i64 %lo, %tile.items
  %short = icmp slt i64 %lo.next, %items
  %hi = select i1 %short, i64 %lo.next, i64 %items
  call void %kernel(i64 %lo, i64 %hi, ptr %block, i64 %worker)
  %c.next = add i64 %c, 1
  br label %calling
tile.done:
  %tile.next = add i64 %tile, 1
  br label %tiles
finished:
  ret void
}
"""


def loop_ir() -> str:
    """The module that defines `genesis_loop`."""
    return with_fields(_LOOP)
