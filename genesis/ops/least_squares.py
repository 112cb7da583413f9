"""Least squares by a complete orthogonal factorization; gradients are products with the pseudo-inverse."""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, broadcast_shapes, numel
from genesis.ops.complex_values import real_value
from genesis.ops.contraction import adjoint, matmul
from genesis.ops.conversion import stop_gradient
from genesis.ops.lapack import BLOCK, each_matrix, routine
from genesis.ops.registry import cast, composite, expand, primitive, promoted, widened
from genesis.ops.solving import factors, matrices, packed, pinv


def _shapes(a: Value, b: Value) -> list[Shape]:
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
    (g, _), (x, _) = factors(g, _shapes(a, b)), factors(y, _shapes(a, b))
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
    first, second = promoted(A, B)
    a, b = matrices("lstsq", first), widened(second)
    lead = broadcast_shapes("lstsq", a.shape[:-2], b.shape[:-2])
    a, b = expand(a, (*lead, *a.shape[-2:])), expand(b, (*lead, *b.shape[-2:]))
    bound = max(a.shape[-2:]) * float(np.finfo(a.dtype.numpy).eps) if rcond is None else float(rcond)
    shapes = _shapes(a, b)
    whole = (*lead, sum(map(numel, shapes)))
    found, rank = factors(a.graph.add("least_squares", (a, b), whole, a.dtype, {"dim": len(lead), "rcond": bound}), shapes)
    return cast(found, first.dtype), stop_gradient(cast(real_value(rank), int64))
