"""Triangular systems of equations, by BLAS (trsm)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.ir.graph import Value
from genesis.ops.contraction import matmul, swapped
from genesis.ops.factors import matrices, routine
from genesis.ops.neural import tril, triu
from genesis.ops.registry import cast, composite, primitive, promoted, widened
from genesis.ops.solving import aligned

__all__ = ["solve_triangular", "triangular_value"]


def triangular_value(a: Value, b: Value, upper: bool, unit: bool = False) -> Value:
    """T^-1 b for a triangle T of `a`, with ones on its diagonal if `unit`; the leading extents are equal."""
    attrs = {"dim": a.ndim - 2, "upper": upper, "unit": unit}
    return a.graph.add("solve_triangular", (a, b), b.shape, b.dtype, attrs)


def _grad(g: Value, x: Value, a: Value, b: Value) -> tuple[Value, Value]:
    upper, unit = x.node.attrs["upper"], x.node.attrs["unit"]
    to_b = triangular_value(swapped(a), g, not upper, unit)
    whole = -matmul(to_b, swapped(x))
    return triu(whole, int(unit)) if upper else tril(whole, -int(unit)), to_b


def _reference(node: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found = np.empty_like(b)
    solve = routine("trsm", b)
    for place in np.ndindex(a.shape[:-2]) if b.size else ():
        found[place] = solve(1.0, a[place], b[place], lower=not node.attrs["upper"], diag=node.attrs["unit"])
    return found


primitive("solve_triangular", "host", grad=_grad, reference=_reference)


@composite("solve_triangular", 2, method=False, namespace="linalg")
def solve_triangular(A: Value, B: Value, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Value:
    """The X with T @ X = `B` for the upper or the lower triangle T of `A` (with ones on its diagonal, if `unitriangular`).

    `A` is (.., n, n), `B` (.., n, k); without `left`, X @ T = `B`, and `B` is (.., k, n). A zero on the diagonal gives
    infinities or NaN. Raises ValueError for other shapes.

    >>> import genesis
    >>> a = genesis.tensor([[2.0, 9.0], [1.0, 1.0]])
    >>> genesis.linalg.solve_triangular(a, genesis.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    first, second = promoted(A, B)
    a, b = matrices("solve_triangular", first, square=True), widened(second)
    if left:
        return cast(triangular_value(*aligned("solve_triangular", a, b), upper, unitriangular), first.dtype)
    a, b = aligned("solve_triangular", swapped(a), swapped(b))
    return cast(swapped(triangular_value(a, b, not upper, unitriangular)), first.dtype)


class Triangular(NamedTuple):
    """What `triangular_solve` gives."""

    solution: Any
    cloned_coefficient: Any


@composite("triangular_solve", 2)
def triangular_solve(
    b: Value, A: Value, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """(X, A) with `A` @ X = `b`, of a triangle of `A` as in `solve_triangular`; with `transpose`, A.T @ X = b."""
    found = solve_triangular(swapped(A) if transpose else A, b, upper=upper != transpose, unitriangular=unitriangular)
    return Triangular(found, A)
