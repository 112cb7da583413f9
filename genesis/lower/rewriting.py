"""What passes over graphs share: the graph that they pass on, and its rewriting in one walk from first node to last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import NamedTuple

from genesis.ir.graph import Graph, Node, Value


class _Graph(NamedTuple):
    nodes: list[Node]
    outputs: list[int]
    origins: list[int]


class Simplified(_Graph):
    """A graph without dead nodes: `nodes`, the positions of the wanted values, and where each node came from."""

    @cached_property
    def readers(self) -> dict[int, list[int]]:
        """Value -> the nodes that read it, in order; found once for all passes that leave the graph as it is."""
        return readers_of(enumerate(self.nodes))


class Rewriting(Graph):
    """A graph made of another. `new_index` maps each source node, in order, to the node that has its value now."""

    __slots__ = ("new_index", "origins", "source")

    def __init__(self, source: Simplified) -> None:
        super().__init__()
        self.source = source
        self.origins: list[int] = []
        self.new_index: list[int] = []

    def copy(self, node: Node) -> None:
        """Copy the next source node: `put(append(moved(node)))` in one call, as most nodes are copied."""
        nodes, new_index = self.nodes, self.new_index
        self.origins.append(self.source.origins[len(new_index)])
        moved = node.renumbered(tuple(map(new_index.__getitem__, node.inputs)))
        new_index.append(len(nodes))
        nodes.append(moved)

    def moved(self, node: Node) -> Node:
        """A source node with its inputs renumbered."""
        return node.renumbered(tuple(map(self.new_index.__getitem__, node.inputs)))

    def append(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def put(self, position: int) -> None:
        """Map the next source node to node `position`. Nodes that were added since the last one originate from it."""
        self.came_from(len(self.new_index))
        self.new_index.append(position)

    def came_from(self, index: int) -> None:
        """Nodes without an origin originate from source node `index`."""
        self.origins += [self.source.origins[index]] * (len(self.nodes) - len(self.origins))

    def finished(self, outputs: list[int] | None = None) -> Simplified:
        """The new graph; by default its outputs are the source's, renumbered."""
        if outputs is None:
            outputs = [self.new_index[o] for o in self.source.outputs]
        return Simplified(self.nodes, outputs, self.origins)


Replacements = Mapping[int, Callable[[Rewriting, Node], Value | None]]


def with_replaced(graph: Simplified, instead: Replacements) -> Simplified:
    """The graph with other values in place of the nodes at some positions; nodes that they read no more are still there.

    Each is what its function adds to the new graph, for the node with its inputs renumbered; None keeps the node.
    """
    result = Rewriting(graph)
    first = min(instead, default=len(graph.nodes))  # nodes before it keep their positions
    result.nodes, result.origins, result.new_index = graph.nodes[:first], graph.origins[:first], [*range(first)]
    for index, node in enumerate(graph.nodes[first:], first):
        make = instead.get(index)
        value = None if make is None else make(result, result.moved(node))
        if value is None:
            result.copy(node)
        else:
            result.put(value.index)
    return result.finished()


def live_nodes(nodes: Sequence[Node], outputs: Sequence[int]) -> bytearray:
    """For each node, 1 if the outputs need it."""
    live = bytearray(len(nodes))
    for o in outputs:
        live[o] = 1
    for node, needed in zip(reversed(nodes), reversed(live), strict=True):  # readers come after what they read
        if needed:
            for i in node.inputs:
                live[i] = 1
    return live


def without_dead(graph: Simplified) -> Simplified:
    """The nodes that the outputs need."""
    return only_live(graph, live_nodes(graph.nodes, graph.outputs))


def only_live(graph: Simplified, live: bytearray) -> Simplified:
    """The nodes that are `live`."""
    first = live.find(0)  # nodes before it keep their positions
    if first < 0:
        return graph
    new_index = [*range(first), *[-1] * (len(live) - first)]
    moved = new_index.__getitem__
    nodes = graph.nodes[:first]
    for index, node in enumerate(graph.nodes[first:], first):
        if live[index]:
            new_index[index] = len(nodes)
            nodes.append(node.renumbered(tuple(map(moved, node.inputs))))
    return Simplified(nodes, [new_index[o] for o in graph.outputs], list(compress(graph.origins, live)))


def base_of(nodes: Sequence[Node], index: int) -> int:
    """The value that a chain of views starts from."""
    while nodes[index].op == "view":
        index = nodes[index].inputs[0]
    return index


def readers_of(numbered: Iterable[tuple[int, Node]]) -> dict[int, list[int]]:
    """Value -> those of the (index, node) that read it, in order."""
    readers: dict[int, list[int]] = {}
    for index, node in numbered:
        for i in node.inputs:
            if i in readers:
                readers[i].append(index)
            else:
                readers[i] = [index]
    return readers
