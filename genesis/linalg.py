"""Linear algebra under PyTorch's names: norms and products; decompositions are not here yet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from genesis.creation import eye
from genesis.ir.dtypes import DType
from genesis.methods import function_of, view_function_of
from genesis.ops.registry import OPERATIONS
from genesis.tensor import Tensor

__all__ = ["diagonal", "matmul", "matrix_norm", "matrix_power", "multi_dot", "norm", "vecdot", "vector_norm"]

matmul = function_of(OPERATIONS["matmul"])
matrix_norm = function_of(OPERATIONS["matrix_norm"])
vecdot = function_of(OPERATIONS["vecdot"])
vector_norm = function_of(OPERATIONS["vector_norm"])
_diagonal = view_function_of("diagonal")


def norm(
    A: Tensor, ord: Any = None, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The norm of vectors or matrices: without `ord`, the 2-norm over `dim` (all axes, if None).

    With `ord`: one axis, or a tensor of one, is a vector (`vector_norm`); two are a matrix (`matrix_norm`). Raises
    ValueError for a tensor that is neither.

    >>> import genesis
    >>> x = genesis.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> norm(x), norm(x, 1), norm(x, 1, dim=1)
    (tensor(5.4772), tensor(6.), tensor([3., 7.]))
    """
    axes = (dim,) if isinstance(dim, int) else dim
    if ord is None or (len(axes) if axes is not None else A.ndim) == 1:
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if (axes is None and A.ndim != 2) or (axes is not None and len(axes) != 2):
        raise ValueError(f"norm: ord {ord!r} of shape {A.shape} over dim {dim}; want a vector or a matrix: one or two axes")
    return matrix_norm(A, ord, (0, 1) if axes is None else axes, keepdim, dtype=dtype)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the matrices on the last two axes, as views.

    >>> import genesis
    >>> diagonal(genesis.eye(2).expand(3, 2, 2)).shape
    (3, 2)
    """
    result: Tensor = _diagonal(A, offset, dim1, dim2)
    return result


def matrix_power(A: Tensor, n: int) -> Tensor:
    """The product of `n` times the matrices `A` (.., m, m), by squaring. Raises ValueError for a negative `n`.

    >>> import genesis
    >>> matrix_power(genesis.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or n < 0:
        raise ValueError(f"matrix_power: power {n} of shape {A.shape}; want (.., m, m) and 0 or more")
    result = None
    while n:
        if n % 2:
            result = A if result is None else result @ A
        n //= 2
        A = A @ A if n else A
    if result is None:
        return eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape).clone()
    return result


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices from left to right; the first and the last may be vectors.

    >>> import genesis
    >>> multi_dot([genesis.ones(2), genesis.ones(2, 3), genesis.ones(3)])
    tensor(6.)
    """
    if len(tensors) < 2:
        raise ValueError(f"multi_dot: got {len(tensors)} tensors; want two at least")
    return reduce(matmul, tensors)
