"""The graph that legalization makes: which of its values lie in memory, and copies of those that do not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from genesis.ir.annotations import Key
from genesis.ir.graph import Graph, Node
from genesis.ir.shapes import numel
from genesis.lower.index_map import memory_layout
from genesis.lower.rewriting import Rewriting, Simplified, base_of
from genesis.ops.layout import Layout, layout_in
from genesis.ops.registry import PRIMITIVES


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
