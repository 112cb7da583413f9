"""Indices of nonzero elements: blocks count theirs, counts become prefix sums, and blocks write from there on."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD
from genesis.codegen.cpu.ordering.keys import has_keys
from genesis.codegen.cpu.ordering.radix import Scratch
from genesis.codegen.cpu.ordering.row_kernel import LaunchPlan, RowKernel, Rows, aligned
from genesis.codegen.cpu.registers import DOUBLE, I1, I64
from genesis.codegen.segment import SlotMap
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape, numel
from genesis.lower.stages import HostCall
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import BlockWord

WORD_BITS = 64  # elements between two branches that a processor foresees badly


class Nonzero(RowKernel):
    """The kernel."""

    steps = "count", "add_up", "write"
    more = "mask", "size", "fill", "rank", "extents"
    pointers = (*RowKernel.pointers, "extents")
    cost = 1

    # ---- the launches ----
    @classmethod
    def takes(cls, dtype: DType) -> bool:
        return has_keys(dtype) or dtype.name == "complex64"

    @classmethod
    def sources(cls, nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
        rank = len(call.operands[0][1].shape)
        return super().sources(nodes, call) if rank == nodes[call.node].attrs["ranks"][0] and rank else []

    @classmethod
    def rows(cls, shape: Shape) -> tuple[int, int]:
        return 1, numel(shape)

    @classmethod
    def plan(cls, node: Node, call: HostCall, rows: Rows, slots: SlotMap) -> LaunchPlan:
        """All elements as one row, with a count for each block."""
        bits, dtype = 8 * rows.node.dtype.itemsize, rows.node.dtype
        sign = 0 if dtype.category < 2 else 1 << (bits - 1)
        sign |= 1 << 31 if dtype.name == "complex64" else 0
        memory, shape = aligned(WORD * (rows.blocks + 1)), call.operands[0][1].shape
        words: dict[str, BlockWord] = {
            "mask": (1 << bits) - 1 - sign, "size": node.shape[0], "fill": node.attrs["fill"], "rank": len(shape),
            "extents": tuple(shape)}
        blocks = rows.blocks
        launches: list[tuple[str, int, dict[str, int]]] = [("count", blocks, {}), ("add_up", 1, {}), ("write", blocks, {})]
        return LaunchPlan(launches, Scratch(0, 0, 0), memory, 0, words)

    # ---- the code ----
    def _hits(self, x: ir.Value) -> ir.Value:
        """Which elements are not zero; -0.0 is."""
        mask = self.builder.trunc(self.words["mask"], ir.IntType(8 * self.keys.size))
        return self.compare("!=", self.logical_and(x, mask), 0, "uint64")

    def _hit_bits(self, i: ir.Value, end: ir.Value) -> ir.Value:
        """The hits among WORD_BITS elements from `i` on, those before `end`, a bit each."""
        # Before AVX-512 masked bytes are loaded one by one: 65,536 took 98 us of one thread, with masks at the end alone 26.
        builder, found = self.builder, self.variable(0)
        with builder.if_else(i + WORD_BITS <= end) as (whole, tail):
            with whole:
                found.set(self._word(i, None))
            with tail:
                found.set(self._word(i, end))
        return found.get()

    def _word(self, i: ir.Value, end: ir.Value | None) -> ir.Value:
        """The hits among WORD_BITS elements from `i` on; with `end`, only those before it are read."""
        builder, dtype, bits = self.builder, f"uint{8 * self.keys.size}", I64(0)
        for lane in range(0, WORD_BITS, self.width):
            at = i + lane
            mask = None if end is None else self.first_lanes(end - at)
            x = self.load(self.element_pointer(self.words["source"], at, dtype), dtype, mask)
            hits = builder.zext(builder.bitcast(self._hits(x), ir.IntType(self.width)), I64)
            bits = bits | (hits << lane)
        return bits

    def _count(self, block: ir.Value) -> None:
        _, _, first, end = self.part(block)
        count = self.variable(0)
        with self.count(first, end, WORD_BITS) as i:
            count.set(count.get() + self.intrinsic("ctpop", I64, [self._hit_bits(i, end)]))
        self.put(count.get(), self.words["scratch"], block)

    def _add_up(self, item: ir.Value) -> None:
        words = self.words
        before = self.variable(0)
        with self.count(0, words["blocks"]) as block:
            count = self.get(words["scratch"], block)
            self.put(before.get(), words["scratch"], block)
            before.set(self.least(before.get() + count, words["size"]))
        self.put(before.get(), words["scratch"], words["blocks"])
        with self.count(before.get() * words["rank"], words["size"] * words["rank"]) as i:
            self.put(words["fill"], words["out"], i)

    def _write(self, block: ir.Value) -> None:
        words = self.words
        _, _, first, last = self.part(block)
        begin, end = (self.get(words["scratch"], index) for index in (block, block + 1))
        row = self.variable(begin)
        with self.count(first, last, WORD_BITS) as i:
            left = self.variable(self._hit_bits(i, last))
            with self.loop(lambda: left.get().differs(0) & (row.get() < end)):
                flat = i + self.intrinsic("cttz", I64, [left.get(), I1(1)])
                self._write_indices(flat, self.at(words["out"], row.get() * words["rank"], WORD))
                left.set(left.get() & (left.get() - 1))
                row.set(row.get() + 1)

    def _write_indices(self, flat: ir.Value, indices: ir.Value) -> None:
        """The indices of an element, the last axis first."""
        builder, words = self.builder, self.words
        rest, axis = self.variable(flat), self.variable(words["rank"] - 1)
        with self.loop(lambda: axis.get() > 0):
            extent = self.get(words["extents"], axis.get())
            # By doubles, exact below 2**52: a division of integers takes 26 to 90 cycles on Cascade Lake.
            ratio = builder.fdiv(*(builder.sitofp(x, DOUBLE) for x in (rest.get(), extent)))
            quotient = builder.fptosi(ratio, I64)
            self.put(rest.get() - quotient * extent, indices, axis.get())
            rest.set(quotient)
            axis.set(axis.get() - 1)
        self.put(rest.get(), indices, axis.get())
