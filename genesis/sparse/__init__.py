"""Sparse tensors, under the names of `torch.sparse`.

>>> x = genesis.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), requires_grad=True)
>>> genesis.sparse.mm(x, genesis.ones(3, 1)).sum().backward()
>>> x.grad.to_dense()
tensor([[0., 0., 1.],
        [1., 0., 1.]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from genesis.ir.dtypes import DType
from genesis.pytree import map_tree
from genesis.sparse import methods as _methods
from genesis.sparse.creation import check_sparse_tensor_invariants, spdiags
from genesis.sparse.products import reduced_product, sampled_addmm
from genesis.sparse.reductions import log_softmax, softmax
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor

__all__ = [
    "SparseTensor", "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm",
    "softmax", "spdiags", "sum",
]
__dir__ = __all__.copy


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta` * mat + `alpha` * mat1 @ mat2; any of the matrices may be sparse."""
    return mat.addmm(mat1, mat2, beta=beta, alpha=alpha)


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of two matrices, at least one of them sparse; sparse if both are.

    For a sparse and a dense one, `reduce` combines the products of elements: "sum", "mean" (over stored elements), "amax" or
    "amin", which are 0 without elements. Raises ValueError for another.

    >>> x = genesis.tensor([[2.0, 3.0], [0.0, 0.0]]).to_sparse()
    >>> genesis.sparse.mm(x, genesis.ones(2, 1), "amax")
    tensor([[3.],
            [0.]])
    """
    if reduce != "sum":
        return reduced_product(mat1, mat2, reduce)
    return mat1 @ mat2


def sum(input: Tensor, dim: int | Sequence[int] | None = None, dtype: DType | None = None) -> Tensor:
    """The sum of the elements of a sparse tensor, over all axes or `dim`; sparse, of its dtype, where a sparse axis is left.

    >>> x = genesis.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> genesis.sparse.sum(x), genesis.sparse.sum(x, 0).values()
    (tensor(12.), tensor([4., 8.]))
    """
    total = input.sum(dim, dtype=dtype)
    return total.to(input.dtype) if dtype is None and isinstance(total, SparseTensor) else total


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`gradcheck`, or a function like it, for functions of sparse tensors: it checks gradients by their elements.

    Sparse results are converted to dense. `masked` has no effect: elements that are not stored have no gradient.

    >>> check = genesis.sparse.as_sparse_gradcheck(genesis.autograd.gradcheck)
    >>> x = genesis.eye(2, dtype=genesis.float64).to_sparse().requires_grad_()
    >>> check(lambda x: genesis.sparse.mm(x, x), (x,))
    True
    """

    @wraps(gradcheck)
    def of_sparse(func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, masked: bool = False, **settings: Any) -> bool:
        given = [inputs] if isinstance(inputs, Tensor) else [*inputs]

        def of_elements(*arguments: Any) -> Any:
            own = [x.with_elements(e) if isinstance(x, SparseTensor) else e for x, e in zip(given, arguments, strict=True)]
            return map_tree(lambda found: found.to_dense() if isinstance(found, SparseTensor) else found, func(*own))

        return gradcheck(of_elements, [x.derived_part if isinstance(x, SparseTensor) else x for x in given], **settings)

    return of_sparse


_installed = _methods  # imported for the methods that it defines
