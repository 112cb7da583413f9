"""nextafter: floats of one sign are in the order of their bits."""

from __future__ import annotations

from genesis.codegen.cpu.vector_math.number import MANTISSA_BITS, NAN, SMALLEST_NORMAL, Number, copy_sign, where


def nextafter(x: Number, y: Number) -> Number:
    """The number after x in the direction of y; y where they are equal."""
    bits = x.bits()
    outwards = (x < y) ^ (bits < 0)
    stepped = (bits + where(outwards, bits.constant(1), -1)).as_float()
    smallest = SMALLEST_NORMAL[x.dtype] * 2.0 ** -MANTISSA_BITS[x.dtype]
    result = where(x.equals(0.0), copy_sign(smallest, y), stepped)
    return where(x.equals(y), y, where(x.is_nan() | y.is_nan(), NAN, result))
