"""Transposes and row exchanges of real matrices."""

from __future__ import annotations

from functools import cached_property

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lapack.tiles import Functions
from genesis.codegen.cpu.registers import I32, I64, POINTER
from genesis.codegen.cpu.vectors import transposed


class Rows(Functions):
    """The functions that move numbers."""

    @cached_property
    def transpose(self) -> ir.Function:
        """`void (rows, columns, source, s_row, target, t_row)`: transpose."""
        code = self.code("transpose", [I64, I64, POINTER, I64, POINTER, I64])
        rows, columns, source, s_row, target, t_row = code.args
        builder, lanes = code.builder, self.tile.lanes
        whole = [extent & -lanes for extent in (rows, columns)]
        with code.count(0, whole[0], lanes) as row, code.count(0, whole[1], lanes) as column:
            here = code.element(source, row * s_row + column)
            there = code.element(target, column * t_row + row)
            vectors = [code.read_vector(here, s_row * n) for n in range(lanes)]
            for n, vector in enumerate(transposed(builder, vectors)):
                code.write_vector(vector, there, t_row * n)
        for starts, ends in (((I64(0), whole[1]), (whole[0], columns)), ((whole[0], I64(0)), (rows, columns))):
            with code.count(starts[0], ends[0]) as row, code.count(starts[1], ends[1]) as column:
                x = code.read(source, row * s_row + column)
                code.write(x, target, column * t_row + row)
        return code.finish()

    @cached_property
    def exchange(self) -> ir.Function:
        """`void (count, a, row, columns, pivots, first)`: exchange `count` rows from `first` on as pivots say."""
        code = self.code("exchange", [I64, POINTER, I64, I64, POINTER, I64])
        count, a, row, columns, pivots, first = code.args
        builder, lanes, dtype = code.builder, self.tile.lanes, self.tile.dtype
        with code.count(first, first + count) as i:
            j = builder.sext(code.get(pivots, i, I32), I64) - 1
            with builder.if_then(i.differs(j)):
                lines = [code.element(a, n * row) for n in (i, j)]
                with code.count(0, columns, lanes) as column:
                    mask = code.first_lanes(columns - column)
                    elements = [code.element(line, column) for line in lines]
                    values = [code.load(element, dtype, mask) for element in elements]
                    for element, value in zip(elements, reversed(values), strict=True):
                        code.store(value, element, dtype, mask)
        return code.finish()

    @cached_property
    def permute(self) -> ir.Function:
        """`void (n, rows, source, s_row, target, t_row, pivots, order)`: copy rows with their n columns exchanged as pivots
        say, from the last to the first; `order` is scratch for n indices."""
        code = self.code("permute", [I64, I64, POINTER, I64, POINTER, I64, POINTER, POINTER])
        n, rows, source, s_row, target, t_row, pivots, order = code.args
        builder = code.builder
        with code.count(0, n) as i:
            code.put(i, order, i)
        with code.count(0, n) as i:
            last = n - i - 1
            other = builder.sext(code.get(pivots, last, I32), I64) - 1
            first, second = code.get(order, last), code.get(order, other)
            code.put(second, order, last)
            code.put(first, order, other)
        with code.count(0, rows) as row:
            here, there = code.element(source, row * s_row), code.element(target, row * t_row)
            with code.count(0, n) as i:
                x = code.read(here, code.get(order, i))
                x = x + code.number(0.0)  # -0 becomes 0
                code.write(x, there, i)
        return code.finish()
