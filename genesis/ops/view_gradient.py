"""The primitives `view` and `put`, and their gradients: what a view has read in several places is summed where it lies."""

from __future__ import annotations

from functools import reduce
from math import gcd
from operator import add
from typing import Any

import numpy as np

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.conversion import rewritten
from genesis.ops.correlation import block, windows_convolved
from genesis.ops.layout import Layout, contiguous_layout, select_layout
from genesis.ops.overlap import colliding_axes, is_injective
from genesis.ops.registry import OPERATIONS, primitive
from genesis.ops.registry import expand as expand_value
from genesis.ops.views import forwards, put_reference, put_value, reshape_value, view_node, view_reference, view_value

__all__ = ["put_sums"]


def _view_grad(g: Value, y: Value, x: Value) -> Value:
    """Undo a view: each element where it came from, sums where one came to several places."""
    at = Layout(y.node.attrs["shape"], y.node.attrs["strides"], y.node.attrs["offset"])
    return put_sums(g, at, x.shape)


def put_sums(x: Value, at: Layout, shape: Shape) -> Value:
    """A value of `shape` where each element is the sum of those of `x` that `at` places there: zero, if there are none."""
    if at.is_contiguous and numel(at.shape) == numel(shape):
        return reshape_value(x, shape)
    convolved = windows_convolved(x, at, shape)
    if convolved is not None:
        return rewritten(x.graph.add("put_sum", (_zeros(x, shape), x), shape, x.dtype, at._asdict()), convolved)
    repeated = tuple(axis for axis, (e, s) in enumerate(zip(at.shape, at.strides, strict=True)) if s == 0 and e != 1)
    if repeated:
        x = OPERATIONS["sum"](x, repeated, dtype=x.dtype)
    axes = [axis for axis in range(len(at.shape)) if axis not in repeated and at.shape[axis] != 1]
    at = Layout(tuple(at.shape[a] for a in axes), tuple(at.strides[a] for a in axes), at.offset)
    x, at = forwards(reshape_value(x, at.shape), at)
    while 0 not in at.shape and (pair := colliding_axes(at)):
        x, at = _windows_joined(x, at, *pair)
    if is_injective(at):
        return put_value(None, x, at, shape)
    axis = min(range(len(at.shape)), key=lambda a: at.shape[a])  # placed one after the other along the shortest axis
    here = contiguous_layout(x.shape)
    parts = [
        put_sums(view_value(x, select_layout(here, axis, k), "select"), select_layout(at, axis, k), shape)
        for k in range(at.shape[axis])
    ]
    return reduce(add, parts)


def _windows_joined(x: Value, at: Layout, axis: int, taps: int) -> tuple[Value, Layout]:
    """Windows laid over each other: position p of the new `axis` is the sum over `taps` of what they hold for p.

    The windows, spread to their distance with zeros around them, are read along a slant, which one sum goes over.
    """
    unit = gcd(at.strides[axis], at.strides[taps])
    apart, hop = at.strides[axis] // unit, at.strides[taps] // unit
    margin = hop * (at.shape[taps] - 1)
    extent = apart * (at.shape[axis] - 1) + 1 + margin
    wide = contiguous_layout((*x.shape[:axis], extent + margin, *x.shape[axis + 1 :]))
    step, offset = wide.strides[axis], margin * wide.strides[axis]
    spread = (*wide.strides[:axis], step * apart, *wide.strides[axis + 1 :])
    x = put_value(None, x, Layout(x.shape, spread, offset), wide.shape)
    shape = (*at.shape[:axis], extent, *at.shape[axis + 1 :])
    slant = tuple(s - hop * step if a == taps else s for a, s in enumerate(wide.strides))
    x = OPERATIONS["sum"](view_node(x, Layout(shape, slant, offset), "slant"), taps, dtype=x.dtype)
    rest = [a for a in range(len(shape)) if a != taps]
    strides = tuple(unit if a == axis else s for a, s in enumerate(at.strides))
    return x, Layout(tuple(shape[a] for a in rest), tuple(strides[a] for a in rest), at.offset)


def _put_grad(g: Value, y: Value, base: Value, x: Value) -> Any:
    at = Layout(y.node.attrs["shape"], y.node.attrs["strides"], y.node.attrs["offset"])
    to_base = put_value(g, _zeros(g, at.shape), at, g.shape)
    return to_base, view_value(g, at, "slice") if base.node.differentiable else block(g, at)


def _put_sum_grad(g: Value, y: Value, base: Value, x: Value) -> Any:
    return g, view_node(g, Layout(y.node.attrs["shape"], y.node.attrs["strides"], y.node.attrs["offset"]), "windows")


def _put_sum_reference(node: Any, base: np.ndarray, x: np.ndarray) -> np.ndarray:
    flat = np.array(base).reshape(-1)
    np.add.at(flat, view_reference(node, np.arange(flat.size)), x)
    return flat.reshape(node.shape)


def _zeros(x: Value, shape: Shape) -> Value:
    return expand_value(x.graph.constant(0, x.dtype), shape)


primitive("view", "view", grad=_view_grad, reference=view_reference)
primitive("put", "put", grad=_put_grad, reference=put_reference)
primitive("put_sum", "put", grad=_put_sum_grad, reference=_put_sum_reference)  # never computed: what `rewritten` is derived as
