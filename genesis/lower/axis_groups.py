"""Where the elements of a matrix lie whose rows or columns run across several axes of memory: windows of a convolution, say."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides
from genesis.lower.index_map import SplitAxis, Unmappable, contiguous_map, pull, split_map
from genesis.ops.layout import Layout

__all__ = ["PLAIN", "AxisGroups", "Digits", "digits_of", "grouped_layout", "memory_layout"]

Digits = tuple[tuple[int, int], ...]  # (extent, stride), outermost first: where along an axis an index lies
AxisGroups = tuple[int, int]  # how many of a layout's last axes make up a matrix' rows, and its columns
PLAIN: AxisGroups = (1, 1)


def digits_of(layout: Layout, axis_groups: AxisGroups) -> tuple[Digits, Digits]:
    """The digits of a matrix' rows and columns: its layout's last axes."""
    digits = tuple(zip(layout.shape, layout.strides, strict=True))
    return digits[-sum(axis_groups) : len(digits) - axis_groups[1]], digits[len(digits) - axis_groups[1] :]


def memory_layout(node: Node) -> Layout:
    """How a value that is no view lies in memory."""
    strides = node.attrs.get("strides") if node.op == "input" else None
    return Layout(node.shape, strides or contiguous_strides(node.shape), 0)


def _layout(node: Node) -> Layout:
    return Layout(node.shape, node.attrs["strides"], node.attrs["offset"]) if node.op == "view" else memory_layout(node)


def grouped_layout(nodes: Sequence[Node], index: int) -> tuple[Layout, AxisGroups] | None:
    """The layout in its base's memory of a matrix, or a batch of them, with more axes where its own run across several.

    None if there is none, or if an axis of the batch would have to be several.
    """
    shape = nodes[index].shape
    extents, owners, at = list(shape), list(range(len(shape))), contiguous_map(shape)
    try:
        while True:
            node = nodes[index]
            try:
                at = pull(at, extents, *_layout(node))
            except SplitAxis as split:  # an axis of the matrix runs across several of memory: it becomes a group of two
                axis, inner = split.axis, split.inner
                if extents[axis] % inner:
                    return None
                at = split_map(at, axis, inner)
                extents[axis : axis + 1] = [extents[axis] // inner, inner]
                owners.insert(axis, owners[axis])
                continue
            if node.op != "view":
                break
            index = node.inputs[0]
    except Unmappable:
        return None
    batch = len(shape) - 2
    if owners[: batch + 1] != list(range(batch + 1)):
        return None
    return Layout(tuple(extents), at.strides, at.offset), (owners.count(batch), owners.count(batch + 1))
