"""Sums over a batch of matrix products become products that accumulate: a convolution's weight gradient.

Before: a simplified graph. After: a sum over all batch axes of a matmul that nothing else reads is a matmul with `summed`,
of the sum's shape. The products of the batch are added up where they are computed and never written one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.graph import Node
from genesis.lower.rewriting import Simplified, readers_of, without_dead

__all__ = ["sum_batches"]


def sum_batches(graph: Simplified) -> Simplified:
    """The graph with sums over batches of products as products that accumulate."""
    nodes = list(graph.nodes)
    if not any([node.op == "sum" and _sums_product(nodes, node) for node in nodes]):
        return graph
    readers = readers_of(enumerate(nodes))
    found = False
    for index, node in enumerate(nodes):
        if _sums_product(nodes, node) and readers[node.inputs[0]] == [index] and node.inputs[0] not in graph.outputs:
            product = nodes[node.inputs[0]]
            nodes[index] = Node("matmul", product.inputs, {**product.attrs, "summed": True}, node.shape, node.dtype)
            found = True
    return without_dead(Simplified(nodes, graph.outputs, graph.origins)) if found else graph


def _sums_product(nodes: Sequence[Node], node: Node) -> bool:
    """Whether a node is a sum over the batch and nothing else of products, which are none with a vector, in their own dtype."""
    product = nodes[node.inputs[0]] if node.op == "sum" else node
    if node.op != "sum" or product.op != "matmul":
        return False
    axes, batch, dtype = node.attrs["axes"], product.shape[:-2], product.dtype
    if dtype is not node.dtype or dtype.compute is not dtype or dtype.category != 2:
        return False
    return (min(*product.shape[-2:], nodes[product.inputs[0]].shape[-1]) > 1 and all(axis < len(batch) for axis in axes)
            and all(extent == 1 for axis, extent in enumerate(batch) if axis not in axes))
