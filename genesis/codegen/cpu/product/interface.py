"""The interface of the kernel of matrix products: the words of its argument block, its register tile, its largest blocks.

It is all of the kernel that a program loads whose kernels are on disk.
"""

from __future__ import annotations

import functools

from genesis.codegen.cpu.tiling import RegisterTile

# The words of an argument block. Distances are in elements, batch strides in bytes; a transposed operand is stored as its
# transpose. A panel is `height` rows, or columns if `by_columns`; blocks are `rows` or `columns` by `depth`. Items from
# `adds_from` on add to what is stored. `only` is the promise's number in ONLY. `a_in_place`: A is not packed. The workspace
# has `per_worker` bytes for each worker: B's block, then A's `a_block` bytes further on. The table has an entry for each
# follower (an epilogue): {kernel, words, items of a row}. An operand with a `run` is read by tables of offsets (see
# `offsets.py`), B's elements `b_step` apart. B is not packed if it lies in strips, `b_strips` elements apart. `terms` are
# `k`, or about twice as many where an element is a pair.
WORDS = (
    "m", "n", "k", "a", "lda", "a_transposed", "b", "ldb", "b_transposed", "c", "ldc", "batch_inner", "a_outer", "a_inner",
    "b_outer", "b_inner", "c_outer", "c_inner", "panels", "height", "by_columns", "adds_from", "only", "a_in_place",
    "rows", "columns", "depth", "workspace", "per_worker", "a_block", "followers", "table", "a_run", "a_lines", "a_terms",
    "b_run", "b_lines", "b_terms", "b_strips", "b_step", "terms",
)
POINTERS = ("a", "b", "c", "workspace", "table", "a_lines", "a_terms", "b_lines", "b_terms")
ONLY = ("", "n<=m", "k<=m", "n<=k", "m<=n", "k<=n", "m<=k")  # what products may be promised (see `ops/contraction.py`)
STEPS = 1, 2  # between the elements of a run: those of windows two apart are every other one

# 12 x 32 sums with AVX-512. Large products run at 193 to 215 GFlop/s of 228; MKL takes them at 160 to 198.
VECTORS = 2  # of columns in a tile
LEAST_DEPTH, DEPTH = 384, 512  # terms of the largest packed blocks: fewer, and C is read and written more often
FIRST_CACHE = 32 << 10  # bytes


@functools.cache
def tile_of(dtype: str) -> RegisterTile:
    """The largest tile of "float32", "float64" or "bfloat16" for this processor."""
    return RegisterTile.of(dtype, VECTORS)


def heights(tile: RegisterTile) -> tuple[int, int, int]:
    """The rows of the generated tiles: the rest of a matrix takes the lowest tile that covers it."""
    return tile.rows // 3, 2 * tile.rows // 3, tile.rows


def depth_of(tile: RegisterTile) -> int:
    """The terms of the largest packed blocks: as many as a first-level cache holds of a strip, unless that is too few."""
    held = FIRST_CACHE * 3 // 4 // (tile.columns * tile.itemsize)
    return min(held, DEPTH) if held >= LEAST_DEPTH else DEPTH
