"""Arrays in another shape or order, joined and taken apart; their distinct elements."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from genesis import ops
from genesis.array_api.dtypes import common
from genesis.functions import selection, splitting
from genesis.functions.from_data import as_tensor
from genesis.ir.dtypes import int64
from genesis.ir.shapes import broadcast_shapes as _broadcast_shapes, normalize_axis
from genesis.tensor.handle import Tensor

Axes = int | tuple[int, ...]


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of the array in a shape that it broadcasts to."""
    return x.expand(shape)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Views of the arrays in their common shape."""
    shape = _broadcast_shapes("broadcast_arrays", *[x.shape for x in arrays])
    return [x.expand(shape) for x in arrays]


def _alike(arrays: Sequence[Tensor]) -> list[Tensor]:
    dtype = common(*[x.dtype for x in arrays])
    return [x.to(dtype) for x in arrays]


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays one after the other along `axis`; all elements in a row, if it is None."""
    arrays = _alike(arrays)
    return ops.cat([x.reshape(-1) for x in arrays], 0) if axis is None else ops.cat(arrays, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The arrays along a new axis."""
    return ops.stack(_alike(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of extent 1 along `axis`, without it."""
    return tuple(splitting.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """A view with a new axis of extent 1."""
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"expand_dims: axis {axis} is out of range for {x.ndim} axes and a new one")
    return x.unsqueeze(axis)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A view without axes, each of extent 1. Raises ValueError for another extent."""
    axes = [normalize_axis("squeeze", one, x.ndim) for one in ((axis,) if isinstance(axis, int) else axis)]
    if not x.ndim:
        return x
    if any([x.shape[one] != 1 for one in axes]):
        raise ValueError(f"squeeze: axes {axis} of shape {x.shape} are not all of extent 1")
    return x.squeeze(tuple(axes)) if axes else x


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """The elements in reverse along axes, all of them by default."""
    return x.flip([*range(x.ndim)] if axis is None else [axis] if isinstance(axis, int) else [*axis])


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """A view with axes at other positions."""
    return x.movedim(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the axes in another order."""
    return x.permute(axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged."""
    return x.mT


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element so many times along `axis`; of all elements in a row, if it is None."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x.repeat_interleave(repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The elements in another shape: a view where that can be, unless `copy` is true; ValueError where it is false."""
    if copy is False:
        return x.view(shape)
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """The elements moved along axes, what leaves at the end entering at the beginning."""
    if isinstance(shift, int) and isinstance(axis, tuple):
        shift = (shift,) * len(axis)
    return x.roll(shift, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array side by side with itself, so many times along each axis."""
    return x.tile(*repetitions) if repetitions else x.clone()


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The parts at `indices` along `axis`, which may be left out of a 1-d array."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: an array of {x.ndim} axes wants `axis`")
    axis = normalize_axis("take", axis or 0, x.ndim)
    extent = x.shape[axis]
    indices = ops.where(indices < 0, indices + extent, indices)
    taken = x.index_select(axis, indices.reshape(-1))
    return taken.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Element by element the one at an index along `axis`."""
    return ops.take_along_dim(x, indices.to(int64), axis)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of elements that are not zero, along each axis."""
    if not x.ndim:
        raise ValueError("nonzero: an array of no axes has no indices")
    return tuple(selection.nonzero(x, as_tuple=True))


# ---- sorting and sets ----
def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The elements in order along `axis`."""
    return x.clone() if not x.ndim else ops.sort(x, axis, descending, stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """The indices that put the elements in order along `axis`."""
    return ops.argsort(x, axis, descending, stable)


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The indices at which to insert the elements of `x2` into the 1-d `x1`, which is sorted, or sorted by `sorter`."""
    first, second = _alike([x1, x2])
    return ops.searchsorted(first if sorter is None else first[sorter], second, side=side)


def _distinct(x: Tensor) -> tuple[np.ndarray, ...]:
    """NumPy's distinct elements, first indices, inverse indices and counts; each NaN is distinct."""
    values = x.numpy(force=True)
    order = np.argsort(values, axis=None, kind="stable")
    ordered = values.reshape(-1)[order]
    first = np.ones(ordered.shape, np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    inverse = np.empty(ordered.shape, np.int64)
    inverse[order] = np.cumsum(first) - 1
    return ordered[first], order[starts], inverse.reshape(values.shape), np.diff(np.append(starts, ordered.size))


def _made(x: Tensor, *parts: np.ndarray) -> list[Tensor]:
    return [as_tensor(part if n == 0 else part.astype(np.int64), device=x.device) for n, part in enumerate(parts)]


class unique_all_result(NamedTuple):
    """Distinct elements, where each is first, which one every element is, and how often each is there."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class unique_counts_result(NamedTuple):
    """Distinct elements, and how often each is there."""

    values: Tensor
    counts: Tensor


class unique_inverse_result(NamedTuple):
    """Distinct elements, and which one every element is."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> unique_all_result:
    """The distinct elements, their first indices, inverse indices and counts.

    >>> import genesis
    >>> genesis.array_api.unique_all(genesis.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    return unique_all_result(*_made(x, *_distinct(x)))


def unique_counts(x: Tensor, /) -> unique_counts_result:
    """The distinct elements and their counts."""
    values, _, _, counts = _distinct(x)
    return unique_counts_result(*_made(x, values, counts))


def unique_inverse(x: Tensor, /) -> unique_inverse_result:
    """The distinct elements, and the indices that make the array of them."""
    values, _, inverse, _ = _distinct(x)
    return unique_inverse_result(*_made(x, values, inverse))


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return _made(x, _distinct(x)[0])[0]
