"""Incomplete gamma functions, with gradients by both inputs."""

from __future__ import annotations

from genesis.ir.graph import Value
from genesis.ops.elementwise import exp, log
from genesis.ops.quantiles import gamma_slope
from genesis.ops.special import lgamma, two


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
