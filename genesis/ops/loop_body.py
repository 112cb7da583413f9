"""Loops over time: the primitive `time_loop`, an attribute of which is the graph of one step.

A step takes constants, the carried values, and a row of each sequence; it returns the carried values of the next step, and rows
that are stacked. The node's value holds, one after the other, the states of each carry (the initial one, and one for each step)
and the stacks. `reverse` goes from the last row to the first; rows stay where they are in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import NAMED
from genesis.ir.graph import Graph, Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.derive import needed
from genesis.ops.joining import cat
from genesis.ops.layout import Layout, contiguous_layout, layout_in
from genesis.ops.reference import evaluate
from genesis.ops.views import reshape_value, slice_value, view_value


class Body(NamedTuple):
    """The graph of a step: its inputs come first, `constants` of them constant, then the carries, then rows of sequences.
    `following` are the carried values afterwards, `stacked` the rows that are stacked."""

    nodes: tuple[Node, ...]
    constants: int
    following: tuple[int, ...]
    stacked: tuple[int, ...]

    @property
    def first_sequence(self) -> int:
        return self.constants + len(self.following)

    def places(self, steps: int) -> list[tuple[int, Shape]]:
        """The offset and shape of each carry's states and of each stack within the value of so many steps."""
        shapes = [(steps + 1, *self.nodes[i].shape) for i in self.following]
        shapes += [(steps, *self.nodes[i].shape) for i in self.stacked]
        return [*zip(accumulate(map(numel, shapes), initial=0), shapes, strict=False)]

    def attributes(self, reverse: bool) -> Attributes:
        nodes = tuple([(n.op, n.inputs, tuple(n.attrs.items()), n.shape, n.dtype.name) for n in self.nodes])
        return {"body": (nodes, self.constants, self.following, self.stacked), "reverse": reverse}


def body_of(node: Node) -> Body:
    """The body of a `time_loop`."""
    return _decoded(*node.attrs["body"])


@lru_cache(256)
def _decoded(encoded: Sequence[Any], *others: Any) -> Body:
    graph = Graph()
    for op, inputs, attrs, shape, dtype in encoded:
        graph.add(op, inputs, shape, NAMED[dtype], dict(attrs), NAMED[dtype].category >= 2 if op == "input" else None)
    return Body(tuple(graph.nodes), *others)


def closed(graph: Graph, inputs: Sequence[Value], constants: int, following: Sequence[Value], stacked: Sequence[Value]) -> Body:
    """The body that computes `following` and `stacked` of `inputs`, without other nodes."""
    order = [value.index for value in inputs]
    order += sorted(needed(graph, [value.index for value in (*following, *stacked)]).difference(order))
    moved = {index: position for position, index in enumerate(order)}
    nodes = tuple([graph.nodes[i].renumbered(tuple([moved[j] for j in graph.nodes[i].inputs])) for i in order])
    return Body(nodes, constants, *[tuple([moved[v.index] for v in values]) for values in (following, stacked)])


def is_transposed(nodes: Sequence[Node], index: int) -> bool:
    """Whether a node is a view of a whole matrix, transposed."""
    view = nodes[index]
    source = nodes[view.inputs[0]].shape if view.op == "view" else ()
    return len(source) == 2 and layout_in(view) == Layout((source[1], source[0]), (1, source[1]), 0)


def loop_node(body: Body, inputs: Sequence[Value], reverse: bool) -> Value:
    steps, first = inputs[-1].shape[0], body.nodes[body.constants]
    offset, shape = body.places(steps)[-1]
    return inputs[0].graph.add("time_loop", inputs, (offset + numel(shape),), first.dtype, body.attributes(reverse))


def parts_of(y: Value, body: Body, steps: int) -> tuple[list[Value], list[Value]]:
    """The states of each carry, and the stacks."""
    parts = [view_value(y, contiguous_layout(shape)._replace(offset=offset), "slice") for offset, shape in body.places(steps)]
    return parts[: len(body.following)], parts[len(body.following) :]


def row(x: Value, at: int) -> Value:
    return reshape_value(slice_value(x, 0, at, at + 1), x.shape[1:])


# ---- the loop step by step ----
def unrolled(node: Node, *inputs: Value) -> Value:
    """The value of a `time_loop` as a graph of all its steps."""
    body, steps, reverse, graph = body_of(node), inputs[-1].shape[0], node.attrs["reverse"], inputs[0].graph
    carries, sequences = [*inputs[body.constants : body.first_sequence]], inputs[body.first_sequence :]
    states: list[list[Value]] = [[carry] for carry in carries]
    stacks: list[list[Value]] = [[] for _ in body.stacked]
    for at in reversed(range(steps)) if reverse else range(steps):
        values = [*inputs[: body.constants], *carries, *[row(x, at) for x in sequences]]
        for each in body.nodes[len(values) :]:
            values.append(graph.add(each.op, [values[i] for i in each.inputs], each.shape, each.dtype, each.attrs))
        carries = [values[i] for i in body.following]
        for entries, i in zip((*states, *stacks), (*body.following, *body.stacked), strict=True):
            entries.append(values[i])
    rows = [x for entries in (*states, *stacks) for x in (entries[::-1] if reverse else entries)]
    return cat([reshape_value(x, (numel(x.shape),)) for x in rows])


def reference(node: Node, *arrays: np.ndarray) -> np.ndarray:
    graph = Graph(grad_enabled=False)
    given = zip(body_of(node).nodes, arrays, strict=False)
    inputs = [graph.add("input", (), array.shape, each.dtype) for each, array in given]
    return evaluate(graph.nodes, [unrolled(node, *inputs).index], dict(enumerate(arrays)))[0]


def multiplications(nodes: Sequence[Node], node: Node) -> int:
    """The multiplications of a product, or of all steps of a loop over time; 0 for other nodes."""
    if node.op == "time_loop":
        body = body_of(node).nodes
        return nodes[node.inputs[-1]].shape[0] * sum([multiplications(body, each) for each in body])
    return node.numel * nodes[node.inputs[0]].shape[-1] if node.op == "matmul" else 0
