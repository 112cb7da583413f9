"""Numbers made of a Mersenne Twister's words, in place: those of PyTorch's code for AVX2, bit for bit.

Each function is a module of its own, named by it and its dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code, Functions, emitted, i64, ptr
from genesis.codegen.cpu.registers import I32, I64, REGISTER_TYPE
from genesis.codegen.cpu.vector_math.number import Number, fma, polynomial, square_root, where

WIDTH = 8  # of AVX2's vectors of float32
BLOCK = 16  # normal numbers made at once, from as many even ones
STRETCH = 64  # elements whose partners are fetched into cache together
Real: TypeAlias = ir.Value


def draw_ir(symbol: str, name: str, dtype: str) -> str:
    """A module with the method `name` of `_Draws` as the function `symbol`."""
    draws = _Draws(symbol, dtype)
    getattr(draws, name)
    return str(draws.module)


class _Draws(Functions):
    def __init__(self, symbol: str, dtype: str) -> None:
        super().__init__(ir.Module(symbol), WIDTH, Real=REGISTER_TYPE[dtype])
        self.symbol, self.dtype = symbol, dtype

    def code(self, name: str, parameters: Sequence[ir.Type], result: ir.Type = ir.VOID) -> Code:
        return Code(self.module, self.symbol, parameters, self.width, result=result, internal=False)

    def _at(self, code: Code, data: ir.Value, i: ir.Value) -> ir.Value:
        return code.element_pointer(data, i, self.dtype)

    def _number(self, code: Code, at: ir.Value, mask: ir.Value | None = None) -> Number:
        return Number(code, code.load(at, self.dtype, mask), self.dtype)

    @emitted
    def even(self, code: Code, data: ptr, count: i64) -> None:
        """Words to multiples of 2^-24 in [0, 1), by eight."""
        with code.count(0, count, WIDTH) as i:
            at = self._at(code, data, i)
            word = Number(code, code.load(at, "int32"), "int32") & ((1 << 24) - 1)
            code.store((word.to(self.dtype) * 2.0**-24).value, at, self.dtype)

    @emitted
    def normal(self, code: Code, data: ptr, count: i64, std: Real, mean: Real) -> None:
        """Even numbers to normal ones, by sixteen: Box and Muller, 1958, with Cephes' functions (S. Moshier)."""
        deviation, center = (Number(code, code.splat(x), self.dtype) for x in (std, mean))
        with code.count(0, count, BLOCK) as i:
            first, second = self._at(code, data, i), self._at(code, data, i + WIDTH)
            radius = square_root(_logarithm(1.0 - self._number(code, first)) * -2.0)
            sine, cosine = _sine_and_cosine(self._number(code, second) * 6.283185307179586)
            for at, part in ((first, cosine), (second, sine)):
                code.store(fma(radius * part, deviation, center).value, at, self.dtype)

    @emitted
    def spread(self, code: Code, data: ptr, count: i64, width: Real, start: Real) -> None:
        """Even numbers times a width plus a start, rounded once."""
        factor, least = (Number(code, code.splat(x), self.dtype) for x in (width, start))
        with code.count(0, count, WIDTH) as i:
            at, mask = self._at(code, data, i), code.first_lanes(count - i)
            number = fma(self._number(code, at, mask), factor, least)
            code.store(number.value, at, self.dtype, mask)

    @emitted
    def shuffle(self, code: Code, order: ptr, count: i64, words: ptr) -> None:
        """Fisher's and Yates' shuffle of `count` integers of 64 bits by count - 1 words."""
        # The partners of adjacent elements are scattered: those of a stretch are fetched into cache before it is shuffled.
        builder, partners, last = code.builder, code.builder.alloca(I64, STRETCH), count - 1
        with code.count(0, last, STRETCH) as begin:
            end = code.least(begin + STRETCH, last)
            with code.count(begin, end) as i:
                ahead = builder.urem(code.get(words, i, I32), builder.trunc(count - i, I32))
                partner = i + builder.zext(ahead, I64)
                code.prefetch(code.at(order, partner, 8), to_write=True)
                code.put(partner, partners, i - begin)
            with code.count(begin, end) as i:
                partner = code.get(partners, i - begin)
                here, there = code.get(order, i), code.get(order, partner)
                code.put(there, order, i)
                code.put(here, order, partner)


def _logarithm(x: Number) -> Number:
    bits = x.bits()
    fraction = ((bits & 0x7FFFFF) | 0x3F000000).as_float()
    small = fraction < 0.707106781186547524
    exponent = ((bits >> 23) - 0x7E).to(x.dtype) - where(small, x.constant(1.0), 0.0)
    x = (fraction - 1.0) + where(small, fraction, 0.0)
    square = x * x
    y = polynomial(x, (
        3.3333331174e-1, -2.4999993993e-1, 2.0000714765e-1, -1.6668057665e-1, 1.4249322787e-1, -1.2420140846e-1,
        1.1676998740e-1, -1.1514610310e-1, 7.0376836292e-2))
    y = fma(y * x, square, exponent * -2.12194440e-4) - square * 0.5
    return fma(exponent, 0.693359375, x + y)


def _sine_and_cosine(x: Number) -> tuple[Number, Number]:
    """Of an x that is not negative."""
    octant = x.like(x.lanes.builder.fptosi((x * 1.27323954473516).value, x.bits().value.type), "int32")
    octant = (octant + 1) & -2
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):
        x = fma(octant.to(x.dtype), part, x)
    square = x * x
    half = square * 0.5
    c = polynomial(square, (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)) * square
    c = fma(c, square, -half) + 1.0
    s = polynomial(square, (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)) * square
    s = fma(s, x, x)
    is_even = (octant & 2).equals(0)
    sine, cosine = where(is_even, s, c), where(is_even, c, s)
    turned = (octant - 2) ^ -1
    return ((sine.bits() ^ ((octant & 4) << 29)).as_float(), (cosine.bits() ^ ((turned & 4) << 29)).as_float())
