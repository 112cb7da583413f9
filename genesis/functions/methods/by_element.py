"""Python functions applied element by element: slow, one Python call each."""

from __future__ import annotations

from collections.abc import Callable

from genesis.ir.annotations import AnyFunction
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor, method

Number = bool | int | float


@method
def apply_(self: Tensor, callable: Callable[[Number], Number]) -> Tensor:
    """Replace each element by `callable(element)`, Python numbers, in place. CPU only, no gradient, slow.

    >>> genesis.tensor([1.0, 4.0]).apply_(lambda x: x + 1)
    tensor([2., 5.])
    """
    return _written(self, callable)


@method
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Number, Number], Number]) -> Tensor:
    """Replace each element by `callable` of it and the element of `tensor`, which broadcasts. As slow as `apply_`.

    >>> genesis.tensor([1.0, 4.0]).map_(genesis.tensor([2.0]), lambda x, y: x * y)
    tensor([2., 8.])
    """
    return _written(self, callable, tensor)


@method
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Number, Number, Number], Number]) -> Tensor:
    """Replace each element by `callable` of it and those of `x` and `y`, which broadcast. As slow as `apply_`.

    >>> genesis.tensor([1.0, 4.0]).map2_(genesis.tensor([2.0]), genesis.tensor([3.0]), lambda x, y, z: x * y + z)
    tensor([ 5., 11.])
    """
    return _written(self, callable, x, y)


def _written(self: Tensor, callable: AnyFunction, *others: Tensor) -> Tensor:
    if self.requires_grad or any(other.requires_grad for other in others):
        raise RuntimeError("apply_: Python functions of elements have no gradient; use detach()")
    lists = [other.expand(self.shape).reshape(-1).tolist() for other in (self, *others)]
    results = [callable(*elements) for elements in zip(*lists, strict=True)]
    return self.copy_(from_data(results, self.dtype, device=self.device).reshape(self.shape))
