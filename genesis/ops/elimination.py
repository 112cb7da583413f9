"""Gaussian elimination: A = P @ L @ U, by LAPACK (getrf), and solving with it.

Both triangles share one matrix: U on and above the diagonal, L below without its ones. Pivots, counted from 1, are the
rows that each row was exchanged with, in order.
"""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import int32, int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, broadcast_shapes, numel
from genesis.ops.arrangement import tril, triu
from genesis.ops.complex_primitives import conjugate, real_value
from genesis.ops.contraction import matmul, swapped
from genesis.ops.definite import triangular_value
from genesis.ops.indexing import gather_value
from genesis.ops.joining import cat
from genesis.ops.lapack import SINGULAR, each_matrix, routine
from genesis.ops.registry import alike, cast, composite, expand, primitive, widened
from genesis.ops.results import PLU, Factored, FactoredInfo, Inverse, Solved
from genesis.ops.solving import factor_node, factors, identity, matrices, packed
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, slice_value


# ---- the permutation that the pivots describe ----
def _permutation(pivots: Value, rows: int, inverse: bool = False) -> Value:
    """The row order of P.T @ A (`inverse`: of P @ A)."""
    attrs = {"dim": pivots.ndim - 1, "inverse": inverse}
    return pivots.graph.add("permutation", (pivots,), (*pivots.shape[:-1], rows), int64, attrs)


def _no_row(node: Node, pivot: int, rows: int) -> IndexError:
    return IndexError(f"pivots of {rows} rows must be 1 to {rows}, got {pivot}")


def _permutation_reference(node: Node, pivots: np.ndarray) -> np.ndarray:
    pivots = pivots.real  # packed with complex factors they are complex numbers
    wrong = pivots[(pivots < 1) | (pivots > node.shape[-1])]
    if wrong.size:
        raise _no_row(node, int(wrong[0]), node.shape[-1])
    others = pivots.reshape(numel(node.shape[:-1]), pivots.shape[-1]).T.astype(np.int64) - 1
    matrix = np.arange(others.shape[1])
    order = np.arange(node.shape[-1])[:, None] + np.zeros_like(matrix)  # a column for each matrix
    for row, other in enumerate(others):
        found = order[other, matrix]
        order[other, matrix] = order[row]
        order[row] = found
    return (order.argsort(0) if node.attrs["inverse"] else order).T.reshape(node.shape)


primitive("permutation", "host", reference=_permutation_reference, contiguous=True, fault=_no_row)


def _permuted(x: Value, pivots: Value, inverse: bool = False) -> Value:
    """P.T @ x, or P @ x if `inverse`."""
    order = _permutation(pivots, x.shape[-2], inverse)
    return gather_value(x, expand(reshape_value(order, (*order.shape, 1)), x.shape), x.ndim - 2)


# ---- factors ----
def _shapes(a: Value) -> list[Shape]:
    return [a.shape[-2:], (min(a.shape[-2:]),), ()]


def _in_order(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Elimination without pivoting."""
    lu, steps = a.copy(), min(a.shape[-2:])
    for i in range(steps):
        lu[..., i + 1 :, i] /= lu[..., i, i, None]
        lu[..., i + 1 :, i + 1 :] -= lu[..., i + 1 :, i, None] * lu[..., i, None, i + 1 :]
    return lu, np.broadcast_to(np.arange(steps), (*a.shape[:-2], steps))


def _singular(node: Node, code: int, matrix: int) -> Exception:
    return np.linalg.LinAlgError(f"{SINGULAR}: element {code} of the diagonal of U is zero")


def _reference(node: Node, a: np.ndarray) -> np.ndarray:
    by_lapack = node.attrs["pivot"]
    lu, pivots = each_matrix(routine("getrf", a), [a.shape[-2:], (min(a.shape[-2:]),)], a) if by_lapack else _in_order(a)
    zero = np.diagonal(lu, axis1=-2, axis2=-1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if zero.shape[-1] else np.zeros(a.shape[:-2])
    if node.attrs["check"] and info.any():
        raise _singular(node, info.max(), 0)
    return packed([lu, pivots + 1, info], a.ndim - 2).astype(a.dtype)


def _grad(g: Value, y: Value, a: Value) -> Value:
    """The gradient of the leading square part; the columns right of it, or the rows below, follow from it."""
    (lu, pivots, _), (to_lu, _, _) = factors(y, _shapes(a)), factors(g, _shapes(a))
    k, row, column = min(a.shape[-2:]), a.ndim - 2, a.ndim - 1
    right, below = a.shape[-1] > k, a.shape[-2] > k
    head = slice_value(slice_value(lu, row, 0, k), column, 0, k)
    lower, upper = _triangles(lu)
    to_lower, to_upper = tril(slice_value(to_lu, column, 0, k), -1), triu(slice_value(to_lu, row, 0, k))
    inner = tril(_difference(swapped(lower), to_lower, to_upper, swapped(upper), k, right), -1)
    inner = inner + triu(_difference(to_upper, swapped(upper), swapped(lower), to_lower, k, below))

    def over(x: Value) -> Value:
        """x @ U^-T, for the square part of U."""
        return swapped(triangular_value(head, swapped(x), True))

    rows = cat([over(inner), slice_value(to_upper, column, k, None)], column) if right else over(inner)
    rows = triangular_value(swapped(head), rows, True, unit=True)
    if below:
        rows = cat([rows, over(slice_value(to_lower, row, k, None))], row)
    return _permuted(rows, pivots, inverse=True)


def _difference(a: Value, b: Value, c: Value, d: Value, k: int, beyond: bool) -> Value:
    """a @ b over the first k inner positions, less c @ d over those beyond."""
    row, column = a.ndim - 2, a.ndim - 1
    first = matmul(slice_value(a, column, 0, k), slice_value(b, row, 0, k))
    return first - matmul(slice_value(c, column, k, None), slice_value(d, row, k, None)) if beyond else first


def _triangles(lu: Value) -> tuple[Value, Value]:
    k, row, column = min(lu.shape[-2:]), lu.ndim - 2, lu.ndim - 1
    lower = tril(slice_value(lu, column, 0, k), -1)
    positions = iota(lu.graph, lu.shape[-2])
    ones = cast(reshape_value(positions, (lu.shape[-2], 1)) == iota(lu.graph, k), lu.dtype)
    return lower + ones, triu(slice_value(lu, row, 0, k))


primitive("lu_factor_ex", "host", grad=_grad, reference=_reference, contiguous=True, fault=_singular)


@composite("lu_factor_ex", method=False, namespace="linalg", takes_complex=True)
def lu_factor_ex(A: Value, *, pivot: bool = True, check_errors: bool = False) -> FactoredInfo:
    """(LU, pivots, info) of matrices (.., m, n): both factors in one matrix, min(m, n) pivots, int32, counted from 1.

    `info` (..), int32, is 0, or the first element of the diagonal of U that is zero; with `check_errors` this raises
    LinAlgError when evaluated. Without `pivot` no rows are exchanged.

    >>> genesis.linalg.lu_factor_ex(genesis.tensor([[1.0, 2.0], [2.0, 8.0]]))
    genesis.return_types.linalg_lu_factor_ex(
    LU=tensor([[ 2.0000,  8.0000],
            [ 0.5000, -2.0000]]),
    pivots=tensor([2, 2], dtype=genesis.int32),
    info=tensor(0, dtype=genesis.int32))
    """
    x = matrices("lu_factor", A)
    lu, pivots, info = factors(factor_node("lu_factor_ex", x, _shapes(x), pivot=pivot, check=check_errors), _shapes(x))
    return FactoredInfo(cast(lu, A.dtype), *[cast(real_value(v), int32) for v in (pivots, info)])


@composite("lu_factor", method=False, namespace="linalg", takes_complex=True)
def lu_factor(A: Value, *, pivot: bool = True) -> Factored:
    """(LU, pivots) as `lu_factor_ex`; raises LinAlgError, when evaluated, if the diagonal of U has a zero."""
    return Factored(*lu_factor_ex(A, pivot=pivot, check_errors=True)[:2])


@composite("lu", takes_complex=True)
def lu(A: Value, pivot: bool = True, get_infos: bool = False) -> Factored | FactoredInfo:
    """As `lu_factor`, or as `lu_factor_ex` with `get_infos`."""
    return lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot=pivot)


@composite("lu_unpack", method=False, takes_complex=True)
def lu_unpack(LU_data: Value, LU_pivots: Value, unpack_data: bool = True, unpack_pivots: bool = True) -> PLU:
    """(P, L, U) of `lu_factor`'s result: (.., m, m), (.., m, k), (.., k, n), with k = min(m, n).

    Without `unpack_pivots` P is empty, without `unpack_data` L and U are.
    """
    none = slice_value(reshape_value(LU_data, (numel(LU_data.shape),)), 0, 0, 0)
    order = none
    if LU_data.ndim < 2:
        raise ValueError(f"lu_unpack: LU_data has shape {LU_data.shape}; want (.., m, n)")
    if unpack_pivots:
        m = LU_data.shape[-2]
        rows = _permutation(LU_pivots, m)
        positions = reshape_value(iota(LU_data.graph, m), (m, 1))
        order = cast(positions == reshape_value(rows, (*rows.shape[:-1], 1, rows.shape[-1])), LU_data.dtype)
    return PLU(order, *(_triangles(LU_data) if unpack_data else (none, none)))


@composite("linalg_lu", method=False, aliases=("linalg.lu",), public=False, takes_complex=True)
def linalg_lu(A: Value, *, pivot: bool = True) -> PLU:
    """(P, L, U) with P @ L @ U = `A` (.., m, n): a permutation, and a lower (ones on its diagonal) and an upper triangle.

    Without `pivot` no rows are exchanged, and P is empty.

    >>> genesis.linalg.lu(genesis.tensor([[1.0, 2.0], [2.0, 8.0]])).U
    tensor([[ 2.,  8.],
            [ 0., -2.]])
    """
    data, pivots, _ = lu_factor_ex(A, pivot=pivot)
    return lu_unpack(data, pivots, unpack_pivots=pivot)


# ---- equations ----
@composite("linalg_lu_solve", (0, 2), method=False, aliases=("linalg.lu_solve",), public=False, takes_complex=True)
def linalg_lu_solve(LU: Value, pivots: Value, B: Value, *, left: bool = True, adjoint: bool = False) -> Value:
    """The X with A @ X = `B` (.., n, k), for the A (.., n, n) that `lu_factor` factored into `LU` and `pivots`.

    Without `left`, X @ A = `B` (.., k, n); with `adjoint`, A.mH instead of A. Raises ValueError for other shapes; a zero
    on the diagonal of U gives infinities or NaN.

    >>> LU, pivots = genesis.linalg.lu_factor(genesis.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> genesis.linalg.lu_solve(LU, pivots, genesis.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    first, second = alike("lu_solve", LU, B)
    a, b = matrices("lu_solve", first, square=True), widened(second)
    if pivots.shape != a.shape[:-1]:
        raise ValueError(f"lu_solve: pivots have shape {pivots.shape}; want {a.shape[:-1]} for LU {a.shape}")
    b = b if left or b.ndim < 2 else swapped(b)
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        want = "(.., n, k)" if left else "(.., k, n)"
        raise ValueError(f"lu_solve: shapes {LU.shape} and {B.shape}; want (.., n, n) and {want}")
    lead = broadcast_shapes("lu_solve", a.shape[:-2], b.shape[:-2])
    a, b = (expand(v, (*lead, *v.shape[-2:])) for v in (a, b))
    pivots = expand(pivots, (*lead, pivots.shape[-1]))
    a = conjugate(a) if adjoint else a
    if adjoint == left:
        half = triangular_value(swapped(a), b, upper=False)
        x = _permuted(triangular_value(swapped(a), half, upper=True, unit=True), pivots, inverse=True)
    else:
        x = triangular_value(a, triangular_value(a, _permuted(b, pivots), upper=False, unit=True), upper=True)
    return cast(x if left else swapped(x), first.dtype)


@composite("lu_solve", (0, 1), takes_complex=True)
def lu_solve(b: Value, LU_data: Value, LU_pivots: Value) -> Value:
    """The X with A @ X = `b` (.., n, k), for the A that `lu_factor` factored into `LU_data` and `LU_pivots`."""
    return linalg_lu_solve(LU_data, LU_pivots, b)


@composite("solve_ex", 2, method=False, namespace="linalg", takes_complex=True)
def solve_ex(A: Value, B: Value, *, left: bool = True, check_errors: bool = False) -> Solved:
    """(result, info) as `solve`; a singular matrix sets `info`, as in `lu_factor_ex`, and gives infinities."""
    first, second = alike("solve_ex", A, B)
    a, b = matrices("solve_ex", first, square=True), widened(second)
    data, pivots, info = lu_factor_ex(a, check_errors=check_errors)
    if left and (b.ndim == 1 or b.shape == a.shape[:-1]):
        found = linalg_lu_solve(data, pivots, reshape_value(b, (*b.shape, 1)))
        return Solved(cast(reshape_value(found, found.shape[:-1]), first.dtype), info)
    return Solved(cast(linalg_lu_solve(data, pivots, b, left=left), first.dtype), info)


@composite("inv_ex", method=False, namespace="linalg", takes_complex=True)
def inv_ex(A: Value, *, check_errors: bool = False) -> Inverse:
    """(inverse, info) as `inv`; a singular matrix sets `info`, as in `lu_factor_ex`, and gives infinities.

    >>> genesis.linalg.inv_ex(genesis.ones(2, 2)).info.item()
    2
    """
    x = matrices("inv_ex", A, square=True)
    found, info = solve_ex(x, expand(identity(x), x.shape), check_errors=check_errors)
    return Inverse(cast(found, A.dtype), info)
