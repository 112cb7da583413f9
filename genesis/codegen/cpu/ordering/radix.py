"""Pairs of a position and a key in the order of their keys.

Few pairs are sorted by counting for each how many come before it, a vector of keys at a time. More are sorted by their keys'
digits, the least first (LSD radix sort: D. Knuth, The Art of Computer Programming 3, 5.2.5): pairs move between two buffers
once for each digit that is not the same in all. Both are stable.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD, Code, Functions, emitted, i1, i64, ptr
from genesis.codegen.cpu.ordering.keys import Keys
from genesis.codegen.cpu.registers import I1, I8, I64

VALUES = 256  # of a digit, a byte
COUNTS = WORD * VALUES  # bytes


class Sorting(Functions):
    """The functions of one module that encode elements, and sort pairs."""

    def __init__(self, module: ir.Module, keys: Keys) -> None:
        super().__init__(module, keys.lanes)
        self.keys = keys

    # ---- elements ----
    @emitted
    def range(self, code: Code, source: ptr, first: i64, end: i64, ends: ptr, words: ptr) -> None:
        """The least and the greatest key of these elements, to two words."""
        keys, loader = self.keys, self.keys.loader(code, words)
        low, high = (code.variable(code.splat(keys.type(value))) for value in (-1, 0))
        with code.count(first, end, self.width) as i:
            mask = code.first_lanes(end - i)
            key = loader.load(source, i, mask)
            low.set(code.minimum(low.get(), code.select(mask, key, -1), keys.dtype))
            high.set(code.maximum(high.get(), code.select(mask, key, 0), keys.dtype))
        for n, (found, combine) in enumerate(((low, code.minimum), (high, code.maximum))):
            key = code.horizontal_reduce(partial(combine, dtype=keys.dtype), found.get())
            code.put(code.builder.zext(key, I64), ends, n)

    @emitted
    def encode(self, code: Code, source: ptr, first: i64, end: i64, target: ptr, low: i64, words: ptr) -> None:
        """The pairs of these elements, in whole vectors; their keys count from `low` on."""
        keys, builder = self.keys, code.builder
        low = code.splat(builder.trunc(low, keys.type))
        loader = keys.loader(code, words)
        with code.count(first, end, self.width) as i:
            key = loader.load(source, i, code.first_lanes(end - i)) - low
            position = code.add(code.splat(builder.trunc(i, keys.type)), code.lane_index(keys.dtype))
            code.wide_store({0: position, 1: key}, code.at(target, i, keys.pair), keys.dtype, 2)

    # ---- pairs ----
    @emitted
    def positions(self, code: Code, pairs: ptr, first: i64, end: i64, out: ptr) -> None:
        """The positions of pairs."""
        with code.count(first, end, self.width) as i:
            position = code.convert(self._half(code, pairs, i, 0), self.keys.dtype, "int64")
            code.store(position, code.at(out, i, WORD), "int64", code.first_lanes(end - i))

    def _half(self, code: Code, pairs: ir.Value, i: ir.Value, half: int) -> ir.Value:
        """A vector of positions (half 0) or keys (1) of the pairs from `i` on."""
        dtype = self.keys.dtype
        return code.strided(code.wide_load(code.at(pairs, i, self.keys.pair), dtype, 2, (0, 1)), dtype, 2, half)

    def key(self, code: Code, pairs: ir.Value, i: ir.Value) -> ir.Value:
        """The key of a pair."""
        return code.get(code.at(pairs, i, self.keys.pair), 1, self.keys.type)

    def copy_pair(self, code: Code, source: ir.Value, i: ir.Value, target: ir.Value, j: ir.Value) -> None:
        """Copy pair `i` of the source to place `j` of the target."""
        kind = ir.VectorType(self.keys.type, 2) if self.keys.bytes == WORD else I64
        pair = code.builder.load(code.at(source, i, self.keys.pair), typ=kind, align=WORD)
        code.builder.store(pair, code.at(target, j, self.keys.pair), align=WORD)

    @emitted
    def rank(self, code: Code, source: ptr, n: i64, target: ptr) -> None:
        """Sort few pairs by counting, for each, the pairs before it."""
        keys, builder, lanes = self.keys, code.builder, code.lane_index(self.keys.dtype)
        rank, slot = code.variable(code.splat(keys.type(0))), builder.alloca(lanes.type)
        # Not a constant: LLVM would make a vector of each mask, and subtract it. Zen 4, int64, rows of 128 96 to 79 us.
        one = code.splat(builder.trunc(code.least(n, I64(1)), keys.type))

        def counted(start: ir.Value | int, end: i64, comes_before: str, own: ir.Value, block: i64 | None = None) -> None:
            """Count the pairs of [start, end) that come before each lane's. In a `block`, of equal ones the earlier lane is
            first."""
            with code.count(start, end) as j:
                other = code.splat(self.key(code, source, j))
                before = builder.icmp_unsigned(comes_before, other, own)
                if block is not None:
                    lane = builder.trunc(j - block, keys.type)
                    behind = builder.icmp_unsigned(">", lanes, code.splat(lane))
                    before = before | (builder.icmp_unsigned("==", other, own) & behind)
                rank.set(code.select(before, rank.get() + one, rank.get()))

        with code.count(0, n, self.width) as i:
            own = self._half(code, source, i, 1)
            rank.set(code.splat(keys.type(0)))
            end = code.least(i + self.width, n)
            counted(0, i, "<=", own)
            counted(i, end, "<", own, i)
            counted(end, n, "<", own)
            builder.store(rank.get(), slot)
            with code.count(i, end) as j:  # measured: scatters of vectors take twice as long
                self.copy_pair(code, source, j, target, builder.zext(code.get(slot, j - i, keys.type), I64))

    # ---- digits ----
    def digit(self, code: Code, pairs: ir.Value, index: ir.Value, byte: ir.Value) -> ir.Value:
        """A byte of a pair, as a digit."""
        return code.builder.zext(code.get(code.at(code.at(pairs, index, self.keys.pair), byte), 0, I8), I64)

    @emitted
    def count(self, code: Code, pairs: ptr, first: i64, end: i64, byte: i64, counts: ptr) -> None:
        """The histogram of a digit, which is a byte of the pairs."""
        code.fill(counts, I64(COUNTS))
        with code.count(first, end) as i:
            digit = self.digit(code, pairs, i, byte)
            code.put(code.get(counts, digit) + 1, counts, digit)

    @emitted
    def add_up(self, code: Code, counts: ptr, blocks: i64, n: i64) -> i1:
        """Exclusive prefix sums of the histograms, by value and then by block; whether all n pairs have one value."""
        before, same = code.variable(0), code.variable(I1(0))
        with code.count(0, I64(VALUES)) as value:
            start = before.get()
            with code.count(0, blocks) as block:
                index = block * VALUES + value
                count = code.get(counts, index)
                code.put(before.get(), counts, index)
                before.set(before.get() + count)
            same.set(same.get() | (before.get() - start).equals(n))
        return same.get()

    @emitted
    def move(self, code: Code, source: ptr, target: ptr, first: i64, end: i64, byte: i64, counts: ptr) -> None:
        """Scatter pairs to the positions in `counts`, which advance."""
        with code.count(first, end) as i:
            digit = self.digit(code, source, i, byte)
            position = code.get(counts, digit)
            code.put(position + 1, counts, digit)
            self.copy_pair(code, source, i, target, position)

    @emitted
    def sort(self, code: Code, n: i64, greatest: i64, counts: ptr, a: ptr, b: ptr) -> ptr:
        """The pairs of `a`, whose keys are not beyond the greatest, in order, in `a` or in `b`."""
        builder, zero = code.builder, I64(0)
        with builder.if_then(n <= self.keys.short):
            self.rank(a, n, b)
            builder.ret(b)
        here, there, left, digit = code.variable(a), code.variable(b), code.variable(greatest), code.variable(self.keys.bytes)
        with code.loop(lambda: builder.icmp_unsigned("!=", left.get(), zero)):
            byte = digit.get()
            self.count(here.get(), zero, n, byte, counts)
            with builder.if_then(~self.add_up(counts, I64(1), n)):
                from_, to = here.get(), there.get()
                self.move(from_, to, zero, n, byte, counts)
                here.set(to)
                there.set(from_)
            digit.set(byte + 1)
            left.set(builder.lshr(left.get(), I64(8)))
        return here.get()


class Scratch(NamedTuple):
    """The memory that sorting takes, in bytes: counts, then the buffers at `a` and `b`."""

    a: int
    b: int
    end: int

    @classmethod
    def of(cls, keys: Keys, count: int, blocks: int = 1, before: int = 0) -> Scratch:
        """The memory for so many pairs and the counts of `blocks`, after `before` bytes of other data."""
        a, size = before + blocks * COUNTS, keys.pairs_bytes(count)
        return cls(a, a + size, a + 2 * size)
