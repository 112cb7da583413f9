"""LU, Cholesky and triangular solves of row-major real matrices by register tiles, without packing.

Panels of columns are factored one by one. The team applies each panel of one large matrix to the columns after it while the
next one is factored. In a solve, a thread owns its columns from beginning to end.
"""

from __future__ import annotations

from collections.abc import Iterator

from genesis.codegen.cpu.lapack.kernel import LOWER
from genesis.codegen.cpu.lapack.routine import INT, BatchPointer, Routine
from genesis.codegen.cpu.lapack.tiles import tile_of
from genesis.ir.dtypes import DType

PANEL, WIDE_PANEL = 32, 64  # columns of a panel
WIDE = 512  # rows from which panels are wide: the trailing matrix is in the last-level cache, and is read once a panel
LEAST = 1 << 20  # multiplications: fewer are done before the team wakes up
OPERATIONS = "inv", "solve", "det", "slogdet", "lu_factor_ex", "solve_triangular", "cholesky_ex"
STRIPS = 2  # columns of a part, in tiles


def is_eliminated(dtype: DType, op: str) -> bool:
    """Whether an operation is computed by these tiles rather than by LAPACK."""
    return not dtype.is_complex and op in OPERATIONS


def is_shared(op: str, work: int) -> bool:
    """Whether the team shares one matrix, of so many multiplications."""
    return work >= LEAST and op != "cholesky_ex"


class Factors:
    """L and U of a matrix of `shape`, with leading dimension `row`; the pivots; and which pivot is 0."""

    def __init__(self, r: Routine, shape: tuple[int, int]) -> None:
        self.r, self.shape, self.tile = r, shape, tile_of(r.dtype.name)
        m, n = shape
        self.shares = r.batch == 1 and r.workers > 1
        self.row = padded(n, self.tile.lanes)
        self.width = WIDE_PANEL if m >= WIDE else PANEL
        self.count = min(m, n)
        memory = r.shared if self.shares else r.scratch
        self.data, self.pivots, self.info = memory(m * self.row), memory(self.count), memory(1)
        self.scratch = r.scratch(self.width * (padded(m, self.tile.lanes) + self.tile.lanes))
        self.strip = strip(r, max(m, n))

    def at(self, row: int, column: int) -> BatchPointer:
        return self.data.at((row * self.row + column) * self.r.size)

    def factor(self, source: BatchPointer, *, wants_l: bool = True) -> None:
        """Copy the matrix and factor it. Unless L is wanted, later panels do not exchange its rows."""
        r, (m, n) = self.r, self.shape
        r.step("zero", self.info, INT)
        r.copy(source, self.data, (m, n), row=self.row)
        self._panel(0)
        for first in range(0, self.count, self.width):
            second = min(first + self.width, self.count)
            third = min(second + self.width, self.count)
            self._part()
            if second < third:
                self._eliminate(first, second, second, third)
                self._panel(second)
            for start, end in self.parts(third, n):
                self._part(concurrent=True)
                self._eliminate(first, second, start, end)
            if first and wants_l:
                self._part(concurrent=True)
                self._exchange(first, second, 0, first)

    def _part(self, *, concurrent: bool = False) -> None:
        if self.shares:
            self.r.part(concurrent=concurrent)

    def parts(self, start: int, end: int, strips: int = STRIPS) -> Iterator[tuple[int, int]]:
        """The range of columns of each part."""
        step = strips * self.tile.columns if self.shares else max(1, end - start)
        for first in range(start, end, step):
            yield first, min(first + step, end)

    def _panel(self, first: int) -> None:
        m, width = self.shape[0], min(self.width, self.count - first)
        self.r.step("panel", self.at(first, first), self.scratch, self.pivots, self.info, m - first, width, self.row, first)

    def _eliminate(self, first: int, second: int, start: int, end: int) -> None:
        """Apply the panel of columns `first` to `second` to columns `start` to `end`: exchange rows, solve, update."""
        width = second - first
        self._exchange(first, second, start, end)
        self.r.step("substitute", self.at(first, first), self.at(first, start), self.strip, width, self.row, 1, self.row,
                    end - start, 1, self.shape[0] - second)

    def _exchange(self, first: int, second: int, start: int, end: int) -> None:
        self.r.step("exchange", self.at(0, start), self.pivots, second - first, self.row, end - start, first)

    # ---- uses of the factors ----
    def after(self) -> None:
        """Begin a stage that follows the factorization."""
        self._part()

    def check(self) -> None:
        """Raise a fault if a pivot is 0."""
        self._part()
        self.r.step("check", self.info)

    def solve(self, right: BatchPointer, width: int) -> None:
        """Solve for a right side of `width` columns, into the output."""
        r, n = self.r, self.shape[0]
        for start, end in self.parts(0, width, 1):
            self._part(concurrent=start > 0)
            source, target = (x.at(start * r.size) for x in (right, r.out))
            r.copy(source, target, (n, end - start), row=width, from_row=width)
            r.step("exchange", target, self.pivots, n, width, end - start, 0)
            r.step("substitute", self.data, target, self.strip, n, self.row, 1, width, end - start, 1, 0)
            self._solve_upper(target, width, end - start)

    def _solve_upper(self, target: BatchPointer, row: int, columns: int) -> None:
        n, size = self.shape[0], self.r.size
        last = target.at((n - 1) * row * size)
        self.r.step("substitute", self.at(n - 1, n - 1), last, self.strip, n, -self.row, -1, -row, columns, 0, 0)

    def invert(self) -> None:
        """Invert into the output: solve L, then U for the identity; at last exchange the columns."""
        r, n = self.r, self.shape[0]
        memory = r.shared if self.shares else r.scratch
        inverse, order = memory(n * self.row), r.scratch(n, 8)
        for start, end in self.parts(0, n, 1):
            self._part(concurrent=start > 0)
            target, width = inverse.at(start * r.size), end - start
            if start:
                r.blas("laset", "A", width, start, 0.0, 0.0, target, self.row)
            diagonal = inverse.at((start * self.row + start) * r.size)
            r.blas("laset", "A", width, n - start, 0.0, 1.0, diagonal, self.row)
            for first in range(start, end, self.tile.columns):  # rows above a strip's diagonal block are 0
                here = inverse.at((first * self.row + first) * r.size)
                r.step("substitute", self.at(first, first), here, self.strip, n - first, self.row, 1, self.row,
                       min(self.tile.columns, end - first), 1, 0)
            self._solve_upper(target, self.row, width)
        rows = -(-n // (2 * r.workers)) if self.shares else n
        for start in range(0, n, rows):
            self._part(concurrent=start > 0)
            source, target = inverse.at(start * self.row * r.size), r.out.at(start * n * r.size)
            r.step("permute", source, target, self.pivots, order, n, min(rows, n - start), self.row, n)

    def write(self) -> None:
        """Write both factors to the output, row-major."""
        r, (m, n) = self.r, self.shape
        for first in range(0, n, self.width):
            width = min(self.width, n - first)
            self._part(concurrent=first > 0)
            r.copy(self.at(0, first), r.out.at(first * r.size), (m, width), row=n, from_row=self.row)


def padded(n: int, lanes: int) -> int:
    """The leading dimension, an odd number of vectors: rows of a power of two would collide in few sets of a cache."""
    return -(-n // lanes) * lanes | lanes


def strip(r: Routine, rows: int) -> BatchPointer:
    """Memory of each worker for a strip of a tile's columns."""
    tile = tile_of(r.dtype.name)
    return r.scratch((rows + tile.rows) * tile.columns)


def solve_triangular(r: Routine, n: int, width: int, *, upper: bool, unit: bool) -> None:
    """Solve for a triangle, into the output; for an upper one from its last row on."""
    (a, b), room = r.operands, strip(r, n)
    shares = r.batch == 1 and r.workers > 1
    step = tile_of(r.dtype.name).columns if shares else width
    sign, size = -1 if upper else 1, r.size
    for start in range(0, width, step):
        if shares:
            r.part(concurrent=start > 0)
        target, columns = r.out.at(start * size), min(step, width - start)
        r.copy(b.at(start * size), target, (n, columns), row=width, from_row=width)
        triangle = a.at((n * n - 1) * size) if upper else a
        first = target.at((n - 1) * width * size) if upper else target
        r.step("substitute", triangle, first, room, n, sign * n, sign, sign * width, columns, int(unit), 0)


def cholesky(r: Routine, n: int) -> BatchPointer:
    """The lower Cholesky factor of a matrix, into the output; returns the first pivot that is not positive.

    It is the transpose of U in U^T U. A panel's rows of U are solved for with the triangle on its diagonal, a strip of columns
    at a time, and their products subtracted from the strip's rows below, down to the diagonal."""
    tile = tile_of(r.dtype.name)
    row = padded(n, tile.lanes)
    width = WIDE_PANEL if n >= WIDE else PANEL
    data, room, info = r.scratch(n * row), strip(r, width), r.integers()
    r.step("zero", info, INT)
    r.step("transpose", r.operands[0], data, n, n, n, row)
    for first in range(0, n, width):
        second = min(first + width, n)
        diagonal = data.at((first * row + first) * r.size)
        r.step("roots", diagonal, info, second - first, row, first)
        for start in range(second, n, tile.columns):
            end = min(start + tile.columns, n)
            right = data.at((first * row + start) * r.size)
            r.step("substitute", diagonal, right, room, second - first, 1, row, row, end - start, 0, end - second)
    r.step("transpose", data, r.out, n, n, row, n)
    r.copy(r.out, r.out, (n, n), LOWER)
    return info
