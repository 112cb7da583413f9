"""Legalization: nodes that the backend does not support become nodes that it does.

Before: a simplified graph. After: matmuls have dtypes and operands that products take, operands have memory, and outputs
have row-major memory of their own (except saved values, which may share it).

Products take float32 and float64 matrices with one unit stride, and bfloat16 ones where the target multiplies pairs. Other
operands are copied or cast; other dtypes, products with vectors, and those of few terms and columns become elementwise products
and sums. A value without memory (a literal, a range, a broadcast) is copied where it must be in memory.
"""

from __future__ import annotations

from collections.abc import Collection

from genesis.ir.dtypes import bfloat16, float32
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.lower.convolve import is_thin, sum_of_products
from genesis.lower.index_map import LEAST_RUN, PLAIN, AxisGroups, Digits, digits_of, grouped_layout, run_of
from genesis.lower.operands import (
    Legal, collapsed_batch, copied, has_adjacent_pairs, has_memory, in_memory, in_order, layout_of, matrix_operand,
    operand_layout, owned, reading, result_layout,
)
from genesis.lower.rewriting import Rewriting, Simplified, base_of, with_replaced
from genesis.ops.contraction import swapped
from genesis.ops.layout import Layout, layout_in
from genesis.ops.registry import PRIMITIVES, cast, expand
from genesis.ops.views import put_value, reshape_value, slice_value, view_node

LANES = 8  # adjacent elements that fill a vector
GATHERED = 512  # columns from which a product takes thirty times as long as gathering its left operand


def legalize(graph: Simplified, saved: int = 0, strided: bool = False, pairs: bool = False) -> Simplified:
    """The legal form of a graph, as stated above; the last `saved` outputs are never written to.

    `strided` products take operands of any strides, and of 16 bits; `pairs`: of bfloat16, two terms at a time.
    """
    result = Legal(graph, strided, pairs)
    for node in graph.nodes:
        kind = PRIMITIVES[node.op].kind
        if kind in ("elementwise", "view", "source"):  # most nodes, with nothing to do
            result.copy(node)
            continue
        node = result.moved(node)
        if node.op == "matmul":
            result.put(_legal_product(result, node, is_thin(result.nodes, *node.inputs)).index)
        elif kind == "gather":
            source = result.copies.get(reading(result, node.inputs[0]))  # gathers are faster from a contiguous copy
            source = in_memory(result, node.inputs[0]) if source is None else source
            result.put(result.append(node.renumbered((source, *node.inputs[1:]))))
        elif kind == "collective":
            result.put(result.append(node.renumbered((in_order(result, node.inputs[0]),))))
        elif kind == "host":
            ready = in_order if PRIMITIVES[node.op].contiguous else in_memory
            result.put(result.append(node.renumbered(tuple([ready(result, i) for i in node.inputs]))))
        elif kind == "reduce" and all(result.nodes[node.inputs[0]].shape[a] == 1 for a in node.attrs["axes"]):
            arg = node.op.startswith("arg")
            value = result.constant(0, node.dtype) if arg else result.value(node.inputs[0])
            result.put((expand if arg else reshape_value)(value, node.shape).index)
        else:
            result.put(result.append(node))
    outputs: list[int] = []
    taken: set[int] = set()
    for position, o in enumerate(graph.outputs):
        own = position < len(graph.outputs) - saved
        moved = result.new_index[o]
        outputs.append(owned(result, moved, taken) if own else in_memory(result, moved, spread=False))
        taken.add(base_of(result.nodes, outputs[-1]))
        result.came_from(o)
    return result.finished(outputs)


def _legal_product(graph: Legal, node: Node, thin: bool) -> Value:
    """The product of operands that it can read; sums of products if it is `thin` or of integers."""
    a, b = (graph.value(i) for i in node.inputs)
    if graph.pairs and not thin and (y := product_of_pairs(graph, node, a, b)) is not None:
        return cast(y, node.dtype)
    if a.dtype is not node.dtype:  # 16-bit operands of a product in float32
        if graph.strided and not thin:  # the device's product rounds its result
            return cast(_legal_product(graph, Node("matmul", node.inputs, node.attrs, node.shape, a.dtype), thin), node.dtype)
        wide = Node("matmul", (_widened(a).index, _widened(b).index), node.attrs, node.shape, float32)
        return _legal_product(graph, wide, thin)
    if node.dtype.compute is not node.dtype and (thin or not graph.strided):
        wide = Node("matmul", (_widened(a).index, _widened(b).index), node.attrs, node.shape, float32)
        return cast(_legal_product(graph, wide, thin), node.dtype)
    if node.dtype.category < 2 or thin or numel(a.shape) == 0 or numel(b.shape) == 0:
        return sum_of_products(graph, a, b, node.shape)
    # The product's launch has two axes for the batch: operands that cannot be walked with two are copied.
    operands = [_readable_operand(graph, i, columns) for i, columns in zip(node.inputs, (b.shape[-1], 0), strict=True)]
    layouts = [operand_layout(graph.nodes, i)[0] for i in operands]
    if not graph.strided and len(collapsed_batch([*layouts, result_layout(node, a.shape)])[0]) > 2:
        operands = [copied(graph, i) for i in operands]
    return graph.value(graph.append(node.renumbered(tuple(operands))))


def _readable_operand(graph: Legal, index: int, columns: int) -> int:
    """`index` or a copy of it that products can read. `columns` is the number of columns that a left operand is multiplied
    with, 0 for a right one. A transposed matrix is copied in its memory order.
    """
    layout = layout_of(graph.nodes, index)
    if has_memory(graph, index) and layout is not None and matrix_operand(layout):
        return index
    found = grouped_layout(graph.nodes, index) if has_memory(graph, index) else None
    if found is not None and (graph.strided or (found[1] != PLAIN and _is_packed_there(graph, index, found, columns))):
        return index
    if found is not None and found[1] != PLAIN:
        return _copied_operand(graph, index, found)
    node = graph.nodes[index]
    row, column = node.attrs["strides"][-2:] if node.op == "view" else (1, 0)
    if not 0 < row < column:
        return copied(graph, index)
    # A transposed matrix is copied in memory order and read transposed: copying it by rows would gather, 14 of the 58 ms of a
    # CNN step.
    (*batch, rows, columns), strides = node.shape, node.attrs["strides"]
    straight = Layout((*batch, columns, rows), (*strides[:-2], column, row), node.attrs["offset"])
    as_it_lies = view_node(graph.value(node.inputs[0]), straight, "matrix")
    return swapped(graph.value(copied(graph, as_it_lies.index))).index


def _copied_operand(graph: Legal, index: int, found: tuple[Layout, AxisGroups]) -> int:
    """A copy of a batch of matrices in memory order, shared by equal values and by their transposes."""
    (rows, columns), layout, x = digits_of(*found), found[0], graph.value(index)
    is_transposed = _step(rows) < _step(columns)
    once = x
    for axis, stride in enumerate(layout.strides[: x.ndim - 2]):
        once = once if stride else slice_value(once, axis, 0, 1)
    once = swapped(once) if is_transposed else once
    key = ("matrix", base_of(graph.nodes, index), layout.offset, layout.strides[: x.ndim - 2], once.shape,
           (columns, rows) if is_transposed else (rows, columns))
    if key not in graph.copies:
        graph.copies[key] = graph.add("clone", (once.index,), once.shape, x.dtype).index
    copy = graph.value(graph.copies[key])
    return expand(swapped(copy) if is_transposed else copy, x.shape).index


def _step(digits: Digits) -> int:
    """The stride along an axis; for an axis in parts, along the last part that fills a vector."""
    wide = [abs(stride) for extent, stride in digits if extent >= LANES] or [abs(stride) for _, stride in digits]
    return wide[-1]


def _is_packed_there(graph: Legal, index: int, found: tuple[Layout, AxisGroups], columns: int) -> bool:
    """Whether a product should pack a matrix whose rows or columns span several axes of memory directly, without a copy.

    Windows are packed directly: a copy would be many times as large. A matrix without adjacent elements is copied. A left
    operand is copied by the kernel that computes it, unless its terms lie in runs; also if a whole batch shares it and each is
    multiplied with few columns, as packing it again and again takes longer.
    """
    layout, (rows, terms) = found[0], digits_of(*found)
    base = graph.nodes[base_of(graph.nodes, index)]
    spread = base.numel < numel([extent for extent, stride in zip(layout.shape, layout.strides, strict=True) if stride])
    if PRIMITIVES[base.op].kind == "contract" and not spread:
        return False
    batch = [*zip(layout.shape, layout.strides, strict=True)][: -sum(found[1])]
    repeated = any(extent > 1 and not stride for extent, stride in batch)
    if columns and repeated and columns < GATHERED:
        return False
    in_runs = run_of(terms) >= LEAST_RUN
    if not columns:  # gathered one by one, 8 x 1024 x 128 elements took 30 ms
        return spread or in_runs or run_of(rows) >= LEAST_RUN
    return spread or base.op == "input" or (len(rows) == 1 and in_runs)


def _widened(x: Value) -> Value:
    """An operand cast to float32; below views that repeat elements, as windows do, the base is cast."""
    nodes = x.graph.nodes
    if nodes[base_of(nodes, x.index)].numel >= numel(x.shape):
        return cast(x, float32)
    source = x.graph.value(x.node.inputs[0])
    return view_node(_widened(source), layout_in(x.node), x.node.attrs["label"])


def force_materialized(graph: Simplified, values: Collection[int]) -> Simplified:
    """The graph with each of `values` in row-major memory, written by a kernel of its own.

    A gather is written there directly; readers of another value read a copy.
    """
    def materialized(result: Rewriting, node: Node) -> Value:
        if node.op == "gather":
            return result.add(node.op, node.inputs, node.shape, node.dtype, {**node.attrs, "materialize": True})
        copied = result.append(node)
        return result.add("clone", (copied,), node.shape, node.dtype, {"materialize": True})

    return with_replaced(graph, dict.fromkeys(values, materialized))


# ---- products of bfloat16 matrices, by an instruction that multiplies pairs of terms at once ----
# Operands are read where pairs are adjacent, or where lines are, which packing interleaves by twos; others are copied.
def product_of_pairs(graph: Legal, node: Node, a: Value, b: Value, copies: bool = False) -> Value | None:
    """The product in float32, with `copies` of both operands, if it is one of bfloat16 matrices, all of whose terms count; None
    if an operand would be a large copy of windows."""
    if not a.dtype is b.dtype is bfloat16 or "k" in node.attrs.get("only", "") or not numel(a.shape) * numel(b.shape):
        return None
    left, right = _operand_of_pairs(graph, a, True, copies), _operand_of_pairs(graph, b, False, copies)
    if left is None or right is None:
        return None
    layouts = [operand_layout(graph.nodes, x.index)[0] for x in (left, right)]
    if not copies and len(collapsed_batch([*layouts, result_layout(node, left.shape)])[0]) > 2:  # its launch has two axes
        return product_of_pairs(graph, node, a, b, copies=True)
    return graph.add("matmul", (left, right), node.shape, float32, {**node.attrs, "pairs": True})


def _operand_of_pairs(graph: Legal, x: Value, left: bool, copies: bool) -> Value | None:
    """An operand that products of pairs read: `x` or a copy of it; None for windows that cannot be read where they lie."""
    found = grouped_layout(graph.nodes, x.index)
    steps = (x.node.attrs["strides"] if found is None else found[0].strides)[: x.ndim - 2]
    matrices = [extent for extent, step in zip(x.shape[:-2], steps, strict=True) if step]
    is_spread = graph.nodes[base_of(graph.nodes, x.index)].numel < numel([*matrices, *x.shape[-2:]])
    if found is not None and has_memory(graph, x.index) and not copies and _has_pairs_there(x, *found, left, is_spread):
        return x
    if is_spread:
        return None
    return _copied_lines(graph, x, steps) if left else _exchanged(_copied_lines(graph, _exchanged(x), steps))


def _has_pairs_there(x: Value, layout: Layout, axis_groups: AxisGroups, left: bool, is_spread: bool) -> bool:
    """Whether a product packs pairs from where an operand lies: adjacent ones, or those of an even number of terms whose lines
    are adjacent; also windows, of right operands."""
    if axis_groups == PLAIN:
        terms, lines = (-1, -2) if left else (-2, -1)
        return x.shape[terms] % 2 == 0 and (has_adjacent_pairs(layout, left) or layout.strides[lines] == 1)
    return not left and (is_spread or run_of(digits_of(layout, axis_groups)[1]) >= LEAST_RUN)


def _copied_lines(graph: Legal, lines: Value, steps: Shape) -> Value:
    """A copy of lines (.., lines, terms), with a zero behind an odd number of terms; once where the batch's `steps` are 0."""
    shape = lines.shape
    for axis, step in enumerate(steps):
        lines = lines if step else slice_value(lines, axis, 0, 1)
    key = "pairs", reading(graph, lines.index)
    if key not in graph.copies:
        graph.copies[key] = _with_zeros(lines).index if lines.shape[-1] % 2 else copied(graph, lines.index)
    return expand(graph.value(graph.copies[key]), shape)


def _with_zeros(lines: Value) -> Value:
    """The lines, where each has a zero behind its terms."""
    shape = (*lines.shape[:-1], lines.shape[-1] + 1)
    there = Layout(lines.shape, contiguous_strides(shape), 0)
    return view_node(put_value(None, lines, there, shape), there, "terms")


def _exchanged(x: Value) -> Value:
    """The last two axes exchanged, in one view."""
    if x.node.op != "view":
        return swapped(x)
    turned = {name: (*x.node.attrs[name][:-2], *reversed(x.node.attrs[name][-2:])) for name in ("shape", "strides")}
    return x.graph.add("view", x.node.inputs, turned["shape"], x.dtype, {**x.node.attrs, **turned})
