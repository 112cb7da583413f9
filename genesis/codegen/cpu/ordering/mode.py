"""The positions of rows' most frequent elements: the last of the longest run of equal keys, of several runs the first."""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code, emitted, i64, ptr
from genesis.codegen.cpu.ordering.radix import Sorting
from genesis.codegen.cpu.ordering.row_kernel import RowKernel
from genesis.codegen.cpu.registers import I64


class Runs(Sorting):
    """The functions of one module."""

    @emitted
    def longest(self, code: Code, pairs: ptr, n: i64) -> i64:
        """Where the longest run of equal keys ends."""
        builder = code.builder
        before, run, most, end = code.variable(self.keys.type(0)), code.variable(0), code.variable(0), code.variable(0)
        with code.count(0, n) as i:
            key = self.key(code, pairs, i)
            again = builder.icmp_unsigned("==", key, before.get())
            run.set(builder.select(again, run.get() + 1, I64(1)))
            longer = run.get() > most.get()
            most.set(builder.select(longer, run.get(), most.get()))
            end.set(builder.select(longer, i, end.get()))
            before.set(key)
        return end.get()


class Mode(RowKernel):
    """The kernel."""

    cost = 16
    functions = Runs
    sorting: Runs

    def _row(self, row: ir.Value) -> None:
        pairs = self.sorted_row(row)
        self.put_position(self.at(pairs, self.sorting.longest(pairs, self.words["n"]), self.keys.pair), row)
