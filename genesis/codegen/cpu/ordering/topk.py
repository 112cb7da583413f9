"""The positions of the k first elements of rows in their order.

A sample of the row's first elements, the least key of each lane in each of some stretches, bounds the keys that may be among
them. Those are kept in a buffer, and whenever it is full the first k of it are found by sorting, the last of which is the next
bound. Of a random row, few keys ever get there. Blocks of a row that several workers share have k each, of which a second
launch takes the first.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD, Code, Variable, emitted, i64, ptr
from genesis.codegen.cpu.ordering.radix import Scratch, Sorting
from genesis.codegen.cpu.ordering.row_kernel import BLOCK, LaunchPlan, RowKernel, Rows, aligned
from genesis.codegen.cpu.registers import I1, I64
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall
from genesis.runtime.native import BlockWord


VECTORS = 4  # that are compared before those within the bound are kept
SAMPLED = 4096  # elements at most, so that they are read again from the first cache


class Scan(Sorting):
    """The functions of one module."""

    @emitted
    def scan(self, code: Code, source: ptr, first: i64, end: i64, counts: ptr, a: ptr, b: ptr, words: ptr) -> ptr:
        """The first k pairs of these elements, in order."""
        builder, keys = code.builder, self.keys
        loader = keys.loader(code, words)
        k, full = (code.get(words, TopK.names().index(word)) for word in ("k", "full"))
        position, count, limit = code.variable(first), code.variable(0), code.variable(keys.type(-1))
        sampled = code.least(end - first, I64(SAMPLED))
        with builder.if_then(4 * k <= sampled):
            limit.set(builder.trunc(self.bound(source, first, first + sampled, k, counts, a, b, words), keys.type))
        slot = builder.alloca(ir.ArrayType(keys.type, VECTORS * keys.lanes))
        with code.loop(lambda: position.get() < end):
            start, found = position.get(), []
            for lane in range(0, VECTORS * keys.lanes, keys.lanes):
                mask = code.first_lanes(end - start - lane)
                key = loader.load(source, start + lane, mask)
                found.append((lane, key, mask & builder.icmp_unsigned("<=", key, code.splat(limit.get()))))
            position.set(start + VECTORS * keys.lanes)
            with builder.if_then(code.any_lane(reduce(or_, (within for _, _, within in found))), likely=False):
                hits = code.variable(0)
                for lane, key, within in found:
                    code.store(key, code.at(slot, lane, keys.bytes), keys.dtype)
                    bits = builder.zext(builder.bitcast(within, ir.IntType(keys.lanes)), I64)
                    hits.set(hits.get() | builder.shl(bits, I64(lane)))
                self._push(code, hits, slot, start, a, count)
                with builder.if_then(count.get() >= full, likely=False):
                    pairs = self.sort(count.get(), I64(keys.greatest), counts, a, b)
                    code.copy(pairs, a, k * keys.pair)
                    count.set(k)
                    worst = self.key(code, a, k - 1)
                    limit.set(worst - keys.type(1))  # equal ones come later
                    nothing_less = builder.icmp_unsigned("==", worst, keys.type(0))
                    position.set(builder.select(nothing_less, end, position.get()))
        return self.sort(count.get(), I64(keys.greatest), counts, a, b)

    @emitted
    def bound(self, code: Code, source: ptr, first: i64, end: i64, k: i64, counts: ptr, a: ptr, b: ptr, words: ptr) -> i64:
        """A key that at least k of these elements do not exceed: the k-th of the least keys of at least 2 k disjoint sets."""
        keys, loader = self.keys, self.keys.loader(code, words)
        builder, lanes = code.builder, I64(keys.lanes)
        stretches = builder.sdiv(2 * k + (keys.lanes - 1), lanes)
        length = (builder.sdiv(builder.sdiv(end - first, lanes), stretches) + 1) * keys.lanes
        with code.count(0, stretches) as number:
            start = first + number * length
            least = code.variable(code.splat(keys.type(-1)))
            with code.count(start, code.least(start + length, end), keys.lanes) as i:
                mask = code.first_lanes(end - i)
                key = code.select(mask, loader.load(source, i, mask), -1)
                least.set(code.minimum(least.get(), key, keys.dtype))
            target = code.at(a, number * keys.lanes, keys.pair)
            code.wide_store({0: code.splat(keys.type(0)), 1: least.get()}, target, keys.dtype, 2)
        found = self.sort(stretches * keys.lanes, I64(keys.greatest), counts, a, b)
        return builder.zext(self.key(code, found, k - 1), I64)

    def _push(self, code: Code, left: Variable, slot: ir.Value, at: ir.Value, pairs: ir.Value, count: Variable) -> None:
        """Add a pair for each bit of `left`, which are cleared, in their order."""
        builder, keys = code.builder, self.keys
        with code.loop(lambda: left.get().differs(0)):
            lane = code.intrinsic("cttz", I64, [left.get(), I1(1)])
            pair = code.at(pairs, count.get(), keys.pair)
            code.put(builder.trunc(at + lane, keys.type), pair, 0)
            code.put(code.get(slot, lane, keys.type), pair, 1)
            count.set(count.get() + 1)
            left.set(left.get() & (left.get() - 1))


class TopK(RowKernel):
    """The kernel."""

    steps = "whole", "part", "merge"
    more = "k", "full", "found", "found_pitch"
    cost = 1
    functions = Scan
    sorting: Scan

    @classmethod
    def is_descending(cls, node: Node) -> bool:
        return bool(node.attrs["largest"])

    @classmethod
    def least_block(cls, node: Node) -> int:
        return max(BLOCK, 8 * node.shape[-1])

    @classmethod
    def plan(cls, node: Node, call: HostCall, rows: Rows, slots: SlotMap) -> LaunchPlan:
        """Whole rows; or the first k of each block, kept behind the workers' memory, and of them the first of the row."""
        keys, k = rows.keys, node.shape[-1]
        full = max(2 * k, k + keys.lanes, rows.blocks * k)
        scratch = Scratch.of(keys, full + VECTORS * keys.lanes)
        pitch, found = aligned(scratch.end), keys.pairs_bytes(rows.blocks * k)
        words: dict[str, BlockWord] = {"k": k, "full": full, "found": pitch * rows.workers, "found_pitch": found}
        if not rows.is_shared:
            return LaunchPlan([("whole", rows.total, {})], scratch, pitch * rows.workers, pitch, words)
        launches: list[tuple[str, int, dict[str, int]]] = [("part", rows.total * rows.blocks, {}), ("merge", rows.total, {})]
        return LaunchPlan(launches, scratch, pitch * rows.workers + found * rows.total, pitch, words)

    def _found(self, row: ir.Value, block: ir.Value) -> ir.Value:
        """The address of the pairs found in a block."""
        start = self.words["found"] + row * self.words["found_pitch"]
        return self.at(self.at(self.words["scratch"], start), block * self.words["k"], self.keys.pair)

    def _positions_of(self, pairs: ir.Value, row: ir.Value) -> None:
        out = self.at(self.words["out"], row * self.words["k"], WORD)
        self.sorting.positions(pairs, I64(0), self.words["k"], out)

    def _whole(self, row: ir.Value) -> None:
        pairs = self.sorting.scan(self.row(row), I64(0), self.words["n"], *self.buffers(self.worker), self.block)
        self._positions_of(pairs, row)

    def _part(self, item: ir.Value) -> None:
        row, block, first, end = self.part(item)
        pairs = self.sorting.scan(self.row(row), first, end, *self.buffers(self.worker), self.block)
        self.copy(pairs, self._found(row, block), self.words["k"] * self.keys.pair)

    def _merge(self, row: ir.Value) -> None:
        counts, a, b = self.buffers(self.worker)
        count = self.words["k"] * self.words["blocks"]
        self.copy(self._found(row, I64(0)), a, count * self.keys.pair)
        self._positions_of(self.sorting.sort(count, I64(self.keys.greatest), counts, a, b), row)
