"""Writing into a tensor: copy_, fill_, random fills, masked fills, and `.data`."""

from __future__ import annotations

from typing import Any

from genesis.construction import from_data
from genesis.dispatch import array_of, call, filled
from genesis.ops.registry import OPERATIONS
from genesis.random import drawn
from genesis.storage import detach, view, write
from genesis.tensor import Tensor, attribute, method, tensor_of

__all__: list[str] = []


@method
def copy_(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Write `source`, broadcast and converted, into this tensor."""
    if not isinstance(source, Tensor):
        source = from_data(source)
    source = source.to(self.device)
    value = call(OPERATIONS["to_dtype"], (source, self.dtype)) if source.dtype is not self.dtype else source.clone()
    if value.shape != self.shape:
        value = call(OPERATIONS["expand"], (value, self.shape)).clone()
    return write(self, value)


@method
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write `value` everywhere."""
    if isinstance(value, Tensor):
        if value.shape:
            raise ValueError(f"fill_: value must be a number or a 0-d tensor, got shape {value.shape}")
        return self.copy_(value)
    target = self
    for axis, (extent, stride) in enumerate(zip(self.shape, self.layout.strides, strict=True)):
        if stride == 0 and extent > 1:  # one place, written once
            target = view(target, "narrow", axis, 0, 1)
    write(target, filled(value, target.shape, self.dtype, self.device))
    return self


@method
def zero_(self: Tensor) -> Tensor:
    """Write zeros everywhere."""
    return self.fill_(0)


@method
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The tensor with `value` where `mask` (broadcast) holds."""
    if mask.dtype.name != "bool":
        raise TypeError(f"masked_fill: mask must be bool, got {mask.dtype.name}")
    result: Tensor = call(OPERATIONS["where"], (mask, value, self))
    return result.to(self.dtype)


@method
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write `value` where `mask` (broadcast) holds."""
    return write(self, self.masked_fill(mask, value))


@method
def uniform_(self: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Fill with random numbers of [low, high)."""
    return write(self, drawn("uniform", self.shape, self.dtype, low, high, device=self.device))


@method
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill with normal random numbers."""
    return write(self, drawn("normal", self.shape, self.dtype, mean, std, device=self.device))


@method
def bernoulli_(self: Tensor, p: float = 0.5) -> Tensor:
    """Fill with 1 with probability `p`, 0 otherwise."""
    dtype = self.dtype if self.is_floating_point() else None
    return self.copy_(drawn("uniform", self.shape, dtype, device=self.device) < p)


@method
def random_(self: Tensor, low: int = 0, high: int | None = None) -> Tensor:
    """Fill with random integers of [low, high)."""
    if high is None:
        low, high = 0, low or 2 ** min(8 * self.element_size() - 1, 24)
    return write(self, drawn("randint", self.shape, self.dtype, low, high, device=self.device))


@attribute
def data(self: Tensor) -> Tensor:
    """The tensor outside its derivation, sharing its storage; assigning to it replaces the values.

    Unlike `detach()`, what is written through it goes unnoticed by a backward that still reads the old values.

    >>> import genesis
    >>> x = genesis.ones(2, requires_grad=True)
    >>> x.data -= 0.25
    >>> x
    tensor([0.7500, 0.7500], requires_grad=True)
    """
    result = detach(self)
    result._untracked = True
    return result


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"data: wants a Tensor, got {type(value).__name__}")
    shared = detach(value)
    root = shared._base
    assert root is not None
    if (root is self or root is self._base) and shared.layout == self.layout:  # `p.data -= step` has been done already
        return
    if not self.is_leaf:  # a result keeps its derivation
        self.data.copy_(value)
        return
    if root is self:  # no tensor is a view of itself
        root = tensor_of(array_of(self))
    self._array = shared._array
    self._base, self._layout, self._seen, self._detached = root, shared._layout, root._version, True


Tensor.data = Tensor.data.setter(_set_data)  # type: ignore[attr-defined]
