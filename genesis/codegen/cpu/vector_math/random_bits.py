"""Counter-based random numbers: a draw is a function of a key and a counter alone.

Threefry-2x32 with 20 rounds: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
(SC 2011).
"""

from __future__ import annotations

import math

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import Value
from genesis.codegen.cpu.vector_math.logarithm import log
from genesis.codegen.cpu.vector_math.number import Number, square_root
from genesis.codegen.cpu.vector_math.trigonometric import cos

DRAWS = ("uniform", "normal")
KEY_PARITY = 0x1BD11BDA
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(b: Lanes, key0: Value, key1: Value, counter0: ir.Value, counter1: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Two i32 of random bits from a key and a counter of two i32 each."""
    key0, key1, x0, x1 = b.matched(key0, key1, counter0, counter1)
    keys = (key0, key1, b.logical_xor(b.logical_xor(key0, key1), KEY_PARITY))
    x0, x1 = b.add(x0, keys[0]), b.add(x1, keys[1])
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = b.add(x0, x1)
            x1 = b.logical_xor(b.rotate_left(x1, rotation), x0)
        x0 = b.add(x0, keys[(group + 1) % 3])
        x1 = b.add(b.add(x1, keys[(group + 2) % 3]), group + 1)
    return x0, x1


def draw(name: str, dtype: str, b: Lanes, seed: ir.Value, counter: ir.Value) -> ir.Value:
    """The "uniform" or "normal" draw of float32 or float64 that a seed and a counter of i64 stand for."""
    key, (low, high) = _halves(b, seed), _halves(b, counter)
    bits = threefry2x32(b, *key, low, high)
    if dtype == "float32":
        return uniform_float32(b, bits[0]) if name == "uniform" else normal_float32(b, *bits)
    if name == "uniform":
        return uniform_float64(b, *bits)
    # A second counter, 2^63 further on, that no draw reaches: a normal draw of float64 takes 128 random bits.
    upper = b.logical_xor(high, b.constant("int32", -(1 << 31)))
    return normal_float64(b, *bits, *threefry2x32(b, *key, low, upper))


def _halves(b: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    return b.convert(x, "int64", "int32"), b.convert(b.shift_right_logical(x, 32), "int64", "int32")


def uniform_float32(b: Lanes, bits: ir.Value) -> ir.Value:
    """One of the 2^24 multiples of 2^-24 in [0, 1), from the upper bits of an i32."""
    return b.multiply(b.convert(b.shift_right_logical(bits, 8), "int32", "float32"), 2.0**-24)


def uniform_float64(b: Lanes, bits_high: ir.Value, bits_low: ir.Value) -> ir.Value:
    """One of the 2^53 multiples of 2^-53 in [0, 1): 27 bits of one i32 and 26 of the other."""
    high = b.convert(b.shift_right_logical(bits_high, 5), "int32", "float64")
    low = b.convert(b.shift_right_logical(bits_low, 6), "int32", "float64")
    return b.multiply(b.fma(high, 2.0**26, low), 2.0**-53)


def normal_float32(b: Lanes, bits0: ir.Value, bits1: ir.Value) -> ir.Value:
    """A standard normal draw, from one uniform in (0, 1] and one in [0, 1)."""
    return normal(b, b.subtract(1.0, uniform_float32(b, bits0)), uniform_float32(b, bits1), "float32")


def normal_float64(b: Lanes, bits0: ir.Value, bits1: ir.Value, bits2: ir.Value, bits3: ir.Value) -> ir.Value:
    """A standard normal draw, from one uniform in (0, 1] and one in [0, 1)."""
    return normal(b, b.subtract(1.0, uniform_float64(b, bits0, bits1)), uniform_float64(b, bits2, bits3), "float64")


def normal(b: Lanes, radius_draw: ir.Value, angle_draw: ir.Value, dtype: str) -> ir.Value:
    """sqrt(-2 log u) cos(2 pi v): G. Box, M. Muller, "A note on the generation of random normal deviates" (1958)."""
    u, v = Number(b, radius_draw, dtype), Number(b, angle_draw, dtype)
    return (square_root(log(u) * -2.0) * cos(v * (2.0 * math.pi))).value
