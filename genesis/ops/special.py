"""Special functions, a row each, computed by kernels; those that are short expressions are composites elsewhere."""

from __future__ import annotations

import operator
from math import gamma as gamma_of, inf, log as ln, pi
from typing import Any

import numpy as np

from genesis.ir.dtypes import float64
from genesis.ir.graph import Value
from genesis.ops.elementwise import erfc, exp, log, sign, sin, where
from genesis.ops.registry import (
    Arithmetic, Gradient, Operation, Reference, broadcast, cast, composite, primitive, promoted, rounded_once, widened,
)
from genesis.ops.rows import formula, from_scipy, unary


def _one(
    name: str, scipy: str | Reference, doc: str, grad: Gradient | None = None, *, vector: str, cost: int,
    cuda: str | None = None, method: bool = False, **names: Any,
) -> Operation:
    """A row of one input, computed by a `vector` and a `cuda` function; integers become the default float. Methods have an
    in-place form.
    """
    reference = from_scipy(scipy) if isinstance(scipy, str) else scipy
    primitive(name, "elementwise", grad=grad, reference=lambda node, x: reference(x), vector=vector, cuda=cuda, cost=cost)

    @composite(name, ref=reference, doc=doc, method=method, in_place=method, **{"namespace": "special"} | names)
    @rounded_once
    def define(input: Value) -> Value:
        return input.graph.add(name, (input,), input.shape, input.dtype)

    return define


def two(
    name: str, scipy: str, doc: str, grad: Gradient, *, vector: str, cost: int, method: bool = False, **names: Any
) -> Operation:
    """A row of two inputs, promoted and broadcast, computed by a `vector` function."""
    primitive(name, "elementwise", grad=grad, reference=lambda node, x, y: from_scipy(scipy)(x, y), vector=vector, cost=cost)

    @composite(name, 2, ref=from_scipy(scipy), doc=doc, method=method, in_place=method, **{"namespace": "special"} | names)
    def define(input: Value, other: Value) -> Value:
        x, y = broadcast(name, *promoted(input, other, floating=True))
        a, b = widened(x), widened(y)
        return cast(a.graph.add(name, (a, b), a.shape, a.dtype), x.dtype)

    return define


def _fixed(name: str, x: Value) -> Value | None:
    """The cotangent of an input without a gradient: raises if it needs one."""
    if x.node.differentiable:
        raise NotImplementedError(f"{name}: has no gradient by its first input; detach that one")
    return None


# ---- the gamma function family ----
lgamma = _one(  # infinite at -inf, too, as at the poles
    "lgamma", lambda x: np.where(np.isneginf(x), np.inf, from_scipy("gammaln")(x)), "The logarithm of |gamma(x)|.",
    lambda g, y, x: g * digamma(x), method=True, namespace=(), aliases=("special.gammaln",), vector="gamma_function",
    cuda="math.lgamma({0})", cost=60,
)
digamma: Operation = _one(
    "digamma", "psi", "The derivative of `lgamma`.", lambda g, y, x: g * _trigamma(x), method=True,
    aliases=("special.psi",), vector="gamma_function", cost=60,
)


primitive(
    "trigamma", "elementwise", grad=lambda g, y, x: g * _polygamma(2, x), vector="gamma_function", cost=80,
    reference=lambda node, x: from_scipy("polygamma")(1, x),
)


def _trigamma(x: Value) -> Value:
    return x.graph.add("trigamma", (x,), x.shape, x.dtype)


def _polygamma(n: int, x: Value) -> Value:
    """Of order 1 or more, in float64, in which n! overflows later."""
    if n == 1:
        return _trigamma(x)
    factorial = gamma_of(n + 1) if n < 171 else inf
    return cast(zeta(float(n + 1), cast(x, float64)) * (factorial if n % 2 else -factorial), x.dtype)


@composite("polygamma", (1,), method=False, namespace="special")
def polygamma(n: int, input: Value) -> Value:
    """The `n`-th derivative of `digamma`. Raises ValueError for a negative `n`.

    >>> genesis.polygamma(1, genesis.tensor([1.0]))
    tensor([1.6449])
    """
    if operator.index(n) < 0:
        raise ValueError(f"polygamma: n is {n}; want 0 or more")
    return digamma(input) if n == 0 else rounded_once(lambda x: _polygamma(n, x))(input)


@composite("mvlgamma", aliases=("special.multigammaln",), in_place=True)
@rounded_once
def mvlgamma(input: Value, p: int) -> Value:
    """The logarithm of the multivariate gamma function in `p` dimensions."""
    if operator.index(p) < 1:
        raise ValueError(f"mvlgamma: p is {p}; want 1 or more")
    total = lgamma(input) + p * (p - 1) / 4 * ln(pi)
    for k in range(1, p):
        total = total + lgamma(input - k / 2)
    return total


zeta: Operation = two(
    "zeta", "zeta", "The Hurwitz zeta function: the sum of (k + q)^-x.",
    lambda g, y, x, q: (_fixed("zeta", x), -g * x * zeta(x + 1, q)), vector="zeta_function", cost=400,
)

# ---- the normal distribution ----
erfinv = _one(
    "erfinv", "erfinv", "The inverse of `erf`.", lambda g, y, x: g * exp(y * y) * (pi**0.5 / 2), method=True,
    autocast="float32", vector="error_function", cuda="libdevice.erfinv{f}({0})", cost=40,
)
erfcx = _one(
    "erfcx", "erfcx", "exp(x^2) erfc(x).", lambda g, y, x: g * (2 * x * y - 2 / pi**0.5), vector="error_function", cost=50)
ndtri = _one(
    "ndtri", "ndtri", "The inverse of `ndtr`.", lambda g, y, x: g * exp(y * y / 2) * (2 * pi) ** 0.5, vector="error_function",
    cost=50,
)
log_ndtr = _one(
    "log_ndtr", "log_ndtr", "log(ndtr(x)).", lambda g, y, x: g * _slope_of_log_ndtr(y, x), vector="error_function", cost=80)


def _slope_of_log_ndtr(y: Value, x: Value) -> Value:
    """The normal density over its integral up to x: below 0 by `erfcx`, as x^2 / 2 and `log_ndtr` cancel there."""
    below = x < 0
    low, high = where(below, x, 0), where(below, 0, x)
    tail, rest = erfcx(low * -(0.5**0.5)), exp(-high * high / 2 - where(below, 0, y))
    return where(below, 2 / tail, rest) / (2 * pi) ** 0.5


ndtr = formula(
    "ndtr", lambda input: erfc(input * -(0.5**0.5)) * 0.5, "The integral of the standard normal density up to x.", wide=True,
    method=False, namespace="special",
)


def _entr(k: Arithmetic, x: object) -> object:
    below = k.where(k.lt(x, k.constant(0)), k.constant(float("-inf")), x)
    return k.where(k.gt(x, k.constant(0)), k.neg(k.mul(x, k.log(x))), below)


entr = unary(
    "entr", grad=lambda g, y, x: -g * (1 + log(x)), ref=from_scipy("entr"), emit=_entr, floating=True, cost=16,
    doc="-x log(x) where x is positive, 0 at 0, -inf below.", method=False, namespace="special", in_place=False,
)


# ---- Airy's function ----
airy_ai = _one(
    "airy_ai", lambda x: from_scipy("airy")(x)[0], "Airy's function Ai: the solution of y'' = x y that vanishes at infinity.",
    lambda g, y, x: g * x.graph.add("airy_slope", (x,), x.shape, x.dtype), vector="airy", cost=100,
)
primitive(
    "airy_slope", "elementwise", reference=lambda node, x: from_scipy("airy")(x)[1], grad=lambda g, y, x: g * x * airy_ai(x),
    vector="airy", cost=100,
)


# ---- Bessel's functions ----
def _bessel(name: str, scipy: str, doc: str, grad: Gradient, **names: Any) -> Operation:
    modified = "bessel_j" not in name and "bessel_y" not in name
    return _one(name, scipy, doc, grad, vector="modified_bessel" if modified else "bessel", cost=80, **names)


i0: Operation = _bessel("i0", "i0", "The modified Bessel function I0.", lambda g, y, x: g * i1(x), method=True)
i0e: Operation = _bessel("i0e", "i0e", "exp(-|x|) I0(x).", lambda g, y, x: g * (i1e(x) - sign(x) * y))
i1: Operation = _bessel("i1", "i1", "The modified Bessel function I1.", lambda g, y, x: g * (i0(x) - _quotient(y, x)))
i1e: Operation = _bessel("i1e", "i1e", "exp(-|x|) I1(x).", lambda g, y, x: g * (i0e(x) - sign(x) * y - _quotient(y, x)))


def _quotient(y: Value, x: Value) -> Value:
    """J1(x) / x or I1(x) / x, which are 1/2 at 0."""
    zero = x == 0
    return where(zero, 0.5, y / where(zero, 1, x))


bessel_j0: Operation = _bessel("bessel_j0", "j0", "The Bessel function J0.", lambda g, y, x: -g * bessel_j1(x))
bessel_j1: Operation = _bessel(
    "bessel_j1", "j1", "The Bessel function J1.", lambda g, y, x: g * (bessel_j0(x) - _quotient(y, x)))
bessel_y0: Operation = _bessel("bessel_y0", "y0", "The Bessel function Y0.", lambda g, y, x: -g * bessel_y1(x))
bessel_y1: Operation = _bessel("bessel_y1", "y1", "The Bessel function Y1.", lambda g, y, x: g * (bessel_y0(x) - y / x))
modified_bessel_i0 = formula("modified_bessel_i0", lambda input: i0(input), "As `i0`.", method=False, namespace="special")
modified_bessel_i1 = formula("modified_bessel_i1", lambda input: i1(input), "As `i1`.", method=False, namespace="special")
modified_bessel_k0: Operation = _bessel(
    "modified_bessel_k0", "k0", "The modified Bessel function K0.", lambda g, y, x: -g * modified_bessel_k1(x))
modified_bessel_k1: Operation = _bessel(
    "modified_bessel_k1", "k1", "The modified Bessel function K1.", lambda g, y, x: -g * (modified_bessel_k0(x) + y / x))
scaled_modified_bessel_k0: Operation = _bessel(
    "scaled_modified_bessel_k0", "k0e", "exp(x) K0(x).", lambda g, y, x: g * (y - scaled_modified_bessel_k1(x)))
scaled_modified_bessel_k1: Operation = _bessel(
    "scaled_modified_bessel_k1", "k1e", "exp(x) K1(x).", lambda g, y, x: g * (y - scaled_modified_bessel_k0(x) - y / x))


@composite("spherical_bessel_j0", method=False, namespace="special")
@rounded_once
def spherical_bessel_j0(input: Value) -> Value:
    """The spherical Bessel function j0: sin(x) / x, and 1 at 0; below 1/2 by its series, which has exact derivatives.

    >>> genesis.special.spherical_bessel_j0(genesis.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """
    small = abs(input) < 0.5
    near, far = where(small, input, 0), where(small, 1, input)
    series: Value | float = 1.0
    for k in range(7, 0, -1):
        series = 1 - near * near / (2 * k * (2 * k + 1)) * series
    endless = abs(input) == float("inf")
    return where(small, series, where(endless, 0, sin(where(endless, 0, far)) / far))
