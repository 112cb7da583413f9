"""nextafter and frexp, by the bits of floats: those of one sign are in the order of their bits."""

from __future__ import annotations

from genesis.codegen.cpu.vector_math.number import (
    EXPONENT_BIAS, INFINITY, MANTISSA_BITS, NAN, SMALLEST_NORMAL, Number, copy_sign, where,
)


def nextafter(x: Number, y: Number) -> Number:
    """The number after x in the direction of y; y where they are equal."""
    bits = x.bits()
    outwards = (x < y) ^ (bits < 0)
    stepped = (bits + where(outwards, bits.constant(1), -1)).as_float()
    smallest = SMALLEST_NORMAL[x.dtype] * 2.0 ** -MANTISSA_BITS[x.dtype]
    result = where(x.equals(0.0), copy_sign(smallest, y), stepped)
    return where(x.equals(y), y, where(x.is_nan() | y.is_nan(), NAN, result))


def frexp(x: Number) -> Number:
    """x / 2^k with a magnitude in [1/2, 1); zeros, infinities and NaN are their own."""
    mantissa, _ = halved(abs(x))
    return where((abs(x) > 0.0) & (abs(x) < INFINITY), copy_sign(mantissa, x), x)


def frexp_exponent(x: Number) -> Number:
    """The k of `frexp`, 0 for zeros, infinities and NaN."""
    _, k = halved(abs(x))
    return where((abs(x) > 0.0) & (abs(x) < INFINITY), k.to(x.dtype), 0.0)


def halved(x: Number) -> tuple[Number, Number]:
    """(m, k) with x = 2^k m and m in [1/2, 1), for x positive and finite."""
    bits, half = MANTISSA_BITS[x.dtype], EXPONENT_BIAS[x.dtype] - 1
    tiny = x < SMALLEST_NORMAL[x.dtype]
    pattern = where(tiny, x * 2.0 ** (bits + 1), x).bits()
    k = (pattern >> bits) - where(tiny, pattern.constant(half + bits + 1), half)
    return ((pattern & ((1 << bits) - 1)) | (half << bits)).as_float(), k
