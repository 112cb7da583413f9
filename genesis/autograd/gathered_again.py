"""What was gathered for a forward alone is gathered again for backward: parameters are whole only while they are read.

A transient collective's result is not kept. What backward reads of it, it reads of a second collective on the same operand,
which is recorded in front of the first rule that does. All ranks derive alike, so that they agree on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from genesis.ir.graph import Graph, Node, Value
from genesis.lower.simplify import FORWARDED
from genesis.lower.transient import is_transient, read_inputs


class GatheredAgain:
    """Values of a source's nodes in a graph: those `again` as they come of second collectives, others where `place` says."""

    def __init__(self, nodes: Sequence[Node], again: Collection[int], graph: Graph, place: Callable[[int], int]) -> None:
        self._nodes, self._again, self._graph, self._place = nodes, again, graph, place
        self._made: dict[int, int] = {}

    def value(self, index: int) -> Value:
        """The value of a position."""
        for each in sorted(self._under(index)):
            node = self._nodes[each]
            inputs = tuple([self._at(i) for i in read_inputs(node)])
            if node.op in FORWARDED and not is_transient(node):
                [self._made[each]] = inputs
                continue
            self._made[each] = len(self._graph)
            op = "all_gather" if is_transient(node) else node.op
            self._graph.nodes.append(Node(op, inputs, node.attrs, node.shape, node.dtype))
        return self._graph.value(self._at(index))

    def _at(self, index: int) -> int:
        return self._made[index] if index in self._made else self._place(index)

    def _under(self, index: int) -> set[int]:
        """What is still to be made for a position."""
        found, waiting = set[int](), [index]
        while waiting:
            at = waiting.pop()
            if at in self._again and at not in self._made and at not in found:
                found.add(at)
                if not is_transient(self._nodes[at]):
                    waiting += read_inputs(self._nodes[at])
        return found


def operands_of(nodes: Sequence[Node], again: Collection[int], index: int) -> list[int]:
    """What a position is read from: itself, or the operands of the collectives that it comes of."""
    found, waiting, seen = list[int](), [index], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        if at in again:
            waiting += read_inputs(nodes[at])
        else:
            found.append(at)
    return found


def read_again(
    again: Collection[int], derived: Callable[[Graph, Callable[[int], Value]], Any], graph: Graph, place: Callable[[int], int]
) -> set[int]:
    """Those of `again` that rules read: `derived(graph, place)` derives in a copy of the graph, whose third result tells."""
    trial = Graph([*graph.nodes], grad_enabled=False)
    *_, reads = derived(trial, lambda index: trial.value(place(index)))
    return {index for seen in reads.values() for index in seen if index in again}
