"""What passes over graphs share: the graph that they pass on, and its rewriting in one walk from first node to last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import NamedTuple

from genesis.ir.graph import Graph, Node


class Simplified(NamedTuple):
    """A graph without dead nodes: `nodes`, the positions of the wanted values, and where each node came from."""

    nodes: list[Node]
    outputs: list[int]
    origins: list[int]


class Rewriting(Graph):
    """A graph made of another: `place` is where the value of each source node is now, in the order of the source's nodes."""

    __slots__ = ("origins", "place", "source")

    def __init__(self, source: Simplified) -> None:
        super().__init__()
        self.source = source
        self.origins: list[int] = []
        self.place: list[int] = []

    def copy(self, node: Node) -> None:
        """The next source node is the next node: most are, so this is `put(append(moved(node)))` in a single call."""
        nodes, place = self.nodes, self.place
        self.origins.append(self.source.origins[len(place)])
        inputs = tuple(map(place.__getitem__, node.inputs))
        place.append(len(nodes))
        nodes.append(node.renumbered(inputs))

    def moved(self, node: Node) -> Node:
        """A source node that reads its inputs where they are now."""
        return node.renumbered(tuple(map(self.place.__getitem__, node.inputs)))

    def append(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def put(self, position: int) -> None:
        """The next source node's value is at `position`. What was added since the last one comes from it."""
        self.came_from(len(self.place))
        self.place.append(position)

    def came_from(self, index: int) -> None:
        """Nodes without an origin come from source node `index`."""
        self.origins += [self.source.origins[index]] * (len(self.nodes) - len(self.origins))

    def finished(self, outputs: list[int] | None = None) -> Simplified:
        """The new graph; its outputs are where the source's are now, if nothing else is given."""
        if outputs is None:
            outputs = [self.place[o] for o in self.source.outputs]
        return Simplified(self.nodes, outputs, self.origins)


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
    if all(live):
        return graph
    place = [-1] * len(live)
    moved = place.__getitem__
    nodes: list[Node] = []
    for index, node in enumerate(graph.nodes):
        if live[index]:
            place[index] = len(nodes)
            nodes.append(node.renumbered(tuple(map(moved, node.inputs))))
    return Simplified(nodes, [place[o] for o in graph.outputs], list(compress(graph.origins, live)))


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
            readers.setdefault(i, []).append(index)
    return readers
