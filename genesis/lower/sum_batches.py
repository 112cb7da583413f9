"""Products that are only read as their sum over the batch become products that add up: a convolution's weight gradient."""

from __future__ import annotations

from genesis.ir.graph import Node
from genesis.lower.simplify import Simplified, without_dead

__all__ = ["sum_batches"]


def sum_batches(graph: Simplified) -> Simplified:
    """Before: a simplified graph. After: the same, but a sum over all batch axes of a matmul that nothing else reads is a
    matmul `summed`, of the sum's shape.
    """
    nodes = list(graph.nodes)
    if not any([node.op == "sum" and nodes[node.inputs[0]].op == "matmul" for node in nodes]):
        return graph
    readers: dict[int, int] = {}
    for node in nodes:
        for i in node.inputs:
            readers[i] = readers.get(i, 0) + 1
    found = False
    for index, node in enumerate(nodes):
        if node.op != "sum" or nodes[node.inputs[0]].op != "matmul":
            continue
        product, source = nodes[node.inputs[0]], node.inputs[0]
        batch, axes = product.shape[:-2], node.attrs["axes"]
        fused = readers[source] == 1 and source not in graph.outputs and product.dtype is node.dtype
        if fused and product.dtype.compute is product.dtype and product.dtype.category == 2 and min(
            *product.shape[-2:], nodes[product.inputs[0]].shape[-1]
        ) > 1 and all(axis < len(batch) for axis in axes) and all(e == 1 for d, e in enumerate(batch) if d not in axes):
            nodes[index] = Node("matmul", product.inputs, {**product.attrs, "summed": True}, node.shape, node.dtype)
            found = True
    return without_dead(Simplified(nodes, graph.outputs, graph.origins)) if found else graph
