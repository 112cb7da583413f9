"""`Number`: a float or integer value with the operators of arithmetic, so that a formula reads as one; and `DoubleWord`.

A double word has twice the precision: an unevaluated sum high + low with |low| at most half an ulp of high. The algorithms are
those of T. J. Dekker, "A floating-point technique for extending the available precision" (1971), with the fused multiply-add
instead of his splitting, as in M. Joldes, J.-M. Muller, V. Popescu, "Tight and rigorous error bounds for basic building
blocks of double-word arithmetic" (ACM TOMS 44, 2017).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import UNSIGNED

Operand: TypeAlias = "Number | float | int"

INTEGER_OF = {"float32": "int32", "float64": "int64"}
FLOAT_OF = {"int32": "float32", "int64": "float64"}
MANTISSA_BITS = {"float32": 23, "float64": 52}
EXPONENT_BIAS = {"float32": 127, "float64": 1023}
SMALLEST_NORMAL = {"float32": 2.0**-126, "float64": 2.0**-1022}
INFINITY, NAN = math.inf, math.nan


def _operator(method: str, *, swapped: bool = False) -> Callable[[Number, Operand], Number]:
    """The operator that emits a method of `Lanes`."""

    def emit(self: Number, other: Operand) -> Number:
        values = (raw(other), self.value) if swapped else (self.value, raw(other))
        return self.like(getattr(self.lanes, method)(*values))

    return emit


def _comparison(predicate: str) -> Callable[[Number, Operand], Number]:
    return lambda self, other: self.like(self.lanes.compare(predicate, self.value, raw(other), self.dtype), "bool")


class Number:
    """A register value, the lanes it is emitted with, and its dtype ("bool" for a mask)."""

    __slots__ = ("dtype", "lanes", "value")

    def __init__(self, lanes: Lanes, value: ir.Value, dtype: str):
        self.lanes = lanes
        self.value = value
        self.dtype = dtype

    def like(self, value: ir.Value, dtype: str | None = None) -> Number:
        return Number(self.lanes, value, dtype or self.dtype)

    def constant(self, value: float) -> Number:
        return self.like(self.lanes.constant(self.dtype, value))

    # ---- arithmetic ----
    __add__, __sub__, __mul__, __truediv__ = _operator("add"), _operator("subtract"), _operator("multiply"), _operator("divide")
    __radd__, __rmul__ = __add__, __mul__
    __rsub__, __rtruediv__ = _operator("subtract", swapped=True), _operator("divide", swapped=True)

    def __neg__(self) -> Number:
        return self.like(self.lanes.negate(self.value))

    def __abs__(self) -> Number:
        return self.like(self.lanes.absolute(self.value))

    # ---- comparison (into masks) and bits ----
    __lt__, __le__, __gt__, __ge__ = _comparison("<"), _comparison("<="), _comparison(">"), _comparison(">=")
    equals, differs = _comparison("=="), _comparison("!=")
    __and__, __or__, __xor__ = _operator("logical_and"), _operator("logical_or"), _operator("logical_xor")
    __lshift__ = _operator("shift_left")

    def is_nan(self) -> Number:
        return self.like(self.lanes.is_nan(self.value), "bool")

    def __invert__(self) -> Number:
        return self.like(self.lanes.logical_not(self.value))

    def __rshift__(self, count: Operand) -> Number:
        """Logical for an unsigned dtype, arithmetic for a signed one."""
        shift = self.lanes.shift_right_logical if self.dtype in UNSIGNED else self.lanes.shift_right_arithmetic
        return self.like(shift(self.value, raw(count)))

    def bits(self) -> Number:
        return self.like(self.lanes.bitcast_to_int(self.value), INTEGER_OF[self.dtype])

    def as_float(self) -> Number:
        """The float whose bits these are."""
        return self.like(self.lanes.bitcast_to_float(self.value), FLOAT_OF[self.dtype])

    def to(self, dtype: str) -> Number:
        return self.like(self.lanes.convert(self.value, self.dtype, dtype), dtype)


def raw(operand: Operand) -> ir.Value | float | int:
    return operand.value if isinstance(operand, Number) else operand


def first_number(*operands: Operand) -> Number:
    return next(operand for operand in operands if isinstance(operand, Number))


def fma(a: Operand, b: Operand, c: Operand) -> Number:
    one = first_number(a, b, c)
    return one.like(one.lanes.fma(raw(a), raw(b), raw(c)))


def where(condition: Number, a: Operand, b: Operand) -> Number:
    one = first_number(a, b)
    return one.like(one.lanes.select(condition.value, raw(a), raw(b)))


def repeated(like: Number, state: Sequence[Operand], step: Callable[..., tuple[Number, Sequence[Number]]]) -> list[Number]:
    """`goes_on, state = step(*state)` until no lane goes on, as in `Vectors.repeated`; the state are numbers as `like`."""

    def stepped(*values: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
        goes_on, following = step(*map(like.like, values))
        return goes_on.value, [one.value for one in following]

    _, *start = like.lanes.matched(like.value, *map(raw, state))
    return [like.like(value) for value in like.lanes.repeated(start, stepped)]


def square_root(x: Number) -> Number:
    return x.like(x.lanes.square_root(x.value))


def copy_sign(magnitude: Operand, sign: Number) -> Number:
    return sign.like(sign.lanes.copy_sign(raw(magnitude), sign.value))


def clamp(x: Number, low: float, high: float) -> Number:
    """x held within [low, high]; NaN stays NaN."""
    return where(where(x < low, low, x) > high, high, where(x < low, low, x))


def polynomial(x: Number, coefficients: Sequence[Operand]) -> Number:
    """c0 + c1 x + c2 x^2 + .. by Horner's rule."""
    *lower, last = coefficients
    total = last if isinstance(last, Number) else x.constant(last)
    for coefficient in reversed(lower):
        total = fma(total, x, coefficient)
    return total


def nearest_multiple(x: Number, scale: float) -> tuple[Number, Number]:
    """k = x * scale to the nearest integer, for |k| < 2^(mantissa bits - 2), as a float and as `shifted`.

    `shifted` holds k + 2 bias in its low bits: a sum with 1.5 * 2^(mantissa bits) has no room for a fraction.
    """
    shifter = 1.5 * 2.0 ** MANTISSA_BITS[x.dtype] + 2 * EXPONENT_BIAS[x.dtype]
    shifted = fma(x, scale, shifter)
    return shifted - shifter, shifted.bits()


def nearest_integer(x: Number, scale: float = 1.0) -> tuple[Number, Number]:
    """x * scale to the nearest integer, as a float and as an integer."""
    k, shifted = nearest_multiple(x, scale)
    shifter = 1.5 * 2.0 ** MANTISSA_BITS[x.dtype] + 2 * EXPONENT_BIAS[x.dtype]
    return k, shifted - x.constant(shifter).bits()


def power_of_two(k: Number) -> Number:
    """2^k for an integer k in the range of normal exponents."""
    dtype = FLOAT_OF[k.dtype]
    return ((k + EXPONENT_BIAS[dtype]) << MANTISSA_BITS[dtype]).as_float()


def scaled(x: Number, k: Number, shifted: Number) -> Number:
    """x * 2^k for what `nearest_multiple` gives: by the processor's instruction, or in two factors of about 2^(k/2).

    So k may reach past the exponent range: x overflows to infinity, or is rounded once into the subnormals. Half of
    k + 2 bias is half of k with its bias, ready to be an exponent.
    """
    if x.lanes.has_scaling(x.value):
        return x.like(x.lanes.times_power_of_two(x.value, k.value))
    mantissa = MANTISSA_BITS[x.dtype]
    first = (shifted << (mantissa - 1)) & ((2 * EXPONENT_BIAS[x.dtype] + 1) << mantissa)
    second = (shifted << mantissa) - first
    return x * first.as_float() * second.as_float()


def scale_of(shifted: Number, dtype: str) -> Number:
    """2^k for the `shifted` of `nearest_multiple`, where that is a normal number."""
    mantissa = MANTISSA_BITS[dtype]
    return ((shifted << mantissa) - (EXPONENT_BIAS[dtype] << mantissa)).as_float()


def in_float64(function: Callable[..., Number]) -> Callable[..., Number]:
    """A function written for float64, taking float32 there and back: then off by little more than half an ulp."""
    return by_precision(quick=function)(function)


def by_precision(quick: Callable[..., Number]) -> Callable[[Callable[..., Number]], Callable[..., Number]]:
    """A function for float64 that computes float32 by its `quick` form, which is accurate to about 40 bits."""

    def choose(precise: Callable[..., Number]) -> Callable[..., Number]:
        @functools.wraps(precise)
        def chosen(*arguments: Number) -> Number:
            if arguments[0].dtype == "float64":
                return precise(*arguments)
            return quick(*[argument.to("float64") for argument in arguments]).to(arguments[0].dtype)

        return chosen

    return choose


class DoubleWord:
    """high + low; operators keep about 100 of 106 bits in float64."""

    __slots__ = ("high", "low")

    def __init__(self, high: Number, low: Operand = 0.0):
        self.high = high
        self.low = low if isinstance(low, Number) else high.constant(low)

    def __add__(self, other: DoubleWord | Operand) -> DoubleWord:
        if isinstance(other, DoubleWord):
            total = two_sum(self.high, other.high)
            return fast_two_sum(total.high, total.low + (self.low + other.low))
        total = two_sum(self.high, other)
        return fast_two_sum(total.high, total.low + self.low)

    def __mul__(self, other: DoubleWord | Operand) -> DoubleWord:
        if isinstance(other, DoubleWord):
            product = two_product(self.high, other.high)
            return fast_two_sum(product.high, product.low + fma(self.high, other.low, self.low * other.high))
        product = two_product(self.high, other)
        return fast_two_sum(product.high, fma(self.low, other, product.low))

    def __truediv__(self, other: DoubleWord) -> DoubleWord:
        inverse = 1.0 / other.high  # the one division: it takes as long as ten products
        quotient = self.high * inverse
        rest = fma(-quotient, other.high, self.high) + fma(-quotient, other.low, self.low)
        return fast_two_sum(quotient, rest * inverse)

    def __neg__(self) -> DoubleWord:
        return DoubleWord(-self.high, -self.low)

    def square_root(self) -> DoubleWord:
        root = square_root(self.high)
        rest = fma(-root, root, self.high) + self.low
        return fast_two_sum(root, where(root.equals(0.0), 0.0, rest / (root + root)))

    def value(self) -> Number:
        return self.high + self.low


def two_sum(a: Number, b: Operand) -> DoubleWord:
    """a + b without error."""
    total = a + b
    b_part = total - a
    return DoubleWord(total, (a - (total - b_part)) + (b - b_part))


def fast_two_sum(a: Number, b: Number) -> DoubleWord:
    """a + b without error, for |a| >= |b| or a = 0."""
    total = a + b
    return DoubleWord(total, b - (total - a))


def two_product(a: Number, b: Operand) -> DoubleWord:
    """a * b without error."""
    product = a * b
    return DoubleWord(product, fma(a, b, -product))


def constant(like: Number, high: float, low: float) -> DoubleWord:
    return DoubleWord(like.constant(high), low)
