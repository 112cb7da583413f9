"""`as_strided` and its kin, and changes of shape in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from genesis.functions.creation import as_shape
from genesis.functions.overrides import function, overridable_method
from genesis.ir.annotations import Extents
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import numel, reach
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.registry import OPERATIONS
from genesis.ops.view_gradient import is_injective
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor, method, root_of
from genesis.tensor.in_place import refuse_leaf
from genesis.tensor.versions import count_write, hand_over_storage
from genesis.tensor.view_memory import make_view
from genesis.tensor.views import detach, share_data, view
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.state import grad_mode, thread_state


# ---- explicit strides ----
def _strided(name: str, size: Sequence[int], stride: Sequence[int], offset: int, elements: int) -> Layout:
    """The layout of these numbers; raises unless it is within a storage of `elements`."""
    shape, strides = as_shape(name, (size,)), as_shape(name, (stride,))
    if len(shape) != len(strides) or offset < 0:
        raise ArgumentError(f"{name}: size {shape}, stride {strides}, offset {offset}; want a stride for each extent, none < 0")
    if numel(shape) and offset + reach(shape, strides)[1] > elements:
        raise ArgumentError(f"{name}: size {shape}, stride {strides}, offset {offset} exceed a storage of {elements} elements")
    return Layout(shape, strides, int(offset))


@overridable_method
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of the storage of `input`: element (i, j, ..) is at storage_offset + i*stride[0] + j*stride[1] + ..

    Without `storage_offset`, it is that of `input`. Gradients flow only to the elements of `input`, not to others of its
    storage. Raises ValueError beyond the storage, RuntimeError for an `input` that requires a gradient and has overlapping
    elements.

    >>> genesis.arange(4).as_strided((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    array_of(input)
    root = root_of(input)
    if input.dtype is not root.dtype:
        raise RuntimeError(f"as_strided: a {input.dtype.name} view of {root.dtype.name} storage; clone() it first")
    _need_own_storage("as_strided", root, storage_offset)
    own = input.storage_layout
    at = _strided("as_strided", size, stride, own.offset if storage_offset is None else storage_offset, root.numel())
    whole = own == contiguous_layout(own.shape) and numel(own.shape) == root.numel()
    result: Tensor = call(OPERATIONS["view_at"], (input if whole else _storage(root, input), at))
    make_view(result, input, at, input._element_map)
    return result


@function()
@method
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A view of this tensor's storage with the layout of `src`, a slice of the storage."""
    return as_strided(input, src.shape, src.storage_layout.strides, src.storage_layout.offset)


def share_copy(result: Tensor, tensor: Tensor, memo: dict[Any, Any]) -> None:
    """Make the new `result` a copy of `tensor` that shares the copy of its storage, which `memo` has for all that view it."""
    root = root_of(tensor)
    if root._storage is None or tensor._element_map is not None or tensor.dtype is not root.dtype:
        result._array = from_data(tensor)._array
        return
    copies = memo.setdefault("storages", {})
    if root is tensor and id(root) not in copies:
        result._array = from_data(tensor)._array
        copies[id(root)] = result
        return
    if id(root) not in copies:
        copies[id(root)] = from_data(detach(root))
    share_data(result, as_strided(detach(copies[id(root)]), *tensor.storage_layout))


def _need_own_storage(name: str, root: Tensor, offset: int | None) -> None:
    """Refuse layouts that a transform would change: its arguments are copies, in row-major order."""
    at = root._lay_as
    if at is None:
        return
    if offset is not None:
        refuse(f"{name} at a given offset, of a transform's argument")  # guards do not fix that offset
    if not (at.is_contiguous and (offset is None or not at.offset)):
        raise RuntimeError(
            f"{name}: an argument of a transform that the caller gave as a view, with strides {at.strides} from {at.offset}, "
            "whose storage is not followed here; want one that lies by itself, such as a clone()")


def _storage(root: Tensor, input: Tensor) -> Tensor:
    """The whole storage as a tensor; only the elements of `input` carry its gradient."""
    whole = root.detach()
    if input._element_map is not None:
        whole = call(OPERATIONS[input._element_map], (whole,))
    if not input.requires_grad:
        return whole
    if not is_injective(input.storage_layout):
        raise RuntimeError(f"as_strided: a view with strides {input.stride()} that requires a gradient; want elements "
                           "that do not lie over each other, such as those of a clone()")
    return call(OPERATIONS["put"], (whole, input), input.storage_layout._asdict())


@overridable_method
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` written at the elements of `as_strided`.

    Raises ValueError for strides beyond its storage, for a `src` of another shape than `size`, and for an `input` or strides
    with overlapping elements.

    >>> genesis.as_strided_scatter(genesis.zeros(2, 2), genesis.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    own, root = input.storage_layout, root_of(input)
    _need_own_storage("as_strided_scatter", root, storage_offset)
    offset = own.offset if storage_offset is None else storage_offset
    at = _strided("as_strided_scatter", size, stride, offset, root.numel())
    if src.shape != at.shape:
        raise ArgumentError(f"as_strided_scatter: src has shape {src.shape}; want {at.shape}")
    for what, layout in (("input", own), ("size", at)):
        if not is_injective(layout):
            raise ArgumentError(f"as_strided_scatter: {what} {layout.shape} has strides {layout.strides}; want elements "
                                "that do not lie over each other")
    if own == contiguous_layout(own.shape) and root.numel() == numel(own.shape):
        return call(OPERATIONS["put"], (input, src), at._asdict())
    return call(OPERATIONS["view_at"], (call(OPERATIONS["put"], (_storage(root, input), src), at._asdict()), own)).clone()


# ---- in place ----
def _restride_in_place(tensor: Tensor, name: str, *arguments: Extents, **named: Extents) -> Tensor:
    return become_view(tensor, name, partial(view, tensor, name, *arguments, **named))


def become_view(tensor: Tensor, name: str, make: Callable[[], Tensor]) -> Tensor:
    """Gives `tensor` the shape and strides of the view of its storage that `make` makes, in place: a write of no elements.

    If it is no longer its whole storage in row-major order, that moves to a new root, and the tensor and its views become views
    of that root.
    """
    refuse("the shape of a tensor is changed in place")
    array = array_of(tensor)
    refuse_leaf(tensor)
    if tensor._retains_grad:
        raise RuntimeError(f"{name}_: retain_grad() was called on this tensor as it was; call it after the change")
    with grad_mode(thread_state.grad_enabled or array.node.differentiable):  # a result keeps its derivation
        restrided = make()
    is_whole = restrided._layout == contiguous_layout(restrided.shape) and numel(restrided.shape) == numel(tensor.shape)
    if tensor._base is None and not is_whole:
        hand_over_storage(tensor, array, contiguous_layout(tensor.shape))
    root = root_of(tensor)
    count_write(tensor)
    tensor._array = restrided._array  # nothing is called from here on, and so no signal handler comes between
    if root is not tensor:
        tensor._layout, tensor._seen = restrided._layout, root._changes
    return tensor


def _in_place(name: str, rule: str) -> Callable[..., Tensor]:
    def changed(self: Tensor, *arguments: Extents, **named: Extents) -> Tensor:
        return _restride_in_place(self, rule, *arguments, **{keywords.get(key, key): value for key, value in named.items()})

    keywords = dict(OPERATIONS[rule].keywords)
    changed.__name__, changed.__doc__ = name + "_", f"`{name}`, in place."
    return method(changed)


for _name, _rule in {
    "squeeze": "squeeze", "unsqueeze": "unsqueeze", "transpose": "transpose", "swapaxes": "transpose", "swapdims": "transpose",
}.items():
    _in_place(_name, _rule)


@method
def t_(self: Tensor) -> Tensor:
    """`t`, in place.

    >>> x = genesis.zeros(2, 3)
    >>> x.t_().shape, x.shape
    ((3, 2), (3, 2))
    """
    if self.ndim > 2:
        raise ArgumentError(f"t_: wants two axes at most, got shape {self.shape}; use transpose_")
    return _restride_in_place(self, "permute", tuple(range(self.ndim))[::-1])


@method
def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write `fill_value` on the diagonal: of a matrix, or of a tensor of more axes with equal extents.

    With `wrap` the diagonal of a tall matrix starts again after one skipped row.

    >>> genesis.zeros(2, 3).fill_diagonal_(5)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ArgumentError(f"fill_diagonal_: shape {self.shape}; want a matrix, or more axes of one extent")
    if wrap and self.ndim == 2:
        period = self.shape[1] + 1
        for start in range(0, self.shape[0], period):
            self.narrow(0, start, min(period, self.shape[0] - start)).fill_diagonal_(fill_value)
        return self
    diagonal = self.diagonal()
    while diagonal.ndim > 1:
        diagonal = diagonal.diagonal(0, 0, -1)
    diagonal.fill_(fill_value)
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
