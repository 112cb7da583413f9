"""`NAME_copy`: copies of views; and tensors of a given layout or size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from genesis.functions.creation import LayoutOptions, check_layout_options, empty
from genesis.functions.methods.strides import as_strided, become_view
from genesis.functions.overrides import FUNCTIONS
from genesis.functions.public_names import function_named
from genesis.ir.annotations import AnyFunction, Extents
from genesis.ir.dtypes import DType, as_dtype, get_default_dtype
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import contiguous_strides, numel
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor, method, root_of
from genesis.tensor.out import takes_out
from genesis.tensor.versions import count_write, hand_over_storage
from genesis.tensor.views import move_storage
from genesis.tracing.recording_hooks import refuse


def _copying(name: str) -> AnyFunction:
    """The function NAME_copy."""

    def copied(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        shown = function_named(name) or getattr(Tensor, name)
        result = shown(input, *args, **kwargs)
        return result.clone() if isinstance(result, Tensor) else tuple([part.clone() for part in result])

    copied.__name__ = copied.__qualname__ = f"{name}_copy"
    copied.__doc__ = f"`{name}`, in memory of its own."
    return takes_out(copied)


for _name in (
    "as_strided", "diagonal", "expand", "permute", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
    "split_with_sizes", "split", "select", "slice", "detach",
):
    FUNCTIONS[f"{_name}_copy"] = _copying(_name)


@takes_out
def alias_copy(input: Tensor) -> Tensor:
    """A copy.

    >>> genesis.alias_copy(genesis.tensor([1, 2]))
    tensor([1, 2])
    """
    return input.clone()


FUNCTIONS["alias_copy"] = alias_copy


# ---- storage ----
def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """An uninitialized tensor with the given strides. Raises ValueError unless there is one per axis.

    >>> genesis.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    if options:
        check_layout_options("empty_strided", options)
    if len(size) != len(stride):
        raise ArgumentError(f"empty_strided: size {tuple(size)}, stride {tuple(stride)}; want one for each axis")
    needed = sum([(extent - 1) * step for extent, step in zip(size, stride, strict=True)]) + 1 if numel(tuple(size)) else 0
    storage = empty(needed, dtype=as_dtype("empty_strided", dtype or get_default_dtype()), device=device)
    result: Tensor = storage.as_strided(tuple(size), tuple(stride), 0)
    return result.detach().requires_grad_() if requires_grad else result


def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False, **options: Unpack[LayoutOptions],
) -> Tensor:
    """An uninitialized tensor whose axes are in memory in the order `physical_layout`, the outermost first.

    Raises ValueError unless that names each axis once.

    >>> genesis.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    order = tuple(physical_layout)
    if sorted(order) != [*range(len(size))]:
        raise ArgumentError(f"empty_permuted: physical_layout {order} must name each of the {len(size)} axes once")
    strides = contiguous_strides(tuple([size[axis] for axis in order]))
    stride = [strides[order.index(axis)] for axis in range(len(size))]
    return empty_strided(size, stride, dtype=dtype, device=device, requires_grad=requires_grad, **options)


@method
def new_empty_strided(
    self: Tensor, size: Sequence[int], stride: Sequence[int], dtype: DType | None = None, device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`empty_strided` with the tensor's dtype, on its device."""
    return empty_strided(size, stride, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


@method
def resize_(self: Tensor, *sizes: Extents, memory_format: object = None) -> Tensor:
    """Changes the tensor's shape in place: it is the elements of its storage from its first one on, in row-major order. Where
    these are too few, the storage grows, with zeros at its end; that of a tensor that requires a gradient stays as it is.

    Raises RuntimeError for a tensor that requires a gradient, and where memory shared with the outside, as NumPy, is too small;
    ValueError for a negative extent.

    >>> genesis.tensor([1, 2, 3]).resize_(2, 2)
    tensor([[1, 2],
            [3, 0]])
    """
    listed: Sequence[Any] = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    shape = tuple([int(extent) for extent in listed])
    if self.requires_grad:
        raise RuntimeError("resize_: a tensor that requires grad cannot be resized; use detach()")
    if any(extent < 0 for extent in shape):
        raise ArgumentError(f"resize_: extents must not be negative, got {shape}")
    if shape == self.shape:
        return self
    refuse("a tensor is resized")
    root, start, count = root_of(self), self.storage_offset(), numel(shape)
    if start + count > root.numel():
        if root._array.memory is not None and root._array.memory.buffer.shared:
            raise RuntimeError(f"resize_: memory shared with the outside cannot grow to shape {shape}; clone() it first")
        more = empty(start + count - root.numel(), dtype=self.dtype, device=self.device)
        whole = call(OPERATIONS["cat"], ([as_strided(root.detach(), (root.numel(),), (1,), 0), more],))
        if root.requires_grad:
            move_storage(self, whole[start:].reshape(shape).clone())
            count_write(self)
            return self
        hand_over_storage(root, whole._array, contiguous_layout(root.shape))
    return become_view(self, "resize", partial(as_strided, self, shape, contiguous_strides(shape), start))


@method
def resize_as_(self: Tensor, template: Tensor, memory_format: object = None) -> Tensor:
    """`resize_` to the shape of `template`."""
    return resize_(self, template.shape)


def unravel_index(indices: Tensor, shape: Extents) -> tuple[Tensor, ...]:
    """Converts flat, row-major `indices` to indices along each axis of `shape`.

    An index out of range wraps around. Raises TypeError for other dtypes than integers.

    >>> genesis.unravel_index(genesis.tensor([4, 0]), (2, 3))
    (tensor([1, 0]), tensor([1, 0]))
    """
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if array_of(indices).node.dtype.category != 1:
        raise TypeError(f"unravel_index: indices must be integers, got {indices.dtype.name}")
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"unravel_index: shape must not be negative, got {extents}")
    wide, strides = indices.long(), contiguous_strides(extents)
    return tuple([(wide // max(step, 1)) % extent for step, extent in zip(strides, extents, strict=True)])
