"""The position of the element of a given rank in each row; ranks are data.

Short rows: count for each element those that precede it. Longer ones: bisect the keys, a bit at a time, counting the smaller
ones. Long ones: count the values of the most significant digit, keep the pairs whose digit contains the rank, and go on with
the next digit.
"""

from __future__ import annotations

from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD, Code, Variable, emitted, i64, ptr
from genesis.codegen.cpu.ordering.keys import Loader
from genesis.codegen.cpu.ordering.radix import Sorting
from genesis.codegen.cpu.ordering.row_kernel import LaunchPlan, RowKernel, Rows
from genesis.codegen.cpu.registers import I1, I64
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall

RANKED, BISECTED = 16, 4096  # the longest rows. Measured: 10 elements take 30 ns ranked, 47 to 70 bisected


class Selection(Sorting):
    """The functions of one module."""

    @emitted
    def bisect(self, code: Code, source: ptr, n: i64, rank: i64, scratch: ptr, words: ptr) -> i64:
        """The position of the element of that rank; equal ones are in order."""
        builder, keys = code.builder, self.keys
        farthest = self._store_distances(code, keys.loader(code, words), source, n, scratch)
        # The element's key lies in [low, low + span]: `before` keys are less than low, and `end` are at most low + span.
        leading = code.intrinsic("ctlz", keys.type, [farthest | keys.type(1), I1(1)])
        low, span = code.variable(keys.type(0)), code.variable(builder.lshr(keys.type(-1), leading))
        before, end = code.variable(0), code.variable(n)
        with code.loop(lambda: builder.icmp_unsigned("!=", span.get(), keys.type(0)) & (end.get() - before.get() > 1)):
            half = builder.lshr(span.get(), keys.type(1))
            middle = low.get() | (span.get() ^ half)
            less = code.variable(0)
            with code.count(0, n, keys.lanes) as i:
                key = code.load(code.at(scratch, i, keys.bytes), keys.dtype)
                hits = builder.icmp_unsigned("<", key, code.splat(middle))
                less.set(less.get() + self._count_of(code, hits))
            is_above = less.get() <= rank
            low.set(builder.select(is_above, middle, low.get()))
            before.set(builder.select(is_above, less.get(), before.get()))
            end.set(builder.select(is_above, end.get(), less.get()))
            span.set(half)
        return self._position_within(code, scratch, low, span, code.variable(rank - before.get()))

    def _store_distances(self, code: Code, loader: Loader, source: ir.Value, n: ir.Value, scratch: ir.Value) -> ir.Value:
        """Store how far each key lies above the least one, padded to whole vectors; return the greatest distance."""
        keys = self.keys
        least, greatest = (code.variable(code.splat(keys.type(value))) for value in (-1, 0))
        with code.count(0, n, keys.lanes) as i:
            mask = code.first_lanes(n - i)
            key = loader.load(source, i, mask)
            padded = code.select(mask, key, -1)
            code.store(padded, code.at(scratch, i, keys.bytes), keys.dtype)
            least.set(code.minimum(least.get(), padded, keys.dtype))
            greatest.set(code.maximum(greatest.get(), code.select(mask, key, 0), keys.dtype))
        first = code.horizontal_reduce(partial(code.minimum, dtype=keys.dtype), least.get())
        last = code.horizontal_reduce(partial(code.maximum, dtype=keys.dtype), greatest.get())
        with code.count(0, n, keys.lanes) as i:
            at = code.at(scratch, i, keys.bytes)
            code.store(code.load(at, keys.dtype) - code.splat(first), at, keys.dtype)
        return last - first

    def _position_within(self, code: Code, scratch: ir.Value, low: Variable, span: Variable, left: Variable) -> ir.Value:
        """The position of the key number `left` among those in [low, low + span]."""
        builder, keys, bits = code.builder, self.keys, ir.IntType(self.keys.lanes)
        start, found = code.variable(0), code.variable(bits(0))
        with code.loop(lambda: left.get() >= 0):
            key = code.load(code.at(scratch, start.get(), keys.bytes), keys.dtype)
            inside = builder.icmp_unsigned("<=", key - code.splat(low.get()), code.splat(span.get()))
            found.set(builder.bitcast(inside, bits))
            left.set(left.get() - self._count_of(code, inside))
            start.set(start.get() + keys.lanes)
        with code.loop(lambda: left.get() < -1):  # later hits of the vector
            hits = builder.zext(found.get(), I64)
            highest = 63 - code.intrinsic("ctlz", I64, [hits, I1(1)])
            found.set(builder.trunc(hits ^ (1 << highest), bits))
            left.set(left.get() + 1)
        last = 63 - code.intrinsic("ctlz", I64, [builder.zext(found.get(), I64), I1(1)])
        return start.get() - keys.lanes + last

    def _count_of(self, code: Code, hits: ir.Value) -> ir.Value:
        """The number of lanes that are true."""
        bits = ir.IntType(code.width)
        return code.builder.zext(code.intrinsic("ctpop", bits, [code.builder.bitcast(hits, bits)]), I64)

    @emitted
    def find(self, code: Code, pairs: ptr, n: i64, rank: i64, counts: ptr) -> ptr:
        """The pair of that rank; the others are overwritten."""
        builder, keys = code.builder, self.keys
        left, before = code.variable(n), code.variable(rank)
        with code.count(0, I64(keys.size)) as digit:
            byte = keys.bytes + keys.size - 1 - digit
            self.count(pairs, I64(0), left.get(), byte, counts)
            value = code.variable(0)
            with code.loop(lambda: before.get() >= code.get(counts, value.get())):
                before.set(before.get() - code.get(counts, value.get()))
                value.set(value.get() + 1)
            with builder.if_then(code.get(counts, value.get()) < left.get()):
                kept = code.variable(0)
                with code.count(0, left.get()) as i:  # without a branch: which are kept is anybody's guess
                    same = self.digit(code, pairs, i, byte).equals(value.get())
                    self.copy_pair(code, pairs, i, pairs, kept.get())
                    kept.set(kept.get() + builder.zext(same, I64))
                left.set(kept.get())
        return code.at(pairs, before.get(), keys.pair)


class Kth(RowKernel):
    """The kernel."""

    more = ("ranks",)
    pointers = (*RowKernel.pointers, "ranks")
    cost = 4
    functions = Selection
    sorting: Selection

    @classmethod
    def plan(cls, node: Node, call: HostCall, rows: Rows, slots: SlotMap) -> LaunchPlan:
        """Whole rows, with their ranks."""
        ranks, layout = call.operands[1]
        return super().plan(node, call, rows, slots)._replace(words={"ranks": slots.address(ranks, layout.offset * WORD)})

    def _row(self, row: ir.Value) -> None:
        builder, n = self.builder, self.words["n"]
        counts, a, b = self.buffers(self.worker)
        last = n - 1
        rank = self.intrinsic("smax", I64, [self.least(self.get(self.words["ranks"], row), last), I64(0)])
        is_bisected = (n > RANKED) & (n <= BISECTED)
        with builder.if_else(is_bisected) as (bisected, paired):
            with bisected:
                self.put(self.sorting.bisect(self.row(row), n, rank, a, self.block), self.words["out"], row)
            with paired:
                self.sorting.encode(self.row(row), I64(0), n, a, I64(0), self.block)
                found = self.variable(b)
                with builder.if_else(n <= RANKED) as (short, long):
                    with short:
                        self.sorting.rank(a, n, b)
                        found.set(self.at(b, rank, self.keys.pair))
                    with long:
                        found.set(self.sorting.find(a, n, rank, counts))
                self.put_position(found.get(), row)
