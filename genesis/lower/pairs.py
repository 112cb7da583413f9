"""Products of bfloat16 matrices by an instruction that multiplies pairs of terms at once.

Operands are read where pairs are adjacent, or where lines are, which packing interleaves by twos; others are copied.
"""

from __future__ import annotations

from genesis.ir.dtypes import bfloat16, float32
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.lower.copies import Legal, copied, has_memory, reading
from genesis.lower.index_map import LEAST_RUN, PLAIN, AxisGroups, digits_of, grouped_layout, run_of
from genesis.lower.operands import collapsed_batch, has_adjacent_pairs, operand_layout, result_layout
from genesis.lower.rewriting import base_of
from genesis.ops.contraction import swapped
from genesis.ops.layout import Layout
from genesis.ops.registry import expand
from genesis.ops.views import put_value, slice_value, view_node


def product_of_pairs(graph: Legal, node: Node, a: Value, b: Value, copies: bool = False) -> Value | None:
    """The product in float32, with `copies` of both operands, if it is one of bfloat16 matrices, all of whose terms count; None
    if an operand would be a large copy of windows."""
    if not a.dtype is b.dtype is bfloat16 or "k" in node.attrs.get("only", "") or not numel(a.shape) * numel(b.shape):
        return None
    left, right = _operand(graph, a, True, copies), _operand(graph, b, False, copies)
    if left is None or right is None:
        return None
    layouts = [operand_layout(graph.nodes, x.index)[0] for x in (left, right)]
    if not copies and len(collapsed_batch([*layouts, result_layout(node, left.shape)])[0]) > 2:  # its launch has two axes
        return product_of_pairs(graph, node, a, b, copies=True)
    return graph.add("matmul", (left, right), node.shape, float32, {**node.attrs, "pairs": True})


def _operand(graph: Legal, x: Value, left: bool, copies: bool) -> Value | None:
    """An operand that products of pairs read: `x` or a copy of it; None for windows that cannot be read where they lie."""
    found = grouped_layout(graph.nodes, x.index)
    steps = (x.node.attrs["strides"] if found is None else found[0].strides)[: x.ndim - 2]
    matrices = [extent for extent, step in zip(x.shape[:-2], steps, strict=True) if step]
    is_spread = graph.nodes[base_of(graph.nodes, x.index)].numel < numel([*matrices, *x.shape[-2:]])
    if found is not None and has_memory(graph, x.index) and not copies and _is_packed_there(x, *found, left, is_spread):
        return x
    if is_spread:
        return None
    return _copied(graph, x, steps) if left else _exchanged(_copied(graph, _exchanged(x), steps))


def _is_packed_there(x: Value, layout: Layout, axis_groups: AxisGroups, left: bool, is_spread: bool) -> bool:
    """Whether a product packs pairs from where an operand lies: adjacent ones, or those of an even number of terms whose lines
    are adjacent; also windows, of right operands."""
    if axis_groups == PLAIN:
        terms, lines = (-1, -2) if left else (-2, -1)
        return x.shape[terms] % 2 == 0 and (has_adjacent_pairs(layout, left) or layout.strides[lines] == 1)
    return not left and (is_spread or run_of(digits_of(layout, axis_groups)[1]) >= LEAST_RUN)


def _copied(graph: Legal, lines: Value, steps: Shape) -> Value:
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
