"""Systems of equations, inverses and determinants, by LAPACK as NumPy calls it; gradients are products of the same.

The primitives are host operations; their attribute `dim` is the number of leading axes.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

from genesis.ir.graph import Value
from genesis.ir.shapes import broadcast_shapes
from genesis.ops.arrangement import taken
from genesis.ops.contraction import matmul, swapped
from genesis.ops.elementwise import where
from genesis.ops.joining import cat
from genesis.ops.neural import tril, triu
from genesis.ops.reduction import sum
from genesis.ops.registry import cast, composite, expand, primitive, promoted, widened
from genesis.ops.source import iota
from genesis.ops.views import reshape_value

__all__ = ["det", "inv", "matrices", "solve", "solve_value"]


def matrices(name: str, x: Value, square: bool = False) -> Value:
    """`x`, matrices on its last two axes, in the dtype that LAPACK computes in."""
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ValueError(f"{name}: shape {x.shape}; want {'(.., n, n)' if square else '(.., m, n)'}")
    if not x.dtype.is_floating_point:
        raise TypeError(f"{name}: wants a floating tensor, got {x.dtype.name}; convert with .to(genesis.float32)")
    return widened(x)


def _node(name: str, x: Value, shape: tuple[int, ...] | None = None, *others: Value) -> Value:
    return x.graph.add(name, (x, *others), x.shape if shape is None else shape, x.dtype, {"dim": x.ndim - 2})


# ---- equations ----


def solve_value(a: Value, b: Value) -> Value:
    """a^-1 b, of matrices with equal leading extents."""
    return a.graph.add("solve", (a, b), b.shape, b.dtype, {"dim": a.ndim - 2})


def _solve_grad(g: Value, x: Value, a: Value, b: Value) -> tuple[Value, Value]:
    to_b = solve_value(swapped(a), g)
    return -matmul(to_b, swapped(x)), to_b


primitive("solve", "host", grad=_solve_grad, reference=lambda node, a, b: np.linalg.solve(a, b))


@composite("solve", 2, methods=())
def solve(A: Value, B: Value, *, left: bool = True) -> Value:
    """The X with `A` @ X = `B`: `A` (.., n, n), `B` (.., n, k) or vectors (.., n); without `left`, X @ `A` = `B`.

    Raises LinAlgError, when it is computed, for a singular matrix.

    >>> import genesis
    >>> genesis.linalg.solve(genesis.tensor([[2.0, 0.0], [0.0, 4.0]]), genesis.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    first, second = promoted(A, B)
    a, b = matrices("solve", first, square=True), widened(second)
    if b.ndim == 1 or b.shape == a.shape[:-1]:
        if not left:
            raise ValueError(f"solve: left=False wants matrices on the right, got shape {B.shape}")
        found = _solved("solve", a, reshape_value(b, (*b.shape, 1)))
        return cast(reshape_value(found, found.shape[:-1]), first.dtype)
    if not left:
        return cast(swapped(_solved("solve", swapped(a), swapped(b))), first.dtype)
    return cast(_solved("solve", a, b), first.dtype)


def _solved(name: str, a: Value, b: Value) -> Value:
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(f"{name}: shapes {a.shape} and {b.shape}; want (.., n, n) and (.., n, k)")
    lead = broadcast_shapes(name, a.shape[:-2], b.shape[:-2])
    return solve_value(expand(a, (*lead, *a.shape[-2:])), expand(b, (*lead, *b.shape[-2:])))


@composite("solve_triangular", 2, methods=())
def solve_triangular(A: Value, B: Value, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Value:
    """As `solve`, of the upper or the lower triangle of `A` (with ones on its diagonal, if `unitriangular`)."""
    first, second = promoted(A, B)
    a, b = matrices("solve_triangular", first, square=True), widened(second)
    part: Value = triu(a) if upper else tril(a)
    if unitriangular:
        places = iota(a.graph, a.shape[-1])
        part = where(reshape_value(places, (a.shape[-1], 1)) == places, 1, part)
    if left:
        return cast(_solved("solve_triangular", part, b), first.dtype)
    return cast(swapped(_solved("solve_triangular", swapped(part), swapped(b))), first.dtype)


@composite("cholesky_solve", 2)
def cholesky_solve(B: Value, L: Value, upper: bool = False) -> Value:
    """The X with `L` @ L.T @ X = `B`, for a factor `L` that `cholesky` gives (with `upper`, L.T @ L)."""
    y = solve_triangular(swapped(L) if upper else L, B, upper=False)
    return solve_triangular(L if upper else swapped(L), y, upper=True)


@composite("cholesky_inverse")
def cholesky_inverse(L: Value, upper: bool = False) -> Value:
    """The inverses of the matrices (.., n, n) whose lower factor `L`, or upper one, `cholesky` gives."""
    x = matrices("cholesky_inverse", L, square=True)
    places = iota(x.graph, x.shape[-1])
    one = cast(reshape_value(places, (x.shape[-1], 1)) == places, x.dtype)
    return cast(cholesky_solve(one, x, upper), L.dtype)


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


# ---- inverses ----


def _inverse(a: Value) -> Value:
    return _node("inv", a)


primitive(
    "inv", "host", grad=lambda g, y, a: -matmul(matmul(swapped(y), g), swapped(y)), reference=lambda node, a: np.linalg.inv(a),
)


@composite("inv", methods=("inverse",))
def inv(A: Value) -> Value:
    """The inverses of matrices (.., n, n). Raises LinAlgError, when it is computed, for a singular one.

    >>> import genesis
    >>> genesis.linalg.inv(genesis.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return cast(_inverse(matrices("inv", A, square=True)), A.dtype)


def _pinv_grad(g: Value, p: Value, a: Value) -> Value:
    """G. Golub, V. Pereyra, "The Differentiation of Pseudo-Inverses" (SIAM J. Numer. Anal. 10, 1973)."""
    pt, gt, pp = swapped(p), swapped(g), matmul(p, swapped(p))
    outside = matmul(gt, pp)
    inside = matmul(matmul(pt, p), gt)
    return (
        outside - matmul(a, matmul(p, outside)) + inside - matmul(inside, matmul(p, a)) - matmul(matmul(pt, g), pt)
    )


primitive(
    "pinv", "host", grad=_pinv_grad,
    reference=lambda node, a: np.linalg.pinv(a, max(a.shape[-2:], default=0) * np.finfo(a.dtype).eps),
)


@composite("pinv", methods=("pinverse",))
def pinv(A: Value) -> Value:
    """The pseudo-inverses of matrices (.., m, n) (Moore, 1920; Penrose, 1955).

    Singular values up to max(m, n) times the dtype's eps, relative to the greatest, count as zeros.
    """
    x = matrices("pinv", A)
    return cast(_node("pinv", x, (*x.shape[:-2], x.shape[-1], x.shape[-2])), A.dtype)


# ---- determinants ----


def _cofactors_reference(node: Any, a: np.ndarray) -> np.ndarray:
    """By singular values, so that a singular matrix has them too."""
    u, s, vh = np.linalg.svd(a)
    n = a.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * (u * others[..., None, :]) @ vh


def _cofactors_grad(g: Value, c: Value, a: Value) -> Value:
    b = swapped(_inverse(a))
    return sum(g * b, (-2, -1), True) * c - matmul(matmul(c, swapped(g)), b)


def _det_grad(g: Value, y: Value, a: Value) -> Value:
    return reshape_value(g, (*g.shape, 1, 1)) * _node("cofactors", a)


primitive("cofactors", "host", grad=_cofactors_grad, reference=_cofactors_reference)
primitive("det", "host", grad=_det_grad, reference=lambda node, a: np.linalg.det(a))
primitive(
    "slogdet", "host", reference=lambda node, a: np.stack(np.linalg.slogdet(a), -1),
    grad=lambda g, y, a: reshape_value(taken(g, g.ndim - 1, 1, 2), (*g.shape[:-1], 1, 1)) * swapped(_inverse(a)),
)


@composite("det")
def det(input: Value) -> Value:
    """The determinants of matrices (.., n, n).

    >>> import genesis
    >>> genesis.det(genesis.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """
    x = matrices("det", input, square=True)
    return cast(_node("det", x, x.shape[:-2]), input.dtype)


class SignAndLog(NamedTuple):
    """What `slogdet` gives."""

    sign: Any
    logabsdet: Any


@composite("slogdet")
def slogdet(input: Value) -> Any:
    """(sign, logabsdet) of the determinants of matrices (.., n, n), which themselves may overflow."""
    x = matrices("slogdet", input, square=True)
    lead = x.shape[:-2]
    both = _node("slogdet", x, (*lead, 2))
    return SignAndLog(*[cast(reshape_value(taken(both, len(lead), i, i + 1), lead), input.dtype) for i in (0, 1)])


@composite("logdet")
def logdet(input: Value) -> Value:
    """The logarithms of the determinants of matrices (.., n, n): NaN where negative."""
    sign, size = slogdet(input)
    return where(sign < 0, float("nan"), size)


# ---- the exponential ----


def _exponential(node: Any, a: np.ndarray) -> np.ndarray:
    return importlib.import_module("scipy.linalg").expm(a) if a.size else a


def _exponential_grad(g: Value, y: Value, a: Value) -> Value:
    """The upper right block of the exponential of [[A.T, g], [0, A.T]] (N. Higham, "Functions of Matrices", 2008, 3.6)."""
    n, axis = a.shape[-1], a.ndim - 2
    t = swapped(a)
    none = expand(g.graph.constant(0, g.dtype), g.shape)
    whole = _node("matrix_exp", cat([cat([t, g], axis + 1), cat([none, t], axis + 1)], axis))
    return taken(taken(whole, axis, 0, n), axis + 1, n, None)


primitive("matrix_exp", "host", grad=_exponential_grad, reference=_exponential)


@composite("matrix_exp")
def matrix_exp(input: Value) -> Value:
    """The exponentials of matrices (.., n, n): the sum of A^k / k!."""
    return cast(_node("matrix_exp", matrices("matrix_exp", input, square=True)), input.dtype)
