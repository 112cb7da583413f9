"""Eigenvalues and singular values are read from a full decomposition if there is one.

Before: a simplified graph. After: no values are computed alone of a matrix whose decomposition with vectors is in the graph:
they are a view of it. The gradient of the values needs the vectors, so a training step has both.
"""

from __future__ import annotations

from genesis.ir.annotations import Key
from genesis.ir.graph import Node
from genesis.lower.rewriting import Rewriting, Simplified
from genesis.lower.simplify import resimplified
from genesis.ops.registry import PRIMITIVES


def share_decompositions(graph: Simplified) -> Simplified:
    """The graph with values as views of decompositions."""
    nodes = graph.nodes
    names = {part[0] for node in nodes if (part := PRIMITIVES[node.op].part_of) is not None}
    wholes = {_key(node.op, node): index for index, node in enumerate(nodes) if node.op in names}
    if not wholes:
        return graph
    result = Rewriting(graph)
    made: dict[int, int] = {}  # old index of a decomposition -> its new one
    for index, node in enumerate(nodes):
        part = PRIMITIVES[node.op].part_of
        whole = wholes.get(_key(part[0], node)) if part is not None else None
        if part is not None and whole is not None:
            if whole not in made:
                made[whole] = result.append(result.moved(nodes[whole]))
            result.put(part[1](result.value(made[whole])).index)
        elif index in made:
            result.put(made[index])
        else:
            made |= {index: len(result.nodes)} if node.op in names else {}
            result.copy(node)
    return resimplified(result.finished())


def _key(op: str, node: Node) -> Key:
    return op, node.inputs, tuple(sorted(node.attrs.items()))
