"""Sums of matrix products become one product: a @ b + c @ d is [a c] @ [b d], the operands joined along the terms.

Before: a simplified graph. After: no tree of additions has products of few terms as leaves, where adding up their results
takes longer than joining their operands. The gradient of a recurrent layer's weight is such a sum, of a product for each step.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.graph import Node, Value
from genesis.lower.rewriting import Rewriting, Simplified, readers_of
from genesis.lower.simplify import resimplified
from genesis.ops.contraction import product, swapped
from genesis.ops.joining import cat


def join_products(graph: Simplified) -> Simplified:
    """The graph with sums of products of few terms as products of many."""
    nodes = graph.nodes
    products = [index for index, node in enumerate(nodes) if node.op == "matmul" and _has_few_terms(nodes, node)]
    if len(products) < 2:
        return graph
    readers = readers_of(enumerate(nodes))
    parts = {index for index, found in readers.items() if len(found) == 1 and nodes[found[0]].op == "add"}
    parts.difference_update(graph.outputs)
    products = [index for index in products if index in parts and nodes[readers[index][0]].shape == nodes[index].shape]
    sums: dict[int, list[int]] = {}
    for index in products:
        root = index
        while root in parts and _adds_up(nodes, readers[root][0], root):
            root = readers[root][0]
        sums.setdefault(root, []).append(index)
    sums = {root: found for root, found in sums.items() if len(found) > 1}
    if not sums:
        return graph
    result = Rewriting(graph)
    for index, node in enumerate(nodes):
        if index in sums:
            result.put(_joined(result, index, sums[index], parts).index)
        else:
            result.copy(node)
    return resimplified(result.finished())


def _has_few_terms(nodes: Sequence[Node], node: Node) -> bool:
    """Whether a product of two matrices is so thin that its result has more elements than its operands."""
    if len(node.shape) != 2 or "only" in node.attrs or node.dtype.compute is not node.dtype:
        return False
    (rows, columns), terms = node.shape, nodes[node.inputs[0]].shape[-1]
    return node.dtype.category == 2 and min(rows, columns) > 1 and 2 * terms * (rows + columns) < rows * columns


def _adds_up(nodes: Sequence[Node], total: int, part: int) -> bool:
    return nodes[total].shape == nodes[part].shape and nodes[total].dtype is nodes[part].dtype


def _joined(result: Rewriting, root: int, products: Sequence[int], parts: set[int]) -> Value:
    """What a tree of additions adds up: its products as one, and then the others, in order."""
    nodes = result.source.nodes
    left, right = ([result.value(result.place[nodes[index].inputs[side]]) for index in products] for side in (0, 1))
    total = product(swapped(cat([swapped(a) for a in left])), cat(right))
    waiting = [root]
    while waiting:
        index = waiting.pop()
        node = nodes[index]
        if index == root or (node.op == "add" and index in parts and _adds_up(nodes, root, index)):
            waiting += reversed(node.inputs)
        elif index not in products:
            total = result.add("add", (total, result.value(result.place[index])), total.shape, total.dtype)
    return total
