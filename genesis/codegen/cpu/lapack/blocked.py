"""Blocked QR of large matrices: panels of columns are factored one by one, and the team applies each to the other columns.

LAPACK applies its blocks by BLAS' threads, which synchronize in every call. Here each thread applies a panel to columns of its
own, with one barrier per stage. How columns are divided does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from genesis.codegen.cpu.lapack.routine import BatchPointer, Routine
from genesis.codegen.cpu.lapack.tiles import tile_of
from genesis.codegen.cpu.tiling import second_cache_bytes
from genesis.ir.dtypes import DType

# Measured on 1024 columns, one thread: products with panels of 32, 48 and 128 columns run at 54, 61 and 70 GFlop/s, and panels
# take 6.1, 7.7 and 9 to 12 ms. LAPACK's own routine for the products, `gemqrt`, runs at 34 to 43.
PANEL = 48  # columns of a panel
PAIR = 384  # columns of two parts, at most; the number of parts is even
MOST = 32  # parts of a copy, at most
LEAST = 1 << 21  # multiplications: fewer are done before the team wakes up
# Of the second-level cache, the share up to which a real matrix is reduced by single reflections: one matrix by one thread or
# by two took equally long at 1/4 (256 x 256 of float32 1.55 ms, 181 x 181 of float64), the matrices of a batch at 1.
ALONE, IN_BATCHES = 4, 1
# Power iteration bounds the condition number from below: after three rounds, vectors whose singular values are 3.2 times the
# least have a thousandth of their share.
ITERATIONS = 3
MARGIN = 4.0


def is_blocked(op: str, dtype: DType, batch: int, rows: int, columns: int) -> bool:
    """Whether an operation on each of `batch` matrices is blocked."""
    if rows * columns * min(rows, columns) < LEAST:
        return False
    if op == "qr" and not dtype.is_complex:
        return not fits_cache(dtype, batch, rows, columns)
    return batch == 1 and (op == "qr" or (op == "least_squares" and rows >= columns))


def fits_cache(dtype: DType, batch: int, rows: int, columns: int) -> bool:
    """Whether a real matrix, of rows of whole vectors, is small enough for single reflections."""
    lanes = tile_of(dtype.name).lanes
    padded_bytes = rows * -(-columns // lanes) * lanes * dtype.itemsize
    return padded_bytes * (ALONE if batch == 1 else IN_BATCHES) <= second_cache_bytes()


def _parts(r: Routine, first: int, end: int, *, concurrent: bool = False, most: int = 1 << 30) -> Iterator[tuple[int, int]]:
    """A stage for lines `first` to `end`, or more parts of the present one if `concurrent`: the range of each part."""
    count = min(2 * -(-(end - first) // PAIR), most)
    width = max(1, -(-(end - first) // max(1, count)))
    for start in range(first, end, width):
        r.part(concurrent=concurrent or start > first)
        yield start, min(start + width, end)


class Reflections:
    """The QR factors of a matrix of `shape`: R above the diagonal, and the reflections of its first `count` columns.

    A panel's reflections are I - V T V^H. V and Y = V T^H are stored, so that two products apply them: of all panels if Q is
    wanted, else of the last two.
    """

    def __init__(self, r: Routine, shape: tuple[int, int], count: int, *, wants_q: bool) -> None:
        self.r, self.shape, self.count = r, shape, count
        (m, n), self.adjoint = shape, "C" if r.dtype.is_complex else "T"
        self.stored = -(-count // PANEL) * PANEL if wants_q else 2 * PANEL
        self.data, self.vectors, self.scaled = r.shared(m * n), r.shared(m * self.stored), r.shared(m * self.stored)
        self.triangle, self.work, self.info = r.shared(PANEL * PANEL), r.scratch(PANEL * PAIR // 2), r.integers()

    def _at(self, matrix: BatchPointer, row: int, column: int) -> BatchPointer:
        return matrix.at((column * self.shape[0] + row) * self.r.size)

    def copy_rows(self, source: BatchPointer, width: int, column: int = 0) -> None:
        """Copy a row-major matrix of `width` columns to the columns from `column` on."""
        rows = self.shape[0]
        for start, end in _parts(self.r, 0, rows, most=MOST):
            part = source.at(start * width * self.r.size)
            self.r.copy(part, self._at(self.data, start, column), (end - start, width), transposes=True, row=rows)

    def factor(self) -> None:
        """Factor the panels. While one is applied to the columns after it, the next one is factored already."""
        r, n = self.r, self.shape[1]
        r.part()
        self._factor_panel(0)
        for first in range(0, self.count, PANEL):
            second = min(first + PANEL, self.count)
            third = min(second + PANEL, self.count)
            r.part()
            if second < third:
                self._apply_factored(first, second, third)
                self._factor_panel(second)
            for start, end in _parts(r, third, n, concurrent=True):
                self._apply_factored(first, start, end)

    def _apply_factored(self, first: int, start: int, end: int) -> None:
        self._apply(first, (self.vectors, self.scaled), self._at(self.data, first, start), end - start)

    def _width(self, first: int) -> int:
        return min(PANEL, self.count - first)

    def _factor_panel(self, first: int) -> None:
        r, m, rows, width = self.r, self.shape[0], self.shape[0] - first, self._width(first)
        panel = self._at(self.data, first, first)
        vectors, scaled = (self._at(x, first, first % self.stored) for x in (self.vectors, self.scaled))
        r.blas("geqrt3", rows, width, panel, m, self.triangle, PANEL, self.info)
        r.blas("lacpy", "A", rows, width, panel, m, vectors, m)
        r.blas("laset", "U", width, width, 0.0, 1.0, vectors, m)
        r.blas("lacpy", "A", rows, width, vectors, m, scaled, m)
        r.blas("trmm", "R", "U", self.adjoint, "N", rows, width, 1.0, self.triangle, PANEL, scaled, m)

    def _apply(self, first: int, pair: tuple[BatchPointer, BatchPointer], target: BatchPointer, columns: int) -> None:
        """columns -= Y V^H columns in the rows from `first` on. The pair (V, Y) applies Q^H, the pair (Y, V) Q."""
        r, m, width = self.r, self.shape[0], self._width(first)
        v, y = (self._at(x, first, first % self.stored) for x in pair)
        rows = m - first
        r.blas("gemm", self.adjoint, "N", width, columns, rows, 1.0, v, m, target, m, 0.0, self.work, PANEL)
        r.blas("gemm", "N", "N", rows, columns, width, -1.0, y, m, self.work, PANEL, 1.0, target, m)

    def expand(self, columns: int) -> None:
        """Write the first columns of Q to the output, row-major."""
        r, m = self.r, self.shape[0]
        q = r.shared(m * columns)
        for start, end in _parts(r, 0, columns):
            mine = self._at(q, 0, start)
            r.blas("laset", "A", m, end - start, 0.0, 0.0, mine, m)
            r.blas("laset", "A", m - start, end - start, 0.0, 1.0, self._at(q, start, start), m)
            for first in reversed(range(0, min(end, self.count), PANEL)):
                low = max(start, first)  # columns before it are zero below row `first`
                self._apply(first, (self.scaled, self.vectors), self._at(q, first, low), end - low)
            r.copy_columns(mine, r.out.at(start * r.size), (m, end - start), row=columns)


def least_squares(r: Routine, m: int, n: int) -> None:
    """Solve for a matrix of full rank, which ends its work; later steps run for other matrices only.

    Without exchanges of columns, half of the work is matrix products; with them, it is products of a matrix and a vector.
    """
    (a, b), width = r.operands, (r.node.shape[-1] - 1) // n
    factored = Reflections(r, (m, n + width), n, wants_q=False)
    factored.copy_rows(a, n)
    factored.copy_rows(b, width, n)
    factored.factor()
    right = factored.data.at(m * n * r.size)
    r.part()
    r.blas("trsm", "L", "U", "N", "N", n, width, 1.0, factored.data, m, right, m)
    r.copy_columns(right, r.out, (n, width), column=m)
    r.step("numbers", r.constant(n), r.out.at(n * width * r.size), 1)
    adjoint = factored.adjoint
    greatest = _lengths(r, "trmv", "N" + adjoint, factored.data, m, n)
    r.part(concurrent=True)
    least = _lengths(r, "trsv", adjoint + "N", factored.data, m, n)
    r.part()
    bound = 1 / (MARGIN * max(r.node.attrs["rcond"], float(np.finfo(r.dtype.numpy).eps)))
    r.step("end_below", greatest[0], least[0], greatest[1], least[1], r.constant(bound * bound))


def _lengths(r: Routine, routine: str, order: str, triangle: BatchPointer, m: int, n: int) -> tuple[BatchPointer, BatchPointer]:
    """Two lengths whose product is the square of the largest singular value of a triangle of `n` columns with leading dimension
    `m`; of its inverse if the routine solves. They give the condition number that is compared with `rcond`."""
    start = np.random.default_rng(0).normal(size=n).astype(r.dtype.numpy)
    vector, lengths = r.shared(n), (r.shared(1), r.shared(1))
    r.copy(BatchPointer(r.slots.table(start)), vector, (1, n))
    for step in range(2 * ITERATIONS):
        r.blas(routine, "U", order[step % 2], "N", n, triangle, m, vector, 1)
        r.step("normalize", vector, lengths[step % 2], n * (1 + r.dtype.is_complex))
    return lengths
