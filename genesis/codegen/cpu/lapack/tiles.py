"""Register tiles of real matrices in rows: updates, and solutions for triangles, without packing.

A tile of sums is `rows` x `vectors` vectors of columns: elements of one factor are broadcast, those of the other one are a
strip of columns. Strides are in elements, and may be negative: from its last row and column on, an upper triangle is a lower
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from llvmlite import ir

from genesis.codegen.cpu.ordering.code import Code
from genesis.codegen.cpu.registers import I1, I32, I64, POINTER, REGISTER_TYPE
from genesis.codegen.cpu.tiling import has_many_registers, lanes_of

VECTORS = 3  # of a tile


class Tile(NamedTuple):
    """The register tile of a dtype: its sums fill 24 of 32 registers, or 12 of 16."""

    dtype: str
    lanes: int
    rows: int

    @classmethod
    def of(cls, dtype: str) -> Tile:
        return cls(dtype, lanes_of(dtype), 8 if has_many_registers() else 4)

    @property
    def columns(self) -> int:
        return VECTORS * self.lanes


class ElementCode(Code):
    """A function whose memory has elements of one dtype."""

    dtype: str

    def element(self, pointer: ir.Value, index: ir.Value) -> ir.Value:
        return self.element_pointer(pointer, index, self.dtype)

    def number(self, value: float) -> ir.Constant:
        return self.constant(self.dtype, value)


class Functions:
    """Functions of a module, each made where it is first asked for."""

    def __init__(self, module: ir.Module, dtype: str) -> None:
        self.module, self.tile = module, Tile.of(dtype)

    def code(self, name: str, parameters: Sequence[ir.Type], result: ir.Type | None = None) -> ElementCode:
        code = ElementCode(self.module, name, parameters, self.tile.lanes, result=result)
        code.function.attributes.add("noinline")
        code.dtype = self.tile.dtype
        return code


class Tiles(Functions):
    """Those of products."""

    @cached_property
    def updates(self) -> tuple[ir.Function, ir.Function]:
        """A whole tile of `_tile`, and one vector of columns, of which some count."""
        return self._tile(VECTORS), self._tile(1)

    @cached_property
    def solutions(self) -> tuple[ir.Function, ir.Function]:
        return self._tile(VECTORS, solves=True), self._tile(1, solves=True)

    def _tile(self, vectors: int, *, solves: bool = False) -> ir.Function:
        """`void (k, a, a_row, a_step, b, b_row, c, c_row, rows, columns, unit)`: c -= a @ b over k terms, of some rows.

        If it solves, the columns of `a` behind these are a lower triangle T, whose diagonal is 1 if `unit`, and
        c = T^-1 (c - a @ b), which is written behind b's rows too.
        """
        kind = [I64, POINTER, I64, I64, POINTER, I64, POINTER, I64, I64, I64, I1]
        code = self.code(f"{'solution' if solves else 'update'}_{vectors}", kind)
        k, a, a_row, a_step, b, b_row, c, c_row, rows, columns, unit = code.args
        builder, tile = code.builder, self.tile
        mask = code.first_lanes(columns) if vectors == 1 else None
        # Rows behind the last one are the last one again: it is stored after them.
        last = builder.sub(rows, I64(1))
        lines = [code.least(I64(row), last) for row in range(tile.rows)]
        starts = [code.element(a, builder.mul(line, a_row)) for line in lines]
        firsts = [code.element(c, builder.mul(line, c_row)) for line in lines]
        places = [[code.element(first, I64(v * tile.lanes)) for v in range(vectors)] for first in firsts]
        for line in places:
            for place in line:
                code.intrinsic("prefetch", ir.VoidType(), [place, I32(1), I32(3), I32(1)], overloads=(POINTER,))
        sums = self._sums(code, k, starts, a_step, (b, b_row), vectors)
        found = [
            [builder.fsub(code.load(place, tile.dtype, mask), total) for place, total in zip(line, totals, strict=True)]
            for line, totals in zip(places, sums, strict=True)
        ]
        if solves:
            behind = builder.mul(k, a_step)
            triangle = [code.element(start, behind) for start in starts]
            steps = [builder.mul(line, a_step) for line in lines]
            for j in range(tile.rows):
                diagonal = code.load_uniform(code.element(triangle[j], steps[j]), tile.dtype)
                inverse = code.splat(builder.select(unit, code.number(1.0), builder.fdiv(code.number(1.0), diagonal)))
                found[j] = [builder.fmul(x, inverse) for x in found[j]]
                for row in range(j + 1, tile.rows):
                    factor = code.splat(builder.fneg(code.load_uniform(code.element(triangle[row], steps[j]), tile.dtype)))
                    found[row] = [code.fma(factor, x, y) for x, y in zip(found[j], found[row], strict=True)]
            strip = code.element(b, builder.mul(k, b_row))
        for row in reversed(range(tile.rows)):
            for v in range(vectors):
                code.store(found[row][v], places[row][v], tile.dtype, mask)
                if solves:
                    there = builder.add(builder.mul(b_row, I64(row)), I64(v * tile.lanes))
                    code.store(found[row][v], code.element(strip, there), tile.dtype)
        return code.finish()

    def _sums(
        self, code: ElementCode, k: ir.Value, starts: Sequence[ir.Value], a_step: ir.Value, b: tuple[ir.Value, ir.Value],
        vectors: int,
    ) -> list[list[ir.Value]]:
        """The products' sums, over a loop whose state is in registers."""
        builder, tile = code.builder, self.tile
        kind = ir.VectorType(REGISTER_TYPE[tile.dtype], tile.lanes)
        nothing = code.splat(code.number(0.0))
        entry, header, body, after = builder.block, *(builder.append_basic_block(name) for name in ("sums", "term", "summed"))
        builder.branch(header)
        builder.position_at_end(header)
        term, here, there = builder.phi(I64), builder.phi(I64), builder.phi(POINTER)
        sums = [[builder.phi(kind) for _ in range(vectors)] for _ in starts]
        builder.cbranch(builder.icmp_signed("<", term, k), body, after)
        builder.position_at_end(body)
        columns = [code.load(code.element(there, I64(v * tile.lanes)), tile.dtype) for v in range(vectors)]
        added = []
        for start, line in zip(starts, sums, strict=True):
            element = code.splat(code.load_uniform(code.element(start, here), tile.dtype))
            added.append([code.fma(element, x, total) for x, total in zip(columns, line, strict=True)])
        for phi, first, following in (
            (term, I64(0), builder.add(term, I64(1))), (here, I64(0), builder.add(here, a_step)),
            (there, b[0], code.element(there, b[1])),
            *((phi, nothing, value) for pair in zip(sums, added, strict=True) for phi, value in zip(*pair, strict=True)),
        ):
            phi.add_incoming(first, entry)
            phi.add_incoming(following, body)
        builder.branch(header)
        builder.position_at_end(after)
        return sums

    @cached_property
    def substitute(self) -> ir.Function:
        """`void (n, t, t_row, t_step, b, b_row, columns, strip, unit, m)`: b = t^-1 b for a lower triangle t of n rows, whose
        diagonal is 1 if `unit`; then the `m` rows of b below, less the products of the rows of t below and b.

        `strip` has room for a tile's columns of n rows and a tile's rows."""
        code = self.code("substitute", [I64, POINTER, I64, I64, POINTER, I64, I64, POINTER, I1, I64])
        n, t, t_row, t_step, b, b_row, columns, strip, unit, m = code.args
        builder, tile = code.builder, self.tile
        width = I64(tile.columns)
        below, target = code.element(t, builder.mul(n, t_row)), builder.mul(n, b_row)

        def strips(start: ir.Value | int, end: ir.Value, step: int, which: int) -> None:
            with code.count(start, end, step) as column:
                here, left = code.element(b, column), builder.sub(columns, column)
                with code.count(0, n, tile.rows) as row:
                    first, rows = code.element(t, builder.mul(row, t_row)), code.least(builder.sub(n, row), I64(tile.rows))
                    place = code.element(here, builder.mul(row, b_row))
                    builder.call(self.solutions[which], [
                        row, first, t_row, t_step, strip, width, place, b_row, rows, left, unit])
                with code.count(0, m, tile.rows) as row:
                    first, rows = code.element(below, builder.mul(row, t_row)), code.least(builder.sub(m, row), I64(tile.rows))
                    place = code.element(code.element(here, target), builder.mul(row, b_row))
                    builder.call(self.updates[which], [n, first, t_row, t_step, strip, width, place, b_row, rows, left, unit])

        whole = builder.mul(builder.sdiv(columns, width), width)
        strips(0, whole, tile.columns, 0)
        strips(whole, columns, tile.lanes, 1)
        return code.finish()

    @cached_property
    def update(self) -> ir.Function:
        """`void (m, n, k, a, a_row, b, b_row, c, c_row)`: c -= a @ b."""
        code = self.code("update", [I64, I64, I64, POINTER, I64, POINTER, I64, POINTER, I64])
        m, n, k, a, a_row, b, b_row, c, c_row = code.args
        builder, tile = code.builder, self.tile
        whole = builder.mul(builder.sdiv(n, I64(tile.columns)), I64(tile.columns))
        for which, (start, end, step) in enumerate(((I64(0), whole, tile.columns), (whole, n, tile.lanes))):
            with code.count(start, end, step) as column, code.count(0, m, tile.rows) as row:
                rows, left = code.least(builder.sub(m, row), I64(tile.rows)), builder.sub(n, column)
                first, place = (code.element(x, builder.mul(row, step)) for x, step in ((a, a_row), (c, c_row)))
                builder.call(self.updates[which], [
                    k, first, a_row, I64(1), code.element(b, column), b_row, code.element(place, column), c_row, rows, left,
                    I1(0)])
        return code.finish()

    @cached_property
    def roots(self) -> ir.Function:
        """`void (n, a, row, first, info)`: the upper factor U of a = U^T U, a few rows, in place of a's upper triangle.

        Rows are counted from number `first` on; where one's pivot is not above 0, it is told if none was before."""
        code = self.code("roots", [I64, POINTER, I64, I64, POINTER])
        n, a, row, first, info = code.args
        builder, lanes, dtype = code.builder, self.tile.lanes, self.tile.dtype
        with code.count(0, n) as j:
            line = code.element(a, builder.mul(j, row))
            pivot = code.load_uniform(code.element(line, j), dtype)
            fails = builder.not_(builder.fcmp_ordered(">", pivot, code.number(0.0)))
            with builder.if_then(builder.and_(fails, builder.icmp_signed("==", code.get(info, 0, I32), I32(0)))):
                builder.store(builder.trunc(builder.add(builder.add(first, j), I64(1)), I32), info)
            root = code.intrinsic("sqrt", pivot.type, [pivot])
            inverse = code.splat(builder.fdiv(code.number(1.0), root))
            next_ = builder.add(j, I64(1))
            code.store_uniform(root, code.element(line, j), dtype)
            with code.count(next_, n, lanes) as i:
                place, mask = code.element(line, i), code.first_lanes(builder.sub(n, i))
                code.store(builder.fmul(code.load(place, dtype, mask), inverse), place, dtype, mask)
            with code.count(next_, n) as below:
                factor = code.splat(builder.fneg(code.load_uniform(code.element(line, below), dtype)))
                target = code.element(a, builder.mul(below, row))
                with code.count(below, n, lanes) as i:
                    place, mask = code.element(target, i), code.first_lanes(builder.sub(n, i))
                    x = code.load(code.element(line, i), dtype, mask)
                    code.store(code.fma(factor, x, code.load(place, dtype, mask)), place, dtype, mask)
        return code.finish()
