"""Rarer names of methods: PyTorch's old spellings, constants, functions that it has removed, and the array API standard's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

from genesis.functions.creation import as_shape
from genesis.functions.methods.inspection import define_properties
from genesis.ir.annotations import AnyFunction, Extents
from genesis.ir.dtypes import DType
from genesis.ir.shapes import numel
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor, attribute, method
from genesis.tensor.in_place import in_place

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")  # of the array API standard


# ---- old spellings ----
@method
def resize(self: Tensor, *sizes: Extents) -> Tensor:
    """`reshape`. Raises RuntimeError for another number of elements.

    >>> genesis.arange(4).resize(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    shape = as_shape("resize", sizes)
    if numel(shape) != numel(self.shape):
        raise RuntimeError(f"resize: shape {self.shape} has {numel(self.shape)} elements, {shape} {numel(shape)}; want as many")
    return self.reshape(shape)


@method
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`resize`, to the shape of `tensor`."""
    return resize(self, tensor.shape)


@method
def float_power_(self: Tensor, exponent: Tensor | float) -> Tensor:
    """`float_power`, in place, of a float64 tensor. Raises RuntimeError for another dtype."""
    if self.dtype.name != "float64":
        raise RuntimeError(f"float_power_: the tensor is {self.dtype.name}; want float64, which the result has")
    return in_place(self, OPERATIONS["float_power"], (exponent,))


@method
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """The tensor that `load_state_dict` stores: this one with the values of `other`, or `other` itself with `assign`."""
    return other.detach() if assign else self.copy_(other).detach()


# ---- constants ----
define_properties(attribute, int, {"output_nr": ("0: a node of the graph of gradients has one result.", lambda self: 0)})
define_properties(attribute, bool, {
    "is_xla": ("Whether it is on a TPU: no.", lambda self: False),
    "volatile": ("Whether it is a Variable of PyTorch 0.3 without gradients: no.", lambda self: False),
})
define_properties(attribute, type(None), {"name": ("None: tensors have no names.", lambda self: None)})


@attribute
def grad_dtype(self: Tensor) -> DType:
    """The dtype of its gradient, always its own."""
    return self.dtype


# ---- functions removed from PyTorch ----
def removed(name: str, instead: str) -> AnyFunction:
    """A function that raises RuntimeError and names its replacement."""

    def gone(self: Tensor, *args: object, **kwargs: object) -> None:
        raise RuntimeError(f"{name}: PyTorch has removed it; use {instead}")

    gone.__name__ = gone.__qualname__ = name
    gone.__doc__ = f"Raises RuntimeError, as PyTorch's: it was removed for {instead}."
    return gone


REMOVED = {name: method(removed(name, instead)) for name, instead in {
    "eig": "linalg.eig", "lstsq": "linalg.lstsq", "solve": "linalg.solve", "symeig": "linalg.eigh",
    "reinforce": "distributions",
}.items()}


# ---- of the array API standard ----
@method
def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> ModuleType:
    """The array API's functions for this array. Raises ValueError for an unsupported version."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"__array_namespace__: api_version {api_version!r}; want one of {', '.join(_VERSIONS)}")
    return sys.modules["genesis"].array_api  # type: ignore[no-any-return]


@method
def to_device(self: Tensor, device: DeviceLike, /, *, stream: object = None) -> Tensor:
    """The tensor on `device`; itself if it is there already."""
    return self.to(device)


# ---- Python functions of each element: slow, one Python call each ----
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
