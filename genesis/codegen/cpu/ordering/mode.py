"""The positions of rows' most frequent elements: the last of the longest run of equal keys, of several runs the first."""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code
from genesis.codegen.cpu.ordering.row_kernel import RowKernel
from genesis.codegen.cpu.ordering.keys import Keys
from genesis.codegen.cpu.ordering.radix import Sorting, emit_encode, emit_range
from genesis.codegen.cpu.registers import I64, POINTER


class Mode(RowKernel):
    """The kernel."""

    cost = 16

    def functions(self) -> None:
        self.encode, self.range = emit_encode(self.module, self.keys), emit_range(self.module, self.keys)
        self.sorting = Sorting.emit(self.module, self.keys)
        self.longest = _emit_longest(self.module, self.keys)

    def _row(self, row: ir.Value) -> None:
        pairs = self.sorted_row(row, self.encode, self.range, self.sorting.sort)
        self.put_position(self.at(pairs, self.longest(pairs, self.words["n"]), self.keys.pair), row)


def _emit_longest(module: ir.Module, keys: Keys) -> ir.Function:
    """`i64 (pairs, n)`: where the longest run of equal keys ends."""
    code = Code(module, "longest", [POINTER, I64], 1, result=I64)
    pairs, n = code.args
    builder = code.builder
    before, run, most, end = code.variable(keys.type(0)), code.variable(0), code.variable(0), code.variable(0)
    with code.count(0, n) as i:
        key = code.get(code.at(pairs, i, keys.pair), 1, keys.type)
        again = builder.icmp_unsigned("==", key, before.get())
        run.set(builder.select(again, run.get() + 1, I64(1)))
        longer = run.get() > most.get()
        most.set(builder.select(longer, run.get(), most.get()))
        end.set(builder.select(longer, i, end.get()))
        before.set(key)
    return code.finish(end.get())
