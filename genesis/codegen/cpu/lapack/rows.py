"""Transposes and row exchanges of real matrices."""

from __future__ import annotations

from genesis.codegen.cpu.code import emitted, i64, ptr
from genesis.codegen.cpu.lapack.tiles import ElementCode, TileFunctions
from genesis.codegen.cpu.registers import I32, I64
from genesis.codegen.cpu.vectors import transposed


class Rows(TileFunctions):
    """The functions that move numbers."""

    @emitted
    def transpose(self, code: ElementCode, rows: i64, columns: i64, source: ptr, s_row: i64, target: ptr, t_row: i64) -> None:
        """Transpose."""
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

    @emitted
    def exchange(self, code: ElementCode, count: i64, a: ptr, row: i64, columns: i64, pivots: ptr, first: i64) -> None:
        """Exchange `count` rows from `first` on as pivots say."""
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

    @emitted
    def permute(
        self, code: ElementCode, n: i64, rows: i64, source: ptr, s_row: i64, target: ptr, t_row: i64, pivots: ptr, order: ptr
    ) -> None:
        """Copy rows with their n columns exchanged as pivots say, from the last to the first; `order` is scratch for n
        indices."""
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
                code.write(code.read(here, code.get(order, i)) + 0.0, there, i)  # -0 becomes 0
