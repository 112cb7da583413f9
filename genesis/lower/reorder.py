"""Elementwise values are computed in the order in which they are read.

Before: a simplified graph. After: an elementwise value that is only read in another order, through views that no strides
express, is computed in that order, of operands read in it. The gradient of a max pool is such a value: an image made of
windows. Kept in memory as windows, each of its readers would gather the image's rows. One that elementwise values read in
disjoint parts, as an LSTM's gates, is computed part by part where these are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from genesis.ir.graph import Node, Value
from genesis.ir.shapes import numel
from genesis.lower.lower_concat import side_by_side, slice_at
from genesis.lower.rewriting import Rewriting, Simplified
from genesis.lower.simplify import replaced
from genesis.ops.layout import Layout, layout_in
from genesis.ops.registry import PRIMITIVES
from genesis.ops.transient import FORWARDED

MOST_PARTS = 8  # of a value: each is computed by nodes of its own
_Views = dict[Layout, tuple[Node, str]]  # the views by which a value is read, and the kind of operation that reads each


def reorder(graph: Simplified) -> Simplified:
    """The graph with such values in the order of their readers."""
    nodes, outputs = graph.nodes, {*graph.outputs}
    whole = outputs.copy()  # the values that are read in their own order
    readers = graph.readers
    views: dict[int, _Views] = defaultdict(dict)
    reordered: list[int] = []
    for index, node in reversed([*enumerate(nodes)]):
        kinds = {PRIMITIVES[nodes[r].op].kind for r in readers.get(index, ())} if node.op == "view" else set()
        if len(kinds) == 1 and index not in outputs:
            views[node.inputs[0]][layout_in(node)] = node, kinds.pop()
            continue
        found, are_parts = views.get(index, {}), False
        if found and index not in whole and _is_elementwise(nodes, index):
            are_parts = _are_parts(found, node)
            reordered += [index] * (are_parts or _shows_all(found, node))
        for i in node.inputs:  # of parts, they may be computed in parts, too
            if are_parts:
                views[i] |= found
            else:
                whole.add(i)
    if not reordered:
        return graph
    made: dict[tuple[int, Layout], int] = {}

    def in_order(index: int, result: Rewriting, node: Node) -> Value:
        for layout, (view, _) in reversed(views[index].items()):
            operands = [made[old, layout] if (old, layout) in made else
                        result.add("view", (i,), view.shape, result.nodes[i].dtype, view.attrs).index
                        for old, i in zip(nodes[index].inputs, node.inputs, strict=True)]
            made[index, layout] = result.add(node.op, operands, view.shape, node.dtype, node.attrs).index
        return result.value(made[index, layout])

    def shown(index: int, result: Rewriting, view: Node) -> Value:
        return result.value(made[index, layout_in(view)])

    instead = {index: partial(in_order, index) for index in reordered}
    instead |= {view: partial(shown, index) for index in reordered for view in readers[index] if nodes[view].op == "view"}
    return replaced(graph, instead)


def _is_elementwise(nodes: Sequence[Node], index: int) -> bool:
    """Whether a node computes each element from one of each input, and cannot fail."""
    node, row = nodes[index], PRIMITIVES[nodes[index].op]
    return row.kind == "elementwise" and row.fault is None and node.op not in FORWARDED and all(
        nodes[i].shape == node.shape for i in node.inputs)


def _shows_all(views: _Views, value: Node) -> bool:
    """Whether a single view, of which there are views, shows each element once: its axes, by strides, are the value's rows."""
    if len(views) != 1:
        return False
    [(at, (_, kind))] = views.items()
    axes = sorted(zip(at.strides, at.shape, strict=True), reverse=True)
    rows = Layout(tuple([extent for _, extent in axes]), tuple([stride for stride, _ in axes]), at.offset)
    return kind == "view" and rows.offset == 0 and numel(rows.shape) == value.numel and rows.is_contiguous


def _are_parts(views: _Views, value: Node) -> bool:
    """Whether several views, which elementwise operations read, show disjoint slices of a value."""
    if not 1 < len(views) <= MOST_PARTS or any(kind != "elementwise" for _, kind in views.values()):
        return False
    found = [slices for layout in views if (slices := slice_at(layout, value.numel, 0)) is not None]
    return len(found) == len(views) and side_by_side(*found) is not None
