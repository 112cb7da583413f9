"""Rebinding a tensor to another storage, or to other strides of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from genesis.functions.creation import empty
from genesis.functions.methods.restriding import as_strided, become_view
from genesis.functions.methods.shaping import new_tensor
from genesis.functions.methods.storage import TypedStorage
from genesis.functions.overrides import function
from genesis.ops.layout import contiguous_layout
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, method, root_of
from genesis.tensor.in_place import refuse_leaf
from genesis.tensor.versions import count_write


@method
def set_(
    self: Tensor, source: Tensor | TypedStorage | None = None, storage_offset: int = 0, size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Rebind the tensor to `source`, a tensor or storage of its dtype, and share its memory; returns the tensor.

    With `size` it is `as_strided` of the storage from `storage_offset`, row-major unless `stride` is given. Without `source`
    it has no elements. Raises RuntimeError for a leaf that requires a gradient while gradients are recorded, and for
    another dtype.

    >>> x, y = genesis.zeros(2), genesis.arange(4.0)
    >>> x.set_(y.storage(), 1, (2,))[0] = 7
    >>> x, y
    (tensor([7., 2.]), tensor([0., 7., 2., 3.]))
    """
    refuse_leaf(self)
    if source is None:
        source = empty(0, dtype=self.dtype, device=self.device)
    given: Tensor = source._root if isinstance(source, TypedStorage) else source
    if given.dtype is not self.dtype:
        raise RuntimeError(f"set_: the source holds {given.dtype.name}; want the tensor's {self.dtype.name}")
    if size is not None:
        strides = contiguous_layout(tuple(size)).strides if stride is None else stride
        given = as_strided(given.detach(), size, strides, storage_offset)
    elif isinstance(source, TypedStorage):
        given = given.detach().reshape(-1)
    self.data = given
    count_write(self)
    return self


@function()
@method
def as_strided_(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """`as_strided`, in place: the tensor becomes this view of its storage.

    >>> genesis.arange(4).as_strided_((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    return become_view(self, "as_strided", partial(as_strided, self, size, stride, storage_offset))


@function()
@method
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A view of this tensor's storage with the layout of `src`, a slice of the storage."""
    return as_strided(input, src.shape, src.layout.strides, src.layout.offset)


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether `tensor` is the same view of the same storage.

    >>> x = genesis.zeros(2, 3)
    >>> x.is_set_to(x.view(2, 3)), x.is_set_to(x[:1])
    (True, False)
    """
    array_of(self), array_of(tensor)
    roots = [root_of(t) for t in (self, tensor)]
    return roots[0] is roots[1] and self.layout == tensor.layout and self._element_map is tensor._element_map


@method
def dim_order(self: Tensor) -> tuple[int, ...]:
    """The axes from the widest stride to the narrowest.

    >>> genesis.zeros(2, 3).T.dim_order()
    (1, 0)
    """
    strides = self.layout.strides
    return tuple(sorted(range(self.ndim), key=lambda axis: -strides[axis]))


@method
def const_data_ptr(self: Tensor) -> int:
    """`data_ptr()`."""
    return self.data_ptr()


@method
def new(self: Tensor, *content: Any, device: DeviceLike = None) -> Tensor:
    """A tensor of this one's dtype and device: from sizes, nested lists, or as a view of a tensor or storage.

    >>> genesis.ones(2).new([1, 2])
    tensor([1., 2.])
    """
    if len(content) == 1 and isinstance(content[0], Tensor | TypedStorage):
        return set_(empty(0, dtype=self.dtype, device=self.device), content[0])
    if content and not isinstance(content[0], int) and not isinstance(content[0], tuple):
        return new_tensor(self, content[0], device=device)
    shape = content[0] if content and isinstance(content[0], tuple) else content or (0,)
    return empty(shape, dtype=self.dtype, device=self.device if device is None else device)


@method
def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """A tensor of class `cls` that shares storage and gradient."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass: wants a subclass of Tensor, got {cls!r:.60}")
    result = as_strided(self, self.shape, self.layout.strides) if not self.requires_grad else self.view_as(self)
    result.__class__ = cls
    return result


def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False, **ignored: object) -> Tensor:
    """A leaf of class `cls` that shares the storage of `data`."""
    return as_subclass(data.detach(), cls).requires_grad_(require_grad)


Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]
