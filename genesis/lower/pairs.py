"""Products of bfloat16 matrices whose operands have pairs of adjacent terms, which an instruction multiplies at once."""

from __future__ import annotations

from genesis.ir.dtypes import bfloat16, float32
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.copies import Legal, copied, has_memory, layout_of, reading
from genesis.lower.operands import collapsed_batch, operand_layout, result_layout
from genesis.lower.rewriting import base_of
from genesis.ops.contraction import swapped
from genesis.ops.layout import Layout
from genesis.ops.registry import expand
from genesis.ops.views import put_value, slice_value


def multiplies_pairs(node: Node, a: Value, b: Value) -> bool:
    """Whether a product is one of bfloat16 matrices, all of whose terms count, and neither is windows, of which copies would be
    large."""
    if not a.dtype is b.dtype is bfloat16 or "k" in node.attrs.get("only", "") or not numel(a.shape) * numel(b.shape):
        return False
    return not _is_spread(a) and not _is_spread(b)


def _is_spread(x: Value) -> bool:
    """Whether a view repeats elements, but for whole matrices along axes of the batch."""
    if x.node.op != "view":
        return False
    strides = x.node.attrs["strides"]
    own = [extent for extent, stride in zip(x.shape[:-2], strides[:-2], strict=True) if stride]
    return x.graph.nodes[base_of(x.graph.nodes, x.index)].numel < numel([*own, *x.shape[-2:]])


def product_of_pairs(graph: Legal, node: Node, a: Value, b: Value) -> Value:
    """The product, in float32, with operands whose pairs of terms are adjacent."""
    for copies in (False, True):  # the product's launch has two axes for the batch
        left, right = _in_pairs(graph, a, copies), _exchanged(_in_pairs(graph, _exchanged(b), copies))
        layouts = [operand_layout(graph.nodes, x.index)[0] for x in (left, right)]
        if len(collapsed_batch([*layouts, result_layout(node, left.shape)])[0]) <= 2:
            break
    return graph.add("matmul", (left, right), node.shape, float32, {**node.attrs, "pairs": True})


def _in_pairs(graph: Legal, x: Value, copies: bool) -> Value:
    """Lines (.., lines, terms) with adjacent terms, an even number of them, from even offsets on: `x` or a copy, which has a
    zero behind an odd number of terms."""
    layout, lines = layout_of(graph.nodes, x.index) if has_memory(graph, x.index) and not copies else None, x
    if layout is not None:
        if layout.strides[-1] == 1 and not any(n % 2 for n in (x.shape[-1], layout.offset, *layout.strides[:-1])):
            return x
        for axis, stride in enumerate(layout.strides[:-2]):
            lines = lines if stride else slice_value(lines, axis, 0, 1)
    key = "pairs", reading(graph, lines.index)
    if key not in graph.copies:
        graph.copies[key] = _with_zeros(lines).index if lines.shape[-1] % 2 else copied(graph, lines.index)
    copy = graph.value(graph.copies[key])
    return expand(copy, (*x.shape[:-1], copy.shape[-1]))


def _with_zeros(lines: Value) -> Value:
    """The lines, each with a zero behind its terms."""
    shape = (*lines.shape[:-1], lines.shape[-1] + 1)
    return put_value(None, lines, Layout(lines.shape, contiguous_strides(shape), 0), shape)


def _exchanged(x: Value) -> Value:
    """The last two axes exchanged, in one view."""
    if x.node.op != "view":
        return swapped(x)
    turned = {name: (*x.node.attrs[name][:-2], *reversed(x.node.attrs[name][-2:])) for name in ("shape", "strides")}
    return x.graph.add("view", x.node.inputs, turned["shape"], x.dtype, {**x.node.attrs, **turned})
