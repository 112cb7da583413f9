"""Linear algebra under PyTorch's names: norms, products, equations, decompositions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from math import inf
from typing import NamedTuple

import numpy as np

from genesis.functions.comparison import finfo
from genesis.functions.methods.table import functions_of
from genesis.functions.overrides import overridable_method
from genesis.functions.public_names import rows_shown
from genesis.functions.ranges import eye
from genesis.ir.dtypes import DType, int64
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import numel
from genesis.tensor.handle import Tensor
from genesis.tensor.out import takes_out
from genesis.tensor.return_types import named

__all__ = [
    "LinAlgError", "cond", "cross", "diagonal", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "norm", "tensorinv",
    "tensorsolve", "vander",
]

LinAlgError = np.linalg.LinAlgError
__getattr__, __dir__ = rows_shown("linalg", __all__)

eigvalsh, inv, inv_ex, matmul, pinv, solve = functions_of("eigvalsh", "inv", "inv_ex", "matmul", "pinv", "solve")
svdvals, _least_squares = functions_of("svdvals", "least_squares")
matrix_norm, vector_norm, _cat, _cross, _diagonal = functions_of("matrix_norm", "vector_norm", "cat", "cross", "diagonal")


@takes_out
def norm(
    A: Tensor, ord: float | str | None = None, dim: int | Sequence[int] | None = None, keepdim: bool = False, *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of vectors or matrices: without `ord`, the 2-norm over `dim` (all axes, if None).

    With `ord`: one axis, or a tensor of one, is a vector (`vector_norm`); two are a matrix (`matrix_norm`). Raises
    ValueError for a tensor that is neither.

    >>> x = genesis.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> norm(x), norm(x, 1), norm(x, 1, dim=1)
    (tensor(5.4772), tensor(6.), tensor([3., 7.]))
    """
    axes = (dim,) if isinstance(dim, int) else dim
    if ord is None or (len(axes) if axes is not None else A.ndim) == 1:
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if (axes is None and A.ndim != 2) or (axes is not None and len(axes) != 2):
        raise ArgumentError(f"norm: ord {ord!r} of shape {A.shape} over dim {dim}; want a vector or a matrix: one or two axes")
    return matrix_norm(A, ord, (0, 1) if axes is None else axes, keepdim, dtype=dtype)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the matrices on the last two axes, as views.

    >>> diagonal(genesis.eye(2).expand(3, 2, 2)).shape
    (3, 2)
    """
    return _diagonal(A, offset, dim1, dim2)


@overridable_method
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The product of `n` times the matrices `A` (.., m, m), by squaring; of their inverses, for a negative `n`.

    >>> matrix_power(genesis.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ArgumentError(f"matrix_power: power {n} of shape {A.shape}; want (.., m, m)")
    n = operator.index(n)
    given, (A, n) = A, (inv(A), -n) if n < 0 else (A, n)
    result = None
    while n:
        if n % 2:
            result = A if result is None else result @ A
        n //= 2
        A = A @ A if n else A
    if result is None:
        return eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape).clone()
    return result.clone() if result is given else result


@takes_out
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices from left to right; the first and the last may be vectors.

    >>> multi_dot([genesis.ones(2), genesis.ones(2, 3), genesis.ones(3)])
    tensor(6.)
    """
    if len(tensors) < 2 or {x.ndim for x in tensors[1:-1]} - {2} or {x.ndim for x in tensors} - {1, 2}:
        shapes = [x.shape for x in tensors]
        raise ArgumentError(f"multi_dot: shapes {shapes}; want two matrices at least, the first or last may be a vector")
    return reduce(matmul, tensors)


@takes_out
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross products of vectors of three elements along `dim`. Raises ValueError for other vectors.

    >>> genesis.linalg.cross(genesis.tensor([1.0, 0.0, 0.0]), genesis.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if input.ndim != other.ndim or not (input.shape[dim:][:1] == other.shape[dim:][:1] == (3,)):
        raise ArgumentError(f"cross: shapes {input.shape} and {other.shape}; want as many axes, and 3 elements along dim {dim}")
    return _cross(input, other, dim)


# ---- functions of singular values ----
@takes_out
def matrix_rank(
    A: Tensor, tol: Tensor | float | None = None, hermitian: bool = False, *, atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """The number of singular values above max(`atol`, `rtol` times the greatest). Both are numbers, or one per matrix.

    `rtol` is max(m, n) eps, unless it or a positive `atol` is given. `tol` is an old name of `atol`.

    >>> matrix_rank(genesis.ones(3, 3))
    tensor(1)
    """
    atol = tol if atol is None else atol
    if A.ndim < 2:
        raise ArgumentError(f"matrix_rank: shape {A.shape}; want (.., m, n)")
    if 0 in A.shape[-2:]:
        return A.new_zeros(A.shape[:-2], dtype=int64)
    sizes = eigvalsh(A).abs() if hermitian else svdvals(A)
    share = max(A.shape[-2:]) * finfo(A.dtype).eps
    least = atol.unsqueeze(-1) if isinstance(atol, Tensor) else sizes.new_full((1,), atol or 0.0)
    part = rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol
    part = (least <= 0) * share if part is None else part
    return (sizes > (sizes.amax(-1, keepdim=True) * part).maximum(least)).sum(-1)


@takes_out
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition numbers of matrices: the greatest singular value over the least, or norms `p` of `A` and its inverse.

    Those of singular matrices are infinite, those of matrices without elements 0.

    >>> cond(genesis.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(4.)
    """
    if 0 in A.shape[-2:]:
        return A.new_zeros(A.shape[:-2], dtype=A.dtype.real)
    if p in (None, 2, -2):
        sizes = svdvals(A)
        greatest, least = sizes.select(-1, 0), sizes.select(-1, -1)
        return least / greatest if p == -2 else greatest / least
    inverse, failed = inv_ex(A)
    return (matrix_norm(A, p) * matrix_norm(inverse, p)).masked_fill(failed != 0, inf)


class LeastSquares(NamedTuple):
    """The result of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@takes_out
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """The X (.., n, k) that minimizes |`A` @ X - `B`|, the shortest if there are several: `A` (.., m, n), `B` (.., m, k).

    If `B` is (.., m) for `A` of (.., m, n), it contains vectors, and X is (.., n).

    It uses a complete orthogonal factorization for every `driver`; values below `rcond` times the greatest count as zero.
    `residuals` are each column's squared residual if m > n and `driver` is neither None nor "gelsy"; `rank` and
    `singular_values` are those of `A` for the drivers that compute them, else empty. These have no gradient.

    >>> round(lstsq(genesis.tensor([[1.0], [1.0]]), genesis.tensor([[1.0], [3.0]])).solution.item(), 4)
    2.0
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ArgumentError(f"lstsq: driver is {driver!r}; want 'gels', 'gelsy', 'gelsd' or 'gelss'")
    if B.shape == A.shape[:-1]:
        found = lstsq(A, B[..., None], rcond, driver=driver)
        return named("lstsq", LeastSquares(found.solution[..., 0], *found[1:]))
    if B.ndim < 2 or A.shape[-2] != B.shape[-2]:
        raise ArgumentError(f"lstsq: shapes {A.shape} and {B.shape}; want (.., m, n) and (.., m, k)")
    solution, found = _least_squares(A, B, rcond)
    has_residuals = A.shape[-2] > A.shape[-1] and driver not in (None, "gelsy")
    left = (A @ solution - B).abs().square().sum(-2) if has_residuals else A.new_empty(0, dtype=A.dtype.real)
    ranked = driver is None or driver != "gels"
    sizes = svdvals(A.detach()) if driver in ("gelss", "gelsd") else A.new_empty(0, dtype=A.dtype.real)
    if ranked and (driver not in (None, "gelsy") or found.shape != A.shape[:-2] or not B.numel()):
        found = matrix_rank(A, rtol=rcond)
    rank = found if ranked else A.new_empty(0, dtype=int64)
    return named("lstsq", LeastSquares(solution, left, rank, sizes))


# ---- tensors as matrices ----
@takes_out
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of `A` under `tensordot`; its first `ind` axes have as many elements as the others.

    >>> genesis.linalg.tensorinv(genesis.tensor([[2.0, 0.0], [0.0, 4.0]]), ind=1)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    rows, columns = A.shape[:ind], A.shape[ind:]
    if ind < 1 or numel(rows) != numel(columns):
        raise ArgumentError(f"tensorinv: shape {A.shape} parted after {ind} axes; want as many elements before as behind")
    return inv(A.reshape(numel(rows), numel(columns))).reshape(*columns, *rows)


@takes_out
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X for which tensordot(`A`, X, X.ndim) is `B`; the axes `dims` of `A` are moved to its end first.

    >>> genesis.linalg.tensorsolve(genesis.tensor([[2.0, 0.0], [0.0, 4.0]]), genesis.tensor([2.0, 4.0]))
    tensor([1., 1.])
    """
    moved = A if dims is None else A.movedim(tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    columns = moved.shape[B.ndim :]
    if numel(columns) != B.numel() or moved.numel() != B.numel() ** 2:
        raise ArgumentError(
            f"tensorsolve: shapes {A.shape} and {B.shape}; want the first a square matrix, parted as the second")
    return solve(moved.reshape(B.numel(), B.numel()), B.reshape(-1)).reshape(columns)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to `N` - 1 (the number of elements, if None) of the elements, along a new last axis.

    >>> vander(genesis.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    x = x if x.ndim else x.reshape(1)
    count = x.shape[-1] if N is None else N
    ones = x.new_ones((*x.shape, 1))
    powers = x.unsqueeze(-1).expand(*x.shape, max(count - 1, 0)).cumprod(-1)
    return _cat([ones, powers], -1) if count else powers
