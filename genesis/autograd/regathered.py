"""Repeats transient collectives for backward, so that sharded parameters are whole only while they are read.

A transient collective's result is not saved. Backward reads a second collective on the same operand, recorded just before the
first rule that needs it. All ranks derive the same way, so they agree on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from genesis.ir.graph import Graph, Node, Value
from genesis.ops.transient import FORWARDED, is_transient, read_inputs


class Regathered:
    """The values of a source's nodes in a graph: those in `regathered` by second collectives, others at `position_of`."""

    def __init__(
        self, nodes: Sequence[Node], regathered: Collection[int], graph: Graph, position_of: Callable[[int], int]
    ) -> None:
        self._nodes, self._regathered, self._graph, self._position_of = nodes, regathered, graph, position_of
        self._made: dict[int, int] = {}

    def value(self, index: int) -> Value:
        """The value at a position."""
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
        return self._made[index] if index in self._made else self._position_of(index)

    def _under(self, index: int) -> set[int]:
        """The positions still missing for a position."""
        found, pending = set[int](), [index]
        while pending:
            at = pending.pop()
            if at in self._regathered and at not in self._made and at not in found:
                found.add(at)
                if not is_transient(self._nodes[at]):
                    pending += read_inputs(self._nodes[at])
        return found


def operands_of(nodes: Sequence[Node], regathered: Collection[int], index: int) -> list[int]:
    """The positions to read for `index`: itself, or the operands of the collectives that it depends on."""
    found, pending, seen = list[int](), [index], set[int]()
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        if at in regathered:
            pending += read_inputs(nodes[at])
        else:
            found.append(at)
    return found


def rules_read(
    regathered: Collection[int], derived: Callable[[Graph, Callable[[int], Value]], Any], graph: Graph,
    position_of: Callable[[int], int],
) -> set[int]:
    """Those of `regathered` that rules read, found by deriving in a copy of the graph."""
    trial = Graph([*graph.nodes], grad_enabled=False)
    *_, reads = derived(trial, lambda index: trial.value(position_of(index)))
    return {index for seen in reads.values() for index in seen if index in regathered}
