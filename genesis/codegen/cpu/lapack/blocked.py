"""Orthogonal factors of one large matrix: panels of columns are factored one by one, and the team applies them to the others.

LAPACK's own blocks are applied by BLAS' threads, which wait for each other in every call. Here a part is columns of the matrix,
by one thread without any other's help, and a stage waits once for all. The columns of a part do not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from genesis.codegen.cpu.lapack.recipe import Place, Recipe

# Measured on 1024 columns, one thread: products with panels of 32, 48 and 128 columns run at 54, 61 and 70 GFlop/s, and panels
# take 6.1, 7.7 and 9 to 12 ms. LAPACK's own routine for the products, `gemqrt`, runs at 34 to 43.
PANEL = 48  # columns of a panel
PAIR = 384  # columns of two parts, at most: their number is even
MOST = 32  # parts of a copy
LEAST = 1 << 21  # multiplications: fewer are done before the team is awake
# The condition number is measured from below: after three iterations other vectors' shares are a thousandth where their
# singular values are 3.2 times the least.
ITERATIONS = 3
MARGIN = 4.0


def is_blocked(op: str, rows: int, columns: int) -> bool:
    """Whether one matrix's operation is done here."""
    return rows * columns * min(rows, columns) >= LEAST and (op == "qr" or (op == "least_squares" and rows >= columns))


def _parts(r: Recipe, first: int, end: int, *, beside: bool = False, most: int = 1 << 30) -> Iterator[tuple[int, int]]:
    """A stage for the lines from `first` to `end`, or parts of the one before: the lines of each."""
    count = min(2 * -(-(end - first) // PAIR), most)
    width = max(1, -(-(end - first) // max(1, count)))
    for start in range(first, end, width):
        r.part(beside=beside or start > first)
        yield start, min(start + width, end)


class Reflections:
    """The factors of a matrix of `shape`: R above, and the reflections of its first `count` columns.

    Those of a panel are I - V T V^H: V and Y = V T^H are stored, of the last two panels or, if Q is wanted, of all, so that it
    takes two products to apply them.
    """

    def __init__(self, r: Recipe, shape: tuple[int, int], count: int, *, wants_q: bool) -> None:
        self.r, self.shape, self.count = r, shape, count
        (m, n), self.adjoint = shape, "C" if r.dtype.is_complex else "T"
        self.stored = -(-count // PANEL) * PANEL if wants_q else 2 * PANEL
        self.data, self.vectors, self.scaled = r.shared(m * n), r.shared(m * self.stored), r.shared(m * self.stored)
        self.triangle, self.work, self.info = r.shared(PANEL * PANEL), r.scratch(PANEL * PAIR // 2), r.integers()

    def _at(self, matrix: Place, row: int, column: int) -> Place:
        return matrix.at((column * self.shape[0] + row) * self.r.size)

    def copy_rows(self, source: Place, width: int, column: int = 0) -> None:
        """The columns from `column` on are those of a matrix of rows of `width` numbers."""
        rows = self.shape[0]
        for start, end in _parts(self.r, 0, rows, most=MOST):
            part = source.at(start * width * self.r.size)
            self.r.copy(part, self._at(self.data, start, column), (end - start, width), transposes=True, row=rows)

    def factor(self) -> None:
        """Factor the panels; each is applied to the columns behind it, while the one behind it is factored already."""
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
            for start, end in _parts(r, third, n, beside=True):
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

    def _apply(self, first: int, pair: tuple[Place, Place], target: Place, columns: int) -> None:
        """Subtract from columns, of the rows from `first` on, Y V^H times themselves; `pair`: V and Y, or the reverse."""
        r, m, width = self.r, self.shape[0], self._width(first)
        v, y = (self._at(x, first, first % self.stored) for x in pair)
        rows = m - first
        r.blas("gemm", self.adjoint, "N", width, columns, rows, 1.0, v, m, target, m, 0.0, self.work, PANEL)
        r.blas("gemm", "N", "N", rows, columns, width, -1.0, y, m, self.work, PANEL, 1.0, target, m)

    def expand(self, columns: int) -> None:
        """Write the first columns of Q to the output, in rows."""
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


def least_squares(r: Recipe, m: int, n: int) -> None:
    """The solution for a matrix of full rank, and the end of the work; further steps are for others.

    Without exchanges of columns half of the work is products; with them, it is products of a matrix and a vector.
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
    r.numbers(r.constant(n), r.out.at(n * width * r.size), 1)
    adjoint = factored.adjoint
    greatest = _lengths(r, "trmv", "N" + adjoint, factored.data, m, n)
    r.part(beside=True)
    least = _lengths(r, "trsv", adjoint + "N", factored.data, m, n)
    r.part()
    bound = 1 / (MARGIN * max(r.node.attrs["rcond"], float(np.finfo(r.dtype.numpy).eps)))
    r.end_below((greatest[0], least[0], greatest[1], least[1]), r.constant(bound * bound))


def _lengths(r: Recipe, routine: str, order: str, triangle: Place, m: int, n: int) -> tuple[Place, Place]:
    """Lengths, whose product is the square of the greatest singular value of a triangle of `n` columns, `m` numbers apart; of
    its inverse if the routine solves. So the condition number is compared with what `rcond` bounds."""
    start = np.random.default_rng(0).normal(size=n).astype(r.dtype.numpy)
    vector, found = r.shared(n), (r.shared(1), r.shared(1))
    r.copy(Place(r.slots.table(start)), vector, (1, n))
    for turn in range(2 * ITERATIONS):
        r.blas(routine, "U", order[turn % 2], "N", n, triangle, m, vector, 1)
        r.normalize(vector, n, found[turn % 2])
    return found
