"""Convolutions of few rows: products of overlapping windows become sums of elementwise products that read windows in place.

Before: a simplified graph. After: no matrix product of few rows reads overlapping windows. Such a product, and a sum over its
batch that is its only reader (a weight gradient), are one sum, computed in register blocks. Other products pack windows, which
takes as long as a few rows of products (see `codegen/cpu/product`). After `sum_batches`, a sum over leading batch axes that is
the only reader of a product is part of the product: `summed` is the number of those axes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from genesis.ir.graph import Graph, Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.lower.index_map import PLAIN, grouped_layout
from genesis.lower.rewriting import Rewriting, Simplified, with_replaced, without_dead
from genesis.ops.contraction import swapped
from genesis.ops.registry import expand
from genesis.ops.views import reshape_value, slice_value

LEAST_WINDOWS, LEAST_SUMMED = 12, 24  # adjacent windows, for a product and for a sum over its batch
# The most rows, in thirds of the registers that hold sums. Measured, in place and packed, 3x3 windows of 32x32, one thread of a
# Cascade Lake, us: with 24 registers 12 rows 199 and 316, 16 of 16x16 67 and 65; with 12 registers 12 rows 634 and 295, 16 744
# and 636. With a sum over the batch 32 rows 796 and 809, 1213 and 834.
ROWS, SUMMED = 2, 4
# Measured on Zen 4, one thread, us, as matrix products and as sums: 10,000 x 3 times 3 x 3 19 and 7.6, 1000 of 3 x 3 66, 8.4.
FEW = 4


def convolve(graph: Simplified, sums: int) -> Simplified:
    """The graph with matrix products of windows as sums of products, and a sum over a batch of them as one sum.

    Of few rows, for the `sums` registers that hold a product's sums.
    """
    windows = {index: least for index, node in enumerate(graph.nodes) if (least := _windows_in_a_row(graph.nodes, node))}
    totals = _totals(graph, {*windows})
    summed = set(totals.values())
    found = {index for index, count in windows.items() if _reads_in_place(graph.nodes[index], count, index in summed, sums)}
    if not found:
        return graph

    def sums_of(product: int, result: Rewriting, node: Node) -> Value:
        a, b = (result.value(result.new_index[i]) for i in graph.nodes[product].inputs)
        return sum_of_products(result, a, b, node.shape, node.attrs.get("axes", ()), materialize=True)

    instead = {product: product for product in found - summed}
    instead |= {total: product for total, product in totals.items() if product in found}
    return without_dead(with_replaced(graph, {at: functools.partial(sums_of, product) for at, product in instead.items()}))


def _reads_in_place(node: Node, windows: int, summed: bool, sums: int) -> bool:
    least, most = (LEAST_SUMMED, SUMMED) if summed else (LEAST_WINDOWS, ROWS)
    return (windows >= least or node.shape[-2] == 1) and 3 * node.shape[-2] <= most * sums  # one row never is a matrix product


def _windows_in_a_row(nodes: Sequence[Node], node: Node) -> int:
    """The number of adjacent windows in a row that a product reads; 0 if it reads none."""
    if node.op != "matmul" or node.dtype.category != 2 or nodes[node.inputs[0]].dtype is not node.dtype.compute:
        return 0
    return max([_windows(nodes, nodes[i]) for i in node.inputs])


def _windows(nodes: Sequence[Node], node: Node) -> int:
    """The number of adjacent windows in a row, if a value is a matrix of overlapping windows (a view of a view); else 0."""
    if node.op != "view" or nodes[node.inputs[0]].op != "view":
        return 0
    view = nodes[node.inputs[0]]
    strides = view.attrs["strides"]
    overlap = strides[-1] == 1 and 0 not in strides and 4 * numel(view.shape) > 5 * nodes[view.inputs[0]].numel
    return view.shape[-1] if overlap else 0


def _totals(graph: Simplified, products: set[int]) -> dict[int, int]:
    """Sum over batch axes -> the product that it sums, if that has no other reader."""
    return {
        index: node.inputs[0] for index, node in enumerate(graph.nodes)
        if node.op == "sum" and node.inputs[0] in products and graph.readers[node.inputs[0]] == [index]
        and node.inputs[0] not in graph.outputs and max(node.attrs["axes"]) < len(graph.nodes[node.inputs[0]].shape) - 2
    }


def is_thin(nodes: Sequence[Node], a: int, b: int) -> bool:
    """Whether the product of `a` and `b` is a sum of elementwise products, which fuses: a matrix product would pad it to tiles.

    A batch's size does not choose between the two, from 2 on: it is no extent of `b`, unless as the terms of a gradient by a
    weight, which lie apart in `a`.
    """
    (rows, terms), columns = nodes[a].shape[-2:], nodes[b].shape[-1]
    if min(rows, terms, columns) <= 1:
        return True
    left = nodes[nodes[a].inputs[0] if nodes[a].op == "cast" else a]
    row, column = left.attrs["strides"][-2:] if left.op == "view" else (1, 0)
    return column <= row and terms <= FEW and columns <= FEW


def sum_of_products(
    graph: Graph, a: Value, b: Value, shape: tuple[int, ...], over: Sequence[int] = (), *, materialize: bool = False
) -> Value:
    """The sum over k, and the batch axes `over`, of a[.., i, k] * b[.., k, j]; with `materialize`, of materialized operands.

    Few terms are added one by one, so that they fuse with anything. Products with a vector follow the matrix's memory order, so
    that they fuse with other passes over it.
    """
    *batch, m, k = a.shape
    n = b.shape[-1]
    if 0 < k <= FEW and not over and not materialize:
        return _few_terms(a, b, (*batch, m, n))
    row, column = _strides(graph, a if n == 1 else b)
    if row < column if n == 1 else m == 1 and column < row:
        full, term = (*batch, k, m, n), len(batch)
        left = expand(reshape_value(swapped(a), (*batch, k, m, 1)), full)
        right = expand(reshape_value(b, (*batch, k, 1, n)), full)
    else:
        full, term = (*batch, m, n, k), len(batch) + 2
        left = expand(reshape_value(a, (*batch, m, 1, k)), full)
        right = expand(reshape_value(swapped(b), (*batch, 1, n, k)), full)
    product = graph.add("mul", (left, right), full, a.dtype, {"operands": "materialize"} if materialize else {})
    if k == 1 and not over:
        return reshape_value(product, shape)
    return graph.add("sum", (product,), shape, a.dtype, {"axes": (*over, term)})


def _few_terms(a: Value, b: Value, shape: Shape) -> Value:
    lefts, rights = ([expand(slice_value(x, axis, k, k + 1), shape) for k in range(x.shape[axis])]
                     for x, axis in ((a, a.ndim - 1), (b, b.ndim - 2)))
    products = [a.graph.add("mul", pair, shape, a.dtype) for pair in zip(lefts, rights, strict=True)]
    return functools.reduce(lambda total, product: a.graph.add("add", (total, product), shape, a.dtype), products)


def _strides(graph: Graph, x: Value) -> tuple[int, int]:
    """The strides of a matrix's rows and columns, or of what it is cast from; equal numbers if that is not in memory."""
    found = grouped_layout(graph.nodes, x.node.inputs[0] if x.node.op == "cast" else x.index)
    if found is None or found[1] != PLAIN:
        return 1, 1
    row, column = found[0].strides[-2:]
    return row, column


# ---- sums over a batch ----
def sum_batches(graph: Simplified) -> Simplified:
    """The graph with sums over batches of products as products that accumulate."""
    nodes = list(graph.nodes)
    if not any([node.op == "sum" and _sums_product(nodes, node) for node in nodes]):
        return graph
    found = False
    for index, node in enumerate(nodes):
        if _sums_product(nodes, node) and graph.readers[node.inputs[0]] == [index] and node.inputs[0] not in graph.outputs:
            product = nodes[node.inputs[0]]
            attrs = {**product.attrs, "summed": max(node.attrs["axes"]) + 1}
            nodes[index] = Node("matmul", product.inputs, attrs, node.shape, node.dtype)
            found = True
    return without_dead(Simplified(nodes, graph.outputs, graph.origins)) if found else graph


def _sums_product(nodes: Sequence[Node], node: Node) -> bool:
    """Whether a node sums leading batch axes of matrix products, in their dtype; not of thin ones."""
    product = nodes[node.inputs[0]] if node.op == "sum" else node
    if node.op != "sum" or product.op != "matmul":
        return False
    axes, batch, dtype = node.attrs["axes"], product.shape[:-2], product.dtype
    if dtype is not node.dtype or dtype.compute is not dtype or dtype.category != 2:
        return False
    return (not is_thin(nodes, *product.inputs) and max(axes) < len(batch)
            and all(extent == 1 for axis, extent in enumerate(batch[: max(axes)]) if axis not in axes))
