"""Elementwise operations of two kinds: one kernel expression with its own gradient, or a composite of other rows."""

from __future__ import annotations

from math import log as ln, pi

import numpy as np

from genesis.ir.dtypes import bool_, complex128, float64, float_limits, refuse_complex_number
from genesis.ir.graph import Value
from genesis.ops.complex_primitives import complex_value, imag_value, log_add_exp, real_value
from genesis.ops.elementwise import (
    atan2, clamp, combined, exp2, isfinite, isnan, log1p, sigmoid, sin, sub, trunc, where, zeros_like,
)
from genesis.ops.registry import (
    Arithmetic, Emitter, Operation, alike, as_values, cast, composite, expand, floating_dtype, promoted, widened,
)
from genesis.ops.rows import binary, formula, from_scipy, unary


# ---- two operands, one expression: `k` is the kernel's arithmetic ----
def _no_nan(pick: str) -> Emitter:
    return lambda k, x, y: k.where(k.isnan(x), y, k.where(k.isnan(y), x, getattr(k, pick)(x, y)))


def _hypot(k: Arithmetic, x: object, y: object) -> object:
    """Via the quotient, which neither overflows nor underflows; an infinity wins over a NaN."""
    a, b = k.abs(x), k.abs(y)
    large, small = k.maximum(a, b), k.minimum(a, b)
    ratio = k.div(small, large)
    length = k.mul(large, k.sqrt(k.add(k.constant(1), k.mul(ratio, ratio))))
    return k.where(k.isinf(x), a, k.where(k.isinf(y), b, k.where(k.eq(large, k.constant(0)), large, length)))


def _logaddexp(k: Arithmetic, x: object, y: object) -> object:
    return _raised(k, x, y, ln(2), k.log1pexp(k.neg(k.abs(k.sub(x, y)))))


def _logaddexp2(k: Arithmetic, x: object, y: object) -> object:
    more = k.mul(k.log1p(k.exp2(k.neg(k.abs(k.sub(x, y))))), k.constant(1 / ln(2)))
    return _raised(k, x, y, 1.0, more)


def _raised(k: Arithmetic, x: object, y: object, both: float, more: object) -> object:
    """max(x, y) + more; x + both where the two are equal, which may be infinite."""
    return k.where(k.eq(x, y), k.add(x, k.constant(both)), k.add(k.maximum(x, y), more))


def _times_log(logarithm: str) -> Emitter:
    def emit(k: Arithmetic, x: object, y: object) -> object:
        zero = k.where(k.isnan(y), y, k.constant(0))
        return k.where(k.eq(x, k.constant(0)), zero, k.mul(x, getattr(k, logarithm)(y)))

    return emit


copysign = binary(
    "copysign", exact=True, grad=lambda g, z, x, y: (g * where(x == 0, 0, z / x), zeros_like(g)), ref=np.copysign,
    floating=True,
)
hypot = binary("hypot", grad=lambda g, z, x, y: (g * (x / z), g * (y / z)), ref=np.hypot, emit=_hypot, floating=True, cost=16)
fmax = binary(
    "fmax", grad=lambda g, z, x, y: _to_winner(g, (x >= y) | isnan(y)), ref=np.fmax, emit=_no_nan("maximum"), in_place=False,
    elements=("input", "other"),
)
fmin = binary(
    "fmin", grad=lambda g, z, x, y: _to_winner(g, (x <= y) | isnan(y)), ref=np.fmin, emit=_no_nan("minimum"), in_place=False,
    elements=("input", "other"),
)
logaddexp = binary(
    "logaddexp", grad=lambda g, z, x, y: (g * sigmoid(x - y), g * sigmoid(y - x)), ref=log_add_exp, emit=_logaddexp,
    floating=True, cost=30, in_place=False, doc="log(exp(x) + exp(y)), which overflows nowhere; complex numbers too.",
    takes_complex=True,
)
logaddexp2 = binary(
    "logaddexp2", grad=lambda g, z, x, y: (g / (1 + exp2(y - x)), g / (1 + exp2(x - y))), ref=np.logaddexp2,
    emit=_logaddexp2, floating=True, cost=30, in_place=False,
)
xlogy: Operation = binary(
    "xlogy", grad=lambda g, z, x, y: (where((x == 0) & (y <= 0), 0, xlogy(g, y)), g * x / y), ref=from_scipy("xlogy"),
    emit=_times_log("log"), floating=True, cost=14,
    doc="x * log(y), and 0 where x is 0.", namespace="special",
)
xlog1py = binary(
    "xlog1py", grad=lambda g, z, x, y: (where((x == 0) & (y <= -1), 0, g * log1p(y)), g * x / (y + 1)),
    ref=from_scipy("xlog1py"), emit=_times_log("log1p"), floating=True, cost=16, method=False,
    doc="x * log(1 + y), and 0 where x is 0.", namespace="special", in_place=False,
)


def _to_winner(g: Value, first: Value) -> tuple[Value, Value]:
    return where(first, g, 0), where(first, 0, g)


# ---- adding a product or a quotient ----
@composite("addcmul", 4, autocast="widest", in_place=True, takes_complex=True, numbers_between=("value",), elements=("value",))
def addcmul(input: Value, tensor1: Value, tensor2: Value, value: Value | float = 1) -> Value:
    """`input + value * tensor1 * tensor2`.

    >>> genesis.addcmul(genesis.ones(2), genesis.tensor([1.0, 2.0]), genesis.tensor([3.0, 4.0]), value=0.5)
    tensor([2.5000, 5.0000])
    """
    x, a, b = promoted(input, tensor1, tensor2)
    _refuse_complex("addcmul", value, x)
    if x.dtype.category == 1 and isinstance(value, Value):
        value = cast(value, x.dtype)  # truncated, as in PyTorch
    return cast(widened(x) + value * widened(a) * widened(b), x.dtype)


@composite("addcdiv", 4, autocast="widest", in_place=True, takes_complex=True, numbers_between=("value",))
def addcdiv(input: Value, tensor1: Value, tensor2: Value, value: Value | float = 1) -> Value:
    """`input + value * tensor1 / tensor2`. Raises TypeError for integers."""
    x, a, b = promoted(input, tensor1, tensor2)
    _floats("addcdiv", x)
    _refuse_complex("addcdiv", value, x)
    return cast(widened(x) + value * widened(a) / widened(b), x.dtype)


@composite("lerp", 3, in_place=True, takes_complex=True)
def lerp(input: Value, end: Value, weight: Value) -> Value:
    """`input + weight * (end - input)`, computed from the nearer end: at weight 1 it is exactly `end`.

    >>> genesis.lerp(genesis.tensor([0.0, 10.0]), genesis.tensor([1.0, 20.0]), 0.25)
    tensor([ 0.2500, 12.5000])
    """
    x, y, w = promoted(input, end, weight)
    alike("lerp", *[v for v in as_values(input, end, weight) if v.shape])
    _floats("lerp", x)
    a, b, t = (widened(v) for v in (x, y, w))
    step = b - a
    return cast(where(abs(t) < 0.5, a + t * step, b - step * (1 - t)), x.dtype)


def _refuse_complex(name: str, number: Value | float, x: Value) -> None:
    literal = isinstance(number, Value) and number.is_scalar and number.node.op == "constant"
    refuse_complex_number(name, number.node.attrs["value"] if literal else number, x.dtype)  # type: ignore[union-attr]


def _floats(name: str, x: Value) -> None:
    if x.dtype.category < 2:
        raise TypeError(f"{name}: wants floating tensors, got {x.dtype.name}; convert one with .to(genesis.float32)")


rsub = formula(
    "rsub", lambda input, other, alpha=1: combined(sub, other, input, alpha), "`other - alpha * input`.", 3, method=False,
    takes_complex=True, elements=("alpha",),
)
float_power = formula(
    "float_power", lambda input, exponent: _in_float64(input) ** _in_float64(exponent),
    "`input ** exponent` in float64, of complex numbers in complex128.", 2, static_scalars=True, takes_complex=True,
)


@composite("ldexp", 2, in_place=True, takes_complex=True)
def ldexp(input: Value, other: Value) -> Value:
    """`input * 2 ** other`; of integers `other`, where `2 ** other` is no number of the dtype too."""
    x, exponent = promoted(input, other, floating=True)
    if x.dtype.is_complex or as_values(other)[0].dtype.category > 1:
        return cast(widened(x) * exp2(widened(exponent)), x.dtype)
    left, result = _in_float64(other), _in_float64(x)
    for _ in range(2 if x.dtype is float64 else 0):  # -969 is 53 digits above the least exponent, so one product rounds
        step = cast(where(left > 1023, 1023.0, where(left < -1022, -969.0, 0.0)), float64)
        left, result = left - step, result * exp2(step)
    return cast(result * exp2(clamp(left, -1022.0, 1023.0)), x.dtype)


def _in_float64(x: Value) -> Value:
    if not isinstance(x, Value):
        return x if isinstance(x, complex) else float(x)
    return cast(x, complex128 if x.dtype.is_complex else float64)


# ---- one operand ----
def _floating(input: Value) -> Value:
    return cast(input, floating_dtype(input.dtype))


deg2rad = formula("deg2rad", lambda input: _floating(input) * (pi / 180), ref=np.deg2rad, in_place=True)
rad2deg = formula("rad2deg", lambda input: _floating(input) * (180 / pi), ref=np.rad2deg, in_place=True)
frac = formula("frac", lambda input: input - trunc(input), "The part behind the point, `x - trunc(x)`.", in_place=True)
positive = formula("positive", lambda input: input, "`input` as it is.", takes_complex=True, shares=lambda input: (input, []))
isposinf = formula("isposinf", lambda input: input == float("inf"), "Whether x is inf.")
isneginf = formula("isneginf", lambda input: input == float("-inf"), "Whether x is -inf.")
isreal = formula(
    "isreal", lambda input: imag_value(input) == 0 if input.dtype.is_complex else expand(
        input.graph.constant(True, bool_), input.shape),
    "Whether the imaginary part is 0, as that of real numbers is.", ref=np.isreal, takes_complex=True,
)
signbit = formula(
    "signbit", lambda input: (copysign(1.0, input) if input.dtype.is_floating_point else input) < 0,
    "Whether the sign is minus: true of -0.0 as well.", ref=np.signbit,
)


@composite("angle", takes_complex=True)
def angle(input: Value) -> Value:
    """The angle of complex numbers, in [-pi, pi]; for real ones 0, pi where x is negative, NaN for NaN."""
    if input.dtype.is_complex:
        return atan2(imag_value(input), real_value(input))
    x = _floating(input)
    return where(isnan(x), x, where(x < 0, pi, zeros_like(x)))


@composite("sinc", namespace="special", in_place=True, takes_complex=True)
def sinc(input: Value) -> Value:
    """sin(pi x) / (pi x), and 1 at 0."""
    x = _floating(input)
    zero = x == 0
    angle = widened(where(zero, 1, x)) * pi
    near = widened(where(zero, x, 0)) * pi
    return cast(where(zero, 1 - near * near / 6, sin(angle) / angle), x.dtype)  # right at 0 up to the second derivative


_logit = unary(
    "logit", grad=lambda g, y, x: where((x >= 0) & (x <= 1), g / (x * (1 - x)), float("nan")), ref=from_scipy("logit"),
    emit=lambda k, x: k.log(k.div(x, k.sub(k.constant(1), x))), cost=16,
)


@composite("logit", ref=from_scipy("logit"), static_scalars=True, namespace="special", in_place=True)
def logit(input: Value, eps: float | None = None) -> Value:
    """log(x / (1 - x)), the inverse of `sigmoid`; with `eps`, x is clamped to [eps, 1 - eps]."""
    return _logit(input if eps is None else clamp(_floating(input), eps, 1 - eps))


@composite("nan_to_num", static_scalars=True, in_place=True, takes_complex=True)
def nan_to_num(input: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Value:
    """`input` with `nan` (0 if None) for NaN, and `posinf` and `neginf` (the dtype's limits if None) for the infinities.

    >>> genesis.nan_to_num(genesis.tensor([float("nan"), float("inf"), 1.0]), posinf=9.0)
    tensor([0., 9., 1.])
    """
    if input.dtype.is_complex:
        return complex_value(*[nan_to_num(part(input), nan, posinf, neginf) for part in (real_value, imag_value)])
    if not input.dtype.is_floating_point:
        return input
    least, greatest = _range(input)
    x = where(isnan(input), 0.0 if nan is None else nan, input)
    x = where(input == float("inf"), greatest if posinf is None else posinf, x)
    return where(input == float("-inf"), least if neginf is None else neginf, x)


def _range(x: Value) -> tuple[float, float]:
    info = float_limits(x.dtype)
    return float(info.min), float(info.max)


# ---- bounds, steps, closeness ----
clamp_min = formula(
    "clamp_min", lambda input, min: clamp(input, min=min), "`input`, and `min` where that is greater.", 2, in_place=True,
    elements=("min",),
)
clamp_max = formula(
    "clamp_max", lambda input, max: clamp(input, max=max), "`input`, and `max` where that is less.", 2, in_place=True,
    elements=("max",),
)


@composite("heaviside", 2, in_place=True)
def heaviside(input: Value, values: Value) -> Value:
    """1 where `input` is positive, `values` where it is 0, else 0."""
    x, y = promoted(input, values)
    return where(x == 0, y, cast(x > 0, x.dtype))


@composite("isclose", 2, static_scalars=True, takes_complex=True)
def isclose(input: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Value:
    """Whether |input - other| <= atol + rtol * |other|; infinities are close to themselves, NaN only with `equal_nan`.

    >>> genesis.isclose(genesis.tensor([1.0, 2.0]), genesis.tensor([1.0 + 1e-7, 2.1]))
    tensor([ True, False])
    """
    if rtol < 0 or atol < 0:
        raise ValueError(f"isclose: rtol is {rtol} and atol {atol}; want 0 or more")
    a, b = promoted(input, other)
    close = (a == b) | (isnan(a) & isnan(b)) if equal_nan else a == b
    if not rtol and not atol:
        return close  # integers are not rounded
    a, b = (widened(v) if v.dtype.category >= 2 else cast(v, float64) for v in (a, b))
    apart = abs(a - b)
    return close | (isfinite(apart) & (apart <= atol + abs(rtol * b)))
