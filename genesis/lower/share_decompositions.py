"""Eigenvalues and singular values are read from a full decomposition if there is one.

Before: a simplified graph. After: no values are computed alone of a matrix whose decomposition with vectors is in the graph:
they are a view of it. The gradient of the values needs the vectors, so a training step has both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from genesis.ir.annotations import Key
from genesis.ir.graph import Node, Value
from genesis.lower.rewriting import Rewriting, Simplified
from genesis.lower.simplify import replaced
from genesis.ops.registry import PRIMITIVES


def share_decompositions(graph: Simplified) -> Simplified:
    """The graph with values as views of decompositions."""
    nodes = graph.nodes
    names = {part[0] for node in nodes if (part := PRIMITIVES[node.op].part_of) is not None}
    wholes = {_key(node.op, node): index for index, node in enumerate(nodes) if node.op in names}
    if not wholes:
        return graph
    made: dict[int, int] = {}  # old index of a decomposition -> its new one

    def whole(at: int, result: Rewriting, node: Node) -> Value:
        if at not in made:
            made[at] = result.append(result.moved(nodes[at]))
        return result.value(made[at])

    def values(at: int, read: Callable[[Value], Value], result: Rewriting, node: Node) -> Value:
        return read(whole(at, result, node))

    instead = {at: partial(whole, at) for at in wholes.values()}
    for index, node in enumerate(nodes):
        if (part := PRIMITIVES[node.op].part_of) and (at := wholes.get(_key(part[0], node))) is not None:
            instead[index] = partial(values, at, part[1])
    return replaced(graph, instead)


def _key(op: str, node: Node) -> Key:
    return op, node.inputs, tuple(sorted(node.attrs.items()))
