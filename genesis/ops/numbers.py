"""Rounding, integer divisors, and the parts of floating-point numbers."""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import bfloat16, float16, int32
from genesis.ir.graph import Node, Value
from genesis.ops.conversion import rewritten, stop_gradient
from genesis.ops.elementwise import (
    abs as size, div as quotient, exp2, floor, floor_divide, isnan, maximum, round as nearest, sign, trunc, where,
)
from genesis.ops.registry import as_values, broadcast, cast, composite, primitive, promoted, widened
from genesis.ops.results import Parts
from genesis.ops.rows import integral, nonzero_divisor

# ---- integers ----
_AS_INT = "convert one with .to(genesis.int64)"
gcd = integral("gcd", np.gcd, "The greatest number that divides both; 0 of 0 and 0.", bools=_AS_INT, cost=32)


def _multiple(node: Node, x: Value, y: Value) -> Value:
    common = gcd(x, y)
    product = size(x.graph.add("floor_divide", (x, where(common == 0, 1, common)), x.shape, x.dtype)) * size(y)
    return size(product) if x.dtype.itemsize >= _WRAPS_LAST else product


def _multiple_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    product: np.ndarray = np.lcm(x, y)
    return np.abs(product) if product.itemsize >= _WRAPS_LAST else product


_WRAPS_LAST = 4  # bytes: as in PyTorch, products of such integers wrap before their sign is taken off, of others after it
lcm = integral(
    "lcm", _multiple_reference, "The least number, not negative, that both divide.", bools=_AS_INT, kind="host",
    formula=_multiple,
)


# ---- floating numbers ----
# Of 16 bits: half a unit in the last place of 1, the least number, and the greatest.
_SPACING = {float16: (2.0**-11, 2.0**-24, 65504.0), bfloat16: (2.0**-8, 2.0**-133, 2.0**128 - 2.0**120)}


primitive(
    "nextafter", "elementwise", grad=lambda g, z, x, y: (where(x == y, 0, g), None), vector="neighbour", cost=6,
    cuda="libdevice.nextafter{f}({0}, {1})", reference=lambda node, x, y: np.nextafter(x, y),
)


def _next_of_16_bits(x: Value, y: Value, unit: float, least: float, greatest: float) -> Value:
    """In float32: a little over half of the distance, which rounds to all of it, even where it halves at a power of two."""
    step = maximum(stop_gradient(size(x)) * (1.01 * unit), 0.75 * least)
    moved = where(x < y, x + step, x - step)
    moved = where(size(x) == float("inf"), sign(x) * greatest, moved)
    return where(x == y, stop_gradient(y), where(isnan(y), y, moved))


@composite("nextafter", 2, ref=np.nextafter, in_place=True)
def nextafter(input: Value, other: Value) -> Value:
    """The next number of the dtype after `input` in the direction of `other`.

    >>> genesis.nextafter(genesis.tensor(1.0), genesis.tensor(2.0)).item() - 1 == genesis.finfo(genesis.float32).eps
    True
    """
    x, y = promoted(input, other)
    if not x.dtype.is_floating_point:
        raise TypeError(f"nextafter: wants floating tensors, got {x.dtype.name}; integers have no neighbours between them")
    x, y = broadcast("nextafter", x, y)  # as in PyTorch, the gradient goes to `input` where the two differ
    if x.dtype in _SPACING:
        return cast(_next_of_16_bits(widened(x), widened(y), *_SPACING[x.dtype]), x.dtype)
    return x.graph.add("nextafter", (x, y), x.shape, x.dtype)


def _exponent(x: Value) -> Value:
    return x.graph.add("frexp_exponent", (x,), x.shape, x.dtype)


primitive(
    "frexp_exponent", "elementwise", grad=lambda g, y, x: (None,), vector="neighbour", cost=8,
    reference=lambda node, x: np.frexp(x)[1].astype(x.dtype),
)
primitive(
    "frexp", "elementwise", grad=lambda g, y, x: g / exp2(_exponent(x)), reference=lambda node, x: np.frexp(x)[0],
    vector="neighbour", cost=8,
)


@composite("frexp")
def frexp(input: Value) -> Parts:
    """(mantissa, exponent), int32, with input = mantissa * 2^exponent; |mantissa| is in [0.5, 1) or 0.

    >>> genesis.frexp(genesis.tensor([6.0, -0.5])).mantissa
    tensor([ 0.7500, -0.5000])
    """
    if not input.dtype.is_floating_point:
        raise TypeError(f"frexp: wants a floating tensor, got {input.dtype.name}; convert with .to(genesis.float32)")
    x = widened(input)
    return Parts(cast(x.graph.add("frexp", (x,), x.shape, x.dtype), input.dtype), cast(_exponent(x), int32))


# ---- rounding to decimals, and rounded quotients ----
@composite("round", 1, ref=np.round, namespace="special", in_place=True)
def round(input: Value, *, decimals: int = 0) -> Value:
    """`input` rounded to `decimals` digits, ties to even; negative ones round to tens, hundreds, and so on.

    Raises TypeError for integers with decimals.

    >>> genesis.round(genesis.tensor([0.5, 1.5, -1.234]))
    tensor([ 0.,  2., -1.])
    >>> genesis.round(genesis.tensor([0.125, -1.234]), decimals=2)
    tensor([ 0.1200, -1.2300])
    """
    if not decimals:
        return nearest(input)
    (x,) = as_values(input)
    if not x.dtype.is_floating_point:
        raise TypeError(f"round: {x.dtype.name} has no decimals; leave `decimals` out")
    power, wide = 10.0 ** abs(decimals), widened(x)
    return cast(nearest(wide * power) / power if decimals > 0 else nearest(wide / power) * power, x.dtype)


@composite("div", 2, operator="truediv", ref=np.true_divide, aliases=("divide", "true_divide"), in_place=True,
           takes_complex=True)
def div(input: Value, other: Value, *, rounding_mode: str | None = None) -> Value:
    """`input / other`, also for integers. `rounding_mode` "trunc" rounds towards zero, as C does, "floor" down, as Python's
    `//`; the result of integers is then an integer.

    Raises ValueError for another mode.

    >>> x = genesis.tensor([-7, 7])
    >>> genesis.div(x, 2), genesis.div(x, 2, rounding_mode="trunc"), genesis.div(x, 2, rounding_mode="floor")
    (tensor([-3.5000,  3.5000]), tensor([-3,  3]), tensor([-4,  3]))
    """
    if rounding_mode is None:
        return quotient(input, other)
    if rounding_mode not in ("trunc", "floor"):
        raise ValueError(f'div: rounding_mode must be None, "trunc" or "floor", got {rounding_mode!r}')
    x, y = broadcast("div", *promoted(input, other))
    y = nonzero_divisor("div", y)
    if not x.dtype.is_floating_point:
        return floor_divide(x, y) if rounding_mode == "floor" else _truncated(x, y)
    if rounding_mode == "trunc":
        return trunc(quotient(x, y))
    return rewritten(floor(quotient(x, y)), floor_divide(x, y))


def _truncated(x: Value, y: Value) -> Value:
    """The quotient of integers, rounded towards zero."""
    down = floor_divide(x, y)
    return where((down < 0) & (down * y != x), down + 1, down)
