"""The position of the element of a given rank in each row; ranks are data.

Radix selection: count the values of the most significant digit, keep the pairs whose digit contains the rank, and go on with
the next digit.
"""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD, Code
from genesis.codegen.cpu.ordering.row_kernel import RowKernel, LaunchPlan, Rows
from genesis.codegen.cpu.ordering.keys import Keys
from genesis.codegen.cpu.ordering.radix import digit_of, emit_count, emit_encode, emit_rank, load_pair
from genesis.codegen.cpu.registers import I64, POINTER
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall


class Kth(RowKernel):
    """The kernel."""

    more = ("ranks",)
    pointers = (*RowKernel.pointers, "ranks")
    cost = 4

    @classmethod
    def plan(cls, node: Node, call: HostCall, rows: Rows, slots: SlotMap) -> LaunchPlan:
        """Whole rows, with their ranks."""
        ranks, layout = call.operands[1]
        return super().plan(node, call, rows, slots)._replace(words={"ranks": slots.address(ranks, layout.offset * WORD)})

    def functions(self) -> None:
        self.encode, self.rank = emit_encode(self.module, self.keys), emit_rank(self.module, self.keys)
        self.find = _emit_find(self.module, self.keys)

    def _row(self, row: ir.Value) -> None:
        builder, n = self.builder, self.words["n"]
        counts, a, b = self.buffers(self.worker)
        builder.call(self.encode, [self.row(row), I64(0), n, a, I64(0), self.block])
        last = builder.sub(n, I64(1))
        rank = self.intrinsic("smax", I64, [self.least(self.get(self.words["ranks"], row), last), I64(0)])
        found = self.variable(b)
        with builder.if_else(builder.icmp_signed("<=", n, I64(self.keys.short))) as (short, long):
            with short:
                builder.call(self.rank, [a, n, b])
                found.set(self.at(b, rank, self.keys.pair))
            with long:
                found.set(builder.call(self.find, [a, n, rank, counts]))
        self.put_position(found.get(), row)


def _emit_find(module: ir.Module, keys: Keys) -> ir.Function:
    """`pair (pairs, n, rank, counts)`: the pair of that rank; the others are overwritten."""
    count = emit_count(module, keys)
    code = Code(module, "find", [POINTER, I64, I64, POINTER], 1, result=POINTER)
    pairs, n, rank, counts = code.args
    builder = code.builder
    left, before = code.variable(n), code.variable(rank)
    with code.count(0, I64(keys.size)) as digit:
        byte = builder.sub(I64(keys.bytes + keys.size - 1), digit)
        builder.call(count, [pairs, I64(0), left.get(), byte, counts])
        value = code.variable(0)
        with code.loop(lambda: builder.icmp_signed(">=", before.get(), code.get(counts, value.get()))):
            before.set(builder.sub(before.get(), code.get(counts, value.get())))
            value.set(builder.add(value.get(), I64(1)))
        with builder.if_then(builder.icmp_signed("<", code.get(counts, value.get()), left.get())):
            kept = code.variable(0)
            with code.count(0, left.get()) as i:  # without a branch: which are kept is anybody's guess
                same = builder.icmp_signed("==", digit_of(code, keys, pairs, i, byte), value.get())
                builder.store(load_pair(code, keys, pairs, i), code.at(pairs, kept.get(), keys.pair), align=WORD)
                kept.set(builder.add(kept.get(), builder.zext(same, I64)))
            left.set(kept.get())
    return code.finish(code.at(pairs, before.get(), keys.pair))
