"""Where the operands of products lie: their layouts, and the axes of their batch."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides
from genesis.lower.copies import layout_of
from genesis.lower.index_map import PLAIN, AxisGroups, grouped_layout
from genesis.ops.layout import Layout


def matrix_operand(layout: Layout) -> bool:
    """Whether products can read a (.., rows, columns) layout: rows or columns have unit stride."""
    return any(stride == 1 or extent == 1 for stride, extent in zip(layout.strides[-2:], layout.shape[-2:], strict=True))


def has_adjacent_pairs(layout: Layout, left: bool) -> bool:
    """Whether pairs of terms are adjacent and begin at even offsets, in the matrices of a `left` or right operand; a zero is
    behind an odd number of terms."""
    terms = len(layout.shape) - (1 if left else 2)
    apart = [s for axis, (e, s) in enumerate(zip(layout.shape, layout.strides, strict=True)) if axis != terms and e > 1]
    return layout.strides[terms] == 1 and not any(n % 2 for n in (layout.offset, *apart))


def operand_layout(nodes: Sequence[Node], index: int) -> tuple[Layout, AxisGroups]:
    """The layout of a product's operand in its base's memory."""
    layout = layout_of(nodes, index)
    found = (layout, PLAIN) if layout is not None else grouped_layout(nodes, index)
    assert found is not None, "legalize gives operands a layout"
    return found


def collapsed_batch(layouts: Sequence[Layout]) -> tuple[list[int], list[list[int]]]:
    """The batch axes of several matrices, merged where all can be: (extents, strides of each layout)."""
    extents: list[int] = []
    strides: list[list[int]] = [[] for _ in layouts]
    for axis, extent in enumerate(layouts[-1].shape[:-2]):
        if extent == 1:
            continue
        here = [layout.strides[axis] for layout in layouts]
        if extents and all(s[-1] == h * extent for s, h in zip(strides, here, strict=True)):
            extents[-1] *= extent
            for s, h in zip(strides, here, strict=True):
                s[-1] = h
        else:
            extents.append(extent)
            for s, h in zip(strides, here, strict=True):
                s.append(h)
    return extents, strides


def result_layout(node: Node, left: Sequence[int]) -> Layout:
    """The layout of a matmul's results, over the batch of its `left` shape: stride 0 along axes to be summed."""
    summed = node.attrs.get("summed", 0)
    shape = (*left[:-1], node.shape[-1])
    return Layout(shape, (*(0,) * summed, *contiguous_strides(shape[summed:])), 0)
