"""Arithmetic of integers that never traps."""

from __future__ import annotations

from genesis.codegen.cuda.toolchain import device_function

__all__ = ["integer_floor_divide", "integer_fmod", "integer_power", "integer_remainder", "shifted_left", "shifted_right"]


@device_function
def integer_floor_divide(x: int, y: int) -> int:
    """Python's `//`; x // 0 is 0, and the quotient wraps."""
    if y == 0:
        return x - x
    return -x if y == -1 else x // y


@device_function
def integer_remainder(x: int, y: int) -> int:
    """Python's `%`, with the divisor's sign; x % 0 is 0."""
    return x - x if y == 0 or y == -1 else x % y


@device_function
def integer_fmod(x: int, y: int) -> int:
    """C's `%`, with the dividend's sign; x itself if y is 0."""
    if y == 0:
        return x
    rest = integer_remainder(x, y)
    return rest - y if rest != 0 and (x < 0) != (y < 0) else rest


@device_function
def integer_power(x: int, y: int) -> int:
    """By squaring, wrapping around; a negative exponent gives 0 but for bases 1 and -1."""
    if y < 0:
        if x == -1:
            return x if y & 1 else -x
        return x if x == 1 else x - x
    result = x - x + 1
    while y > 0:
        if y & 1:
            result = result * x
        x = x * x
        y = y >> 1
    return result


@device_function
def shifted_left(x: int, count: int, bits: int) -> int:
    """0 for a count that is negative or no less than the width."""
    return x << count if 0 <= count < bits else x - x


@device_function
def shifted_right(x: int, count: int, bits: int) -> int:
    """The sign throughout, for a count that is negative or no less than the width."""
    return x >> count if 0 <= count < bits else x >> (bits - 1)
