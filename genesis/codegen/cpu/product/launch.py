"""From a Product to a launch: its cut into panels and blocks, and its argument block."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from genesis.codegen.cpu.product.interface import ONLY, STEPS, WORDS, depth_of, heights, tile_of
from genesis.codegen.cpu.tiling import RegisterTile
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.ir.unguarded import minimum, over
from genesis.lower.index_map import LEAST_RUN, PLAIN, Digits, digits_of, run_of
from genesis.lower.operands import has_adjacent_pairs
from genesis.lower.stages import Matrix, Product
from genesis.runtime.deferred import deferred
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import Block, BlockWord

if TYPE_CHECKING:
    from genesis.codegen.cpu.product.driver import product_ir
else:
    product_ir = deferred("genesis.codegen.cpu.product.driver", "product_ir")

# The largest packed blocks: A's, 144 x 512 floats with AVX-512, fills part of a second-level cache.
ELEMENTS, COLUMNS = 144 * 512, 1024
# A tuner of such sizes is not made: one tile reaches 85 to 95% of the cores' peak.
NARROW = 2  # strips of columns: fewer readers do not repay packing A
WIDE = 16  # strips of columns: more readers repay packing rows that could be read in place
# Measured: Adam behind the MLP's weight gradients 1.04 to 1.00 ms. Not kept: prefetches of its moments (1.04 ms).
FOLLOWED = 1 << 18  # bytes of rows that epilogues find in a second-level cache beside the packed blocks
PAGE = 4096  # bytes: lines this far apart compete for the same eight ways of a first-level cache
NEVER = 1 << 62
# With packing in the estimate, the MLP's forward went from 0.998 to 0.89 ms.
PACKING = 0.6  # the cost of packing an element, in vector multiplications


@functools.cache
def source(dtype: str) -> KernelSource:
    """The kernel of products of "float32", "float64" or "bfloat16"."""
    tile = tile_of(dtype)
    name = f"genesis_product_{dtype}"
    return KernelSource(name, f"{name} {tile}", functools.partial(product_ir, name, tile))


def operand_dtype(nodes: Sequence[Node], call: Product) -> str:
    """The name of the dtype that a product's kernel is for."""
    return "bfloat16" if call.pairs else nodes[call.node].dtype.name


class Panels(NamedTuple):
    """The division of each product of a batch: into `panels` of `height` rows, or columns."""

    panels: int
    height: int
    by_columns: bool


def panels(dtype: str, extents: tuple[int, int, int], wanted: int, *, whole_rows: bool = False) -> Panels:
    """The cheapest cut into about `wanted` panels: each is padded to tiles, and packs the operand that all of them read."""
    tile = tile_of(dtype)
    m, n, _ = extents

    def cut(extent: int, unit: int) -> tuple[int, int]:
        height = -(-extent // (wanted * unit)) * unit
        return -(-extent // height), height

    def cost(rows: int, columns: int) -> float:
        return rows * -(-columns // tile.lanes) + PACKING * (rows + columns)

    # One panel per worker: two or four made weight gradients 3 and 10% slower.
    by_rows, by_columns = cut(m, tile.rows), cut(n, tile.columns)
    if whole_rows:
        return Panels(*by_rows, False)
    costs = cost(by_rows[1], n), cost(m, by_columns[1])
    return Panels(over(*costs, by_columns[0], by_rows[0]), over(*costs, by_columns[1], by_rows[1]), over(*costs, 1, 0))


def block(
    call: Product, dtype: str, cut: Panels, addresses: tuple[BlockWord, BlockWord, BlockWord], workspace: BlockWord,
    per_worker: int, offsets: Callable[[Digits], BlockWord], *, adds_from: int = NEVER, followers: tuple[BlockWord, ...] = (),
) -> Block:
    """The argument block of `call` with operands and result at `addresses`, and `per_worker` bytes of `workspace` for each.

    `offsets` gives the table of an axis's offsets. Items from `adds_from` on add to what is stored; `followers`:
    the table of the epilogues.
    """
    tile = tile_of(dtype)
    size = tile.itemsize
    (m, n, _), k, lead = call.extents, elements(call), 2 - len(call.batch)
    batch = (1,) * lead + call.batch
    sizes = size >> call.pairs, size >> call.pairs, size
    steps = ((0,) * lead + tuple(s * size for s in x.steps) for x, size in zip((call.a, call.b, call.c), sizes, strict=True))
    a, b = stored(call)
    strips = 0 if call.pairs else _strips(call.b, tile)
    if strips:
        b = Stored(False, 0)
    depth = _evenly(k, depth_of(tile), tile.lanes)
    _, packed_b = packed(call, dtype, cut)
    values = (
        *(m, n, k, addresses[0], a.distance, a.is_transposed, addresses[1], b.distance, b.is_transposed),
        *(addresses[2], call.c.layout.strides[-2], batch[1]),
        *(step for pair in steps for step in pair),
        *(cut.panels, cut.height, cut.by_columns, adds_from, ONLY.index(call.only), _reads_in_place(call, a, tile, cut)),
        *(_rows(tile, n * size if followers else 0), COLUMNS, depth, workspace, per_worker, packed_b),
        *(len(call.epilogue), followers or 0),
        *(word for x in (a, b) for word in (x.run, *((offsets(axis) if x.run else 0) for axis in (x.lines, x.terms)))),
        *(strips, b.step, call.extents[2]),
    )
    words = tuple(int(value) if isinstance(value, bool) else value for value in values)
    assert len(words) == len(WORDS)
    return Block(words, items=numel(batch) * cut.panels)


def _rows(tile: RegisterTile, nbytes: int) -> int:
    """The rows of a block of A, in whole tiles; no more than epilogues take at a time, whose rows have `nbytes` each."""
    most = ELEMENTS // depth_of(tile) // tile.rows
    return tile.rows * (min(most, max(1, FOLLOWED // (nbytes * tile.rows))) if nbytes else most)


def packed(call: Product, dtype: str, cut: Panels) -> tuple[int, int]:
    """The bytes that the largest packed blocks of A and B take."""
    tile = tile_of(dtype)
    m, n, _ = call.extents
    depth = _evenly(elements(call), depth_of(tile), tile.lanes)
    rows = minimum(_rows(tile, 0), over(cut.by_columns, 0, m, cut.height))
    columns = minimum(COLUMNS, over(cut.by_columns, 0, cut.height, n))
    blocks = ((rows, tile.rows), (columns, tile.columns))
    a, b = (tile.itemsize * -(-lines // size) * size * (depth + tile.lanes) for lines, size in blocks)
    return a, b


def _reads_in_place(call: Product, a: Stored, tile: RegisterTile, cut: Panels) -> int:
    """Whether A is read in place: few columns would reuse it packed, or not many and its rows are contiguous, less than a page
    apart.

    A tile reads whole rows, so none may reach beyond the last.
    """
    m, n, _ = call.extents
    # Measured: 0.6% of a GPT step, 6% of the MLP's first product. Of 768 columns packed strips are 2 to 5% faster.
    columns = over(cut.by_columns, 0, cut.height, n)
    close = not a.is_transposed and a.distance * tile.itemsize < PAGE
    if a.run or (call.pairs and a.is_transposed):
        return 0
    return over(1, m % heights(tile)[0], over(columns, (WIDE if close else NARROW) * tile.columns, 0, 1), 0)


def _evenly(extent: int, most: int, unit: int) -> int:
    """The least number of equal steps of at most `most` that cover an extent, as the size of one, in units."""
    steps = -(-extent // most)
    return -(-extent // (steps * unit)) * unit


# ---- how operands lie ----
class Stored(NamedTuple):
    """Whether a matrix is stored transposed, and the distance between its stored rows; or, if neighbours make up runs of a
    length, `step` apart (see `offsets.py`), where its lines and its terms lie."""

    is_transposed: bool
    distance: int
    run: int = 0
    step: int = 1
    lines: Digits = ()
    terms: Digits = ()


def elements(call: Product) -> int:
    """The terms of a product as its kernel counts them: pairs are one."""
    return -(-call.extents[2] // 2) if call.pairs else call.extents[2]


def stored(call: Product) -> tuple[Stored, Stored]:
    """The storage of both operands."""
    return _stored(call.a, True, call.pairs), _stored(call.b, False, call.pairs)


def _stored(x: Matrix, left: bool, pairs: bool) -> Stored:
    """The storage of an operand: the left one has rows as lines, the right one columns."""
    if pairs and x.axis_groups == PLAIN:
        next_line, next_term = x.layout.strides[-2:] if left else x.layout.strides[:-3:-1]
        return Stored(not left, next_line // 2) if has_adjacent_pairs(x.layout, left) else Stored(left, next_term)
    if x.axis_groups == PLAIN:
        (height, width), (row, column) = x.layout.shape[-2:], x.layout.strides[-2:]
        if column == 1 or width == 1:
            return Stored(False, row)
        return Stored(True, column if height > 1 or row == 1 else row)
    rows, columns = digits_of(x.layout, x.axis_groups)
    lines, terms = (rows, columns) if left else (columns, rows)
    if left:  # rows at equal distances are copied run by run, others gathered into strips
        run = run_of(terms)
        one = len(rows) == 1 and run >= LEAST_RUN
        return Stored(not one, rows[-1][1], run if one else 1, 1, lines, terms)
    runs = [(run_of(axis, step), axis is terms, step) for step in STEPS for axis in (lines, terms)]
    if pairs:
        runs = [(run, along_terms, step) for run, along_terms, step in runs if not (along_terms and run % 2)]
    run, is_transposed, step = max(runs, key=lambda found: found[0])
    run = run if run >= LEAST_RUN else 1
    return Stored(is_transposed, 0, run // 2 if pairs and is_transposed and run > 1 else run, step, lines, terms)


def _strips(x: Matrix, tile: RegisterTile) -> int:
    """The elements from one strip of a right operand to the next, if it lies as it would be packed (see `share_packing.py`);
    else 0."""
    terms, columns = digits_of(x.layout, x.axis_groups)
    if len(terms) != 1 or len(columns) != 2 or terms[0][1] != tile.columns or columns[1] != (tile.columns, 1):
        return 0
    return columns[0][1]


def offsets(slots: SlotMap, digits: Digits) -> BlockWord:
    """The table of offsets of an axis's indices, one for all launches of a program."""
    return slots.once(("offsets", digits), lambda: slots.made_table(offsets_of, digits))


def offsets_of(digits: Digits) -> np.ndarray:
    """The offset of each index of an axis."""
    at = np.zeros(1, np.int64)
    for extent, stride in digits:
        at = (at[:, None] + np.arange(extent, dtype=np.int64) * stride).reshape(-1)
    return at
