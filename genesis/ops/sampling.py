"""Random numbers of distributions that need rejection sampling: host operations with NumPy's generators.

A draw uses the Philox stream (Salmon, Moraes, Dror and Shaw, 2011) with key `seed` and counter `start`, so recomputing it gives
the same numbers. A floating `seed` holds numbers already drawn. Gradients by the parameters are those of the quantile at a
fixed probability: see `quantiles`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from genesis.ir.errors import ArgumentError
from genesis.ir.graph import Node, Value
from genesis.ops.quantiles import beta_slope, gamma_slope, von_mises_slope
from genesis.ops.reduction import sum
from genesis.ops.registry import as_values, broadcast, cast, composite, floating_dtype, primitive, widened

Draw = Callable[..., np.ndarray]


def generator_at(seed: np.ndarray, start: np.ndarray) -> np.random.Generator:
    """A draw's generator."""
    key, offset = (int(word) & (1 << 64) - 1 for word in (seed, start))
    return np.random.Generator(np.random.Philox(key=key, counter=[0, offset, 0, 0]))


def _reference(draw: Draw) -> Draw:
    """`draw(random, *parameters)` in float64, as the reference of a primitive of (*parameters, seed, start).

    Batched examples (vmap) with a seed each share one draw's numbers.
    """

    def drawn(node: Node, *arrays: np.ndarray) -> np.ndarray:
        if arrays[-2].dtype.kind == "f":
            return arrays[-2].astype(node.dtype.numpy)
        return of(*arrays).astype(node.dtype.numpy)

    def of(*arrays: np.ndarray) -> np.ndarray:
        *parameters, seed, start = arrays
        if seed.ndim:
            return np.stack([of(*example) for example in zip(*arrays, strict=True)])
        return draw(generator_at(seed, start), *[p.astype(np.float64) for p in parameters])

    return drawn


def _row(name: str, draw: Draw, grad: Callable[..., tuple[Value | None, ...]] | None, doc: str, count: int) -> None:
    """A primitive with `count` parameters, a seed and a counter start, and the operation that promotes and broadcasts them."""
    primitive(name, "host", grad=grad, reference=_reference(draw), draws=True)

    def drawn(*operands: Value) -> Value:
        *parameters, seed, start = as_values(*operands)
        dtype = floating_dtype(parameters[0].dtype)
        wide = broadcast(name, *[widened(cast(p, dtype)) for p in parameters])
        return cast(wide[0].graph.add(name, (*wide, seed, start), wide[0].shape, wide[0].dtype), dtype)

    if count == 1:
        def define(input: Value, seed: Value, start: Value) -> Value:
            return drawn(input, seed, start)
    else:
        def define(input: Value, other: Value, seed: Value, start: Value) -> Value:  # type: ignore[misc]
            return drawn(input, other, seed, start)

    composite(name, count + 2, doc=doc, method=False, public=False)(define)


def _inside(draw: Draw, most: float = 1 - 2.0**-24) -> Draw:
    """Avoids 0 and 1, where densities and their gradients are undefined, also after rounding to float32."""
    tiny = float(np.finfo(np.float32).tiny)
    return lambda *arguments: np.clip(draw(*arguments), tiny, most)


def _of_parameters(name: str, draw: Draw) -> Draw:
    """Raises ArgumentError for an invalid parameter."""

    def drawn(random: np.random.Generator, *parameters: np.ndarray) -> np.ndarray:
        if any([not np.isfinite(p).all() or (p < 0).any() for p in parameters]):
            raise ArgumentError(f"{name}: a parameter is infinite, NaN or negative")
        return draw(random, *parameters)

    return drawn


def _dirichlet(random: np.random.Generator, concentration: np.ndarray) -> np.ndarray:
    """Gamma numbers over their sum. Each is gamma(a + 1) * u^(1/a), in logarithms, because small ones underflow."""
    logs = np.log(random.standard_gamma(concentration + 1)) + np.log1p(-random.random(concentration.shape)) / concentration
    shares = np.exp(logs - logs.max(-1, keepdims=True, initial=-np.inf))
    return shares / shares.sum(-1, keepdims=True)


def _dirichlet_grad(g: Value, y: Value, concentration: Value, seed: Value, start: Value) -> tuple[Value | None, ...]:
    """A share's derivative is a beta number's; the other shares change in proportion."""
    rest = sum(concentration, -1, True) - concentration
    slope, _ = beta_slope(concentration, rest, y)
    return slope / (1 - y) * (g - sum(g * y, -1, True)), None, None


def _beta_grad(g: Value, y: Value, a: Value, b: Value, seed: Value, start: Value) -> tuple[Value | None, ...]:
    slope_a, slope_b = beta_slope(a, b, y)
    return g * slope_a, g * slope_b, None, None


_row(
    "standard_gamma", _inside(lambda random, a: random.standard_gamma(a), np.inf),
    lambda g, y, a, seed, start: (g * gamma_slope(a, y), None, None), "Gamma numbers of rate 1 and these concentrations.", 1,
)
_row(
    "standard_beta", _inside(lambda random, a, b: _dirichlet(random, np.stack([a, b], -1))[..., 0]), _beta_grad,
    "Beta numbers of these concentrations.", 2,
)
_row("dirichlet", _inside(_dirichlet), _dirichlet_grad, "Points of the simplex, of concentrations along the last axis.", 1)
_row(
    "von_mises", lambda random, k: random.vonmises(0.0, k),
    lambda g, y, k, seed, start: (g * von_mises_slope(k, y), None, None),
    "Angles about 0, of these concentrations.", 1,
)
_row("poisson", _of_parameters("poisson", lambda random, rate: random.poisson(rate)), None, "Counts of these rates.", 1)
_row(
    "binomial", _of_parameters("binomial", lambda random, count, prob: random.binomial(count.astype(np.int64), prob)), None,
    "Successes among so many trials, each of this probability.", 2,
)
