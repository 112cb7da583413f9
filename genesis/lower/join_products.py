"""Sums of matrix products become one product: a @ b + c @ d is [a c] @ [b d], with operands joined along the terms.

Before: a simplified graph. After: no tree of additions has products of few terms as leaves, where adding their results takes
longer than joining their operands. The weight gradient of a recurrent cell, called in each step, is such a sum. The column
sums that its bias gradient adds up become column sums of the joined operand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from genesis.ir.graph import Node, Value
from genesis.lower.rewriting import Rewriting, Simplified, base_of
from genesis.lower.simplify import replaced
from genesis.ops.contraction import product, swapped
from genesis.ops.joining import cat


def join_products(graph: Simplified) -> Simplified:
    """The graph with sums of products of few terms as products of many."""
    nodes = graph.nodes
    products = [index for index, node in enumerate(nodes) if node.op == "matmul"]
    if len(products) < 2:
        return graph
    readers = graph.readers
    parts = {index for index, found in readers.items() if len(found) == 1 and nodes[found[0]].op == "add"}
    parts.difference_update(graph.outputs)
    products = [index for index in products if index in parts and nodes[readers[index][0]].shape == nodes[index].shape]
    several = [index for found in _by_root(nodes, readers, parts, products).values() for index in found]
    sums = _by_root(nodes, readers, parts, sorted([index for index in several if _has_few_terms(nodes, nodes[index])]))
    if not sums:
        return graph
    joined = {tuple([base_of(nodes, nodes[index].inputs[side]) for index in found])
              for found in sums.values() for side in (0, 1)}
    columns = [index for index in parts if nodes[index].op == "sum" and _are_columns(nodes, nodes[index])]
    of_columns = {root: found for root, found in _by_root(nodes, readers, parts, sorted(columns)).items()
                  if tuple([nodes[index].inputs[0] for index in found]) in joined}
    instead = {root: partial(_joined, root, leaves, parts, join)
               for join, found in ((_columns_of, of_columns), (_product_of, sums)) for root, leaves in found.items()}
    return replaced(graph, instead)


def _by_root(
    nodes: Sequence[Node], readers: Mapping[int, Sequence[int]], parts: Collection[int], leaves: Sequence[int]
) -> dict[int, list[int]]:
    """Root of a tree of additions -> those of its leaves that are among `leaves`, if several, the last one first.

    Backward walks a sequence from its end: reversed, joined gradients are in the order of the sequence.
    """
    sums: dict[int, list[int]] = {}
    for index in reversed(leaves):
        root = index
        while root in parts and _adds_up(nodes, readers[root][0], root):
            root = readers[root][0]
        sums.setdefault(root, []).append(index)
    return {root: found for root, found in sums.items() if len(found) > 1}


def _are_columns(nodes: Sequence[Node], node: Node) -> bool:
    """Whether a node sums the columns of a matrix."""
    return node.attrs["axes"] == (0,) and len(nodes[node.inputs[0]].shape) == 2 and node.dtype.compute is node.dtype


def _has_few_terms(nodes: Sequence[Node], node: Node) -> bool:
    """Whether a product of two matrices is so thin that its result has more elements than its operands."""
    if len(node.shape) != 2 or "only" in node.attrs or node.dtype.compute is not node.dtype:
        return False
    (rows, columns), terms = node.shape, nodes[node.inputs[0]].shape[-1]
    return node.dtype.category == 2 and min(rows, columns) > 1 and 2 * terms * (rows + columns) < rows * columns


def _adds_up(nodes: Sequence[Node], total: int, part: int) -> bool:
    return nodes[total].shape == nodes[part].shape and nodes[total].dtype is nodes[part].dtype


def _product_of(result: Rewriting, products: Sequence[Node]) -> Value:
    """The sum of products as one product."""
    left, right = ([result.value(result.new_index[node.inputs[side]]) for node in products] for side in (0, 1))
    return product(swapped(cat([swapped(a) for a in left])), cat(right))


def _columns_of(result: Rewriting, sums: Sequence[Node]) -> Value:
    """The sum of column sums as the column sums of one matrix."""
    whole = cat([result.value(result.new_index[node.inputs[0]]) for node in sums])
    return result.add("sum", (whole,), sums[0].shape, sums[0].dtype, sums[0].attrs)


def _joined(
    root: int, leaves: Sequence[int], parts: Collection[int], join: Callable[[Rewriting, Sequence[Node]], Value],
    result: Rewriting, node: Node,
) -> Value:
    """The sum of a tree of additions: its `leaves` joined, then the other terms in order."""
    nodes = result.source.nodes
    total = join(result, [nodes[index] for index in leaves])
    waiting = [root]
    while waiting:
        index = waiting.pop()
        node = nodes[index]
        if index == root or (node.op == "add" and index in parts and _adds_up(nodes, root, index)):
            waiting += reversed(node.inputs)
        elif index not in leaves:
            total = result.add("add", (total, result.value(result.new_index[index])), total.shape, total.dtype)
    return total
