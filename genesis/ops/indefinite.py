"""Indefinite matrices, by LAPACK: symmetric ones are L @ D @ L.T (sytrf), Hermitian ones L @ D @ L.H (hetrf).

Both factors share the lower triangle of one matrix; D's blocks of 1 and 2 rows are on its diagonal. The rest is zero.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from genesis.ir.dtypes import int32
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, broadcast_shapes
from genesis.ops.complex_primitives import conjugate, real_value
from genesis.ops.lapack import SINGULAR, each_matrix, routine
from genesis.ops.registry import alike, cast, composite, expand, primitive, widened
from genesis.ops.results import Indefinite, IndefiniteInfo
from genesis.ops.solving import factor_node, factors, matrices, packed


def _shapes(a: Value) -> list[Shape]:
    return [a.shape[-2:], (a.shape[-1],), ()]


def _factor_reference(node: Node, a: np.ndarray) -> np.ndarray:
    factor = partial(routine("hetrf" if node.attrs["hermitian"] else "sytrf", a), lower=True)
    data, pivots, info = each_matrix(factor, [a.shape[-2:], a.shape[-1:], ()], a)
    if node.attrs["check"] and info.any():
        raise np.linalg.LinAlgError(f"{SINGULAR}: block {int(info.real.max())} of D is exactly zero")
    return packed([np.tril(data), pivots, info], a.ndim - 2)


primitive("ldl_factor_ex", "host", reference=_factor_reference)


@composite("ldl_factor_ex", method=False, namespace="linalg", takes_complex=True)
def ldl_factor_ex(A: Value, *, hermitian: bool = False, check_errors: bool = False) -> IndefiniteInfo:
    """(LD, pivots, info) of symmetric matrices (.., n, n), or Hermitian ones. Only the lower triangle is read. No gradient.

    `pivots`, int32, are LAPACK's: negative ones belong to blocks of two rows. `info` (..), int32, is 0, or the index of the
    first block of D that is zero; with `check_errors` this raises LinAlgError when evaluated.

    >>> genesis.linalg.ldl_factor_ex(genesis.tensor([[2.0, 0.0], [1.0, -4.0]])).info.item()
    0
    """
    x = matrices("ldl_factor", A, square=True)
    node = factor_node("ldl_factor_ex", x, _shapes(x), check=check_errors, hermitian=_hermitian(x, hermitian))
    data, pivots, info = factors(node, _shapes(x))
    return IndefiniteInfo(cast(data, A.dtype), *[cast(real_value(v), int32) for v in (pivots, info)])


@composite("ldl_factor", method=False, namespace="linalg", takes_complex=True)
def ldl_factor(A: Value, *, hermitian: bool = False) -> Indefinite:
    """(LD, pivots) as `ldl_factor_ex`; raises LinAlgError, when evaluated, if a block of D is zero."""
    return Indefinite(*ldl_factor_ex(A, hermitian=hermitian, check_errors=True)[:2])


# ---- equations ----
def _hermitian(x: Value, asked: bool) -> bool:
    """Whether matrices count as Hermitian; real ones are then symmetric."""
    return asked and x.dtype.is_complex


def _solve_value(data: Value, pivots: Value, b: Value, hermitian: bool) -> Value:
    return b.graph.add("ldl_solve", (data, pivots, b), b.shape, b.dtype, {"dim": b.ndim - 2, "hermitian": hermitian})


def _solve_grad(g: Value, x: Value, data: Value, pivots: Value, b: Value) -> tuple[None, None, Value]:
    """A^-H g, which equals A^-1 g for Hermitian matrices."""
    if x.node.attrs["hermitian"]:
        return None, None, _solve_value(data, pivots, g, True)
    return None, None, conjugate(_solve_value(data, pivots, conjugate(g), False))


def _solve_reference(node: Node, data: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> np.ndarray:
    solve = partial(routine("hetrs" if node.attrs["hermitian"] else "sytrs", b), lower=True)
    [found] = each_matrix(lambda a, piv, y: solve(a, _checked(piv[0]), y), [b.shape[-2:]], data, pivots[..., None, :], b)
    return found


def _checked(pivots: np.ndarray) -> np.ndarray:
    """A matrix's pivots; raises RuntimeError for others than a factorization's, with which LAPACK writes beyond the matrix."""
    given, n, k = pivots.real.tolist(), len(pivots), 0
    while k < n:
        sign, width = (1, 1) if given[k] >= 0 else (-1, 2)
        if k + width > n or not all([1 <= sign * pivot <= n for pivot in given[k : k + width]]):
            raise RuntimeError(f"ldl_solve: pivots {given}; want those of ldl_factor: 1 to {n}, below zero in blocks of two")
        k += width
    return pivots


primitive("ldl_solve", "host", reference=_solve_reference, grad=_solve_grad)


@composite("ldl_solve", (0, 2), method=False, namespace="linalg", takes_complex=True)
def ldl_solve(LD: Value, pivots: Value, B: Value, *, hermitian: bool = False) -> Value:
    """The X with A @ X = `B` (.., n, k), for the A that `ldl_factor`, with the same `hermitian`, factored into `LD`
    and `pivots`.

    Only `B` gets a gradient. Raises ValueError for other shapes.

    >>> LD, pivots = genesis.linalg.ldl_factor(genesis.tensor([[0.0, 0.0], [2.0, 0.0]]))
    >>> genesis.linalg.ldl_solve(LD, pivots, genesis.tensor([[2.0], [4.0]]))
    tensor([[2.],
            [1.]])
    """
    first, second = alike("ldl_solve", LD, B)
    data, b = matrices("ldl_solve", first, square=True), widened(second)
    if pivots.shape != data.shape[:-1] or b.ndim < 2 or b.shape[-2] != data.shape[-1]:
        raise ValueError(f"ldl_solve: shapes {LD.shape}, {pivots.shape} and {B.shape}; want (.., n, n), (.., n) and (.., n, k)")
    lead = broadcast_shapes("ldl_solve", data.shape[:-2], b.shape[:-2])
    data, b = (expand(v, (*lead, *v.shape[-2:])) for v in (data, b))
    found = _solve_value(data, expand(pivots, (*lead, pivots.shape[-1])), b, _hermitian(b, hermitian))
    return cast(found, first.dtype)
