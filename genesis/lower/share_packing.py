"""Shared packing: a right operand of many products of few rows is packed once for all of them.

Before: a simplified graph. After: such an operand is a view of a copy in strips, the format in which products on the CPU pack
it: for each term, the strip's columns side by side. The recurrent weights of a layer or a cell are such matrices: each step
would pack them again, for only a batch of rows. A loop over time takes the copy itself as its constant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from genesis.ir.graph import Graph, Node, Value
from genesis.lower.rewriting import Rewriting, Simplified, readers_of, with_replaced
from genesis.ops.contraction import swapped
from genesis.ops.loop_body import body_of, closed, is_transposed
from genesis.ops.views import permute_value, reshape_value

FEW_ROWS = 64  # for so few, packing takes more than a tenth of a product's time
LEAST_PRODUCTS = 4  # that repay a copy written to memory


def share_packing(graph: Simplified, strip: int) -> Simplified:
    """The graph with shared right operands packed once, in strips of `strip` bytes of columns."""
    nodes = graph.nodes
    instead: dict[int, Callable[[Rewriting, Node], Value | None]] = {}
    products: dict[int, list[int]] = defaultdict(list)  # right operand -> the products
    for index, node in enumerate(nodes):
        if node.op == "matmul" and strip:
            products[node.inputs[1]].append(index)
        elif node.op == "time_loop" and strip:
            instead[index] = partial(_loop_over_strips, strip)
    packed: dict[int, Value] = {}

    def with_strips(result: Rewriting, node: Node) -> Value:
        left, right = node.inputs
        if right not in packed:
            packed[right] = _unpacked(_in_strips(result.value(right), strip // node.dtype.itemsize))
        return result.value(result.append(node.renumbered((left, packed[right].index))))

    for each in products.values():
        if len(each) >= LEAST_PRODUCTS:
            few = [index for index in each if _packs(nodes, nodes[index], strip // nodes[index].dtype.itemsize)]
            instead |= dict.fromkeys(few if len(few) >= LEAST_PRODUCTS else (), with_strips)
    return with_replaced(graph, instead) if instead else graph


def _packs(nodes: Sequence[Node], node: Node, columns: int) -> bool:
    """Whether a node is a product of few rows with a single matrix that is whole strips of `columns` columns."""
    left, right = (nodes[i] for i in node.inputs)
    return (len(node.shape) == 2 and 1 < node.shape[0] <= FEW_ROWS and left.shape[1] > 1 and "only" not in node.attrs
            and left.dtype is right.dtype is node.dtype is node.dtype.compute and node.dtype.category == 2
            and node.shape[1] > columns and node.shape[1] % columns == 0)


def _in_strips(x: Value, columns: int) -> Value:
    """A copy of (terms, columns) as (strips, terms, columns of a strip)."""
    terms, extent = x.shape
    strips = permute_value(reshape_value(x, (terms, extent // columns, columns)), (1, 0, 2))
    return x.graph.add("clone", (strips,), strips.shape, x.dtype, {"materialize": True, "reader": "product"})


def _unpacked(copy: Value) -> Value:
    """Such a copy viewed as (terms, columns)."""
    strips, terms, columns = copy.shape
    return reshape_value(permute_value(copy, (1, 0, 2)), (terms, strips * columns))


def _loop_over_strips(strip: int, result: Rewriting, loop: Node) -> Value | None:
    """A loop over time whose constants are strips where a step does nothing with them but multiply; None if none are."""
    body = body_of(loop)
    readers = readers_of(enumerate(body.nodes))
    inputs = [*map(result.value, loop.inputs)]
    packed: dict[int, int] = {}  # right operand -> the constant that it is, perhaps transposed
    for constant in range(body.constants):
        right, turned = constant, False
        while len(found := readers.get(right, [])) == 1 and is_transposed(body.nodes, found[0]):
            [right], turned = found, not turned
        if len(found) != 1 or body.nodes[found[0]].op != "matmul":
            continue
        product = body.nodes[found[0]]
        columns = strip // product.dtype.itemsize
        if product.inputs[0] != right and _packs(body.nodes, product, columns):
            packed[right] = constant
            inputs[constant] = _in_strips(swapped(inputs[constant]) if turned else inputs[constant], columns)
    if not packed:
        return None
    step, moved = Graph(), list[Value]()
    for index, node in enumerate(body.nodes):
        shape = inputs[index].shape if index in packed.values() else node.shape
        operands = [_unpacked(moved[packed[i]]) if i in packed else moved[i] for i in node.inputs if index not in packed]
        moved.append(step.add(node.op, operands, shape, node.dtype, node.attrs))
    ends = [[moved[i] for i in positions] for positions in (body.following, body.stacked)]
    other = closed(step, moved[: len(inputs)], body.constants, *ends)
    return result.add("time_loop", inputs, loop.shape, loop.dtype, other.attributes(loop.attrs["reverse"]))
