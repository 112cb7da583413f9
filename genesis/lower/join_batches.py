"""Batched products as one product: a matrix times each of a batch of narrow ones, and sums over a batch with few terms.

Before: a simplified graph. After: the same, with fewer and larger products. Convolutions of small images are such products:
each image would pack the weights again, for few columns. Nothing is copied: products read columns and terms that span images
by tables of offsets, and readers view the result.
"""

from __future__ import annotations

from genesis.ir.graph import Graph, Node, Value
from genesis.ir.shapes import numel, reduced_shape
from genesis.lower.index_map import grouped_layout
from genesis.lower.rewriting import Simplified
from genesis.lower.simplify import replaced
from genesis.ops.contraction import swapped
from genesis.ops.views import permute_value, reshape_value, slice_value

NARROW = 512  # fewer columns than this
SHORT, SHORTER = 256, 48  # fewer terms than this, for results above and below LARGE
LARGE = 1 << 18  # bytes of a result that fills a second-level cache
LEAST = 32  # rows, and terms or columns, for which it pays


def join_batches(graph: Simplified) -> Simplified:
    """The graph with batched products joined."""
    nodes = graph.nodes
    products = [index for index, node in enumerate(nodes) if node.op == "matmul" and _is_batch(node)]
    if not products:
        return graph
    readers = graph.readers
    sums = {index: readers[index][0] for index in products if index not in graph.outputs and _sums_batch(nodes, readers[index])}
    wide = {index for index in products if index not in sums and _shares_weights(nodes, nodes[index])}
    long = {sums[index] for index in sums if _has_few_terms(nodes, nodes[index])}
    instead = dict.fromkeys(wide, _widened) | dict.fromkeys(long, _lengthened)
    return replaced(graph, instead)


def _is_batch(node: Node) -> bool:
    is_fixed = "only" in node.attrs or "keeps_batch" in node.attrs
    return len(node.shape) > 2 and node.shape[0] > 1 and not is_fixed and min(node.shape[-2:]) > 1


def _sums_batch(nodes: list[Node], readers: list[int]) -> bool:
    """Whether a product's only reader is a sum over its batch."""
    total = nodes[readers[0]]
    return len(readers) == 1 and total.op == "sum" and 0 in total.attrs["axes"] and (
        max(total.attrs["axes"]) < len(nodes[total.inputs[0]].shape) - 2)


def _shares_weights(nodes: list[Node], node: Node) -> bool:
    """Whether a batch of narrow matrices is multiplied with the same one, whose repeated packing costs more than reading the
    results in the joined layout."""
    left, columns = nodes[node.inputs[0]], node.shape[-1]
    if min(left.shape[-2:]) < LEAST or columns >= NARROW or 2 * columns > left.shape[-1]:
        return False
    found = grouped_layout(nodes, node.inputs[0])
    return found is not None and not found[0].strides[0]


def _has_few_terms(nodes: list[Node], node: Node) -> bool:
    terms, nbytes = nodes[node.inputs[0]].shape[-1], numel(node.shape[-2:]) * node.dtype.itemsize
    return min(node.shape[-2:]) >= LEAST and 1 < terms < (SHORT if nbytes > LARGE else SHORTER)


def _beside(x: Value) -> Value:
    """Matrices (n, .., rows, columns) as one (.., rows, n * columns)."""
    count, *batch, rows, columns = x.shape
    axes = (*range(1, x.ndim - 1), 0, x.ndim - 1)
    return reshape_value(permute_value(x, axes), (*batch, rows, count * columns))


def _widened(graph: Graph, node: Node) -> Value:
    """The product with the columns of all matrices side by side."""
    a, b = (graph.value(i) for i in node.inputs)
    count, *batch, rows, columns = node.shape
    left = reshape_value(slice_value(a, 0, 0, 1), a.shape[1:])
    y = graph.add("matmul", (left, _beside(b)), (*batch, rows, count * columns), node.dtype)
    apart = reshape_value(y, (*batch, rows, count, columns))
    return permute_value(apart, (len(batch) + 1, *range(len(batch) + 1), len(batch) + 2))


def _lengthened(graph: Graph, total: Node) -> Value:
    """The sum over a product's batch, with the terms of all matrices one after the other."""
    node = graph.nodes[total.inputs[0]]
    a, b = (graph.value(i) for i in node.inputs)
    y = graph.add("matmul", (_beside(a), swapped(_beside(swapped(b)))), node.shape[1:], node.dtype)
    rest = tuple(axis - 1 for axis in total.attrs["axes"] if axis)
    if rest:
        y = graph.add("sum", (y,), reduced_shape(y.shape, rest), node.dtype, {"axes": rest})
    return reshape_value(y, total.shape)
