"""Arithmetic of floating numbers that takes more than an expression."""

from __future__ import annotations

from genesis.codegen.cuda.toolchain import device_function, math

__all__ = ["floor_divide", "maximum", "minimum", "remainder"]


@device_function
def maximum(x: float, y: float) -> float:
    """NaN if either is."""
    return x if x > y or x != x else y


@device_function
def minimum(x: float, y: float) -> float:
    """NaN if either is."""
    return x if x < y or x != x else y


@device_function
def floor_divide(x: float, y: float) -> float:
    """Python's `//`, as torch: x // 0 is x / 0."""
    if y == 0:
        return x / y
    rest = math.fmod(x, y)
    quotient = (x - rest) / y
    if rest != 0 and (rest < 0) != (y < 0):
        quotient = quotient - 1
    if quotient == 0:
        return math.copysign(quotient, x / y)
    floored = math.floor(quotient)
    return floored + 1 if quotient - floored > 0.5 else floored


@device_function
def remainder(x: float, y: float) -> float:
    """Python's `%`, with the divisor's sign; NaN for x % 0."""
    rest = math.fmod(x, y)
    return rest + y if rest != 0 and (rest < 0) != (y < 0) else rest
