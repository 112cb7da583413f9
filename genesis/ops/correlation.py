"""Matrix products that are convolutions, rewritten: windows one step apart, laid over each other, are a convolution too.

A convolution is a product with windows of its input. The gradient by that input lays products over each other; where
windows are one step apart, that is the product with windows of what was multiplied, the taps turned round: sums that stay
in registers, in place of a matrix as large as all windows.
"""

from __future__ import annotations

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ops.layout import Layout, contiguous_layout, flip_layout
from genesis.ops.views import permute_value, put_value, reshape_value, view_node, view_value

__all__ = ["fewer_windows", "windows_convolved"]

LEAST_WINDOWS = 8  # in a row, that make it worth while


def _reshaped(x: Value) -> Value:
    """What `x` is a reshape of."""
    while x.node.op == "view" and "fence" not in x.node.attrs:
        source = x.graph.value(x.node.inputs[0])
        strides, offset = x.node.attrs["strides"], x.node.attrs["offset"]
        if (strides, offset, numel(x.shape)) != (contiguous_strides(x.shape), 0, numel(source.shape)):
            break
        x = source
    return x


def windows_convolved(x: Value, at: Layout, shape: Shape) -> Value | None:
    """The sums of what `at` places in `shape`, if `x` is a product of (channels, *taps) rows and (*windows) columns and
    places windows one step apart: a product with windows. None if it is not.
    """
    y = _reshaped(x)
    axes = len(at.shape) - len(shape)  # those that have taps, each on an axis of its own
    lead = len(shape) - axes
    if y.node.op != "matmul" or axes < 1 or lead < 1:
        return None
    taps, counts = at.shape[lead:-axes], at.shape[-axes:]
    own = contiguous_strides(shape)
    apart = [s // o for s, o in zip(at.strides[lead:-axes], own[lead:], strict=True)]
    margins = [d * (k - 1) for d, k in zip(apart, taps, strict=True)]
    steps = tuple(d * o for d, o in zip(apart, own[lead:], strict=True))
    placed = Layout((*shape[:lead], *taps, *counts), (*own[:lead], *steps, *own[lead:]), 0)
    filled = all(c + m == e for c, m, e in zip(counts, margins, shape[lead:], strict=True))
    if at != placed or not filled or counts[-1] < LEAST_WINDOWS or numel(taps) == 1 or y.shape[-1] != numel(counts):
        return None
    a, b = (y.graph.value(i) for i in y.node.inputs)
    batch, inner, channels = y.shape[:-2], a.shape[-1], y.shape[-2] // numel(taps)
    lines = (*batch, inner)
    around = contiguous_layout((*lines, *(c + 2 * m for c, m in zip(counts, margins, strict=True))))
    first = sum(m * s for m, s in zip(margins, around.strides[-axes:], strict=True))
    points = reshape_value(b, (*lines, *counts))
    padded = put_value(None, points, Layout(points.shape, around.strides, first), around.shape)
    hops = tuple(d * s for d, s in zip(apart, around.strides[-axes:], strict=True))
    at_taps = (*around.strides[:-axes], *hops, *around.strides[-axes:])
    found = view_node(padded, Layout((*lines, *taps, *shape[lead:]), at_taps, 0), "windows")
    rows = reshape_value(a, (*batch, channels, *taps, inner))
    turned = range(len(batch) + 1, len(batch) + 1 + axes)
    rows = view_value(rows, flip_layout(contiguous_layout(rows.shape), [*turned]), "flip")
    rows = permute_value(rows, [*range(len(batch) + 1), rows.ndim - 1, *turned])
    depth = inner * numel(taps)
    columns = reshape_value(found, (*batch, depth, numel(shape[lead:])))
    return reshape_value(_product(reshape_value(rows, (*batch, channels, depth)), columns), shape)


def fewer_windows(x: Value, at: Layout) -> Value | None:
    """The part `at` of `x`, if `x` is a product with windows and the part a block of these: a product with no others."""
    y = _reshaped(x)
    axes = next((n for n in range(1, x.ndim) if numel(x.shape[-n:]) == y.shape[-1]), 0)
    if y.node.op != "matmul" or not axes or (at.shape[:-axes], at.strides) != (x.shape[:-axes], contiguous_strides(x.shape)):
        return None
    a, b = (y.graph.value(i) for i in y.node.inputs)
    found = _reshaped(b).node
    if found.op != "view" or found.shape[-axes:] != x.shape[-axes:]:
        return None
    offset, rest = found.attrs["offset"], at.offset
    for own, step in zip(at.strides[-axes:], found.attrs["strides"][-axes:], strict=True):
        first, rest = divmod(rest, own)
        offset += first * step
    block = Layout((*found.shape[:-axes], *at.shape[-axes:]), found.attrs["strides"], offset)
    right = view_node(y.graph.value(found.inputs[0]), block, "windows")
    return reshape_value(_product(a, reshape_value(right, (*b.shape[:-1], numel(at.shape[-axes:])))), at.shape)


def _product(a: Value, b: Value) -> Value:
    return a.graph.add("matmul", (a, b), (*a.shape[:-1], b.shape[-1]), a.dtype)
