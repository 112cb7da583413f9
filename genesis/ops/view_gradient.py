"""The primitives `view` and `put`, and their gradients: a view that reads an element several times sums its cotangents."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache, reduce
from itertools import combinations
from operator import add

import numpy as np

from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.ir.unguarded import gcd
from genesis.ops.conversion import rewritten
from genesis.ops.correlation import block, windows_convolved
from genesis.ops.layout import Layout, contiguous_layout, layout_in, select_layout, slice_layout, unflatten_layout
from genesis.ops.registry import OPERATIONS, expand as expand_value, primitive
from genesis.ops.views import (
    forwards, put_reference, put_value, reshape_value, slice_value, view_node, view_reference, view_value,
)

_COUNTED = 1 << 22  # up to this many elements, offsets are compared one by one if strides are inconclusive


# ---- layouts where several indices share an element of memory, such as overlapping windows ----
def colliding_axes(at: Layout) -> tuple[int, int] | None:
    """Two axes where different numbers of steps reach the same element, the longer one first. Strides are positive.

    >>> colliding_axes(Layout((3, 2), (1, 1), 0)), colliding_axes(Layout((2, 3), (3, 1), 0))
    ((0, 1), None)
    """
    for a, b in combinations(range(len(at.shape)), 2):
        unit = gcd(at.strides[a], at.strides[b])
        if at.strides[b] < at.shape[a] * unit and at.strides[a] < at.shape[b] * unit:
            return (a, b) if at.shape[a] >= at.shape[b] else (b, a)
    return None


@lru_cache(maxsize=4096)
def is_injective(at: Layout) -> bool:
    """Whether each element of memory is reached at most once. False if that would take long to decide.

    >>> is_injective(Layout((2, 2), (2, 1), 0)), is_injective(Layout((2, 2), (1, 1), 0))
    (True, False)
    """
    axes = sorted((abs(s), e) for e, s in zip(at.shape, at.strides, strict=True) if e != 1)
    reach, unclear = 1, 0
    for number, (stride, extent) in enumerate(axes, 1):
        if stride < reach:
            unclear = number  # from this axis outwards, each stride exceeds the span of the inner axes
        reach += stride * (extent - 1)
    inner = axes[:unclear]
    if not inner or 0 in at.shape:
        return True
    if inner[0][0] == 0 or numel(e for _, e in inner) > _COUNTED:
        return False
    offsets = np.zeros(1, np.int64)
    for stride, extent in inner:
        offsets = np.add.outer(offsets, stride * np.arange(extent)).reshape(-1)
    return np.unique(offsets).size == offsets.size


# ---- gradients ----
def put_sums(x: Value, at: Layout, shape: Shape) -> Value:
    """A value of `shape`: each element sums the elements of `x` that the layout `at` maps to it; zero if there are none."""
    if at.is_contiguous and numel(at.shape) == numel(shape):
        return reshape_value(x, shape)
    convolved = windows_convolved(x, at, shape)
    if convolved is not None:
        return rewritten(x.graph.add("put_sum", (_zeros(x, shape), x), shape, x.dtype, at._asdict()), convolved)
    repeated = tuple([axis for axis, (e, s) in enumerate(zip(at.shape, at.strides, strict=True)) if s == 0 and e != 1])
    if repeated:
        return put_sums(OPERATIONS["sum"](x, repeated, dtype=x.dtype), _without(at, repeated), shape)
    at = _without(at, [axis for axis, extent in enumerate(at.shape) if extent == 1])
    x, at = forwards(reshape_value(x, at.shape), at)
    while 0 not in at.shape and (pair := colliding_axes(at)):
        far, near = sorted(pair, key=lambda axis: at.strides[axis], reverse=True)
        hop, odd = divmod(at.strides[far], at.strides[near])
        hops, rest = divmod(at.shape[near], hop)
        if odd or 2 * (hops + (rest > 0)) >= at.shape[near]:
            x, at = _windows_joined(x, at, *pair)
        elif rest:  # a window's part beyond whole hops overlaps no other window
            cuts = (0, hops * hop), (hops * hop, at.shape[near])
            return reduce(add, [put_sums(slice_value(x, near, *cut), slice_layout(at, near, *cut), shape) for cut in cuts])
        else:  # a sum over hops of many elements each
            split = unflatten_layout(at, near, (hops, hop))
            assert split is not None
            x, at = reshape_value(x, split.shape), split
    if is_injective(at):
        return put_value(None, x, at, shape)
    axis = min(range(len(at.shape)), key=lambda a: at.shape[a])  # one slice after the other, along the shortest axis
    here = contiguous_layout(x.shape)
    parts = [
        put_sums(view_value(x, select_layout(here, axis, k), "select"), select_layout(at, axis, k), shape)
        for k in range(at.shape[axis])
    ]
    return reduce(add, parts)


def _without(at: Layout, axes: Collection[int]) -> Layout:
    rest = [axis for axis in range(len(at.shape)) if axis not in axes]
    return Layout(tuple([at.shape[a] for a in rest]), tuple([at.strides[a] for a in rest]), at.offset)


def _windows_joined(x: Value, at: Layout, axis: int, taps: int) -> tuple[Value, Layout]:
    """Overlapping windows summed: position p of the new `axis` is the sum over `taps` of the elements that map to p.

    The windows, padded with zeros, are read along diagonals, so that one reduction sums them.
    """
    unit = gcd(at.strides[axis], at.strides[taps])
    distance, hop = at.strides[axis] // unit, at.strides[taps] // unit
    margin = hop * (at.shape[taps] - 1)
    extent = distance * (at.shape[axis] - 1) + 1 + margin
    wide = contiguous_layout((*x.shape[:axis], extent + margin, *x.shape[axis + 1 :]))
    step, offset = wide.strides[axis], margin * wide.strides[axis]
    spread = (*wide.strides[:axis], step * distance, *wide.strides[axis + 1 :])
    x = put_value(None, x, Layout(x.shape, spread, offset), wide.shape)
    shape = (*at.shape[:axis], extent, *at.shape[axis + 1 :])
    slant = tuple(s - hop * step if a == taps else s for a, s in enumerate(wide.strides))
    x = OPERATIONS["sum"](view_node(x, Layout(shape, slant, offset), "slant"), taps, dtype=x.dtype)
    strides = tuple(unit if a == axis else s for a, s in enumerate(at.strides))
    return x, _without(Layout(shape, strides, at.offset), (taps,))


def _put_grad(g: Value, y: Value, base: Value, x: Value) -> tuple[Value | None, ...]:
    at = layout_in(y.node)
    to_base = put_value(g, _zeros(g, at.shape), at, g.shape)
    return to_base, view_value(g, at, "slice") if base.node.differentiable else block(g, at)


def _put_sum_reference(node: Node, base: np.ndarray, x: np.ndarray) -> np.ndarray:
    flat = np.array(base).reshape(-1)
    np.add.at(flat, view_reference(node, np.arange(flat.size)), x)
    return flat.reshape(node.shape)


def _zeros(x: Value, shape: Shape) -> Value:
    return expand_value(x.graph.constant(0, x.dtype), shape)


primitive("view", "view", grad=lambda g, y, x: put_sums(g, layout_in(y.node), x.shape), reference=view_reference)
primitive("put", "put", grad=_put_grad, reference=put_reference)
primitive(  # never computed: `rewritten` takes its gradient
    "put_sum", "put", grad=lambda g, y, base, x: (g, view_node(g, layout_in(y.node), "windows")), reference=_put_sum_reference)
