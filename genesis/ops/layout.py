"""Layouts: a view's shape, strides and offset, and how reshape, permute, slice and others change them.

The rules are pure arithmetic: graph nodes and arrays in memory use the same ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from genesis.ir.annotations import Extents
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape, as_size, contiguous_strides, normalize_axis, numel, resolve_reshape, sliced
from genesis.ir.symbolic_sizes import Size


class Layout(NamedTuple):
    """A view's memory layout: element (i, j, ..) is at offset + i*strides[0] + j*strides[1] + .."""

    shape: Shape
    strides: Shape
    offset: int

    @property
    def is_contiguous(self) -> bool:
        """True when the elements, if any, follow each other in row-major order."""
        wanted = contiguous_strides(self.shape)
        return self.strides == wanted or 0 in self.shape or (1 in self.shape and all([
            extent == 1 or stride == own for extent, stride, own in zip(self.shape, self.strides, wanted, strict=True)
        ]))


def layout_in(node: Node) -> Layout:
    """The layout in the attributes of a `view`, a `put` or a `put_sum`."""
    return Layout(node.attrs["shape"], node.attrs["strides"], node.attrs["offset"])


@functools.lru_cache(maxsize=4096)
def contiguous_layout(shape: Shape) -> Layout:
    return Layout(tuple(shape), contiguous_strides(shape), 0)  # equal shapes share it, a Size's class does not spread


# ---- layout rules: (layout, arguments) -> layout, or None if a copy is needed ----
def reshape_layout(at: Layout, *shape: Extents) -> Layout | None:
    """The same elements in another shape, in row-major order; one extent may be -1 and follows from the others.

    If axes to be merged are not adjacent in memory, `reshape` copies and `view` raises ValueError.
    Raises ValueError for another number of elements.

    >>> genesis.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    wanted = resolve_reshape("reshape", at.shape, _flat(shape))
    if numel(wanted) == 0 or at.is_contiguous:
        return Layout(wanted, contiguous_strides(wanted), at.offset)
    runs: list[tuple[int, int]] = []  # (extent, stride), axes adjacent in memory merged
    for extent, stride in zip(at.shape, at.strides, strict=True):
        if runs and runs[-1][1] == stride * extent:
            extent *= runs.pop()[0]
        if extent != 1:
            runs.append((extent, stride))
    extent, stride = runs.pop()
    strides = []
    for want in reversed(wanted):
        if extent == 1 and want != 1:
            extent, stride = runs.pop()
        if extent % want:
            return None
        strides.append(stride)
        extent, stride = extent // want, stride * want
    return Layout(wanted, tuple(reversed(strides)), at.offset)


def permute_layout(at: Layout, *dims: Extents) -> Layout:
    """Axes in the order `dims`.

    Raises ValueError unless `dims` names each axis once.

    >>> genesis.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    order = [normalize_axis("permute", d, len(at.shape)) for d in _flat(dims)]
    if sorted(order) != list(range(len(at.shape))):
        raise ValueError(f"permute: dims {tuple(_flat(dims))} must name each of the {len(at.shape)} axes once")
    return Layout(tuple(at.shape[d] for d in order), tuple(at.strides[d] for d in order), at.offset)


def transpose_layout(at: Layout, *dims: Extents, dim0: int | None = None, dim1: int | None = None) -> Layout:
    """Two axes exchanged; a tuple longer than two permutes; none reverses the last two.

    >>> genesis.zeros(2, 3, 4).transpose(0, 2).shape
    (4, 3, 2)
    """
    rank = len(at.shape)
    named = tuple([d for d in (dim0, dim1) if d is not None])
    listed = (*_flat(dims), *named) or ((-2, -1) if rank > 1 else (0, 0))
    if len(listed) not in (2, rank):
        raise ValueError(f"transpose: wants two dims, an order of all {rank}, or none; got {listed}")
    if len(listed) != 2:
        return permute_layout(at, listed)
    a, b = (normalize_axis("transpose", d, rank) for d in listed)
    order = list(range(rank))
    if rank:
        order[a], order[b] = b, a
    return permute_layout(at, order)


def expand_layout(at: Layout, *shape: Extents) -> Layout:
    """Axes of extent 1 (and new leading ones) repeated with stride 0; -1 keeps an extent.

    Raises ValueError for an axis of another extent. The result cannot be written to in place.

    >>> genesis.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    wanted = _flat(shape)
    lead = len(wanted) - len(at.shape)
    if lead < 0:
        raise ValueError(f"expand: shape {wanted} has fewer axes than the tensor's {at.shape}")
    extents, strides = [], []
    for axis, extent in enumerate(wanted):
        have, stride = (at.shape[axis - lead], at.strides[axis - lead]) if axis >= lead else (1, 0)
        if extent == -1 and axis >= lead:
            extent = have
        if extent < 0 or have not in (1, extent):
            raise ValueError(f"expand: {at.shape} does not expand to {wanted}: axis {axis} has extent {have}")
        extents.append(extent)
        strides.append(stride if have == extent and axis >= lead else 0)
    return Layout(tuple(extents), tuple(strides), at.offset)


def squeeze_layout(at: Layout, dim: Extents | None = None, *others: int) -> Layout:
    """Without the axes of extent 1 (those in `dim`, if given).

    >>> genesis.zeros(1, 3, 1).squeeze(0).shape
    (3, 1)
    """
    rank = len(at.shape)
    dims = range(rank) if dim is None else [normalize_axis("squeeze", d, rank) for d in _flat((dim, *others))]
    keep = [axis for axis in range(rank) if axis not in dims or at.shape[axis] != 1]
    return Layout(tuple(at.shape[a] for a in keep), tuple(at.strides[a] for a in keep), at.offset)


def unsqueeze_layout(at: Layout, dim: int) -> Layout:
    """With a new axis of extent 1 at `dim`.

    >>> genesis.zeros(2, 3).unsqueeze(-1).shape
    (2, 3, 1)
    """
    dim = normalize_axis("unsqueeze", dim, len(at.shape) + 1)
    stride = at.strides[dim] * at.shape[dim] if dim < len(at.shape) else 1
    return Layout((*at.shape[:dim], 1, *at.shape[dim:]), (*at.strides[:dim], stride, *at.strides[dim:]), at.offset)


def flatten_layout(at: Layout, start_dim: int = 0, end_dim: int = -1) -> Layout | None:
    """The axes from `start_dim` to `end_dim` merged into one.

    >>> genesis.zeros(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    rank = len(at.shape)
    if rank == 0:
        return Layout((1,), (1,), at.offset)
    first, last = normalize_axis("flatten", start_dim, rank), normalize_axis("flatten", end_dim, rank)
    if first > last:
        raise ValueError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    return reshape_layout(at, (*at.shape[:first], numel(at.shape[first : last + 1]), *at.shape[last + 1 :]))


def unflatten_layout(at: Layout, dim: int, sizes: Sequence[int]) -> Layout | None:
    """Axis `dim` split into `sizes`."""
    dim = normalize_axis("unflatten", dim, len(at.shape))
    inner = resolve_reshape("unflatten", (at.shape[dim],), tuple(sizes))
    return reshape_layout(at, (*at.shape[:dim], *inner, *at.shape[dim + 1 :]))


def flip_layout(at: Layout, *dims: Extents) -> Layout:
    """The axes `dims` walked backwards."""
    if not dims:
        raise TypeError("flip: wants at least one axis")
    axes = [normalize_axis("flip", d, len(at.shape)) for d in _flat(dims)]
    flipped = {*axes}
    if len(flipped) < len(axes):
        raise ArgumentError(f"flip: dims {axes} name an axis twice; want each once")
    offset = at.offset + sum((at.shape[a] - 1) * at.strides[a] for a in flipped if a < len(at.shape) and at.shape[a])
    return Layout(at.shape, tuple(-s if a in flipped else s for a, s in enumerate(at.strides)), offset)


def slice_layout(at: Layout, dim: int, start: int | None = None, end: int | None = None, step: int = 1) -> Layout:
    """`start:end:step` along `dim`, with Python's clamping.

    Raises IndexError for an axis out of range.

    >>> genesis.slice(genesis.arange(6), 0, 1, None, 2)
    tensor([1, 3, 5])
    """
    dim = normalize_axis("slice", dim, len(at.shape))
    first, step, extent = sliced(at.shape[dim], start, end, step)
    return Layout(
        (*at.shape[:dim], extent, *at.shape[dim + 1 :]),
        (*at.strides[:dim], at.strides[dim] * step, *at.strides[dim + 1 :]),
        at.offset + (first * at.strides[dim] if extent else 0),
    )


def narrow_layout(at: Layout, dim: int, start: int, length: int) -> Layout:
    """`length` elements from `start` along `dim`.

    Raises IndexError if they reach beyond the axis, TypeError for a bool `start`.

    >>> genesis.arange(6).narrow(0, 2, 3)
    tensor([2, 3, 4])
    """
    if isinstance(start, bool):
        raise ArgumentTypeError(f"narrow: start is {start}; want an int, or a 0-d tensor of one")
    axis = normalize_axis("narrow", dim, len(at.shape))
    first = start + at.shape[axis] if start < 0 else start
    if first < 0 or length < 0 or first + length > at.shape[axis]:
        raise IndexError(f"narrow: start {start} and length {length} exceed extent {at.shape[axis]} of dim {dim}")
    return slice_layout(at, axis, first, first + length)


def select_layout(at: Layout, dim: int, index: int) -> Layout:
    """Position `index` along `dim`, which is removed."""
    if not at.shape:
        raise IndexError("select: a 0-d tensor has no axis to select from; use .item()")
    dim = normalize_axis("select", dim, len(at.shape))
    extent = at.shape[dim]
    if not -extent <= index < extent:
        raise IndexError(f"select: index {index} is out of range for axis {dim} with extent {extent}")
    offset = at.offset + (index % extent) * at.strides[dim]
    return Layout(at.shape[:dim] + at.shape[dim + 1 :], at.strides[:dim] + at.strides[dim + 1 :], offset)


def diagonal_layout(at: Layout, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Layout:
    """The diagonal `offset` above the main one, as the last axis."""
    rank = len(at.shape)
    a, b = normalize_axis("diagonal", dim1, rank), normalize_axis("diagonal", dim2, rank)
    if a == b:
        raise ValueError(f"diagonal: dim1 and dim2 are the same axis, {dim1} and {dim2}")
    extent = max(0, min(at.shape[a] + min(offset, 0), at.shape[b] - max(offset, 0)))
    start = at.offset + max(-offset, 0) * at.strides[a] + max(offset, 0) * at.strides[b]
    rest = [axis for axis in range(rank) if axis not in (a, b)]
    return Layout(
        (*(at.shape[r] for r in rest), extent),
        (*(at.strides[r] for r in rest), at.strides[a] + at.strides[b]),
        start if extent else at.offset,
    )


def unfold_layout(at: Layout, dimension: int, size: int, step: int) -> Layout:
    """All windows of `size` elements along `dimension`, `step` apart; each is a row along a new last axis.

    Raises ValueError for a size that exceeds the axis and for a step below 1.

    >>> genesis.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    axis = normalize_axis("unfold", dimension, len(at.shape))
    size, step = int(index(size)), int(index(step))  # not True, which equals 1: arrays of equal layouts share their shape
    extent, stride = (at.shape[axis], at.strides[axis]) if at.shape else (1, 1)
    if not 0 <= size <= extent or step < 1:
        raise ValueError(f"unfold: size {size}, step {step}; want 0 <= size <= {extent}, the extent, and step >= 1")
    if not at.shape:
        return Layout((size,), (stride,), at.offset)
    shape = (*at.shape[:axis], (extent - size) // step + 1, *at.shape[axis + 1 :], size)
    return Layout(shape, (*at.strides[:axis], stride * step, *at.strides[axis + 1 :], stride), at.offset)


def window_layout(shape: Shape, sizes: Shape, strides: Shape, dilations: Shape, counts: Shape) -> Layout:
    """The layout of the windows over the last axes of `shape`: (.., *sizes, *counts)."""
    own = contiguous_layout(shape).strides
    lead, last = len(shape) - len(sizes), own[len(shape) - len(sizes) :]
    taps = tuple(s * d for s, d in zip(last, dilations, strict=True))
    steps = tuple(s * t for s, t in zip(last, strides, strict=True))
    return Layout((*shape[:lead], *sizes, *counts), (*own[:lead], *taps, *steps), 0)


def _flat(dims: Sequence[Any]) -> tuple[int, ...]:
    """`f(2, 3)` and `f((2, 3))` are the same call."""
    if len(dims) == 1 and not isinstance(dims[0], int | np.integer | Size):
        dims = tuple(dims[0])
    return tuple(as_size(d) if d.__class__ is Size else int(d) for d in dims)


# ---- rules by view name; genesis.ops.views adds the rows that are more than a rule ----
LAYOUT_RULES: dict[str, Callable[..., Layout | None]] = {
    "reshape": reshape_layout, "view": reshape_layout, "permute": permute_layout, "expand": expand_layout,
    "squeeze": squeeze_layout, "unsqueeze": unsqueeze_layout, "flatten": flatten_layout, "unflatten": unflatten_layout,
    "narrow": narrow_layout, "select": select_layout, "diagonal": diagonal_layout, "unfold": unfold_layout,
}
