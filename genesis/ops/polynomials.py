"""Orthogonal polynomials of any degree, a row each: all by one recurrence, p_(k+1) = (a_k x + b_k) p_k - c_k p_(k-1).

M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions" (1964), 22.7, from p_0 = 1. Degrees are a tensor, so the host
runs the recurrence, in float64, up to the highest. Its m-th derivative is a recurrence as well (by the product rule, m a_k
times the derivative before), so derivatives of any order are the same primitive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.ir.graph import Value
from genesis.ops.registry import Operation, broadcast, cast, composite, primitive, promoted, widened

__all__ = ["FAMILIES"]

Coefficients = Callable[[int], tuple[float, float, float]]

FAMILIES: dict[str, tuple[str, Coefficients]] = {  # name -> (who or what it is named for, (a_k, b_k, c_k))
    "chebyshev_polynomial_t": ("Chebyshev's T", lambda k: (2 if k else 1, 0, 1)),
    "chebyshev_polynomial_u": ("Chebyshev's U", lambda k: (2, 0, 1)),
    "chebyshev_polynomial_v": ("Chebyshev's V", lambda k: (2, 0 if k else -1, 1)),
    "chebyshev_polynomial_w": ("Chebyshev's W", lambda k: (2, 0 if k else 1, 1)),
    "hermite_polynomial_h": ("Hermite's H, of physics", lambda k: (2, 0, 2 * k)),
    "hermite_polynomial_he": ("Hermite's He, of probability", lambda k: (1, 0, k)),
    "laguerre_polynomial_l": ("Laguerre's L", lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "legendre_polynomial_p": ("Legendre's P", lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1))),
}
HIGHEST = 1 << 20


def _values(coefficients: Coefficients, order: int, x: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """The derivatives of an order, each element of its own degree; 0 of degrees that are negative, or NaN."""
    whole = np.where(degrees > -1, np.trunc(degrees), -1)
    highest = int(whole.max(initial=-1))
    if highest > HIGHEST:
        raise ValueError(f"degree {highest} of a polynomial; want at most {HIGHEST}")
    last, now = [[np.zeros_like(x)] * (order + 1) for _ in range(2)]
    now[0] = np.ones_like(x)
    found = np.where(whole == 0, now[order], 0.0)
    for k in range(highest):
        a, b, c = coefficients(k)
        factor = a * x + b
        following = [factor * now[0] - c * last[0]]
        following += [factor * now[m] + m * a * now[m - 1] - c * last[m] for m in range(1, order + 1)]
        last, now = now, following
        found = np.where(whole == k + 1, now[order], found)
    return found


def _row(name: str, title: str, coefficients: Coefficients) -> Operation:
    def node(x: Value, degrees: Value, order: int) -> Value:
        return x.graph.add(name, (x, degrees), x.shape, x.dtype, {"order": order})

    def reference(node: Any, x: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        return _values(coefficients, node.attrs["order"], x.astype(np.float64), degrees)

    primitive(
        name, "host", reference=reference,
        grad=lambda g, y, x, degrees: (g * node(x, degrees, y.node.attrs["order"] + 1), None),
    )

    doc = f"{title}: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."

    @composite(name, 2, method=False, namespace="special", doc=doc)
    def define(input: Value, n: Value) -> Value:
        x, degrees = broadcast(name, *promoted(input, n, floating=True))
        return cast(node(widened(x), widened(degrees), 0), x.dtype)

    return define


def _shifted(name: str, row: Operation) -> None:
    @composite(f"shifted_{name}", 2, method=False, namespace="special", doc=f"`{name}` at 2 x - 1, for x in [0, 1].")
    def define(input: Value, n: Value) -> Value:
        x, degrees = broadcast(name, *promoted(input, n, floating=True))
        return cast(row(widened(x) * 2 - 1, widened(degrees)), x.dtype)


for _name, (_title, _coefficients) in FAMILIES.items():
    _made = _row(_name, _title, _coefficients)
    if _name.startswith("chebyshev"):
        _shifted(_name, _made)
