"""Narrow products side by side: where one matrix is multiplied with each of a batch of narrow ones, with several at once.

Before: a simplified graph. After: the same, with fewer and wider products. Convolutions of small images are such products. With
16 columns, those of images of 4x4, products run at half of their speed (199 GFlop/s of 418).
"""

from __future__ import annotations

from genesis.ir.graph import Graph, Node, Value
from genesis.lower.rewriting import Rewriting, Simplified, readers_of
from genesis.lower.simplify import resimplified
from genesis.ops.contraction import swapped
from genesis.ops.views import permute_value, reshape_value, slice_value

NARROW = 48  # fewer columns, or terms, are
COLUMNS, TERMS = 48, 256  # together, with which products run at full speed
MOST = 4  # times these, where no smaller divisor of the batch has them: what lies side by side is a copy
LEAST = 32  # rows and terms, for which it is worth while to lay the others side by side


def side_by_side(graph: Simplified) -> Simplified:
    """The graph with narrow products put together."""
    nodes = graph.nodes
    products = [index for index, node in enumerate(nodes) if node.op == "matmul" and _is_batch(node)]
    if not products:
        return graph
    readers = readers_of(enumerate(nodes))
    sums = {index: readers[index][0] for index in products if index not in graph.outputs and _sums_batch(nodes, readers[index])}
    wide = {index: size for index in products if index not in sums and (size := _columns(nodes, nodes[index])) > 1}
    long = {sums[index]: size for index in sums if (size := _terms(nodes, nodes[index])) > 1}
    if not (wide or long):
        return graph
    result = Rewriting(graph)
    for index, node in enumerate(nodes):
        if index in wide:
            result.put(_widened(result, result.moved(node), wide[index]).index)
        elif index in long:
            result.put(_lengthened(result, result.moved(nodes[node.inputs[0]]), node, long[index]).index)
        else:
            result.copy(node)
    return resimplified(result.finished())


def _is_batch(node: Node) -> bool:
    """Whether a product is a batch along its first axis alone."""
    alone = len(node.shape) > 2 and all([extent == 1 for extent in node.shape[1:-2]])
    return alone and node.shape[0] > 1 and "only" not in node.attrs


def _sums_batch(nodes: list[Node], readers: list[int]) -> bool:
    """Whether nothing reads a product but a sum over its batch."""
    total = nodes[readers[0]]
    return len(readers) == 1 and total.op == "sum" and 0 in total.attrs["axes"] and (
        max(total.attrs["axes"]) < len(nodes[total.inputs[0]].shape) - 2)


def _columns(nodes: list[Node], node: Node) -> int:
    """How many matrices are to lie side by side; 1 for those that are wide, or not multiplied with one matrix."""
    left = nodes[node.inputs[0]]
    if left.op != "view" or left.attrs["strides"][0] or min(left.shape[-2:]) < LEAST:
        return 1
    return _together(node.shape[0], node.shape[-1], COLUMNS)


def _terms(nodes: list[Node], node: Node) -> int:
    """How many matrices' terms are to follow each other."""
    return _together(node.shape[0], nodes[node.inputs[0]].shape[-1], TERMS) if min(node.shape[-2:]) >= LEAST else 1


def _together(count: int, extent: int, wanted: int) -> int:
    """The least divisor of `count` that has the `wanted` extent together; the largest within MOST, if none has."""
    if not 1 < extent < NARROW:
        return 1
    sizes = [size for size in range(1, min(count, MOST * wanted // extent) + 1) if count % size == 0]
    return next((size for size in sizes if size * extent >= wanted), sizes[-1])


def _beside(x: Value, size: int) -> Value:
    """Matrices (n, rows, columns), `size` of them side by side."""
    count, rows, columns = x.shape[0], *x.shape[-2:]
    apart = reshape_value(x, (count // size, size, rows, columns))
    return reshape_value(permute_value(apart, (0, 2, 1, 3)), (count // size, rows, size * columns))


def _widened(graph: Graph, node: Node, size: int) -> Value:
    """The product, with `size` matrices at a time."""
    a, b = (graph.value(i) for i in node.inputs)
    count, (rows, terms), width = node.shape[0] // size, a.shape[-2:], node.shape[-1]
    left = reshape_value(slice_value(a, 0, 0, count), (count, rows, terms))
    y = graph.add("matmul", (left, _beside(b, size)), (count, rows, size * width), node.dtype)
    return reshape_value(permute_value(reshape_value(y, (count, rows, size, width)), (0, 2, 1, 3)), node.shape)


def _lengthened(graph: Graph, node: Node, total: Node, size: int) -> Value:
    """The sum over a product's batch, with the terms of `size` matrices at a time."""
    a, b = (graph.value(i) for i in node.inputs)
    shape = node.shape[0] // size, *node.shape[-2:]
    y = graph.add("matmul", (_beside(a, size), swapped(_beside(swapped(b), size))), shape, node.dtype)
    return reshape_value(graph.add("sum", (y,), shape[1:], node.dtype, {"axes": (0,)}), total.shape)
