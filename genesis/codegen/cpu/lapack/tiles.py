"""Register-tiled updates and triangular solves of row-major real matrices, without packing.

A tile has `rows` x `vectors` accumulators: elements of the left factor are broadcast, the right factor is read as a strip of
columns. Strides are in elements and may be negative: read backwards from its last row and column, an upper triangle is a
lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code, Functions, emitted, i1, i64, ptr
from genesis.codegen.cpu.registers import I1, I32, I64, POINTER, REGISTER_TYPE
from genesis.codegen.cpu.tiling import RegisterTile

VECTORS = 3  # of columns in a tile
Real: TypeAlias = ir.Value  # a tile's number


def tile_of(dtype: str) -> RegisterTile:
    """The tile of "float32" or "float64" for this processor."""
    return RegisterTile.of(dtype, VECTORS)


class ElementCode(Code):
    """A function whose memory has elements of one dtype."""

    dtype: str

    def element(self, pointer: ir.Value, index: ir.Value | int) -> ir.Value:
        return self.element_pointer(pointer, I64(index) if isinstance(index, int) else index, self.dtype)

    def number(self, value: float) -> ir.Constant:
        return self.constant(self.dtype, value)

    def read(self, pointer: ir.Value, index: ir.Value) -> ir.Value:
        return self.load_uniform(self.element(pointer, index), self.dtype)

    def write(self, value: ir.Value, pointer: ir.Value, index: ir.Value) -> None:
        self.store_uniform(value, self.element(pointer, index), self.dtype)

    def read_vector(self, pointer: ir.Value, index: ir.Value | int, mask: ir.Value | None = None) -> ir.Value:
        return self.load(self.element(pointer, index), self.dtype, mask)

    def write_vector(self, value: ir.Value, pointer: ir.Value, index: ir.Value, mask: ir.Value | None = None) -> None:
        self.store(value, self.element(pointer, index), self.dtype, mask)


class TileFunctions(Functions):
    """Functions over numbers of a tile's dtype, and vectors as wide as a register."""

    def __init__(self, module: ir.Module, dtype: str) -> None:
        self.tile = tile_of(dtype)
        super().__init__(module, self.tile.lanes, Real=REGISTER_TYPE[dtype])

    def code(self, name: str, parameters: Sequence[ir.Type], result: ir.Type = ir.VOID) -> ElementCode:
        code = ElementCode(self.module, name, parameters, self.width, result=result)
        code.function.attributes.add("noinline")
        code.dtype = self.tile.dtype
        return code


class Tiles(TileFunctions):
    """Products and triangular solves."""

    @cached_property
    def updates(self) -> tuple[ir.Function, ir.Function]:
        """`_tile` at full width, and at one masked vector of columns."""
        return self._tile(VECTORS), self._tile(1)

    @cached_property
    def solutions(self) -> tuple[ir.Function, ir.Function]:
        return self._tile(VECTORS, solves=True), self._tile(1, solves=True)

    def _tile(self, vectors: int, *, solves: bool = False) -> ir.Function:
        """`void (k, a, a_row, a_step, b, b_row, c, c_row, rows, columns, unit)`: c -= a @ b over k terms, for the first `rows`
        rows.

        With `solves`, the columns of `a` after those k are a lower triangle T (with a unit diagonal if `unit`), and
        c = T^-1 (c - a @ b), which is also appended to b's rows.
        """
        kind = [I64, POINTER, I64, I64, POINTER, I64, POINTER, I64, I64, I64, I1]
        code = self.code(f"{'solution' if solves else 'update'}_{vectors}", kind)
        k, a, a_row, a_step, b, b_row, c, c_row, rows, columns, unit = code.args
        tile = self.tile
        mask = code.first_lanes(columns) if vectors == 1 else None
        # Rows past the end alias the last row. Rows are stored in reverse order, so its own result is written last.
        last = rows - 1
        lines = [code.least(I64(row), last) for row in range(tile.rows)]
        starts = [code.element(a, line * a_row) for line in lines]
        firsts = [code.element(c, line * c_row) for line in lines]
        pointers = [[code.element(first, v * tile.lanes) for v in range(vectors)] for first in firsts]
        for line in pointers:
            for pointer in line:
                code.prefetch(pointer, to_write=True)
        sums = self._sums(code, k, starts, a_step, (b, b_row), vectors)
        results = [
            [code.load(pointer, tile.dtype, mask) - total for pointer, total in zip(line, totals, strict=True)]
            for line, totals in zip(pointers, sums, strict=True)
        ]
        if solves:
            behind = k * a_step
            triangle = [code.element(start, behind) for start in starts]
            self._solve(code, results, triangle, [line * a_step for line in lines], unit)
            strip = code.element(b, k * b_row)
        for row in reversed(range(tile.rows)):
            for v in range(vectors):
                code.store(results[row][v], pointers[row][v], tile.dtype, mask)
                if solves:
                    there = b_row * row + v * tile.lanes
                    code.write_vector(results[row][v], strip, there)
        return code.finish()

    def _solve(
        self, code: ElementCode, results: list[list[ir.Value]], triangle: Sequence[ir.Value], steps: Sequence[ir.Value],
        unit: ir.Value,
    ) -> None:
        """Replace `results` by T^-1 times them: `triangle` are the rows of T, `steps` lead to their columns."""
        builder, rows = code.builder, self.tile.rows
        for j in range(rows):
            diagonal = code.read(triangle[j], steps[j])
            inverse = code.splat(builder.select(unit, code.number(1.0), code.number(1.0) / diagonal))
            results[j] = [x * inverse for x in results[j]]
            for row in range(j + 1, rows):
                factor = code.splat(-code.read(triangle[row], steps[j]))
                results[row] = [code.fma(factor, x, y) for x, y in zip(results[j], results[row], strict=True)]

    def _sums(
        self, code: ElementCode, k: ir.Value, starts: Sequence[ir.Value], a_step: ir.Value, b: tuple[ir.Value, ir.Value],
        vectors: int,
    ) -> list[list[ir.Value]]:
        """The products' sums, over a loop whose state is in registers."""
        builder, tile = code.builder, self.tile
        nothing = [code.splat(code.number(0.0))] * (vectors * len(starts))
        with builder.loop([I64(0), I64(0), b[0], *nothing], lambda term, *_: term < k) as carried:
            term, here, there, *sums = carried.now
            columns = [code.read_vector(there, v * tile.lanes) for v in range(vectors)]
            added: list[ir.Value] = []
            for start in starts:
                element = code.splat(code.read(start, here))
                added += [code.fma(element, x, total) for x, total in zip(columns, sums[len(added) :], strict=False)]
            carried.following = [term + 1, here + a_step, code.element(there, b[1]), *added]
        return [[*sums[n : n + vectors]] for n in range(0, len(sums), vectors)]

    @emitted
    def substitute(
        self, code: ElementCode, n: i64, t: ptr, t_row: i64, t_step: i64, b: ptr, b_row: i64, columns: i64, strip: ptr,
        unit: i1, m: i64
    ) -> None:
        """b = t^-1 b for a lower triangle t of n rows, with a unit diagonal if `unit`; then the `m` rows of b below lose the
        products of t's rows below and b.

        `strip` is scratch for a tile's columns: n rows and a tile's rows more."""
        builder, tile = code.builder, self.tile
        width = I64(tile.columns)
        below, target = code.element(t, n * t_row), n * b_row

        def strips(start: ir.Value | int, end: ir.Value, step: int, which: int) -> None:
            with code.count(start, end, step) as column:
                here, left = code.element(b, column), columns - column
                with code.count(0, n, tile.rows) as row:
                    first, rows = code.element(t, row * t_row), code.least(n - row, I64(tile.rows))
                    pointer = code.element(here, row * b_row)
                    self.solutions[which](row, first, t_row, t_step, strip, width, pointer, b_row, rows, left, unit)
                with code.count(0, m, tile.rows) as row:
                    first, rows = code.element(below, row * t_row), code.least(m - row, I64(tile.rows))
                    pointer = code.element(code.element(here, target), row * b_row)
                    self.updates[which](n, first, t_row, t_step, strip, width, pointer, b_row, rows, left, unit)

        whole = builder.sdiv(columns, width) * width
        strips(0, whole, tile.columns, 0)
        strips(whole, columns, tile.lanes, 1)

    @emitted
    def update(
        self, code: ElementCode, m: i64, n: i64, k: i64, a: ptr, a_row: i64, b: ptr, b_row: i64, c: ptr, c_row: i64
    ) -> None:
        """c -= a @ b."""
        builder, tile = code.builder, self.tile
        whole = builder.sdiv(n, I64(tile.columns)) * tile.columns
        for which, (start, end, step) in enumerate(((I64(0), whole, tile.columns), (whole, n, tile.lanes))):
            with code.count(start, end, step) as column, code.count(0, m, tile.rows) as row:
                rows, left = code.least(m - row, I64(tile.rows)), n - column
                first, pointer = (code.element(x, row * step) for x, step in ((a, a_row), (c, c_row)))
                self.updates[which](
                    k, first, a_row, I64(1), code.element(b, column), b_row, code.element(pointer, column), c_row, rows, left,
                    I1(0))

    @emitted
    def roots(self, code: ElementCode, n: i64, a: ptr, row: i64, first: i64, info: ptr) -> None:
        """The upper factor U of a = U^T U, for few rows, over a's upper triangle.

        Rows count from `first`; `info` gets the first one whose pivot is not positive, unless it has one already."""
        builder, lanes, dtype = code.builder, self.tile.lanes, self.tile.dtype
        with code.count(0, n) as j:
            line = code.element(a, j * row)
            pivot = code.read(line, j)
            fails = ~(pivot > code.number(0.0))
            with builder.if_then(fails & code.get(info, 0, I32).equals(0)):
                builder.store(builder.trunc(first + j + 1, I32), info)
            root = code.intrinsic("sqrt", pivot.type, [pivot])
            inverse = code.splat(code.number(1.0) / root)
            next_ = j + 1
            code.write(root, line, j)
            with code.count(next_, n, lanes) as i:
                pointer, mask = code.element(line, i), code.first_lanes(n - i)
                code.store(code.load(pointer, dtype, mask) * inverse, pointer, dtype, mask)
            with code.count(next_, n) as below:
                factor = code.splat(-code.read(line, below))
                target = code.element(a, below * row)
                with code.count(below, n, lanes) as i:
                    pointer, mask = code.element(target, i), code.first_lanes(n - i)
                    x = code.read_vector(line, i, mask)
                    code.store(code.fma(factor, x, code.load(pointer, dtype, mask)), pointer, dtype, mask)
