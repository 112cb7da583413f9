"""Matrix products for a BLAS library: matrices with one unit stride, at equal distances."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from genesis.codegen.cuda.product import Matrices
from genesis.codegen.cuda.registers import FLOATING
from genesis.lower.index_map import Digits
from genesis.runtime.cuda.cublas import Gemm, Operand

__all__ = ["gemms_of"]

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
    calls = list(itertools.product(*(_places(axis) for axis in outer)))
    if len(calls) > CALLS or not count:
        return []
    offsets = [tuple(map(sum, zip((0, 0, 0), *places, strict=True))) for places in calls]
    return [Gemm(dtype, stored or dtype, (m, n, k), a, b, matrices.c_row, count, tuple(steps), each, adds) for each in offsets]


def _places(axis: tuple[int, int, int, int]) -> Iterator[tuple[int, int, int]]:
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
