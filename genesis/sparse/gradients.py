"""Checks of gradients by sparse tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from genesis.pytree import map_tree
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor


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
