"""Householder reflections I - tau v v.H, as LAPACK's geqrf stores them, v below the diagonal, under a 1; and least squares.

They are applied as one block: H1 H2 .. Hk = I - V T V.H, with the upper triangle T = (I + diag(tau) striu(V.H V))^-1 diag(tau)
(R. Schreiber, C. Van Loan, "A Storage-Efficient WY Representation for Products of Householder Transformations", 1989).
"""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, broadcast_shapes, numel
from genesis.ops.arrangement import diag_embed, tril, triu
from genesis.ops.complex_primitives import real_value
from genesis.ops.contraction import adjoint, matmul
from genesis.ops.conversion import stop_gradient
from genesis.ops.definite import triangular_value
from genesis.ops.lapack import BLOCK, each_matrix, routine
from genesis.ops.registry import alike, cast, composite, expand, primitive, widened
from genesis.ops.results import Reflected
from genesis.ops.solving import factor_node, factors, matrices, packed, pinv
from genesis.ops.source import is_diagonal
from genesis.ops.views import reshape_value, slice_value


# ---- the reflections that reduce a matrix to a triangle ----
def _shapes(a: Value) -> list[Shape]:
    return [a.shape[-2:], (min(a.shape[-2:]),)]


primitive("geqrf", "host", contiguous=True, reference=lambda node, a: packed(
    each_matrix(routine("geqrf", a), [a.shape[-2:], (min(a.shape[-2:]),)], a), a.ndim - 2))


@composite("geqrf", takes_complex=True)
def geqrf(input: Value) -> Reflected:
    """(a, tau) of matrices (.., m, n): R of the QR decomposition is on and above the diagonal of `a`, the reflections of Q
    below it; `tau` has their min(m, n) factors. `linalg.householder_product` gives Q. No gradient, as in PyTorch.

    >>> a, tau = genesis.geqrf(genesis.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> (genesis.linalg.householder_product(a, tau) @ a.triu()).round(decimals=3)
    tensor([[3., 1.],
            [4., 2.]])
    """
    x = matrices("geqrf", input)
    shapes = _shapes(x)
    return Reflected(*[cast(f, input.dtype) for f in factors(factor_node("geqrf", x, shapes), shapes)])


# ---- their product ----
def _vectors(name: str, a: Value, tau: Value) -> tuple[Value, Value]:
    """V (.., m, k) with its implied ones and zeros, and T."""
    x, k = matrices(name, a), tau.shape[-1] if tau.ndim else -1
    tall = name == "ormqr" or x.shape[-1] <= x.shape[-2]
    if tau.shape[:-1] != x.shape[:-2] or not 0 <= k <= min(x.shape[-2:]) or not tall:
        raise ValueError(f"{name}: shapes {a.shape} and {tau.shape}; want (.., m, n) with m >= n, and (.., k) with k <= n")
    x = slice_value(x, x.ndim - 1, 0, k)
    v = tril(x, -1) + cast(is_diagonal(x.graph, x.shape[-2], k), x.dtype)
    scale = reshape_value(cast(tau, x.dtype), (*tau.shape, 1))
    t = triangular_value(triu(matmul(adjoint(v), v), 1) * scale, diag_embed(reshape_value(scale, tau.shape)), True, unit=True)
    return v, t


@composite("orgqr", 2, aliases=("linalg.householder_product",), keywords={"A": "input", "input2": "tau"}, takes_complex=True)
def orgqr(input: Value, tau: Value) -> Value:
    """The first n columns of H1 @ H2 @ .. @ Hk, (.., m, n), for `input` (.., m, n), m >= n, and `tau` (.., k) of `geqrf`.

    Raises ValueError for other shapes.

    >>> genesis.linalg.householder_product(genesis.tensor([[1.0], [1.0]]), genesis.tensor([1.0]))
    tensor([[ 0.],
            [-1.]])
    """
    alike("householder_product", input, tau)
    v, t = _vectors("householder_product", input, tau)
    m, n = input.shape[-2:]
    eye = cast(is_diagonal(v.graph, m, n), v.dtype)
    first = slice_value(v, v.ndim - 2, 0, n)
    return cast(eye - matmul(v, matmul(t, adjoint(first))), input.dtype)


@composite("ormqr", 3, keywords={"input2": "tau", "input3": "other"}, takes_complex=True)
def ormqr(input: Value, tau: Value, other: Value, left: bool = True, transpose: bool = False) -> Value:
    """Q @ `other`, for the whole Q (.., m, m) of `geqrf`'s results; without `left`, `other` @ Q; with `transpose`, Q.H for Q.

    `input` is (.., m, n), of which the first k columns are read, `tau` (.., k). Raises ValueError for shapes that do not fit.
    """
    alike("ormqr", input, tau, other)
    v, t = _vectors("ormqr", input, tau)
    x = matrices("ormqr", other)
    if x.shape[:-2] != v.shape[:-2] or x.shape[-2 if left else -1] != v.shape[-2]:
        want = f"(.., {v.shape[-2]}, n)" if left else f"(.., n, {v.shape[-2]})"
        raise ValueError(f"ormqr: shapes {input.shape} and {other.shape}; want {want} of the same leading extents")
    t = adjoint(t) if transpose else t
    if left:
        return cast(x - matmul(v, matmul(t, matmul(adjoint(v), x))), other.dtype)
    return cast(x - matmul(matmul(matmul(x, v), t), adjoint(v)), other.dtype)


# ---- least squares by a complete orthogonal factorization ----
def _shapes_of_solution(a: Value, b: Value) -> list[Shape]:
    """The shapes of the solution and of the rank."""
    return [(a.shape[-1], b.shape[-1]), ()]


def _reference(node: Node, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (m, n), width = a.shape[-2:], b.shape[-1]
    rows, least = max(m, n), min(m, n)
    room = 2 * least + max(BLOCK * (2 * n + 1), least + BLOCK * max(n + 1, width))

    def solved(matrix: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, int]:
        right = np.zeros((rows, width), a.dtype, "F")
        right[:m] = side
        # Fresh pivots each time: a nonzero entry would pin its column to the front.
        pivots = np.zeros(n, np.int32)
        _, found, _, rank, _ = routine("gelsy", a)(matrix, right, pivots, node.attrs["rcond"], room, overwrite_b=True)
        return found[:n], rank

    return packed(each_matrix(solved, [(n, width), ()], a, b), a.ndim - 2)


def _grad(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    """The gradient of the pseudo-inverse times `b`, for a constant rank: see `_pinv_grad` in `solving`."""
    (g, _), (x, _) = factors(g, _shapes_of_solution(a, b)), factors(y, _shapes_of_solution(a, b))
    p = pinv.define(a)
    pt, gt = adjoint(p), adjoint(g)
    to_b = matmul(pt, g)
    left = b - matmul(a, x)
    outside = matmul(matmul(left, matmul(gt, p)), pt)
    shortest = matmul(matmul(pt, x), gt)
    return outside - matmul(to_b, adjoint(x)) + shortest - matmul(matmul(shortest, p), a), to_b


primitive("least_squares", "host", grad=_grad, reference=_reference, contiguous=True)


@composite("least_squares", 2, method=False, public=False, takes_complex=True)
def least_squares(A: Value, B: Value, rcond: float | None = None) -> tuple[Value, Value]:
    """(X, rank): the shortest X (.., n, k) for which |`A` @ X - `B`| is least, and the rank (..) of `A`, int64; `A` (.., m, n),
    `B` (.., m, k).

    The rank of `A` is that of its largest part whose condition number is below 1 / `rcond`. The default `rcond` is max(m, n)
    times the dtype's eps.

    >>> genesis.linalg.lstsq(genesis.tensor([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), genesis.ones(3, 1)).solution
    tensor([[0.5000],
            [0.2500]])
    """
    first, second = alike("lstsq", A, B)
    a, b = matrices("lstsq", first), widened(second)
    lead = broadcast_shapes("lstsq", a.shape[:-2], b.shape[:-2])
    a, b = expand(a, (*lead, *a.shape[-2:])), expand(b, (*lead, *b.shape[-2:]))
    bound = max(a.shape[-2:]) * float(np.finfo(a.dtype.numpy).eps) if rcond is None else float(rcond)
    shapes = _shapes_of_solution(a, b)
    whole = (*lead, sum(map(numel, shapes)))
    found, rank = factors(a.graph.add("least_squares", (a, b), whole, a.dtype, {"dim": len(lead), "rcond": bound}), shapes)
    return cast(found, first.dtype), stop_gradient(cast(real_value(rank), int64))
