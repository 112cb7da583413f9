"""Division that never traps, of floats and of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from genesis.codegen.cpu.registers import DOUBLE, FLOATING, UNSIGNED, Value, element_type

if TYPE_CHECKING:
    from genesis.codegen.cpu.lanes import Lanes

__all__ = ["divide_integers", "floor_divide", "fmod", "remainder"]


def floor_divide(lanes: Lanes, a: Value, b: Value, dtype: str) -> ir.Value:
    """Python's `//`. Of integers, x // 0 is 0 and the quotient wraps; of floats, as torch: x // 0 is x / 0."""
    a, b = lanes.matched(a, b)
    if dtype not in FLOATING:
        quotient, rest = divide_integers(lanes, a, b, dtype)
        if dtype not in UNSIGNED:
            quotient = lanes.select(_opposed(lanes, rest, b, dtype), lanes.subtract(quotient, 1), quotient)
        return lanes.select(lanes.compare("==", b, 0, dtype), 0, quotient)
    rest = lanes.fmod(a, b)
    quotient = lanes.divide(lanes.subtract(a, rest), b)
    opposed = _opposed(lanes, rest, b, dtype)
    quotient = lanes.select(opposed, lanes.subtract(quotient, 1.0), quotient)
    floored = lanes.floor(quotient)
    nearly_next = lanes.compare(">", lanes.subtract(quotient, floored), 0.5, dtype)
    floored = lanes.select(nearly_next, lanes.add(floored, 1.0), floored)
    ratio = lanes.divide(a, b)
    floored = lanes.select(lanes.compare("==", quotient, 0.0, dtype), lanes.copy_sign(0.0, ratio), floored)
    return lanes.select(lanes.compare("==", b, 0.0, dtype), ratio, floored)


def remainder(lanes: Lanes, a: Value, b: Value, dtype: str) -> ir.Value:
    """Python's `%`, with the divisor's sign. Of integers x % 0 is 0; of floats, as in torch, NaN."""
    a, b = lanes.matched(a, b)
    if dtype not in FLOATING:
        _, rest = divide_integers(lanes, a, b, dtype)
        if dtype not in UNSIGNED:
            rest = lanes.select(_opposed(lanes, rest, b, dtype), lanes.add(rest, b), rest)
        return lanes.select(lanes.compare("==", b, 0, dtype), 0, rest)
    rest = lanes.fmod(a, b)
    return lanes.select(_opposed(lanes, rest, b, dtype), lanes.add(rest, b), rest)


def fmod(lanes: Lanes, a: Value, b: Value) -> ir.Value:
    """C's fmod: exact, with the dividend's sign; NaN for x % 0 and inf % y.

    In double, a quotient below 2^52 truncates to the true integer or the one above it, so one fused step leaves the
    remainder or the remainder less b. Wider gaps go to the C library, lane by lane.
    """
    a, b = lanes.matched(a, b)
    dtype = "float64" if element_type(a) == DOUBLE else "float32"
    wide_a, wide_b = (lanes.convert(lanes.absolute(x), dtype, "float64") for x in (a, b))
    quotient = lanes.truncate(lanes.divide(wide_a, wide_b))
    rest = lanes.fma(lanes.negate(quotient), wide_b, wide_a)
    rest = lanes.select(lanes.compare("<", rest, 0.0, "float64"), lanes.add(rest, wide_b), rest)
    itself_or_nan = lanes.fma(wide_a, 0.0, wide_a)
    rest = lanes.select(lanes.compare("==", wide_b, float("inf"), "float64"), itself_or_nan, rest)
    library = lanes.declared("fmod", DOUBLE, [DOUBLE, DOUBLE])
    hard = lanes.compare(">=", quotient, 2.0**52, "float64")
    rest = lanes.patched(rest, hard, lambda: lanes.per_lane(library, wide_a, wide_b))
    return lanes.copy_sign(lanes.convert(rest, "float64", dtype), a)


def _opposed(lanes: Lanes, rest: ir.Value, divisor: ir.Value, dtype: str) -> ir.Value:
    """Where a non-zero remainder lies on the other side of zero from the divisor."""
    unequal = lanes.logical_xor(lanes.compare("<", rest, 0, dtype), lanes.compare("<", divisor, 0, dtype))
    return lanes.logical_and(unequal, lanes.compare("!=", rest, 0, dtype))


def divide_integers(lanes: Lanes, a: ir.Value, b: ir.Value, dtype: str) -> tuple[ir.Value, ir.Value]:
    """The truncated quotient and its remainder; 0 and -1, the divisors that may trap, never reach it."""
    if dtype in UNSIGNED:
        quotient = lanes.builder.udiv(a, lanes.select(lanes.compare("==", b, 0, dtype), 1, b))
    else:
        minus_one = lanes.compare("==", b, -1, dtype)
        trapping = lanes.logical_or(minus_one, lanes.compare("==", b, 0, dtype))
        quotient = lanes.builder.sdiv(a, lanes.select(trapping, 1, b))
        quotient = lanes.select(minus_one, lanes.negate(a), quotient)
    return quotient, lanes.subtract(a, lanes.multiply(quotient, b))
