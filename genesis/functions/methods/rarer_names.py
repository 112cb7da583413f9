"""PyTorch's rarer names of methods: old spellings, constants, and functions that PyTorch has removed."""

from __future__ import annotations

from genesis.functions.creation import as_shape
from genesis.functions.overrides import function
from genesis.ir.annotations import AnyFunction, Extents
from genesis.ir.dtypes import DType
from genesis.ir.shapes import numel
from genesis.ops.registry import OPERATIONS
from genesis.tensor.handle import Tensor, attribute, method
from genesis.tensor.in_place import in_place
from genesis.tensor.views import detach


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


@function()
def detach_copy(input: Tensor) -> Tensor:
    """A copy without gradient.

    >>> genesis.detach_copy(genesis.ones(2, requires_grad=True)).requires_grad
    False
    """
    return detach(input).clone()


@method
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """The tensor that `load_state_dict` stores: this one with the values of `other`, or `other` itself with `assign`."""
    return other.detach() if assign else self.copy_(other).detach()


# ---- constants ----
def _constant(name: str, value: object, doc: str) -> None:
    def answer(self: Tensor) -> object:
        return value

    answer.__name__ = answer.__qualname__ = name
    answer.__module__, answer.__doc__, answer.__annotations__["return"] = "genesis", doc, type(value)
    attribute(answer)


for _name, _value, _doc in (
    ("output_nr", 0, "0: a node of the graph of gradients has one result."),
    ("is_xla", False, "Whether it is on a TPU: no."),
    ("volatile", False, "Whether it is a Variable of PyTorch 0.3 without gradients: no."),
    ("name", None, "None: tensors have no names."),
):
    _constant(_name, _value, _doc)


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
    gone.__module__, gone.__doc__ = "genesis", f"Raises RuntimeError, as PyTorch's: it was removed for {instead}."
    return gone


REMOVED = {name: method(removed(name, instead)) for name, instead in {
    "eig": "linalg.eig", "lstsq": "linalg.lstsq", "solve": "linalg.solve", "symeig": "linalg.eigh",
    "reinforce": "distributions",
}.items()}
