"""The transforms of Winograd's convolutions: of tiles, kernels and gradients, and back, as sums of elements of all tiles.

A convolution along an axis is a product of polynomials, which their values at some points determine: at 0, 1, -1 and infinity
for two results, and at i and -i, too, for four. What is real has conjugate values at those two, so real and imaginary part at i
stand for both: the rows of a transform are 0, 1, -1, infinity, and for four results Re i and Im i.

For both axes, elements with Re and Im of one are parts of complex numbers, and the four with those of both are two: its values
at (i, i) and at (i, -i). A product of two complex numbers takes three real ones (Karatsuba), those of `factors`:
(a + bi)(c + di) = ac - bd + ((a + b)(c + d) - ac - bd) i. So four by four results are 46 products of transformed tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ops.layout import Layout
from genesis.ops.registry import expand
from genesis.ops.views import assembled, reshape_value, view_value

Row: TypeAlias = Sequence[Value]
# Elements between the matrices, five cache lines: a power of two apart, their lines would meet in one set of a cache.
GAP = 80
REAL = 4  # rows of real values; two of complex ones may follow


def part(x: Value, shape: Shape, strides: Shape, offset: int) -> Value:
    return view_value(x, Layout(shape, strides, offset), "slice")


def both(matrix: Sequence[Row], transform: Callable[[Row], Row]) -> list[Row]:
    """T X T', for a `transform` T of a column."""
    columns = [transform(column) for column in zip(*matrix, strict=True)]  # columns[j][i] = (T X)[i, j]
    return [transform(row) for row in zip(*columns, strict=True)]


# ---- of a column ----
def transform_tile(x: Row) -> Row:
    if len(x) == REAL:
        return x[0] - x[2], x[1] + x[2], x[2] - x[1], x[3] - x[1]
    even, odd = x[2] + x[4], x[1] + x[3]
    return x[0] - x[4], even + odd, even - odd, x[5] - x[1], x[4] - x[2], x[3] - x[1]


def transform_kernel(side: int) -> Callable[[Row], Row]:
    """The transform of a kernel's column for `side` results."""
    def transform(w: Row) -> Row:
        ends, middle = _times(w[0] + w[2], 1 / side), _times(w[1], 1 / side)
        real = w[0], ends + middle, ends - middle, w[2]
        return real if side == 2 else (*real, _times(w[0] - w[2], 0.5), _times(w[1], 0.5))

    return transform


def results_of(m: Row) -> Row:
    even, odd = m[1] + m[2], m[1] - m[2]
    if len(m) == REAL:
        return m[0] + even, odd + m[3]
    return m[0] + (even + m[4]), odd - m[5], even - m[4], (odd + m[5]) + m[3]


def transform_gradient(y: Row) -> Row:
    """The transpose of `results_of`."""
    if len(y) == 2:
        return y[0], y[0] + y[1], y[0] - y[1], y[1]
    even, odd = y[0] + y[2], y[1] + y[3]
    return y[0], even + odd, even - odd, y[3], y[0] - y[2], y[3] - y[1]


def weights_of(m: Row) -> Row:
    """The transpose of `transform_kernel`."""
    if len(m) == REAL:
        total = _times(m[1] + m[2], 0.5)
        return m[0] + total, _times(m[1] - m[2], 0.5), total + m[3]
    even, odd, real, imaginary = _times(m[1] + m[2], 0.25), _times(m[1] - m[2], 0.25), *[_times(x, 0.5) for x in m[REAL:]]
    return m[0] + (even + real), odd + imaginary, (even - real) + m[3]


def _times(x: Value, factor: float) -> Value:
    return x * expand(x.graph.constant(factor, x.dtype), x.shape)


# ---- of complex elements ----
def factors(matrix: Sequence[Row]) -> list[Value]:
    """What a transformed tile or kernel has in the real products: its real elements, and of each complex one a, b and a + b."""
    real, complex_ = _elements(matrix)
    return [*real, *[x for a, b in complex_ for x in (a, b, a + b)]]


def products_of(products: Row) -> list[Row]:
    """The matrix of products of elements, from those of their `factors`."""
    return _matrix(products, [(p - q, r - (p + q)) for p, q, r in _threes(products)], 0.5)


def factors_of_gradient(matrix: Sequence[Row]) -> list[Value]:
    """The transpose of `products_of`."""
    real, complex_ = _elements(matrix)
    halves = [pair if n < 2 * REAL else [_times(x, 0.5) for x in pair] for n, pair in enumerate(complex_)]
    return [*real, *[x for a, b in halves for x in (a - b, -(a + b), b)]]


def sums_of_products(products: Row) -> list[Row]:
    """The transpose of `factors`."""
    return _matrix(products, [(p + r, q + r) for p, q, r in _threes(products)], 1)


def _elements(matrix: Sequence[Row]) -> tuple[list[Value], list[Row]]:
    """The real elements of a matrix, and the complex ones: along its last rows and columns, then at (i, i) and (i, -i)."""
    m, real = matrix, [x for row in matrix[:REAL] for x in row[:REAL]]
    if len(m) == REAL:
        return real, []
    return real, [
        *[row[REAL:] for row in m[:REAL]], *zip(*[row[:REAL] for row in m[REAL:]], strict=True),
        (m[4][4] - m[5][5], m[4][5] + m[5][4]), (m[4][4] + m[5][5], m[5][4] - m[4][5]),
    ]


def _matrix(real: Row, complex_: Sequence[Row], factor: float) -> list[Row]:
    """The matrix with these elements, the last four times `factor`: the inverse of `_elements` is half of its transpose."""
    rows: list[Row] = [real[REAL * n : REAL * (n + 1)] for n in range(REAL)]
    if not complex_:
        return rows
    along, across, ((a, b), (c, d)) = complex_[:REAL], complex_[REAL:-2], complex_[-2:]
    corner = [[a + c, b - d], [b + d, c - a]]
    if factor != 1:
        corner = [[_times(x, factor) for x in row] for row in corner]
    below = [[*row, *last] for row, last in zip(zip(*across, strict=True), corner, strict=True)]
    return [*[[*row, *pair] for row, pair in zip(rows, along, strict=True)], *below]


def _threes(products: Row) -> list[Row]:
    return [products[n : n + 3] for n in range(REAL * REAL, len(products), 3)]


# ---- in memory ----
def stacked(parts: Row, lead: int, *, times: int = 1, transposed: bool = False) -> Value:
    """(leading axes, parts, next axis, others), repeated `times`, or the last two axes swapped if `transposed`."""
    x, count = parts[0], len(parts)
    groups, first, rest = (numel(extents) for extents in (x.shape[:lead], x.shape[lead : lead + 1], x.shape[lead + 1 :]))
    pitch = first * rest + GAP
    y = assembled([(reshape_value(x, (groups, first * rest)), Layout((groups, first * rest), (count * pitch, 1), k * pitch))
                   for k, x in enumerate(parts)], (groups, count, pitch))
    shape, strides = ((rest, first), (1, rest)) if transposed else ((first, rest), (rest, 1))
    return part(y, (groups * times, count, *shape), (count * pitch * (groups > 1), pitch, *strides), 0)


def unstacked(x: Value, shape: Shape) -> list[Value]:
    """The parts, each of `shape`, of x (groups, parts, ..) in memory."""
    groups, count, size = x.shape[0], x.shape[1], numel(shape) // x.shape[0]
    pitch, lead = size + GAP, 2 if len(shape) > 2 else 0
    y = assembled([(reshape_value(x, (groups, count, size)), Layout((groups, count, size), (count * pitch, pitch, 1), 0))],
                  (groups, count, pitch))
    strides = (*(count * pitch * stride for stride in contiguous_strides(shape[:lead])), *contiguous_strides(shape[lead:]))
    return [part(y, shape, strides, k * pitch) for k in range(count)]


def interleaved(pieces: Sequence[Row], strides: Shape, row: int, shape: Shape) -> Value:
    """The pieces interleaved: each with `strides`, pieces of a row adjacent, rows of pieces `row` apart."""
    return assembled([(piece, Layout(piece.shape, strides, i * row + j))
                  for i, pieces_of_row in enumerate(pieces) for j, piece in enumerate(pieces_of_row)], shape)
