"""Triangular equations, and Cholesky's decomposition of definite matrices."""

from __future__ import annotations

from functools import partial

import numpy as np

from genesis.ir.dtypes import int32
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape
from genesis.ops.arrangement import diag_embed, tril, triu
from genesis.ops.contraction import adjoint, matmul, swapped
from genesis.ops.lapack import INDEFINITE, each_matrix, failing, lapack, routine
from genesis.ops.registry import alike, cast, composite, primitive, widened
from genesis.ops.results import Cholesky, Triangular
from genesis.ops.solving import aligned, factor_node, factors, identity, matrices, packed
from genesis.ops.views import diagonal_value


# ---- triangular equations, by BLAS (trsm) ----
def triangular_value(a: Value, b: Value, upper: bool, unit: bool = False, whole: bool = False) -> Value:
    """T^-1 b for a triangle T of `a`, with ones on its diagonal if `unit`; the leading extents are equal.

    `whole`: `a` is that triangle, and gradients are those of a^-1 b, also by its zeros.
    """
    attrs = {"dim": a.ndim - 2, "upper": upper, "unit": unit, "whole": whole}
    return a.graph.add("solve_triangular", (a, b), b.shape, b.dtype, attrs)


def _solve_grad(g: Value, x: Value, a: Value, b: Value) -> tuple[Value, Value]:
    upper, unit, whole = (x.node.attrs[name] for name in ("upper", "unit", "whole"))
    to_b = triangular_value(swapped(a), g, not upper, unit, whole)
    to_a = -matmul(to_b, swapped(x))
    return to_a if whole else triu(to_a, int(unit)) if upper else tril(to_a, -int(unit)), to_b


def _solve_reference(node: Node, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """T^-1 b as (b^T T^-T)^T."""
    upper, unit, solve = node.attrs["upper"], node.attrs["unit"], routine("trsm", b)
    [found] = each_matrix(lambda t, y: [solve(1.0, t.T, y.T, side=1, lower=upper, diag=unit).T], [b.shape[-2:]], a, b)
    return found


primitive("solve_triangular", "host", grad=_solve_grad, reference=_solve_reference, contiguous=True)


@composite("solve_triangular", 2, method=False, namespace="linalg", takes_complex=True)
def solve_triangular(A: Value, B: Value, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Value:
    """The X with T @ X = `B` for the upper or the lower triangle T of `A` (with ones on its diagonal, if `unitriangular`).

    `A` is (.., n, n), `B` (.., n, k); without `left`, X @ T = `B`, and `B` is (.., k, n). A zero on the diagonal gives
    infinities or NaN. Raises ValueError for other shapes.

    >>> a = genesis.tensor([[2.0, 9.0], [1.0, 1.0]])
    >>> genesis.linalg.solve_triangular(a, genesis.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    first, second = alike("solve_triangular", A, B)
    a, b = matrices("solve_triangular", first, square=True), widened(second)
    if left:
        return cast(triangular_value(*aligned("solve_triangular", a, b), upper, unitriangular), first.dtype)
    a, b = aligned("solve_triangular", swapped(a), swapped(b))
    return cast(swapped(triangular_value(a, b, not upper, unitriangular)), first.dtype)


@composite("triangular_solve", 2, takes_complex=True)
def triangular_solve(
    b: Value, A: Value, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Triangular:
    """(X, A) with `A` @ X = `b`, of a triangle of `A` as in `solve_triangular`; with `transpose`, A.T @ X = b."""
    found = solve_triangular(swapped(A) if transpose else A, b, upper=upper != transpose, unitriangular=unitriangular)
    return Triangular(found, A)


# ---- Cholesky's factor of symmetric positive definite matrices, by LAPACK (potrf) ----
def _shapes(a: Value) -> list[Shape]:
    return [a.shape[-2:], ()]


def _cholesky_grad(g: Value, y: Value, a: Value) -> Value:
    """S. Walter, L. Lehmann, "Algorithmic Differentiation of Linear Algebra Functions" (2010)."""
    (to_factor, _), (factor, _) = factors(g, _shapes(a)), factors(y, _shapes(a))
    inner = tril(matmul(adjoint(factor), tril(to_factor)))
    diagonal = diagonal_value(inner, 0, -2, -1)
    inner = inner - diag_embed(diagonal) * 0.5
    upper = adjoint(factor)
    half = triangular_value(upper, adjoint(triangular_value(upper, adjoint(inner), True)), True)
    return (half + adjoint(half)) * 0.5


def _cholesky_reference(node: Node, a: np.ndarray) -> np.ndarray:
    """Goes matrix by matrix only if one is not positive definite and `info` must say so instead of an error."""
    lead = a.shape[:-2]
    try:
        return packed([*lapack("cholesky_lo", a), np.zeros(lead, a.dtype)], len(lead))
    except np.linalg.LinAlgError:
        if node.attrs["check"]:
            raise
    return packed(each_matrix(partial(routine("potrf", a), lower=True, clean=True), [a.shape[-2:], ()], a), len(lead))


primitive("cholesky_ex", "host", grad=_cholesky_grad, reference=_cholesky_reference, contiguous=True, fault=failing(INDEFINITE))


@composite("cholesky_ex", method=False, namespace="linalg", takes_complex=True)
def cholesky_ex(A: Value, *, upper: bool = False, check_errors: bool = False) -> Cholesky:
    """(L, info) as `cholesky`, where a matrix may fail: `info` (..), int32, is 0 for one that is positive definite.

    Otherwise it is the order of the first leading minor that is not, and L is incomplete. With `check_errors` this raises
    LinAlgError when evaluated.

    >>> genesis.linalg.cholesky_ex(genesis.tensor([[1.0, 2.0], [2.0, 1.0]])).info.item()
    2
    """
    x = matrices("cholesky", A, square=True)
    found, info = factors(factor_node("cholesky_ex", x, _shapes(x), check=check_errors), _shapes(x))
    return Cholesky(cast(adjoint(found) if upper else found, A.dtype), cast(info, int32))


@composite("cholesky", namespace="linalg", takes_complex=True)
def cholesky(A: Value, upper: bool = False) -> Value:
    """The lower triangular L with L @ L.mH = `A`, Hermitian and positive definite (.., n, n); with `upper`, its adjoint.

    Raises LinAlgError, when evaluated, for a matrix that is not positive definite.

    >>> genesis.linalg.cholesky(genesis.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return cholesky_ex(A, upper=upper, check_errors=True).L


@composite("cholesky_solve", 2, keywords={"input2": "L"}, takes_complex=True)
def cholesky_solve(B: Value, L: Value, upper: bool = False) -> Value:
    """The X with `L` @ L.T @ X = `B`, for a factor `L` that `cholesky` gives (with `upper`, L.T @ L).

    One triangle of `L` is read. As in PyTorch, both triangles get gradients.
    """
    first, second = alike("cholesky_solve", B, L)
    factor = matrices("cholesky_solve", second, square=True)
    a, b = aligned("cholesky_solve", adjoint(factor) if upper else factor, widened(first))
    return cast(triangular_value(adjoint(a), triangular_value(a, b, False, whole=True), True, whole=True), first.dtype)


@composite("cholesky_inverse", takes_complex=True)
def cholesky_inverse(L: Value, upper: bool = False) -> Value:
    """The inverses of the matrices (.., n, n) whose lower factor `L`, or upper one, `cholesky` gives."""
    x = matrices("cholesky_inverse", L, square=True)
    return cast(cholesky_solve(identity(x), x, upper), L.dtype)
