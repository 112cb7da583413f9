"""`x[...]` and `x[...] = y`.

Ints, slices, new axes and the ellipsis make one view. Integer tensors (and lists and arrays) then gather from that view as in
NumPy; a boolean mask means the indices where it is true. As in PyTorch, ints are applied before tensors.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from genesis.execution.realize import realize
from genesis.functions.methods.conversion import values_of
from genesis.functions.overrides import routed_access_method
from genesis.functions.random_draws import is_of_an_example
from genesis.ir.dtypes import bfloat16, bool_, float16, int64, refuse_number, uint8
from genesis.ir.errors import ArgumentError, IndexTypeError
from genesis.ops.registry import OPERATIONS
from genesis.ops.views import Item
from genesis.runtime.devices import CPU
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import filled, from_data
from genesis.tensor.handle import Operand, Tensor, from_values
from genesis.tensor.in_memory import selected_in_memory
from genesis.tensor.in_place import require_apart, write
from genesis.tensor.versions import count_write
from genesis.tensor.views import known_views, view
from genesis.tensor.writes_in_memory import known_writes, set_in_memory
from genesis.tracing.recording_hooks import is_recording
from genesis.tracing.state import thread_state

Part = Any  # one of the types below, or an invalid object
Position = int | slice | EllipsisType | None | Tensor | np.ndarray | np.generic | range | list[Any]
Index = Position | tuple[Position, ...]

# Measured at 100 elements: nonzero takes 15 us instead of 49, unique 28 us instead of 229.
FEW = 4096  # up to this many elements, NumPy is faster than finding and running a program


class Subscript(NamedTuple):
    """A parsed index: first a view, then tensors for axes of that view."""

    items: tuple[Item, ...]
    tensors: tuple[tuple[int, Tensor], ...]  # (axis of the view, integers or a mask from there on)


@routed_access_method
def __getitem__(self: Tensor, index: Index) -> Tensor:
    plain = _plain_items(self, index)
    if plain is not None:
        return known_views.call(self, "subscript", (plain,))
    parts = index if index.__class__ is tuple else (index,)
    if len(parts) <= self.ndim and all(map(_is_integers, parts)):  # type: ignore[arg-type]
        return call(OPERATIONS["index"], (self, (*range(len(parts)),), *[_beside(self, part) for part in parts]))  # type: ignore
    if _is_read_now(index) and (selected := selected_in_memory(self, index)) is not None:  # type: ignore[arg-type]
        return selected
    items, tensors = _parsed(self, index)
    part = view(self, "subscript", items) if items or not tensors else self
    if not tensors:
        return part
    if len(tensors) == 1 and tensors[0][1].dtype is bool_ and tensors[0][1].ndim > 1:
        axis, mask = tensors[0]  # flatten its axes: one index per element, not one per axis
        part = part.flatten(axis, axis + mask.ndim - 1)
        return call(OPERATIONS["index"], (part, (axis,), _beside(part, flat_nonzero_of(mask))))  # type: ignore[no-any-return]
    axes, positions = positions_of(part, tensors)
    return call(OPERATIONS["index"], (part, axes, *positions))


@routed_access_method
def __setitem__(self: Tensor, index: Index, value: Operand | list[Any]) -> None:
    _sets.call(self, index, value, None)


def _set(self: Tensor, index: Index, value: Operand | list[Any], _: None) -> None:
    """`x[index] = value`, by Python."""
    if set_in_memory(self, index, value):
        return
    plain = _plain_items(self, index)
    items, tensors = (plain, ()) if plain is not None else _parsed(self, index)
    target = view(self, "subscript", items) if items else self
    if not tensors and _is_written(value, target):  # `x[i] += y` ends so
        return
    if not isinstance(value, Tensor):
        if isinstance(value, int | float | complex) and (self.dtype not in (float16, bfloat16) or abs(value) <= 65504):
            refuse_number("index", value, self.dtype)
        else:  # 16 bits are rounded, as by a copy
            value = from_data(value, self.dtype, device=self.device)
    if not tensors:
        require_apart(target)
        target.copy_(_of_rank(target.ndim, value)) if isinstance(value, Tensor) else target.fill_(value)
        return
    if len(tensors) == 1 and tensors[0][1].dtype is bool_:
        axis, mask = tensors[0]
        rest = target.ndim - axis - mask.ndim
        if not isinstance(value, Tensor) or value.ndim <= rest or value.shape == (1,):
            holds = _beside(target, mask).reshape((*mask.shape, *(1,) * rest))
            write(target, call(OPERATIONS["where"], (holds, value, target)).to(target.dtype))
            return
    axes, positions = positions_of(target, tensors)
    if not isinstance(value, Tensor):
        value = filled(value, (), target.dtype, target.device)
    value = _of_rank(target.ndim - len(axes) + max([p.ndim for p in positions]), value)
    write(target, call(OPERATIONS["index_put"], (target, value, axes, False, "index", True, *positions)))


_sets = known_writes(_set)


def _of_rank(rank: int, value: Tensor) -> Tensor:
    """A value to be assigned to `rank` axes: leading axes of extent 1 are dropped, as in NumPy."""
    extra = value.ndim - rank
    return value.reshape(value.shape[extra:]) if extra > 0 and value.shape[:extra] == (1,) * extra else value


def _is_written(value: object, target: Tensor) -> bool:
    """Whether `value` views the very elements that `target` views, as `x[i] += y` ends; a write is counted, as in PyTorch."""
    root = target._base
    if root is None or not isinstance(value, Tensor) or value._base is not root or value._seen != root._changes:
        return False
    ours, theirs = [(t._layout, t._array.node.dtype, t._element_map, t._detached, t._versions) for t in (value, target)]
    if ours != theirs or root._is_inference or (root._requires_grad and root.is_leaf):
        return False
    count_write(target)
    value._seen = root._changes
    return True


def _plain_items(tensor: Tensor, index: Index) -> tuple[Item, ...] | None:
    """The items of a dense tensor's view for ints, slices, new axes and an ellipsis; None for what `_parsed` takes."""
    if isinstance(tensor, CompositeTensor):
        return None
    if type(index) is int and tensor._array.node.shape:
        return (index,)
    items: list[Item] = []
    new, dots = 0, -1
    for part in index if index.__class__ is tuple else (index,):  # type: ignore[union-attr]
        if part.__class__ is slice:
            bounds = part.start, part.stop, part.step
            if not _BOUNDS.issuperset(map(type, bounds)) or bounds[2] == 0:
                return None
            items.append(bounds)
        elif part is None:
            items.append(None)
            new += 1
        elif type(part) is int:  # no traced number, which says that its class is int
            items.append(part)
        elif part is Ellipsis and dots < 0:
            dots = len(items)
        else:
            return None
    missing = len(tensor._array.node.shape) + new - len(items)
    if dots >= 0:
        items[dots:dots] = [(None, None, None)] * missing
    return tuple(items) if missing >= 0 else None


def _is_read_now(index: Index) -> bool:
    """Whether an index is a short list of ints, or a small mask, which is computed now: the shape of what it selects depends on
    it."""
    if index.__class__ is list:
        return 0 < len(index) <= FEW and all([type(part) is int for part in index])  # type: ignore[arg-type, union-attr]
    is_mask = index.__class__ is Tensor and index._array.node.dtype is bool_  # type: ignore[union-attr]
    if not is_mask or thread_state.deferred or not is_few(index):  # type: ignore[arg-type]
        return False
    realize(array_of(index))  # type: ignore[arg-type]
    return True


def _is_integers(part: Part) -> bool:
    """Whether a part of an index is a tensor of integers, and not of one, which would select a view."""
    return part.__class__ is Tensor and part._array.node.dtype is int64 and bool(part._array.node.shape)


def _parsed(tensor: Tensor, index: Index) -> Subscript:
    """The index with ellipsis and missing axes filled in; raises IndexError if it does not fit."""
    parts, literal, used = list[Part](), list[bool](), 0
    for part in _by_axis(index):
        known = False
        if part.__class__ is slice or part.__class__ is int:
            used += 1
        else:
            part = _as_int(part)
            known = isinstance(part, _LITERALS)
            part = _as_tensor(part) if known else part
            part = mask_of_bytes(part) if isinstance(part, Tensor) and part.dtype is uint8 else part
            used += _axes_of(part)
        parts.append(part)
        literal.append(known)
    if used > tensor.ndim:
        raise IndexError(f"index: {used} indices for a {tensor.ndim}-d tensor of shape {tensor.shape}")
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    while len(dots) > 1 and dots[-1] == len(parts) - 1:  # nothing follows
        del parts[dots[-1]], literal[dots.pop()]
    if len(dots) > 1:
        raise IndexError("index: an index can have one ellipsis (...) only")
    fill = [slice(None)] * (tensor.ndim - used)
    if dots:
        parts[dots[0] : dots[0] + 1] = fill
        literal[dots[0] : dots[0] + 1] = [False] * len(fill)
    items, tensors = list[Item](), list[tuple[int, Tensor]]()
    axis, position = 0, 0  # in the tensor, in the view
    for part, known in zip(parts, literal, strict=True):
        if isinstance(part, Tensor):
            count = _axes_of(part)
            if part.dtype is bool_:
                part = _fitting(part, tensor, axis)
            elif known:
                _check_range(part, axis, tensor.shape[axis])
            new: list[Item] = [(None, None, None)] * count
            if not count:  # a single bool: a new axis of extent 1 or 0
                part, new = part.reshape(1), [None]
            tensors.append((position, part))
            items += new
            axis, position = axis + count, position + len(new)
        elif part is None:
            items.append(None)
            position += 1
        elif isinstance(part, slice):
            items.append(_sliced(part))
            axis, position = axis + 1, position + 1
        else:
            items.append(_integer(part, tensor, axis))
            axis += 1
    is_whole = bool(tensors) and all(item == (None, None, None) for item in items)
    return Subscript(() if is_whole else tuple(items), tuple(tensors))


_LITERALS = (list, tuple, range, np.ndarray, bool, np.bool_)
_BOUNDS = frozenset({int, type(None)})
_INDICES = (slice, EllipsisType, Tensor, list, tuple, np.ndarray)  # types that a list of plain numbers does not contain


def _by_axis(index: Index) -> Sequence[Part]:
    """An index per axis. By PyTorch's rule a short list that has more than numbers is a tuple."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < 32 and any(part is None or isinstance(part, _INDICES) for part in index):
        return index
    return [index]


def _as_int(part: Part) -> Part:
    """Converts a 0-d integer tensor or array to an int, reading its value: like an int it selects a view, not a copy.

    What an example of a vmapped function determines stays a tensor: as in PyTorch it selects a copy.
    """
    if isinstance(part, np.ndarray) and not part.shape and part.dtype.kind == "i":
        return int(part)
    is_int = isinstance(part, Tensor) and not part.shape and part.dtype.category == 1 and part.dtype is not uint8
    return int(part.item()) if is_int and not is_of_an_example(part._array) else part


def _as_tensor(part: Part) -> Tensor:
    is_empty = isinstance(part, list | tuple | range) and not len(part)
    result = from_data(np.asarray(part, np.int64) if is_empty else part, device=CPU)
    if result.dtype.category >= 2:
        raise IndexError(f"index: indices must be integers or bools, got {result.dtype.name}")
    return result


def mask_of_bytes(part: Tensor) -> Tensor:
    """A tensor of uint8 is a mask, as in PyTorch, whose masks were bytes once."""
    said = "index: tensors of uint8 are masks, which is deprecated; want dtype bool for a mask, int64 for indices"
    warnings.warn(said, stacklevel=5)
    return call(OPERATIONS["ne"], (part, 0))  # type: ignore[no-any-return]


def _axes_of(part: Part) -> int:
    """The number of the tensor's axes that one part of an index consumes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype is bool_ else 1


def _sliced(part: slice) -> Item:
    bounds: Any = part.start, part.stop, part.step
    if not _BOUNDS.issuperset(map(type, bounds)):
        bounds = tuple([None if bound is None else operator.index(bound) for bound in bounds])
    if bounds[2] == 0:
        raise ArgumentError("index: a slice's step must not be zero")
    return bounds  # type: ignore[no-any-return]


def _integer(part: Part, tensor: Tensor, axis: int) -> int:
    try:
        position = operator.index(part)
    except TypeError:
        raise IndexTypeError(
            f"index: wants ints, slices, None, ..., integer or bool tensors; got {type(part).__name__} {part!r}"
        ) from None
    extent = tensor.shape[axis]
    if not -extent <= position < extent:
        raise IndexError(f"index {position} is out of range for axis {axis} with extent {extent}")
    return position


def _check_range(index: Tensor, axis: int, extent: int) -> None:
    """Checks a list's indices now; a tensor's are checked when evaluated."""
    positions = values_of(index)
    bad = positions[(positions < -extent) | (positions >= extent)]
    if bad.size:
        raise IndexError(f"index {bad[0]} is out of range for axis {axis} with extent {extent}")


def _fitting(mask: Tensor, tensor: Tensor, axis: int) -> Tensor:
    """A mask with the axes' extents. As in NumPy an extent of the mask may be 0 instead: then it is false everywhere."""
    want = tensor.shape[axis : axis + mask.ndim]
    if mask.shape == want:
        return mask
    if all(extent in (0, other) for extent, other in zip(mask.shape, want, strict=True)):
        return filled(False, want, bool_, tensor.device)
    raise IndexError(f"index: a mask of shape {mask.shape} does not fit axes {axis} and on of shape {tensor.shape}")


def positions_of(tensor: Tensor, tensors: Sequence[tuple[int, Tensor]]) -> tuple[tuple[int, ...], list[Tensor]]:
    """(axes, an integer tensor for each): masks become the indices where they are true; CPU tensors move to the tensor's
    device."""
    axes: list[int] = []
    positions: list[Tensor] = []
    for axis, part in tensors:
        found = [part] if part.dtype is not bool_ else [flat_nonzero_of(part)] if part.ndim == 1 else nonzero_of(part).unbind(1)
        axes += range(axis, axis + len(found))
        positions += [_beside(tensor, p) for p in found]
    return tuple(axes), positions


def is_few(tensor: Tensor) -> bool:
    """Whether NumPy should search the elements now. Not while a call is recorded: that must consist of programs."""
    return tensor.numel() <= FEW and not is_recording()


def nonzero_of(tensor: Tensor) -> Tensor:
    """(count, axes): the indices of the nonzero elements. Reads their number."""
    if is_few(tensor):
        values = values_of(tensor)
        found = np.array(values.nonzero()).T if values.ndim else np.argwhere(values)
        return from_values(found, int64, tensor.device)
    count = int(values_of(call(OPERATIONS["count_nonzero"], (tensor.detach(),))))
    return call(OPERATIONS["nonzero_indices"], (tensor, count, 0))  # type: ignore[no-any-return]


def flat_nonzero_of(tensor: Tensor) -> Tensor:
    """(count,): the flat indices of the nonzero elements."""
    if is_few(tensor):
        return from_values(np.flatnonzero(values_of(tensor)), int64, tensor.device)
    return nonzero_of(tensor.flatten()).reshape(-1)


def _beside(tensor: Tensor, index: Tensor) -> Tensor:
    """An index on the tensor's device, if it comes from the CPU."""
    device = tensor.device
    return index.to(device) if device is not CPU and index.device is CPU else index
