"""The adjoint of a convolution, rewritten as convolutions.

A convolution is a matrix product with the windows of its input. Its gradient by the input sums overlapping windows. That equals
a convolution of the cotangent with flipped taps; with a stride, one for each remainder. The sums stay in registers, so the
matrix of all windows is never materialized.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ops.conversion import rewritten
from genesis.ops.layout import Layout, contiguous_layout, flip_layout, layout_in, slice_layout, window_layout
from genesis.ops.views import permute_value, put_value, reshape_value, view_node, view_value


def _reshaped(x: Value) -> Value:
    """The value that `x` reshapes."""
    while x.node.op == "view" and "barrier" not in x.node.attrs:
        source = x.graph.value(x.node.inputs[0])
        strides, offset = x.node.attrs["strides"], x.node.attrs["offset"]
        if (strides, offset, numel(x.shape)) != (contiguous_strides(x.shape), 0, numel(source.shape)):
            break
        x = source
    return x


class _Windows(NamedTuple):
    """Windows along some axes: taps per window, number of windows, and the distances between taps and between windows."""

    taps: Shape
    counts: Shape
    hops: Shape
    steps: Shape


def _windows(at: Layout, shape: Shape) -> _Windows | None:
    """The windows over the last axes of `shape` that the layout `at` describes, if it does; None for windows of one tap."""
    axes = len(at.shape) - len(shape)  # windowed axes: each adds an axis of taps
    lead = len(shape) - axes
    if axes < 1 or lead < 1:
        return None
    own = contiguous_strides(shape)[lead:]
    hops = tuple(s // o for s, o in zip(at.strides[lead:-axes], own, strict=True))
    steps = tuple(s // o for s, o in zip(at.strides[-axes:], own, strict=True))
    taps, counts = at.shape[lead:-axes], at.shape[-axes:]
    if min(*hops, *steps) < 1 or any(s > 1 < h for s, h in zip(steps, hops, strict=True)):
        return None
    if at != window_layout(shape, taps, steps, hops, counts) or numel(taps) == 1:
        return None
    if any(count < tap for count, tap in zip(counts, taps, strict=True)):  # the windows would mostly read padding
        return None
    return _Windows(taps, counts, hops, steps)


def windows_convolved(x: Value, at: Layout, shape: Shape) -> Value | None:
    """The sum of overlapping windows `at` in `shape` as products with windows, if `x` is a product of (channels, *taps) rows
    and (*windows) columns; else None.

    With a stride, the positions of each remainder modulo the stride are a convolution with every stride-th tap.
    """
    found = _windows(at, shape)
    if found is None:
        return None
    y = _reshaped(x)
    if y.node.op != "matmul" or y.shape[-1] != numel(found.counts):
        return None
    taps, counts, hops, steps = found
    axes = len(taps)
    a, b = (y.graph.value(i) for i in y.node.inputs)
    if a.dtype is not y.dtype:
        return None
    batch, inner = y.shape[:-2], a.shape[-1]
    rows = reshape_value(a, (*batch, y.shape[-2] // numel(taps), *taps, inner))
    margins = tuple(h * (-(-k // s) - 1) for h, k, s in zip(hops, taps, steps, strict=True))
    positions = tuple(-(-e // s) for e, s in zip(shape[-axes:], steps, strict=True))
    around = contiguous_layout((*batch, inner, *(e + m for e, m in zip(positions, margins, strict=True))))
    points = reshape_value(b, (*batch, inner, *counts))
    padded = put_value(None, points, Layout(points.shape, around.strides, _dot(margins, around.strides[-axes:])), around.shape)
    own = contiguous_strides(shape)
    apart = (*own[:-axes], *(o * s for o, s in zip(own[-axes:], steps, strict=True)))
    total: Value | None = None
    for start in product(*map(range, steps)):
        extents = tuple(-(-(e - r) // s) for e, r, s in zip(shape[-axes:], start, steps, strict=True))
        sums = _sums(rows, padded, start, found, extents)
        if sums is not None and 0 not in extents:
            part = reshape_value(sums, (*shape[:-axes], *extents))
            total = put_value(total, part, Layout(part.shape, apart, _dot(start, own[-axes:])), shape)
    return total


def _sums(rows: Value, padded: Value, start: Shape, windows: _Windows, extents: Shape) -> Value | None:
    """(.., channels, *extents): the sums of (.., channels, *taps, inner) rows at positions with the remainders `start`."""
    axes = len(start)
    lead, channels, inner = rows.shape[: -axes - 2], rows.shape[-axes - 2], rows.shape[-1]
    here = contiguous_layout(rows.shape)
    for axis, (first, step) in enumerate(zip(start, windows.steps, strict=True), len(lead) + 1):
        here = slice_layout(here, axis, first, None, step)
    taps = here.shape[len(lead) + 1 : -1]
    if 0 in taps:
        return None
    flipped = range(len(lead) + 1, len(lead) + 1 + axes)
    kernels = view_value(rows, flip_layout(here, [*flipped]), "flip")
    own = permute_value(kernels, [*range(len(lead) + 1), rows.ndim - 1, *flipped])
    around = contiguous_strides(padded.shape)
    hops = tuple(h * s for h, s in zip(windows.hops, around[-axes:], strict=True))
    skipped = _dot([-(-k // s) - t for k, s, t in zip(windows.taps, windows.steps, taps, strict=True)], hops)
    at_taps = Layout((*lead, inner, *taps, *extents), (*around[:-axes], *hops, *around[-axes:]), skipped)
    depth = inner * numel(taps)
    columns = reshape_value(view_node(padded, at_taps, "windows"), (*lead, depth, numel(extents)))
    return _product(reshape_value(own, (*lead, channels, depth)), columns)


def _dot(xs: Sequence[int], ys: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(xs, ys, strict=True))


def block(x: Value, at: Layout, *, cut: bool = True) -> Value:
    """The block `at` of `x`. A block of a product with windows becomes a product with fewer windows, also through `put`s; with
    `cut`, of a block of what they are windows of, which has less padding."""
    if x.node.op == "rewritten":
        old, new = (x.graph.value(i) for i in x.node.inputs)
        return rewritten(view_value(old, at, "slice"), block(new, at, cut=cut))
    box = _box(at, x.shape)
    if box is None or {*box[1]} != {1}:
        return view_value(x, at, "slice")
    if x.node.op == "put":
        return _block_of_put(x, at, box[0])
    y = _reshaped(x)
    axes = next((n for n in range(1, x.ndim) if numel(x.shape[-n:]) == y.shape[-1]), 0) if y.node.op == "matmul" else 0
    if not axes or at.shape[:-axes] != x.shape[:-axes]:
        return view_value(x, at, "slice")
    a, b = (y.graph.value(i) for i in y.node.inputs)
    found = _reshaped(b).node
    if found.op != "view" or found.shape[-axes:] != x.shape[-axes:]:
        return view_value(x, at, "slice")
    first = _dot(box[0][-axes:], found.attrs["strides"][-axes:])
    fewer = Layout((*found.shape[:-axes], *at.shape[-axes:]), found.attrs["strides"], found.attrs["offset"] + first)
    source = y.graph.value(found.inputs[0])
    source, fewer = _cut(source, fewer, axes) if cut else (source, fewer)
    right = view_node(source, fewer, "windows")
    return reshape_value(_product(a, reshape_value(right, (*b.shape[:-1], numel(at.shape[-axes:])))), at.shape)


def _cut(x: Value, windows: Layout, axes: int) -> tuple[Value, Layout]:
    """The block of `x` that windows over its last `axes` read, and the windows in it; both as they are for other windows."""
    own, lead = contiguous_strides(x.shape), x.ndim - axes
    taps, counts = windows.shape[lead:-axes], windows.shape[-axes:]
    hops = tuple(h // o for h, o in zip(windows.strides[lead:-axes], own[lead:], strict=False))
    strides = (*own[:lead], *(h * o for h, o in zip(hops, own[lead:], strict=False)), *own[lead:])
    if windows.strides != strides or windows.shape[:lead] != x.shape[:lead]:
        return x, windows
    shape = (*x.shape[:lead], *(h * (t - 1) + n for h, t, n in zip(hops, taps, counts, strict=True)))
    inside = contiguous_strides(shape)
    strides = (*inside[:lead], *(h * s for h, s in zip(hops, inside[lead:], strict=True)), *inside[lead:])
    return block(x, Layout(shape, own, windows.offset)), Layout(windows.shape, strides, 0)


def _block_of_put(x: Value, at: Layout, begin: Shape) -> Value:
    """The block `at`, starting at `begin`, of a `put`: made from the blocks of its base and its value."""
    base, value = (x.graph.value(i) for i in x.node.inputs)
    put = layout_in(x.node)
    box = _box(put, x.shape)
    if box is None:
        return view_value(x, at, "slice")
    starts, steps = tuple(p - b for p, b in zip(box[0], begin, strict=True)), box[1]
    first = tuple(max(0, -(b // s)) for b, s in zip(starts, steps, strict=True))
    last = tuple(min(e, -((b - n) // s)) for e, b, n, s in zip(put.shape, starts, at.shape, steps, strict=True))
    under, extents = block(base, at, cut=False), tuple(b - a for a, b in zip(first, last, strict=True))
    if min(extents) <= 0:
        return under
    inner = contiguous_strides(value.shape)
    here = block(value, Layout(extents, inner, _dot(first, inner)), cut=False)
    own = contiguous_strides(at.shape)
    offset = _dot([b + a * s for a, b, s in zip(first, starts, steps, strict=True)], own)
    return put_value(under, here, Layout(extents, tuple(s * o for s, o in zip(steps, own, strict=True)), offset), at.shape)


def _box(at: Layout, shape: Shape) -> tuple[Shape, Shape] | None:
    """A layout's start and step along each axis of `shape`; None if it is not a strided block."""
    own, rest = contiguous_strides(shape), at.offset
    if len(at.shape) != len(shape):
        return None
    starts, steps = [], tuple(s // o for s, o in zip(at.strides, own, strict=True))
    for stride in own:
        first, rest = divmod(rest, stride)
        starts.append(first)
    inside = all(b + s * (n - 1) < e for b, s, n, e in zip(starts, steps, at.shape, shape, strict=True))
    whole = at.strides == tuple(s * o for s, o in zip(steps, own, strict=True))
    return (tuple(starts), steps) if inside and whole and min(steps, default=1) > 0 else None


def _product(a: Value, b: Value) -> Value:
    return a.graph.add("matmul", (a, b), (*a.shape[:-1], b.shape[-1]), a.dtype)
