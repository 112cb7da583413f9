"""Elementwise values are computed in the order in which they are read.

Before: a simplified graph. After: an elementwise value that is only read in another order, through views that no strides
express, is computed in that order, of operands read in it. The gradient of a max pool is such a value: an image made of
windows. Kept in memory as windows, each of its readers would gather the image's rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.graph import Node, Value
from genesis.lower.rewriting import Rewriting, Simplified, readers_of, with_replaced
from genesis.lower.simplify import resimplified
from genesis.ops.registry import PRIMITIVES
from genesis.ops.transient import FORWARDED


def reorder(graph: Simplified) -> Simplified:
    """The graph with such values in the order of their readers."""
    nodes, outputs = graph.nodes, {*graph.outputs}
    readers = readers_of(enumerate(nodes))
    reordered = {index for index, view in enumerate(nodes) if view.op == "view" and outputs.isdisjoint((index, *view.inputs))
                 and len(readers[view.inputs[0]]) == 1 and all(nodes[r].op == "view" for r in readers[index])
                 and _is_elementwise(nodes, view.inputs[0]) and _shows_all(view, nodes[view.inputs[0]])}
    if not reordered:
        return graph

    def in_order(result: Rewriting, view: Node) -> Value:
        value = result.nodes[view.inputs[0]]
        operands = [result.add("view", (i,), view.shape, result.nodes[i].dtype, view.attrs) for i in value.inputs]
        return result.add(value.op, operands, view.shape, view.dtype, value.attrs)

    return resimplified(with_replaced(graph, dict.fromkeys(reordered, in_order)))


def _is_elementwise(nodes: Sequence[Node], index: int) -> bool:
    """Whether a node computes each element from one of each input, and cannot fail."""
    node, row = nodes[index], PRIMITIVES[nodes[index].op]
    return row.kind == "elementwise" and row.fault is None and node.op not in FORWARDED and all(
        nodes[i].shape == node.shape for i in node.inputs)


def _shows_all(view: Node, value: Node) -> bool:
    """Whether a view shows each element of a value once: its axes, ordered by strides, are the value's rows."""
    size = 1
    for stride, extent in sorted(zip(view.attrs["strides"], view.shape, strict=True)):
        if extent > 1 and stride != size:
            return False
        size *= extent
    return not view.attrs["offset"] and size == value.numel
