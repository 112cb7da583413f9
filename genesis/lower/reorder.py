"""Elementwise values are computed in the order in which they are read.

Before: a simplified graph. After: an elementwise value that is only read in another order, through views that no strides
express, is computed in that order, of operands read in it. The gradient of a max pool is such a value: an image made of
windows. Kept in memory as windows, each of its readers would gather the image's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from genesis.ir.graph import Node, Value
from genesis.lower.lower_concat import side_by_side, slice_at
from genesis.lower.rewriting import Rewriting, Simplified, readers_of, with_replaced
from genesis.lower.simplify import resimplified
from genesis.ops.layout import Layout, layout_in
from genesis.ops.registry import PRIMITIVES
from genesis.ops.transient import FORWARDED


def reorder(graph: Simplified) -> Simplified:
    """The graph with such values in the order of their readers."""
    nodes, outputs = graph.nodes, {*graph.outputs}
    readers = readers_of(enumerate(nodes))

    def is_reordered(value: int, views: Sequence[int]) -> bool:
        if any(nodes[view].op != "view" for view in views) or not outputs.isdisjoint((value, *views)):
            return False
        kinds = {PRIMITIVES[nodes[reader].op].kind for view in views for reader in readers.get(view, ())}
        shown = {"view": _shows_all, "elementwise": _are_parts}.get("".join(kinds))
        return shown is not None and _is_elementwise(nodes, value) and shown([nodes[view] for view in views], nodes[value])

    reordered = [view for value, views in readers.items() if is_reordered(value, views) for view in views]
    if not reordered:
        return graph

    def in_order(result: Rewriting, view: Node) -> Value:
        value = result.nodes[view.inputs[0]]
        operands = [result.add("view", (i,), view.shape, result.nodes[i].dtype, view.attrs) for i in value.inputs]
        return result.add(value.op, operands, view.shape, view.dtype, value.attrs)

    return reorder(resimplified(with_replaced(graph, dict.fromkeys(reordered, in_order))))  # of their operands, too


def _is_elementwise(nodes: Sequence[Node], index: int) -> bool:
    """Whether a node computes each element from one of each input, and cannot fail."""
    node, row = nodes[index], PRIMITIVES[nodes[index].op]
    return row.kind == "elementwise" and row.fault is None and node.op not in FORWARDED and all(
        nodes[i].shape == node.shape for i in node.inputs)


def _shows_all(views: Sequence[Node], value: Node) -> bool:
    """Whether a single view shows each element of a value once: its axes, ordered by strides, are the value's rows."""
    [view] = views[:1]
    axes = sorted(zip(view.attrs["strides"], view.shape, strict=True), reverse=True)
    shown = Layout(tuple([extent for _, extent in axes]), tuple([stride for stride, _ in axes]), 0)
    return len(views) == 1 and view.numel == value.numel and not view.attrs["offset"] and shown.is_contiguous


def _are_parts(views: Sequence[Node], value: Node) -> bool:
    """Whether several views show disjoint slices of a value."""
    found = [slice_at(layout_in(view), value.numel, 0) for view in views]
    return len(views) > 1 and reduce(lambda one, other: one and other and side_by_side(one, other), found) is not None
