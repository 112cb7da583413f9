"""Where operands lie: the layouts of values, the axes of a product's batch, and copies of what lies otherwise."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from genesis.ir.annotations import Key
from genesis.ir.graph import Graph, Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.index_map import PLAIN, AxisGroups, grouped_layout, memory_layout
from genesis.lower.rewriting import Rewriting, Simplified, base_of
from genesis.ops.layout import Layout, layout_in
from genesis.ops.registry import PRIMITIVES


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


# ---- the graph that legalization makes: which of its values lie in memory, and copies of those that do not ----
def layout_of(nodes: Sequence[Node], index: int) -> Layout | None:
    """The layout of a value in its base's memory; None for a view of a view, or of memory with gaps."""
    node = nodes[index]
    if node.op != "view":
        return memory_layout(node)
    base = nodes[node.inputs[0]]
    if base.op == "view" or not memory_layout(base).is_contiguous:
        return None
    return layout_in(node)


class Legal(Rewriting):
    """The graph under construction, and its copies: value -> copy, shared by all equal views."""

    __slots__ = ("copies", "pairs", "strided")

    def __init__(self, source: Simplified, strided: bool, pairs: bool) -> None:
        super().__init__(source)
        self.strided = strided
        self.pairs = pairs
        self.copies: dict[Key, int] = {}


def copied(graph: Legal, index: int) -> int:
    """The copy of `index`, an existing one or a new one."""
    key = reading(graph, index)
    if key not in graph.copies:
        node = graph.nodes[index]
        graph.copies[key] = graph.add("clone", (index,), node.shape, node.dtype).index
    return graph.copies[key]


def reading(graph: Graph, index: int) -> Key:
    """A key that is equal for values with equal contents."""
    node = graph.nodes[index]
    if node.op != "view":
        return index
    strides = tuple(0 if e == 1 else s for e, s in zip(node.shape, node.attrs["strides"], strict=True))
    return node.inputs, node.shape, strides, node.attrs["offset"], node.attrs.get("barrier")


def in_memory(graph: Legal, index: int, spread: bool = True) -> int:
    """`index` or a copy of it whose base is in memory (and, unless `spread`, which does not broadcast)."""
    layout = layout_of(graph.nodes, index)
    gaps = layout is None or (not spread and any(s == 0 and e > 1 for e, s in zip(layout.shape, layout.strides, strict=True)))
    return index if has_memory(graph, index) and not gaps else copied(graph, index)


def in_order(graph: Legal, index: int) -> int:
    """`index` or a copy of it that is contiguous."""
    index = in_memory(graph, index)
    layout = layout_of(graph.nodes, index)
    return index if layout is not None and layout.is_contiguous else copied(graph, index)


def has_memory(graph: Graph, index: int) -> bool:
    base = graph.nodes[base_of(graph.nodes, index)]
    return base.op == "input" or PRIMITIVES[base.op].kind != "source"


def owned(graph: Legal, index: int, taken: Collection[int]) -> int:
    """`index` or a copy of it that is all of its base, contiguous, and whose base is not `taken`."""
    nodes = graph.nodes
    base = base_of(nodes, index)
    layout = layout_of(nodes, index)
    whole = layout is not None and layout.is_contiguous and numel(layout.shape) == nodes[base].numel
    if whole and base not in taken and PRIMITIVES[nodes[base].op].kind != "source":
        return index
    # Two equal outputs must not share memory: in-place operations would change both.
    if graph.copies.get(reading(graph, index)) in taken:
        del graph.copies[reading(graph, index)]
    return copied(graph, index)
