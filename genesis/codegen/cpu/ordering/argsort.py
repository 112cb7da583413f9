"""Argsort by radix. A worker sorts whole rows; where rows are fewer than workers, all workers sort each row.

Sorting a row together takes a launch for each step of a digit: blocks count the digit's values, prefix sums of the counts say
where each block's pairs go, and the blocks move them.
"""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD
from genesis.codegen.cpu.ordering.keys import Keys
from genesis.codegen.cpu.ordering.radix import COUNTS, Scratch
from genesis.codegen.cpu.ordering.row_kernel import LaunchPlan, RowKernel, Rows, aligned
from genesis.codegen.cpu.registers import I64
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall


class Argsort(RowKernel):
    """The kernel."""

    steps = "whole", "range", "encode", "count", "add_up", "move", "positions"
    more = ("digit",)
    cost = 16

    @classmethod
    def is_descending(cls, node: Node) -> bool:
        return bool(node.attrs["descending"])

    @classmethod
    def plan(cls, node: Node, call: HostCall, rows: Rows, slots: SlotMap) -> LaunchPlan:
        """One launch for whole rows; or for a shared row, launches that encode it, sort by each digit, and write positions."""
        digits, every = rows.keys.size, rows.total * rows.blocks
        state = aligned(WORD * (cls.state_words(rows.keys) + 2 * rows.blocks))
        scratch = Scratch.of(rows.keys, rows.n, rows.blocks, state)
        pitch = aligned(scratch.end)
        if not rows.is_shared:
            return LaunchPlan([("whole", rows.total, {"digit": 0})], scratch, pitch * rows.at_once, pitch, {})
        moves = [(step, rows.total if step == "add_up" else every, {"digit": digit}) for digit in range(digits)
                 for step in ("count", "add_up", "move")]
        begin = [(step, every, {"digit": 0}) for step in ("range", "encode")]
        launches = [*begin, *moves, ("positions", every, {"digit": digits})]
        return LaunchPlan(launches, scratch, pitch * rows.total, pitch, {})

    @staticmethod
    def state_words(keys: Keys) -> int:
        """The words of a shared row's state, without the key ranges of blocks: two for each digit, and the greatest key."""
        return 2 * (keys.size + 1) + 1

    def _out(self, row: ir.Value) -> ir.Value:
        return self.at(self.words["out"], row * self.words["n"], WORD)

    def _whole(self, row: ir.Value) -> None:
        pairs = self.sorted_row(row)
        self.sorting.positions(pairs, I64(0), self.words["n"], self._out(row))

    # ---- a row in blocks: its state has for each digit whether the pairs are in b, and whether they stay; then ends of keys
    def _counts(self, a: ir.Value, block: ir.Value | int) -> ir.Value:
        """The address of a block's counts: before the pairs, in reverse order of blocks."""
        block = I64(block) if isinstance(block, int) else block
        return self.at(a, (block - self.words["blocks"]) * COUNTS)

    def _byte(self) -> ir.Value:
        return self.words["digit"] + self.keys.bytes

    def _sides(self, row: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
        """(state, a, where the pairs are, where they go)."""
        state, a, b = self.buffers(row)
        is_swapped = self.get(state, self.words["digit"]).differs(0)
        return state, a, self.builder.select(is_swapped, b, a), self.builder.select(is_swapped, a, b)

    def _stays(self, state: ir.Value) -> ir.Value:
        return self.at(state, self.words["digit"] + (self.keys.size + 1), WORD)

    def _block_ends(self, state: ir.Value, block: ir.Value) -> ir.Value:
        """The address of a block's least and greatest key: behind the row's state."""
        return self.at(state, block * 2 + self.state_words(self.keys), WORD)

    def _greatest(self, state: ir.Value) -> ir.Value:
        """The address of a row's greatest key, relative to the least one."""
        return self.at(state, I64(2 * (self.keys.size + 1)), WORD)

    def _ends(self, state: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The least and the greatest key of a row."""
        low, high = self.variable(-1), self.variable(0)
        with self.count(0, self.words["blocks"]) as block:
            ends = self._block_ends(state, block)
            low.set(self.minimum(low.get(), self.get(ends, 0), "uint64"))
            high.set(self.maximum(high.get(), self.get(ends, 1), "uint64"))
        return low.get(), high.get()

    def _has_digit(self, state: ir.Value) -> ir.Value:
        """Whether any key of a row is nonzero from this digit on."""
        beyond = self.builder.lshr(self.get(self._greatest(state)), self.words["digit"] * 8)
        return self.builder.icmp_unsigned("!=", beyond, I64(0))

    def _range(self, item: ir.Value) -> None:
        row, block, first, end = self.part(item)
        state, _, _ = self.buffers(row)
        self.sorting.range(self.row(row), first, end, self._block_ends(state, block), self.block)

    def _encode(self, item: ir.Value) -> None:
        row, _, first, end = self.part(item)
        state, a, _ = self.buffers(row)
        low, high = self._ends(state)
        with self.builder.if_then(first.equals(0)):
            self.put(I64(0), state)
            self.put(high - low, self._greatest(state))
        self.sorting.encode(self.row(row), first, end, a, low, self.block)

    def _count(self, item: ir.Value) -> None:
        row, block, first, end = self.part(item)
        state, a, here, _ = self._sides(row)
        with self.builder.if_then(self._has_digit(state)):
            self.sorting.count(here, first, end, self._byte(), self._counts(a, block))

    def _add_up(self, row: ir.Value) -> None:
        state, a, _, _ = self._sides(row)
        stays = self.variable(1)
        with self.builder.if_then(self._has_digit(state)):
            same = self.sorting.add_up(self._counts(a, 0), self.words["blocks"], self.words["n"])
            stays.set(self.builder.zext(same, I64))
        self.put(stays.get(), self._stays(state))
        is_swapped = self.get(state, self.words["digit"]) ^ (stays.get() ^ 1)
        self.put(is_swapped, state, self.words["digit"] + 1)

    def _move(self, item: ir.Value) -> None:
        row, block, first, end = self.part(item)
        state, a, here, there = self._sides(row)
        with self.builder.if_then(self.get(self._stays(state)).equals(0)):
            self.sorting.move(here, there, first, end, self._byte(), self._counts(a, block))

    def _positions(self, item: ir.Value) -> None:
        row, _, first, end = self.part(item)
        _, _, here, _ = self._sides(row)
        self.sorting.positions(here, first, end, self._out(row))
