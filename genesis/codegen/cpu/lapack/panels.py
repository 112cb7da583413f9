"""LU factorization of a panel with partial pivoting. Panels are stored transposed, so that vectors go along their columns."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import emitted, i64, ptr
from genesis.codegen.cpu.lapack.rows import Rows
from genesis.codegen.cpu.lapack.tiles import ElementCode, TileFunctions, Tiles
from genesis.codegen.cpu.registers import I1, I32, I64, POINTER, constants

Integers: TypeAlias = ir.Value  # a vector of them, as wide as the numbers


class Panels(TileFunctions):
    """The functions that factor a panel."""

    def __init__(self, tiles: Tiles, rows: Rows) -> None:
        super().__init__(tiles.module, tiles.tile.dtype)
        self.types["Integers"] = ir.VectorType(I32 if self.tile.dtype == "float32" else I64, self.width)
        self.tiles, self.rows = tiles, rows

    @emitted
    def panel(
        self, code: ElementCode, m: i64, count: i64, a: ptr, row: i64, scratch: ptr, pivots: ptr, first: i64, info: ptr
    ) -> None:
        """Factor `count` columns of m rows in place.

        Pivots count from `first`; `info` gets the first one that is 0, unless it has one already."""
        builder, lanes = code.builder, self.width
        # An odd number of vectors: lines of a power of two would collide in few sets of a cache.
        line = (m + (lanes - 1)) & -lanes | lanes
        with code.count(0, count) as n, code.count(m, line) as i:
            code.write(code.number(0.0), scratch, n * line + i)
        self.rows.transpose(m, count, a, row, scratch, line)
        pivots = code.at(pivots, first, 4)
        failed = self.factor(m, count, scratch, line, pivots)
        self.rows.transpose(count, m, scratch, line, a, row)
        with code.count(0, count) as n:
            element = code.at(pivots, n, 4)
            moved = builder.load(element, typ=I32) + builder.trunc(first, I32)
            builder.store(moved, element)
        before = code.get(info, 0, I32)
        found = builder.trunc(failed + first, I32)
        tells = before.equals(0) & failed.differs(0)
        builder.store(builder.select(tells, found, before), info)

    @emitted
    def factor(self, code: ElementCode, m: i64, count: i64, panel: ptr, row: i64, pivots: ptr) -> i64:
        """Factor `count` columns of m numbers, each a line of the panel that is padded with zeros to whole vectors. Writes
        with which row each was exchanged, counted from 1; returns the first pivot that is 0, counted from 1, or 0."""
        builder, tile = code.builder, self.tile
        failed = code.variable(0)
        with code.count(0, count, tile.rows) as first:
            end = code.least(first + tile.rows, count)
            chosen = code.variable(self._search(m, code.element(panel, first * row), first))
            with code.count(first, end) as j:
                line, pivot = code.element(panel, j * row), chosen.get()
                builder.store(builder.trunc(pivot + 1, I32), code.at(pivots, j, 4))
                with builder.if_then(pivot.differs(j)), code.count(0, count) as other:
                    self._exchange(code, code.element(panel, other * row), j, pivot)
                scale = self._scale(code, line, j, m)
                value = code.read(line, j)
                is_zero = value.equals(0.0)
                is_first = is_zero & failed.get().equals(0)
                failed.set(builder.select(is_first, j + 1, failed.get()))
                for others in builder.cases(end - j - 1, range(len(self._eliminations))):
                    chosen.set(self._eliminations[others](m, line, row, j, scale))
            with builder.if_then(end < count):  # then `end` is `first` + a tile's rows
                lines, behind = code.element(panel, first * row), code.element(panel, end * row)
                self._solve_lines(code.element(lines, first), row, code.element(behind, first), count - end)
                length = row - end
                self.tiles.update(
                    count - end, length, I64(tile.rows), code.element(behind, first), row, code.element(lines, end), row,
                    code.element(behind, end), row)
        return failed.get()

    def _exchange(self, code: ElementCode, line: ir.Value, i: ir.Value, j: ir.Value) -> None:
        elements = [code.element(line, n) for n in (i, j)]
        values = [code.load_uniform(element, self.tile.dtype) for element in elements]
        for element, value in zip(elements, reversed(values), strict=True):
            code.store_uniform(value, element, self.tile.dtype)

    def _scale(self, code: ElementCode, line: ir.Value, j: ir.Value, m: ir.Value) -> ir.Value:
        """The factor for what is below pivot `j`: 1 where 1 / pivot overflows, as it is divided here then; 0 stays."""
        builder, dtype = code.builder, self.tile.dtype
        pivot = code.read(line, j)
        inverse = code.variable(code.number(1.0) / pivot)
        infinite = code.absolute(inverse.get()).equals(float("inf"))
        with builder.if_then(infinite, likely=False):
            inverse.set(code.number(1.0))
            end = builder.select(pivot.differs(0.0), m, I64(0))
            with code.count(j + 1, end) as i:
                element = code.element(line, i)
                code.store_uniform(code.load_uniform(element, dtype) / pivot, element, dtype)
        return inverse.get()

    @emitted
    def _search(self, code: ElementCode, m: i64, line: ptr, j: i64) -> i64:
        """The index of the largest magnitude from j on. NaN is the largest; the first of equals wins."""
        largest = _Largest(code)
        with code.count(j & -self.width, m, self.width) as i:
            largest.see(code.read_vector(line, i), i, j - 1)
        return largest.result(self._among, j)

    @emitted
    def _among(self, code: ElementCode, sizes: Integers, indices: Integers, otherwise: i64) -> i64:
        """The index of the first largest size; `otherwise` if all are 0."""
        builder, kind = code.builder, sizes.type.element
        most = code.horizontal_reduce(lambda a, b: code.intrinsic("umax", a.type, [a, b]), sizes)
        elsewhere = code.splat(kind((1 << (kind.width - 1)) - 1))
        chosen = builder.select(sizes.equals(code.splat(most)), indices, elsewhere)
        first = code.horizontal_reduce(lambda a, b: code.intrinsic("umin", a.type, [a, b]), chosen)
        return builder.select(most.equals(kind(0)), otherwise, builder.zext(first, I64))

    @cached_property
    def _eliminations(self) -> list[ir.Function]:
        return [self._elimination(others) for others in range(self.tile.rows)]

    def _elimination(self, others: int) -> ir.Function:
        """`i64 (m, line, row, j, scale)`: scale what is below pivot j, and subtract its products with number j of the
        `others` lines after it from these. Returns the index of the largest magnitude in the next line."""
        code = self.code(f"elimination_{others}", [I64, POINTER, I64, I64, self.types["Real"]], I64)
        m, line, row, j, scale = code.args
        builder, dtype = code.builder, self.tile.dtype
        lines = [code.element(line, row * n) for n in range(others + 1)]
        factors = [code.splat(-code.read(x, j)) for x in lines]
        next_ = j + 1
        largest, scale = _Largest(code), code.splat(scale)
        with code.count(next_ & -self.width, m, self.width) as i:
            is_below = largest.is_behind(i, j)
            element = code.element(lines[0], i)
            x = code.load(element, dtype)
            x = builder.select(is_below, x * scale, x)
            code.store(x, element, dtype)
            for n in range(1, others + 1):
                element = code.element(lines[n], i)
                y = code.load(element, dtype)
                y = builder.select(is_below, code.fma(x, factors[n], y), y)
                code.store(y, element, dtype)
                if n == 1:
                    largest.see(y, i, j)
        return code.finish(largest.result(self._among, next_) if others else next_)

    @emitted
    def _solve_lines(self, code: ElementCode, triangle: ptr, row: i64, lines: ptr, count: i64) -> None:
        """Solve each line, of as many numbers as a tile has rows, for a unit lower triangle whose columns are lines."""
        builder, size, dtype = code.builder, self.tile.rows, self.tile.dtype
        zero = builder.fneg(code.number(0.0))
        with code.narrowed(size):
            columns = []
            for j in range(size - 1):
                column = -code.read_vector(triangle, row * j)
                below = constants(I1, [n > j for n in range(size)])
                columns.append(builder.select(below, column, code.splat(zero)))
            with code.count(0, count) as n:
                element = code.element(lines, n * row)
                x = code.load(element, dtype)
                for j, column in enumerate(columns):
                    same = builder.shuffle_vector(x, x, constants(I32, [j] * size))
                    below = constants(I1, [n > j for n in range(size)])
                    x = builder.select(below, code.fma(column, same, x), x)
                code.store(x, element, dtype)


class _Largest:
    """The index of the largest magnitude; each lane keeps its own until the end."""

    def __init__(self, code: ElementCode) -> None:
        self.code, self.kind = code, I32 if code.dtype == "float32" else I64
        self.size, self.index = (code.variable(code.splat(self.kind(0))) for _ in range(2))

    def _indices(self, i: ir.Value) -> ir.Value:
        builder = self.code.builder
        return constants(self.kind, range(self.code.width)) + self.code.splat(builder.trunc(i, self.kind))

    def is_behind(self, i: ir.Value, j: ir.Value) -> ir.Value:
        """The lanes, of which the first has index i, whose index is above j."""
        builder = self.code.builder
        return self._indices(i) > self.code.splat(builder.trunc(j, self.kind))

    def see(self, x: ir.Value, i: ir.Value, j: ir.Value) -> None:
        """Take in numbers from index i on, of which those above j count. Magnitudes order as their bits do, NaN last."""
        builder = self.code.builder
        bits = self.code.bitcast_to_int(x) & self.code.splat(self.kind((1 << (self.kind.width - 1)) - 1))
        better = (bits > self.size.get()) & self.is_behind(i, j)
        self.size.set(builder.select(better, bits, self.size.get()))
        self.index.set(builder.select(better, self._indices(i), self.index.get()))

    def result(self, function: ir.Function, otherwise: ir.Value) -> ir.Value:
        """The index of the first largest, by `function`; `otherwise` if all are 0."""
        return function(self.size.get(), self.index.get(), otherwise)
