"""Pairs of a position and a key in the order of their keys.

Few pairs are sorted by counting for each how many come before it, a vector of keys at a time. More are sorted by their keys'
digits, the least first (LSD radix sort: D. Knuth, The Art of Computer Programming 3, 5.2.5): pairs move between two buffers
once for each digit that is not the same in all. Both are stable.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD, Code
from genesis.codegen.cpu.ordering.keys import ORDER, Keys
from genesis.codegen.cpu.registers import I1, I8, I64, POINTER

VALUES = 256  # of a digit, a byte
COUNTS = WORD * VALUES  # bytes


def digit_of(code: Code, keys: Keys, pairs: ir.Value, index: ir.Value, byte: ir.Value) -> ir.Value:
    """A byte of a pair, as a digit."""
    return code.builder.zext(code.get(code.at(code.at(pairs, index, keys.pair), byte), 0, I8), I64)


def load_pair(code: Code, keys: Keys, pairs: ir.Value, index: ir.Value) -> ir.Value:
    """A pair, to be stored elsewhere."""
    kind = ir.VectorType(keys.type, 2) if keys.bytes == WORD else I64
    return code.builder.load(code.at(pairs, index, keys.pair), typ=kind, align=WORD)


def emit_range(module: ir.Module, keys: Keys) -> ir.Function:
    """`void (source, first, end, ends, words)`: the least and the greatest key of these elements, to two words."""
    code = Code(module, "range", [POINTER, I64, I64, POINTER, POINTER], keys.lanes)
    source, first, end, ends, words = code.args
    builder = code.builder
    loader = keys.loader(code, {word: code.get(words, n) for n, word in enumerate(ORDER)})
    low, high = (code.variable(code.splat(keys.type(value))) for value in (-1, 0))
    with code.count(first, end, keys.lanes) as i:
        mask = code.first_lanes(end - i)
        key = loader.load(source, i, mask)
        low.set(code.minimum(low.get(), code.select(mask, key, -1), keys.dtype))
        high.set(code.maximum(high.get(), code.select(mask, key, 0), keys.dtype))
    for n, (found, combine) in enumerate(((low, code.minimum), (high, code.maximum))):
        key = code.horizontal_reduce(partial(combine, dtype=keys.dtype), found.get())
        code.put(builder.zext(key, I64), ends, n)
    return code.finish()


def emit_encode(module: ir.Module, keys: Keys) -> ir.Function:
    """`void (source, first, end, pairs, low, words)`: the pairs of these elements, whose keys count from `low` on.

    They are written in whole vectors.
    """
    code = Code(module, "encode", [POINTER, I64, I64, POINTER, I64, POINTER], keys.lanes)
    source, first, end, target, low, words = code.args
    low = code.splat(code.builder.trunc(low, keys.type))
    builder = code.builder
    loader = keys.loader(code, {word: code.get(words, n) for n, word in enumerate(ORDER)})
    with code.count(first, end, keys.lanes) as i:
        key = loader.load(source, i, code.first_lanes(end - i)) - low
        position = code.add(code.splat(builder.trunc(i, keys.type)), code.lane_index(keys.dtype))
        code.wide_store({0: position, 1: key}, code.at(target, i, keys.pair), keys.dtype, 2)
    return code.finish()


def emit_positions(module: ir.Module, keys: Keys) -> ir.Function:
    """`void (pairs, first, end, out)`: the positions of pairs."""
    code = Code(module, "positions", [POINTER, I64, I64, POINTER], keys.lanes)
    pairs, first, end, out = code.args
    with code.count(first, end, keys.lanes) as i:
        wide = code.wide_load(code.at(pairs, i, keys.pair), keys.dtype, 2, (0, 1))
        position = code.convert(code.strided(wide, keys.dtype, 2, 0), keys.dtype, "int64")
        code.store(position, code.at(out, i, WORD), "int64", code.first_lanes(end - i))
    return code.finish()


def emit_count(module: ir.Module, keys: Keys) -> ir.Function:
    """`void (pairs, first, end, byte, counts)`: the histogram of a digit, which is a byte of the pairs."""
    code = Code(module, "count", [POINTER, I64, I64, I64, POINTER], 1)
    pairs, first, end, byte, counts = code.args
    code.fill(counts, I64(COUNTS))
    with code.count(first, end) as i:
        digit = digit_of(code, keys, pairs, i, byte)
        code.put(code.get(counts, digit) + 1, counts, digit)
    return code.finish()


def emit_add_up(module: ir.Module) -> ir.Function:
    """`bool (counts, blocks, n)`: exclusive prefix sums of the histograms, by value and then by block; whether all n pairs have
    one value."""
    code = Code(module, "add_up", [POINTER, I64, I64], 1, result=I1)
    counts, blocks, n = code.args
    before, same = code.variable(0), code.variable(I1(0))
    with code.count(0, I64(VALUES)) as value:
        start = before.get()
        with code.count(0, blocks) as block:
            index = block * VALUES + value
            count = code.get(counts, index)
            code.put(before.get(), counts, index)
            before.set(before.get() + count)
        same.set(same.get() | (before.get() - start).equals(n))
    return code.finish(same.get())


def emit_move(module: ir.Module, keys: Keys) -> ir.Function:
    """`void (pairs, target, first, end, byte, counts)`: scatter pairs to the positions in `counts`, which advance."""
    code = Code(module, "move", [POINTER, POINTER, I64, I64, I64, POINTER], 1)
    source, target, first, end, byte, counts = code.args
    with code.count(first, end) as i:
        digit = digit_of(code, keys, source, i, byte)
        position = code.get(counts, digit)
        code.put(position + 1, counts, digit)
        code.builder.store(load_pair(code, keys, source, i), code.at(target, position, keys.pair), align=WORD)
    return code.finish()


def emit_rank(module: ir.Module, keys: Keys) -> ir.Function:
    """`void (pairs, n, target)`: sort few pairs by counting, for each, the pairs before it."""
    code = Code(module, "rank", [POINTER, I64, POINTER], keys.lanes)
    source, n, target = code.args
    builder, lanes = code.builder, code.lane_index(keys.dtype)
    rank, slot = code.variable(code.splat(keys.type(0))), builder.alloca(lanes.type)

    def counted(start: ir.Value | int, end: ir.Value, comes_before: str, own: ir.Value, block: ir.Value | None = None) -> None:
        """Count the pairs of [start, end) that come before each lane's. In a `block`, of equal ones the earlier lane is
        first."""
        with code.count(start, end) as j:
            other = code.splat(code.get(code.at(source, j, keys.pair), 1, keys.type))
            before = builder.icmp_unsigned(comes_before, other, own)
            if block is not None:
                lane = builder.trunc(j - block, keys.type)
                behind = builder.icmp_unsigned(">", lanes, code.splat(lane))
                before = before | (builder.icmp_unsigned("==", other, own) & behind)
            rank.set(rank.get() - builder.sext(before, lanes.type))

    with code.count(0, n, keys.lanes) as i:
        own = code.strided(code.wide_load(code.at(source, i, keys.pair), keys.dtype, 2, (0, 1)), keys.dtype, 2, 1)
        rank.set(code.splat(keys.type(0)))
        end = code.least(i + keys.lanes, n)
        counted(0, i, "<=", own)
        counted(i, end, "<", own, i)
        counted(end, n, "<", own)
        builder.store(rank.get(), slot)
        with code.count(i, end) as j:  # measured: scatters of vectors take twice as long
            to = builder.zext(code.get(slot, j - i, keys.type), I64)
            builder.store(load_pair(code, keys, source, j), code.at(target, to, keys.pair), align=WORD)
    return code.finish()


class Sorting(NamedTuple):
    """The functions that sort, of one module.

    `sort` is `pairs (n, greatest, counts, a, b)`: the pairs of `a`, whose keys are not beyond the greatest, in order, in `a` or
    in `b`.
    """

    count: ir.Function  # type: ignore[assignment]
    add_up: ir.Function
    move: ir.Function
    sort: ir.Function

    @classmethod
    def emit(cls, module: ir.Module, keys: Keys) -> Sorting:
        """Emit them."""
        count, add_up, move, rank = (
            emit_count(module, keys), emit_add_up(module), emit_move(module, keys), emit_rank(module, keys))
        code = Code(module, "sort", [I64, I64, POINTER, POINTER, POINTER], 1, result=POINTER)
        n, greatest, counts, a, b = code.args
        builder, zero = code.builder, I64(0)
        with builder.if_then(n <= keys.short):
            rank(a, n, b)
            builder.ret(b)
        here, there, left, digit = code.variable(a), code.variable(b), code.variable(greatest), code.variable(keys.bytes)
        with code.loop(lambda: builder.icmp_unsigned("!=", left.get(), zero)):
            byte = digit.get()
            count(here.get(), zero, n, byte, counts)
            with builder.if_then(~add_up(counts, I64(1), n)):
                from_, to = here.get(), there.get()
                move(from_, to, zero, n, byte, counts)
                here.set(to)
                there.set(from_)
            digit.set(byte + 1)
            left.set(builder.lshr(left.get(), I64(8)))
        code.finish(here.get())
        return cls(count, add_up, move, code.function)


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
