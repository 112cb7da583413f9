"""Index maps: affine functions from the axes of a loop nest to a value's row-major elements.

Views disappear into these maps: `pull` composes a map to a view's elements with the view's layout. Where an axis of the loop
nest spans several axes of the view without a common stride, it raises SplitAxis to have that axis split.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.ir.shapes import Shape, contiguous_strides
from genesis.ops.layout import Layout, layout_in


class IndexMap(NamedTuple):
    """Element number = offset + sum of strides[k] * axis[k]."""

    offset: int
    strides: Shape


class SplitAxis(Exception):
    """Axis `axis` must become two: an outer one, and an inner one of extent `inner`."""

    def __init__(self, axis: int, inner: int) -> None:
        super().__init__(axis, inner)
        self.axis = axis
        self.inner = inner

    def applied(self, axes: Sequence[tuple[int, bool]]) -> tuple[tuple[int, bool], ...]:
        """The axes (extent, reduced) after the split."""
        extent, reduced = axes[self.axis]
        pair = ((extent // self.inner, reduced), (self.inner, reduced))
        return (*axes[: self.axis], *pair, *axes[self.axis + 1 :])


class Unmappable(Exception):
    """No affine map over these axes exists: value `index` must be in row-major memory."""

    index = -1


def contiguous_map(extents: Sequence[int]) -> IndexMap:
    return IndexMap(0, contiguous_strides(tuple(extents)))


def split_map(at: IndexMap, axis: int, inner: int) -> IndexMap:
    """The map after an axis was split."""
    stride = at.strides[axis]
    return IndexMap(at.offset, (*at.strides[:axis], stride * inner, stride, *at.strides[axis + 1 :]))


def pull(at: IndexMap, extents: Sequence[int], shape: Shape, strides: Shape, offset: int) -> IndexMap:
    """Compose `at`, a map to the row-major elements of `shape`, with a layout (strides, offset) of that shape.

    Raises SplitAxis where an axis has to be split first, Unmappable where none would help.
    """
    if strides == contiguous_strides(shape):
        return IndexMap(at.offset + offset, at.strides)
    if not any(strides) or 0 in shape:
        return IndexMap(offset, (0,) * len(at.strides))
    return _pulled(at, tuple(extents), shape, tuple(strides), offset)


@lru_cache(1 << 13)
def _pulled(at: IndexMap, extents: Shape, shape: Shape, strides: Shape, offset: int) -> IndexMap:
    # An element's number has a digit for each dimension of the view: the offset sets them, and each axis moves some. Invariant:
    # no digit overflows into the next; `low` and `high` bound each digit over all axes.
    rows = contiguous_strides(shape)
    dims = [d for d in range(len(shape)) if shape[d] != 1]
    low = [0] * len(shape)
    high = [0] * len(shape)
    start, rest = offset, at.offset
    for d in dims:
        digit, rest = divmod(rest, rows[d])
        low[d] = high[d] = digit
        start += digit * strides[d]
    result = []
    for axis, (step, extent) in enumerate(zip(at.strides, extents, strict=True)):
        if step == 0 or extent == 1:
            result.append(0)
            continue
        result.append(_axis_stride(axis, step, extent, shape, rows, dims, strides, low, high))
    if any(low[d] < 0 or high[d] >= shape[d] for d in dims):
        raise Unmappable
    return IndexMap(start, tuple(result))


def _axis_stride(
    axis: int, step: int, extent: int, shape: Shape, rows: Shape, dims: Sequence[int], strides: Shape, low: list[int],
    high: list[int],
) -> int:
    """The stride of one axis through the layout; widens `low` and `high` by what it covers of each dimension."""
    size, sign = abs(step), 1 if step > 0 else -1
    result: int | None = None
    covered = 1  # the extent of the axis that the inner dimensions account for
    for d in reversed(dims):
        if size * covered >= rows[d] * shape[d] or (size * covered) % rows[d]:
            if size * covered < rows[d]:
                break
            continue
        stride_here = size * covered // rows[d]
        room = -(-shape[d] // stride_here)
        remaining = -(-extent // covered)
        contribution = sign * stride_here * strides[d]
        if result is None:
            result = contribution
        elif contribution != result * covered:
            raise SplitAxis(axis, covered)
        if remaining <= room:  # the axis ends within this dimension
            reach = stride_here * (remaining - 1) * sign
            low[d], high[d] = low[d] + min(reach, 0), high[d] + max(reach, 0)
            return result
        if shape[d] % stride_here or remaining % room:  # it crosses into the next dimension midway: no single stride
            raise Unmappable
        reach = stride_here * (room - 1) * sign
        low[d], high[d] = low[d] + min(reach, 0), high[d] + max(reach, 0)
        covered *= room
    raise Unmappable


def pull_splitting(at: IndexMap, extents: list[int], owners: list[int], layout: Layout) -> IndexMap:
    """`pull` that splits axes where it has to: `extents` and `owners`, an axis' number for each of its parts, then grow.

    Raises Unmappable where no split helps.
    """
    while True:
        try:
            return pull(at, extents, *layout)
        except SplitAxis as split:
            axis, inner = split.axis, split.inner
            if extents[axis] % inner:
                raise Unmappable from split
            at = split_map(at, axis, inner)
            extents[axis : axis + 1] = [extents[axis] // inner, inner]
            owners.insert(axis, owners[axis])


# ---- matrices whose rows or columns span several axes of memory, as windows of a convolution do ----
Digits = tuple[tuple[int, int], ...]  # (extent, stride), outermost first: the mixed-radix digits of an index
AxisGroups = tuple[int, int]  # how many of a layout's last axes make up a matrix' rows, and its columns
PLAIN: AxisGroups = (1, 1)
LEAST_RUN = 4  # adjacent elements moved as a vector; fewer are gathered one by one


def digits_of(layout: Layout, axis_groups: AxisGroups) -> tuple[Digits, Digits]:
    """The digits of a matrix' rows and columns: its layout's last axes."""
    digits = tuple(zip(layout.shape, layout.strides, strict=True))
    return digits[-sum(axis_groups) : len(digits) - axis_groups[1]], digits[len(digits) - axis_groups[1] :]


def run_of(digits: Digits, step: int = 1) -> int:
    """The length of the runs along an axis whose elements are `step` apart; contiguous ones have step 1."""
    run = 1
    for extent, stride in reversed(digits):
        if stride != step * run and extent != 1:
            break
        run *= extent
    return run


def memory_layout(node: Node) -> Layout:
    """The layout in memory of a value that is not a view."""
    strides = node.attrs.get("strides") if node.op == "input" else None
    return Layout(node.shape, strides or contiguous_strides(node.shape), 0)


def layout_at(node: Node) -> Layout:
    """The layout of a value: a view's, or that in memory."""
    return layout_in(node) if node.op == "view" else memory_layout(node)


def grouped_layout(nodes: Sequence[Node], index: int) -> tuple[Layout, AxisGroups] | None:
    """The layout of a matrix or a batch of them in its base's memory, with rows and columns split into several axes as needed.

    None if there is none, or if an axis of the batch would have to be split.
    """
    shape = nodes[index].shape
    extents, owners, at = list(shape), list(range(len(shape))), contiguous_map(shape)
    try:
        at = pull_splitting(at, extents, owners, layout_at(nodes[index]))
        while nodes[index].op == "view":
            index = nodes[index].inputs[0]
            at = pull_splitting(at, extents, owners, layout_at(nodes[index]))
    except Unmappable:
        return None
    batch = len(shape) - 2
    if owners[: batch + 1] != list(range(batch + 1)):
        return None
    return Layout(tuple(extents), at.strides, at.offset), (owners.count(batch), owners.count(batch + 1))
