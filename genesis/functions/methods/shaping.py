"""Transposes, shapes taken from other tensors (`view_as`), and new tensors of the same dtype (`new_zeros`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.functions import creation
from genesis.functions.methods.storage import TypedStorage, set_
from genesis.functions.methods.strides import as_strided
from genesis.functions.overrides import function, overridable_method
from genesis.ir.annotations import Extents
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.library import Library
from genesis.ir.shapes import normalize_axis
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Operand, Tensor, attribute, method
from genesis.tensor.views import known_views, view

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# ---- transposes ----
@attribute
def T(self: Tensor) -> Tensor:
    """The axes in reverse order."""
    return known_views.call(self, "permute", ((*range(self.ndim - 1, -1, -1),),))


@attribute
def mT(self: Tensor) -> Tensor:
    """The last two axes exchanged; a 0-d tensor is its own."""
    if self.ndim == 1:
        raise ArgumentError(f"mT: wants two axes at least, got shape {self.shape}")
    return view(self, "transpose", -2, -1) if self.ndim else self


@overridable_method
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector is its own.

    >>> genesis.t(genesis.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    ndim = input.ndim
    if ndim > 2:
        raise ArgumentError(f"t: wants two axes at most, got shape {input.shape}; use transpose")
    return known_views.call(input, "permute", ((-1, -2)[:ndim],))  # arguments unique to `t`: PyTorch names its backward so


# ---- like another tensor ----
def _shaped_as(name: str, rule: str, doc: str) -> None:
    def shaped(self: Tensor, other: Tensor) -> Tensor:
        return view(self, rule, other.shape)

    shaped.__name__, shaped.__doc__ = name, doc
    method(shaped)


_shaped_as("view_as", "view", "A view with the shape of `other`.")
_shaped_as("reshape_as", "reshape", "The tensor in the shape of `other`.")
_shaped_as("expand_as", "expand", "The tensor expanded to the shape of `other`.")


@overridable_method
def broadcast_to(input: Tensor, *shape: Extents, size: Extents | None = None) -> Tensor:
    """The tensor expanded to `shape`, or `size`.

    >>> genesis.broadcast_to(genesis.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return view(input, "expand", *(shape if size is None else (size,)))


@overridable_method
def ravel(input: Tensor) -> Tensor:
    """All axes merged into one, whose elements follow each other in memory.

    >>> genesis.ravel(genesis.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return view(input.contiguous(), "reshape", -1)


@method
def repeat(self: Tensor, *repeats: Extents) -> Tensor:
    """Copies of the tensor end to end, `repeats` along each axis.

    >>> genesis.arange(2).repeat(2, 2)
    tensor([[0, 1, 0, 1],
            [0, 1, 0, 1]])
    """
    counts = creation.as_shape("repeat", repeats)
    if len(counts) < self.ndim:
        raise ArgumentError(f"repeat: {len(counts)} counts for a tensor of {self.ndim} axes; want one each at least")
    return call(OPERATIONS["tile"], (self, counts))


@function("moveaxis")
@overridable_method
def movedim(input: Tensor, source: Extents, destination: Extents) -> Tensor:
    """The axes `source` moved to the positions `destination`, the others in their order.

    >>> genesis.movedim(genesis.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    pairs = [[d] if isinstance(d, int) else list(d) for d in (source, destination)]
    froms, tos = ([normalize_axis("movedim", d, input.ndim) for d in dims] for dims in pairs)
    if len(froms) != len(tos) or len({*froms}) < len(froms) or len({*tos}) < len(tos):
        raise ArgumentError(f"movedim: source {source} and destination {destination}; want as many axes, each of them once")
    order = [axis for axis in range(input.ndim) if axis not in froms]
    for to, axis in sorted(zip(tos, froms, strict=True)):
        order.insert(to, axis)
    return view(input, "permute", order[: input.ndim])  # 0-d tensors take 0 for an axis


# ---- new tensors of the same dtype ----
@method
def new_tensor(
    self: Tensor, data: ArrayLike, *, dtype: DType | None = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """A tensor with a copy of `data`, in this tensor's dtype and on its device."""
    return from_data(data, dtype or self.dtype, requires_grad, device or self.device)


@method
def new_full(
    self: Tensor, size: Extents, fill_value: Operand, *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`fill_value` everywhere, in this tensor's dtype and on its device."""
    return creation.full(size, fill_value, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def _new_method(name: str, filled: Callable[..., Tensor], doc: str) -> None:
    def new(
        self: Tensor, *extents: Extents, size: Extents | None = None, dtype: DType | None = None, device: DeviceLike = None,
        requires_grad: bool = False, layout: object = None, pin_memory: bool = False,
    ) -> Tensor:
        dtype, device, options = dtype or self.dtype, device or self.device, {} if layout is None else {"layout": layout}
        return filled(*extents, size=size, dtype=dtype, device=device, requires_grad=requires_grad, **options)

    new.__name__, new.__doc__ = name, doc
    method(new)


_new_method("new_zeros", creation.zeros, "Zeros in this tensor's dtype and on its device.")
_new_method("new_ones", creation.ones, "Ones in this tensor's dtype and on its device.")
_new_method("new_empty", creation.empty, "A tensor in this one's dtype and on its device, to be written.")


@method
def new(self: Tensor, *content: Any, device: DeviceLike = None) -> Tensor:
    """A tensor of this one's dtype and device: from sizes, nested lists, or as a view of a tensor or storage.

    If genesis is imported as `torch`, sizes are ints or a `torch.Size`, and a tuple is data, as in PyTorch.

    >>> genesis.ones(2).new([1, 2])
    tensor([1., 2.])
    """
    first = content[0] if content else 0
    if isinstance(first, Tensor) and first.dtype is self.dtype:
        return first.view_as(first)
    if isinstance(first, Tensor | TypedStorage):
        return set_(creation.empty(0, dtype=self.dtype, device=self.device), first)
    if isinstance(first, bool | float | complex | np.inexact):
        raise ArgumentTypeError(f"new: got {first!r}; want sizes, which are ints, a list of data, a tensor or a storage")
    is_shape = isinstance(first, tuple) and not (Library.strict and type(first) is tuple)
    if not is_shape and not isinstance(first, int | np.integer):
        return new_tensor(self, first, device=device)
    shape = first if is_shape else content or (0,)
    return creation.empty(shape, dtype=self.dtype, device=self.device if device is None else device)


@method
def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """A tensor of class `cls` that shares storage and gradient."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass: wants a subclass of Tensor, got {cls!r:.60}")
    result = as_strided(self, self.shape, self.storage_layout.strides) if not self.requires_grad else self.view_as(self)
    result.__class__ = cls
    return result


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False, **ignored: object) -> Tensor:
    """A leaf of class `cls` that shares the storage of `data`."""
    return as_subclass(data.detach(), cls).requires_grad_(require_grad)


Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]
