"""From a Product to launches: a BLAS library's where it supports the layout, or those of our tiled kernel."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from genesis.codegen.cuda.arithmetic import FLOATING, accumulated, memory_type
from genesis.codegen.cuda.product_kernel import BlockTile, Form, combine_source, parameters, product_source
from genesis.codegen.cuda.signature import Function
from genesis.codegen.cuda.target import SIMULATED, THREADS
from genesis.ir.shapes import numel
from genesis.lower.index_map import Digits, digits_of
from genesis.lower.stages import Product
from genesis.runtime.cuda.cublas import Gemm, Operand

SHARE = 8 if SIMULATED else 256  # terms of a part, at least: fewer do not repay the second launch
PARTS = 64
FILLINGS = 2  # blocks per multiprocessor: one computes while the other waits at a barrier


class Matrices(NamedTuple):
    """A product in numbers: c[z, i, j] = sum over t of a[z, i, t] * b[z, t, j], each index by its digits' strides."""

    batch: tuple[tuple[int, int, int, int], ...]  # extent, strides in a, b and c
    rows: Digits
    a_terms: Digits
    b_terms: Digits
    columns: Digits
    c_row: int

    @property
    def extents(self) -> tuple[int, int, int]:
        return _extent(self.rows), _extent(self.columns), _extent(self.a_terms)

    @property
    def matrices(self) -> int:
        return numel(extent for extent, *_ in self.batch)


class ProductLaunch(NamedTuple):
    """A launch: the function, blocks, threads per block, the pointers ("a", "b", "c", "partial"), the integers."""

    function: Function
    blocks: int
    threads: int
    pointers: tuple[str, ...]
    numbers: tuple[int, ...]


def matrices_of(call: Product) -> Matrices:
    """The matrices of a Product. A summed batch axis becomes terms."""
    axes = [*zip(call.batch, call.a.steps, call.b.steps, call.c.steps, strict=True)]
    batch = [(extent, a, b, c) for extent, a, b, c in axes if c]
    summed = [(extent, a, b) for extent, a, b, c in axes if not c]
    (rows, a_terms), (b_terms, columns) = (digits_of(x.layout, x.axis_groups) for x in (call.a, call.b))
    return Matrices(
        tuple(batch), _merged(rows), _merged([*((e, a) for e, a, _ in summed), *a_terms]),
        _merged([*((e, b) for e, _, b in summed), *b_terms]), _merged(columns), call.c.layout.strides[-2],
    )


def tiles_of(dtype: str) -> tuple[BlockTile, ...]:
    """The tiles for operands of a dtype, largest first."""
    if SIMULATED:
        return BlockTile(8, 8, 4, 4, 4), BlockTile(4, 8, 4, 2, 2)
    # 128 x 128 takes 128 to 163 registers, spills nothing and compiles in 0.5 to 0.8 s.
    middle, small = BlockTile(64, 64, 16, 4, 4), BlockTile(32, 32, 16, 2, 2)
    return (BlockTile(128, 128, 8, 8, 8), middle, small) if accumulated(dtype) == "float32" else (middle, small)


def steps_of(
    matrices: Matrices, dtype: str, processors: int, stored: str = "", adds: bool = False
) -> tuple[list[ProductLaunch], int]:
    """The launches that compute a product on so many multiprocessors, and the bytes of partial sums between them.

    The result is `stored` as another dtype, if one is given; and added to what is there, if it `adds`.
    """
    m, n, k = matrices.extents
    total, count = accumulated(dtype), matrices.matrices * m * n
    if not count:
        return [], 0
    tile, parts = _cut(matrices, dtype, processors)
    share = -(-k // (parts * tile.terms)) * tile.terms
    row_tiles, column_tiles = -(-m // tile.rows), -(-n // tile.columns)
    # Partial sums are contiguous, whatever the result's strides.
    batch = matrices.batch if parts == 1 else _in_order(matrices.batch, m * n)
    axes = tuple(tuple((extent, strides[operand]) for extent, *strides in batch) for operand in range(3))
    digits = (*axes, matrices.rows, matrices.a_terms, matrices.b_terms, matrices.columns)
    form = Form(
        dtype, (stored or dtype) if parts == 1 else total, tile, tuple(map(len, digits)),
        _innermost(matrices.a_terms) < _innermost(matrices.rows), _innermost(matrices.b_terms) < _innermost(matrices.columns),
        adds and parts == 1,
    )
    where = [number for axis in digits for number in (*(s for _, s in axis), *(e for e, _ in axis[1:]))]
    numbers = (m, n, k, row_tiles, column_tiles, parts, share, matrices.c_row if parts == 1 else n, count, *where)
    # Named by a digest of its text: kernels of equal forms are one, and profilers show which it is.
    name = _named("product", product_source("product", form))
    function = Function(name, product_source(name, form), parameters(form), ())
    blocks = row_tiles * column_tiles * parts * matrices.matrices
    steps = [ProductLaunch(function, blocks, tile.threads, ("a", "b", "c" if parts == 1 else "partial"), numbers)]
    if parts == 1:
        return steps, 0
    steps.append(combined(stored or dtype, parts, count, processors, adds))
    return steps, parts * count * (4 if total == "float32" else 8)


def combined(dtype: str, parts: int, count: int, processors: int, adds: bool = False) -> ProductLaunch:
    """The launch that combines `parts` of `count` partial sums each."""
    name = _named("combine", combine_source("combine", dtype, adds))
    kinds = (f"{accumulated(dtype)}*", f"{memory_type(dtype)}*", "int64", "int64")
    function = Function(name, combine_source(name, dtype, adds), kinds, ())
    return ProductLaunch(function, min(-(-count // THREADS), 16 * processors), THREADS, ("partial", "c"), (parts, count))


def _cut(matrices: Matrices, dtype: str, processors: int) -> tuple[BlockTile, int]:
    """The tile and the number of parts that finish first. Each multiprocessor computes its tiles one after the other; a tile
    costs its multiplications plus its loads, of which small tiles have more per multiplication.
    """
    m, n, k = matrices.extents

    def cost(tile: BlockTile) -> tuple[float, int]:
        blocks = -(-m // tile.rows) * -(-n // tile.columns) * matrices.matrices
        in_order = matrices.c_row == n and matrices.batch == _in_order(matrices.batch, m * n)
        most = min(k // SHARE, PARTS) if in_order else 1
        parts = max(1, min(most, FILLINGS * processors // blocks))
        rounds = -(-blocks * parts // processors)
        own = tile.own_rows * tile.own_columns
        return rounds * tile.rows * tile.columns * -(-k // parts) * (1 + 2 * (tile.own_rows + tile.own_columns) / own), parts

    best = min(tiles_of(dtype), key=lambda tile: cost(tile)[0])
    return best, cost(best)[1]


def _in_order(batch: Sequence[tuple[int, int, int, int]], matrix: int) -> tuple[tuple[int, int, int, int], ...]:
    steps = [matrix * numel(extent for extent, *_ in batch[at + 1 :]) for at in range(len(batch))]
    return tuple((extent, a, b, step) for (extent, a, b, _), step in zip(batch, steps, strict=True))


def _merged(digits: Iterable[tuple[int, int]]) -> Digits:
    """The fewest equivalent digits; at least one."""
    found: list[tuple[int, int]] = []
    for extent, stride in digits:
        if found and (found[-1][1] == extent * stride or found[-1][0] == 1):
            outer, _ = found.pop()
            found.append((outer * extent, stride))
        elif extent != 1 or not found:
            found.append((extent, stride))
    return tuple(found)


def _extent(digits: Digits) -> int:
    return numel(extent for extent, _ in digits)


def _innermost(digits: Digits) -> int:
    """The distance between neighbours along an axis; more than any other if there are none or they coincide."""
    extent, stride = digits[-1]
    return abs(stride) if extent > 1 and stride else 1 << 62


def _named(kind: str, text: str) -> str:
    return f"genesis_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"


CALLS = 16  # at most, for one product: outer batch axes take a call per matrix


def gemms_of(matrices: Matrices, dtype: str, stored: str = "", adds: bool = False) -> list[Gemm]:
    """The library's calls for a product (see `steps_of`); none if it does not support the layout."""
    m, n, k = matrices.extents
    b_columns, b_terms = matrices.columns, matrices.b_terms
    a = _operand(matrices.rows, matrices.a_terms)
    b = _operand(b_terms, b_columns)
    if dtype not in FLOATING or a is None or b is None or not m * n * k:
        return []
    axes = [axis for axis in matrices.batch if axis[0] != 1] or [(1, 0, 0, 0)]
    # A strided batch takes one batch axis.
    *outer, (count, *steps) = sorted(axes)  # the longest axis in one call
    calls = list(itertools.product(*(_starts(axis) for axis in outer)))
    if len(calls) > CALLS or not count:
        return []
    offsets = [tuple(map(sum, zip((0, 0, 0), *starts, strict=True))) for starts in calls]
    return [Gemm(dtype, stored or dtype, (m, n, k), a, b, matrices.c_row, count, tuple(steps), each, adds) for each in offsets]


def _starts(axis: tuple[int, int, int, int]) -> Iterator[tuple[int, int, int]]:
    extent, a, b, c = axis
    return ((index * a, index * b, index * c) for index in range(extent))


def _operand(rows: Digits, columns: Digits) -> Operand | None:
    """A matrix (rows, columns) in BLAS terms; None if neither axis has unit stride."""
    if len(rows) > 1 or len(columns) > 1:
        return None
    ((height, down),), ((width, across),) = rows, columns
    if (across == 1 or width == 1) and (down >= width or height == 1):
        return Operand(False, down if height > 1 else width)
    if (down == 1 or height == 1) and (across >= height or width == 1):
        return Operand(True, across if width > 1 else height)
    return None
