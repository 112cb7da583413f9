"""Derivatives, of any order, of gamma, beta and von Mises quantiles by the distribution's parameters.

At a fixed probability F(x; a), dx/da = -F_a / p. With the unnormalised density q, F_a / p is an integral of q(t) / q(x) over
one of the tails at x (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018). Here the tail without the
mode is used: nothing cancels there. The integrals

    T_n(a, x) = +- int (w(t) - w(x))^n q(t) / q(x) dt,    q(t) = exp(a w(t)) r(t),    - below the mode, + above it

are primitives. Their derivatives are such integrals again: by a it is T_(n+1), by x it follows from the end point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from genesis.ir.graph import Node, Value
from genesis.ops.elementwise import cos, exp, log, log1p, sin
from genesis.ops.registry import primitive
from genesis.ops.special import digamma, i0e, i1e, lgamma, two

Array = np.ndarray
# Nodes and weights of the double exponential formula for integrands that decay exponentially: s = exp(t - exp(-t)). It
# tolerates inexact widths of s (H. Takahasi and M. Mori, 1974).
_T = np.arange(-3.7, 7.0, 0.1)
_STEPS = np.exp(_T - np.exp(-_T))
_WEIGHTS = 0.1 * _STEPS * (1 + np.exp(-_T))
_CHUNK = 1 << 12  # elements at a time: each has 107 nodes


@cache
def _gauss_legendre() -> tuple[Array, Array]:
    """80 nodes in (-1, 1), and their weights."""
    return np.polynomial.legendre.leggauss(80)  # type: ignore[no-untyped-call,no-any-return]


def _tail(integrand: Callable[..., Array], width: Array, *arrays: Array) -> Array:
    """The integral from 0 to infinity of `integrand(s, *arrays)`, which decays within a few `width`s."""
    result = np.empty(width.shape)
    for begin in range(0, width.size, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        w = width[part]
        values = integrand(w[:, None] * _STEPS, *[array[part, None] for array in arrays])
        result[part] = w * (values @ _WEIGHTS)
    return result


def _flat(node: Node, compute: Callable[..., Array], *arrays: Array) -> Array:
    """`compute` on the arrays, flattened and in float64."""
    shape = np.broadcast_shapes(*[array.shape for array in arrays])
    flat = [np.broadcast_to(array, shape).astype(np.float64).ravel() for array in arrays]
    return compute(node.attrs, *flat).reshape(shape).astype(node.dtype.numpy)


# ---- gamma: q(t) = t^(a - 1) e^-t ----
def _gamma_tail(attrs: dict[str, int], a: Array, x: Array) -> Array:
    n, below = attrs["n"], x <= np.maximum(a, 1.0)  # up to 1, where q above is flat and then ends at once
    side = np.where(below, -1.0, 1.0)  # t = x e^(side s)
    slope = np.maximum(abs(a - x), np.sqrt(x))
    width = np.where(below, 1 / np.minimum(a, slope), np.log1p(1 / slope))

    def integrand(s: Array, a: Array, x: Array, side: Array) -> Array:
        return (side * s) ** n * np.exp(side * a * s - x * np.expm1(side * s))

    return side * x * _tail(integrand, width, a, x, side)


def _gamma_integral(n: int, a: Value, x: Value) -> Value:
    return x.graph.add("gamma_tail", (a, x), x.shape, x.dtype, {"n": n})


def _gamma_grad(g: Value, y: Value, a: Value, x: Value) -> tuple[Value, Value]:
    n = y.node.attrs["n"]
    end = -1 if n == 0 else -n * _gamma_integral(n - 1, a, x) / x
    return g * _gamma_integral(n + 1, a, x), g * (end - y * ((a - 1) / x - 1))


primitive("gamma_tail", "host", grad=_gamma_grad, reference=lambda node, a, x: _flat(node, _gamma_tail, a, x))


def gamma_slope(a: Value, x: Value) -> Value:
    """The derivative of a quantile x of the gamma distribution with rate 1 by its concentration."""
    return _gamma_integral(1, a, x) + (log(x) - digamma(a)) * _gamma_integral(0, a, x)


# ---- beta: q(t) = t^(a - 1) (1 - t)^(b - 1); n powers of log t, and m of log(1 - t) ----
def _beta_tail(attrs: dict[str, int], a: Array, b: Array, x: Array) -> Array:
    n, m, total = attrs["n"], attrs["m"], a + b
    flat_above, flat_below = (a <= 1) & (b > 1) & (x * total <= 1), (b <= 1) & (a > 1) & ((1 - x) * total <= 1)
    below = ((x * total <= a) & ~flat_below) | flat_above
    side = np.where(below, -1.0, 1.0)  # in logits, y(t) = y(x) + side s
    slope = np.maximum(abs(a - total * x), np.sqrt(total * x * (1 - x)))
    width = 1 / np.minimum(np.where(below, a, b), slope)

    near = np.where(below, x, 1 - x)

    def integrand(s: Array, a: Array, b: Array, near: Array, side: Array) -> Array:
        move = -np.log1p(near * np.expm1(-s))  # the change of the growing part's logarithm; the other's falls by s more
        up, down = np.where(side < 0, move - s, move), np.where(side < 0, move, move - s)
        return up**n * down**m * np.exp(a * up + b * down)

    return side * x * (1 - x) * _tail(integrand, width, a, b, near, side)


def _beta_integral(n: int, m: int, a: Value, b: Value, x: Value) -> Value:
    return x.graph.add("beta_tail", (a, b, x), x.shape, x.dtype, {"n": n, "m": m})


def _beta_grad(g: Value, y: Value, a: Value, b: Value, x: Value) -> tuple[Value, Value, Value]:
    n, m = y.node.attrs["n"], y.node.attrs["m"]
    end: Value | float = -1.0 if n == m == 0 else 0.0
    if n:
        end = end - n * _beta_integral(n - 1, m, a, b, x) / x
    if m:
        end = end + m * _beta_integral(n, m - 1, a, b, x) / (1 - x)
    by_x = end - y * ((a - 1) / x - (b - 1) / (1 - x))
    return g * _beta_integral(n + 1, m, a, b, x), g * _beta_integral(n, m + 1, a, b, x), g * by_x


primitive("beta_tail", "host", grad=_beta_grad, reference=lambda node, a, b, x: _flat(node, _beta_tail, a, b, x))


def beta_slope(a: Value, b: Value, x: Value) -> tuple[Value, Value]:
    """The derivatives of a quantile x of the beta distribution by each concentration."""
    tail, both = _beta_integral(0, 0, a, b, x), digamma(a + b)
    by_a = _beta_integral(1, 0, a, b, x) + (log(x) - digamma(a) + both) * tail
    return by_a, _beta_integral(0, 1, a, b, x) + (log1p(-x) - digamma(b) + both) * tail


# ---- von Mises: q(t) = exp(k cos t), about 0 ----
def _von_mises_tail(attrs: dict[str, int], k: Array, x: Array) -> Array:
    n, size = attrs["n"], abs(x)
    # From |x| to where q has fallen to e^-40 of its value there, or to pi.
    height = np.cos(size)
    end = np.arccos(np.maximum(height - 40 / np.maximum(k, 1e-300), -1.0))
    nodes, weights = _gauss_legendre()
    half = (end - size) / 2
    t = size[:, None] + half[:, None] * (1 + nodes)
    drop = -2 * np.sin((t + size[:, None]) / 2) * np.sin((t - size[:, None]) / 2)  # cos t - cos x
    return np.where(x < 0, -1.0, 1.0) * half * ((drop**n * np.exp(k[:, None] * drop)) @ weights)


def _von_mises_integral(n: int, k: Value, x: Value) -> Value:
    return x.graph.add("von_mises_tail", (k, x), x.shape, x.dtype, {"n": n})


def _von_mises_grad(g: Value, y: Value, k: Value, x: Value) -> tuple[Value, Value]:
    n = y.node.attrs["n"]
    end = -1 if n == 0 else n * sin(x) * _von_mises_integral(n - 1, k, x)
    return g * _von_mises_integral(n + 1, k, x), g * (end + y * k * sin(x))


primitive("von_mises_tail", "host", grad=_von_mises_grad, reference=lambda node, k, x: _flat(node, _von_mises_tail, k, x))


def von_mises_slope(k: Value, x: Value) -> Value:
    """The derivative of a quantile x of the von Mises distribution about 0 by its concentration."""
    return _von_mises_integral(1, k, x) + (cos(x) - i1e(k) / i0e(k)) * _von_mises_integral(0, k, x)


def _density(a: Value, x: Value) -> Value:
    return exp((a - 1) * log(x) - x - lgamma(a))


def _slopes(g: Value, a: Value, x: Value) -> tuple[Value | None, Value]:
    """The cotangents of the lower function: by `a` it is minus the density times the slope of the quantile x."""
    weighted = g * _density(a, x)
    return -weighted * gamma_slope(a, x) if a.node.differentiable else None, weighted


igamma = two(
    "igamma", "gammainc", "The regularized lower incomplete gamma function.", lambda g, y, a, x: _slopes(g, a, x),
    method=True, namespace=(), aliases=("special.gammainc",), vector="incomplete_gamma", cost=300,
)
igammac = two(
    "igammac", "gammaincc", "The regularized upper incomplete gamma function.", lambda g, y, a, x: _slopes(-g, a, x),
    method=True, namespace=(), aliases=("special.gammaincc",), vector="incomplete_gamma", cost=300,
)
