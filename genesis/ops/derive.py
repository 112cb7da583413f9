"""Backward as a pure function on graphs.

Given cotangents of some values, `derive` extends the graph with the cotangents of others. It walks the positions
backwards once; each node's rule is the row in `genesis.ops.PRIMITIVES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from genesis.ir.graph import Graph, Node, Value
from genesis.ops.registry import PRIMITIVES, cast

__all__ = ["NotDifferentiableError", "derive"]


class NotDifferentiableError(RuntimeError):
    """A gradient was asked of an operation that has none."""


class _Result(Value):
    """The result of a node as its rule sees it: wherever it is placed (read from memory, perhaps), it has its attributes."""

    __slots__ = ("origin",)

    def __init__(self, placed: Value, origin: Node) -> None:
        super().__init__(placed.graph, placed.index)
        self.origin = origin

    @property
    def node(self) -> Node:
        return self.origin


def derive(
    nodes: Sequence[Node], cotangents: Mapping[int, Value], graph: Graph, place: Callable[[int], Value],
    wanted: Collection[int] = (),
) -> tuple[dict[int, Value], frozenset[int]]:
    """The cotangents, as Values of `graph`, of the values that those given depend on.

    Args:
        nodes: the source's nodes; those to walk are marked `differentiable`.
        cotangents: positions in `nodes` -> their cotangents in `graph`.
        graph: where gradient nodes go (it may hold the source too).
        place: the Value in `graph` that stands for a position in `nodes`.
        wanted: positions whose cotangent to report besides the ends of the walk, variables and inputs.

    Returns:
        (position -> cotangent, the positions whose rule read a value).
    """
    held: dict[int, Value] = dict(cotangents)
    ends: dict[int, Value] = {}
    readers: set[int] = set()
    for index in range(max(held, default=-1), -1, -1):
        g = held.pop(index, None)
        node = nodes[index]
        if g is None or not node.differentiable:
            continue
        if index in wanted or node.op in ("variable", "input"):
            ends[index] = g
        if node.op in ("variable", "input"):
            continue
        rule = PRIMITIVES[node.op].grad
        if rule is None:
            raise NotDifferentiableError(f"{node.op} has no gradient; detach its input, or take another operation")
        read = [_Result(place(index), node), *[place(i) for i in node.inputs]]
        start = len(graph)
        grads = rule(g, *read)
        places = {value.index for value in read}
        if any(i in places for added in graph.nodes[start:] for i in added.inputs):
            readers.add(index)
        for i, grad in zip(node.inputs, grads if isinstance(grads, tuple) else (grads,), strict=True):
            if grad is not None and nodes[i].differentiable:
                grad = cast(grad, nodes[i].dtype)
                held[i] = grad if i not in held else held[i] + grad
    return ends, frozenset(readers)
