"""Orthogonal polynomials.

All are one recurrence, p_(k+1) = (a_k x + b_k) p_k - c_k p_(k-1), from p_0 = 1 (M. Abramowitz, I. Stegun, "Handbook of
Mathematical Functions" (1964), 22.7), in float64. For a small degree that is a number it is unrolled; of a tensor of degrees
the host runs it, up to the highest. Its m-th derivative follows the same recurrence plus m a_k times the previous derivative
(product rule): the same primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from genesis.ir.dtypes import float64
from genesis.ir.graph import Node, Value
from genesis.ops.registry import Operation, broadcast, cast, composite, expand, primitive, promoted, widened

Coefficients = Callable[[int], tuple[float, float, float]]

FAMILIES: dict[str, tuple[str, Coefficients]] = {  # name -> (the family's name, (a_k, b_k, c_k))
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
UNROLLED = 32  # degrees that are numbers below it are expressions


def _following(coefficients: Coefficients, k: int, x: Any, last: Sequence[Any], now: Sequence[Any]) -> list[Any]:
    """The derivatives of p_(k+1) from those of p_(k-1) and p_k, in the order of their orders: of arrays, or of Values."""
    a, b, c = coefficients(k)
    factor = a * x + b
    return [factor * now[0] - c * last[0],
            *[factor * now[m] + m * a * now[m - 1] - c * last[m] for m in range(1, len(now))]]


def _values(coefficients: Coefficients, order: int, x: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """The derivatives of one order; each element has its own degree. 0 for negative degrees, NaN for NaN."""
    whole = np.where(degrees > -1, np.trunc(degrees), -1)
    highest = int(whole.max(initial=-1))
    if highest > HIGHEST:
        raise ValueError(f"degree {highest} of a polynomial; want at most {HIGHEST}")
    last, now = [[np.zeros_like(x)] * (order + 1) for _ in range(2)]
    now[0] = np.ones_like(x)
    found = np.where(whole == 0, now[order], 0.0)
    for k in range(highest):
        last, now = now, _following(coefficients, k, x, last, now)
        found = np.where(whole == k + 1, now[order], found)
    return found


def _unrolled(coefficients: Coefficients, node: Node, x: Value) -> Value:
    """The derivative of one order of a polynomial of one degree."""
    order, x = node.attrs["order"], cast(x, float64)
    start = [expand(x.graph.constant(value, float64), x.shape) for value in (0.0, float(node.attrs["degree"] >= 0))]
    last, now = [start[0]] * (order + 1), [start[1], *[start[0]] * order]
    for k in range(node.attrs["degree"]):
        last, now = now, _following(coefficients, k, x, last, now)
    return cast(now[order], node.dtype)


def _row(name: str, title: str, coefficients: Coefficients) -> Operation:
    def node(x: Value, degrees: Value, order: int) -> Value:
        return x.graph.add(name, (x, degrees), x.shape, x.dtype, {"order": order})

    def of_degree(x: Value, degree: int, order: int) -> Value:
        return x.graph.add(f"{name}_of_degree", (x,), x.shape, x.dtype, {"degree": degree, "order": order})

    def reference(node: Node, x: np.ndarray, degrees: np.ndarray | None = None) -> np.ndarray:
        chosen = np.full(x.shape, float(node.attrs["degree"])) if degrees is None else degrees
        return _values(coefficients, node.attrs["order"], x.astype(np.float64), chosen)

    primitive(
        name, "host", reference=reference,
        grad=lambda g, y, x, degrees: (g * node(x, degrees, y.node.attrs["order"] + 1), None),
    )
    primitive(
        f"{name}_of_degree", "host", reference=reference, formula=partial(_unrolled, coefficients),
        grad=lambda g, y, x: g * of_degree(x, y.node.attrs["degree"], y.node.attrs["order"] + 1),
    )

    doc = f"{title}: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."

    @composite(name, 2, method=False, namespace="special", doc=doc, static_scalars=True)
    def define(input: Value, n: Value | float) -> Value:
        x, degrees = broadcast(name, *promoted(input, n, floating=True))
        if not isinstance(n, Value) and n < UNROLLED:
            return cast(of_degree(widened(x), int(n) if n > -1 else -1, 0), x.dtype)
        return cast(node(widened(x), widened(degrees), 0), x.dtype)

    return define


def _shifted(name: str, row: Operation) -> None:
    @composite(
        f"shifted_{name}", 2, method=False, namespace="special", doc=f"`{name}` at 2 x - 1, for x in [0, 1].",
        static_scalars=True,
    )
    def define(input: Value, n: Value | float) -> Value:
        x, degrees = broadcast(name, *promoted(input, n, floating=True))
        return cast(row(widened(x) * 2 - 1, widened(degrees) if isinstance(n, Value) else n), x.dtype)


for _name, (_title, _coefficients) in FAMILIES.items():
    _made = _row(_name, _title, _coefficients)
    if _name.startswith("chebyshev"):
        _shifted(_name, _made)
