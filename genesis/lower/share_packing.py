"""Shared packing: a right operand of many products of few rows is packed once for all of them.

Before: a simplified graph. After: such an operand is a view of a copy in strips, the format in which products on the CPU pack
it: for each term, the strip's columns side by side. The recurrent weights of a layer are such matrices: each time step would
pack them again, for only a batch of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from genesis.ir.graph import Node, Value
from genesis.lower.rewriting import Rewriting, Simplified, with_replaced
from genesis.ops.views import permute_value, reshape_value

FEW_ROWS = 64  # for so few, packing takes more than a tenth of a product's time
LEAST_PRODUCTS = 4  # that repay a copy written to memory


def share_packing(graph: Simplified, strip: int) -> Simplified:
    """The graph with shared right operands packed once, in strips of `strip` bytes of columns."""
    nodes = graph.nodes
    products: dict[int, list[int]] = defaultdict(list)  # right operand -> the products
    for index, node in enumerate(nodes):
        if node.op == "matmul" and strip and _packs(nodes, node, strip // node.dtype.itemsize):
            products[node.inputs[1]].append(index)
    shared = set[int]()
    for each in products.values():
        few = [index for index in each if 1 < nodes[index].shape[0] <= FEW_ROWS] if len(each) >= LEAST_PRODUCTS else ()
        shared.update(few if len(few) >= LEAST_PRODUCTS else ())
    packed: dict[int, Value] = {}

    def with_strips(result: Rewriting, node: Node) -> Value:
        left, right = node.inputs
        if right not in packed:
            packed[right] = _in_strips(result.value(right), strip // node.dtype.itemsize)
        return result.value(result.append(node.renumbered((left, packed[right].index))))

    return with_replaced(graph, dict.fromkeys(shared, with_strips)) if shared else graph


def _packs(nodes: Sequence[Node], node: Node, columns: int) -> bool:
    """Whether a node is a product with a single matrix that is whole strips of `columns` columns."""
    left, right = (nodes[i] for i in node.inputs)
    return (len(node.shape) == 2 and left.shape[1] > 1 and "only" not in node.attrs
            and left.dtype is right.dtype is node.dtype is node.dtype.compute and node.dtype.category == 2
            and node.shape[1] > columns and node.shape[1] % columns == 0)


def _in_strips(x: Value, columns: int) -> Value:
    """A view, as (terms, columns), of a copy as (strips, terms, columns of a strip)."""
    terms, extent = x.shape
    strips = permute_value(reshape_value(x, (terms, extent // columns, columns)), (1, 0, 2))
    copy = x.graph.add("clone", (strips,), strips.shape, x.dtype, {"materialize": True, "reader": "product"})
    return reshape_value(permute_value(copy, (1, 0, 2)), x.shape)
