"""Stores of a part of a vector's elements, without the masked stores of AVX2 and NEON.

On Zen 2 to 4 one of AVX2 takes 12 to 18 cycles for 32 bytes; where there is none, each element has a branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import I32, I64, SIZE, constants
from genesis.codegen.cpu.tiling import vector_bytes


def has_masked_stores() -> bool:
    """Whether masked stores are as fast as others: with AVX-512."""
    return vector_bytes() == 64


def store_first(b: ir.IRBuilder, x: ir.Value, pointer: ir.Value, count: ir.Value) -> None:
    """Store the first `count` elements: half of them, a quarter, and so on, each if it is in the number's bits."""
    size = x.type.count
    with b.if_else(count >= count.type(size)) as (whole, rest):
        with whole:
            b.store(x, pointer, align=SIZE[x.type.element])
        with rest:
            half = (1 << (size - 1).bit_length()) // 2
            x = b.shuffle_vector(x, x, constants(I32, [min(n, size - 1) for n in range(2 * half)]))
            count = b.select(count < count.type(0), count.type(0), count)
            while half:
                x, pointer = _store_half(b, x, pointer, half, count & count.type(half))
                half //= 2


def _store_half(b: ir.IRBuilder, x: ir.Value, pointer: ir.Value, half: int, stored: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Store the first half of x if `stored` is not 0; the half that is left, and its address."""
    low, high = (b.shuffle_vector(x, x, constants(I32, range(n, n + half))) for n in (0, half))

    def store() -> tuple[ir.Value, ir.Value]:
        b.store(low, pointer, align=SIZE[x.type.element])
        return high, b.gep(pointer, [I64(half)], inbounds=True, source_etype=x.type.element)

    left, at = b.replaced(b.icmp_unsigned("!=", stored, stored.type(0)), [low, pointer], store)
    return left, at


def store_apart(b: ir.IRBuilder, values: Mapping[int, ir.Value], pointer: ir.Value, stride: int, mask: ir.Value | None) -> None:
    """Store each lane of `values[offset]`, `stride` elements apart, by itself."""
    for lane in range(next(iter(values.values())).type.count):
        with nullcontext() if mask is None else b.if_then(b.extract_element(mask, I32(lane))):
            for offset, x in values.items():
                at = b.gep(pointer, [I64(lane * stride + offset)], inbounds=True, source_etype=x.type.element)
                b.store(b.extract_element(x, I32(lane)), at, align=SIZE[x.type.element])
