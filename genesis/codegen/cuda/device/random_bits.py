"""Counter-based random numbers: a draw is a function of a key and a counter alone.

Threefry-2x32 with 20 rounds: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
(SC 2011).
"""

from __future__ import annotations

from genesis.codegen.cuda.toolchain import DTYPES, device_function, math

float32, int64, uint32 = (DTYPES[name] for name in ("float32", "int64", "uint32"))


@device_function
def _rotated(x: int, bits: int) -> int:
    return uint32((x << bits) | (x >> (32 - bits)))


@device_function
def _rounds(x: int, y: int, a: int, b: int, c: int, d: int) -> tuple[int, int]:
    x = uint32(x + y)
    y = _rotated(y, a) ^ x
    x = uint32(x + y)
    y = _rotated(y, b) ^ x
    x = uint32(x + y)
    y = _rotated(y, c) ^ x
    x = uint32(x + y)
    y = _rotated(y, d) ^ x
    return x, y


@device_function
def _threefry2x32(key: int, counter: int) -> tuple[int, int]:
    """Two uint32 of random bits from a key and a counter of 64 bits each."""
    k0, k1 = uint32(key), uint32(key >> 32)
    k2 = k0 ^ k1 ^ uint32(0x1BD11BDA)
    x, y = uint32(uint32(counter) + k0), uint32(uint32(counter >> 32) + k1)
    x, y = _rounds(x, y, 13, 15, 26, 6)
    x, y = _rounds(uint32(x + k1), uint32(y + k2 + 1), 17, 29, 16, 24)
    x, y = _rounds(uint32(x + k2), uint32(y + k0 + 2), 13, 15, 26, 6)
    x, y = _rounds(uint32(x + k0), uint32(y + k1 + 3), 17, 29, 16, 24)
    x, y = _rounds(uint32(x + k1), uint32(y + k2 + 4), 13, 15, 26, 6)
    return uint32(x + k2), uint32(y + k0 + 5)


@device_function
def _unit_float32(x: int) -> float:
    """One of the 2^24 multiples of 2^-24 in [0, 1)."""
    return float32(x >> 8) * float32(2.0**-24)


@device_function
def _unit_float64(x: int, y: int) -> float:
    """One of the 2^53 multiples of 2^-53 in [0, 1): 27 bits of one number and 26 of the other."""
    return ((x >> 5) * 67108864.0 + (y >> 6)) * 2.0**-53


@device_function
def uniform_float32(key: int, counter: int) -> float:
    return _unit_float32(_threefry2x32(key, counter)[0])


@device_function
def uniform_float64(key: int, counter: int) -> float:
    x, y = _threefry2x32(key, counter)
    return _unit_float64(x, y)


@device_function
def normal_float32(key: int, counter: int) -> float:
    """A standard normal draw: G. Box, M. Muller, "A note on the generation of random normal deviates" (1958)."""
    x, y = _threefry2x32(key, counter)
    radius = math.sqrt(float32(-2) * math.log(float32(1) - _unit_float32(x)))
    return radius * math.cos(float32(2 * math.pi) * _unit_float32(y))


@device_function
def normal_float64(key: int, counter: int) -> float:
    """A standard normal draw, from two pairs of numbers."""
    x, y = _threefry2x32(key, counter)
    radius = math.sqrt(-2.0 * math.log(1.0 - _unit_float64(x, y)))
    x, y = _threefry2x32(key, counter ^ int64(-9223372036854775807 - 1))
    return radius * math.cos(2 * math.pi * _unit_float64(x, y))
