"""Views: one primitive, `view`, whose attributes are a shape, strides and an offset into its input's row-major elements.

Reshape, permute, slice, flip and expand are all that primitive with other numbers, so composing them, undoing them in
backward and folding them into a kernel's index maps are each written once. `put` is a view written to.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import reduce
from math import gcd
from operator import add
from typing import Any

import numpy as np

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.layout import LAYOUT_RULES, Layout, contiguous_layout, flip_layout, permute_layout, select_layout
from genesis.ops.overlap import colliding_axes, is_injective
from genesis.ops.registry import OPERATIONS, cast, composite, primitive
from genesis.ops.registry import expand as expand_value

__all__ = ["permute_value", "put_sums", "put_value", "reshape_value", "view_node", "view_operation", "view_value"]


# ---- the primitive ----


def view_node(x: Value, to: Layout, label: str) -> Value:
    """The node that reads `x` at `to`, also where it changes nothing: a user's result has a gradient of its own."""
    attrs = {"shape": to.shape, "strides": to.strides, "offset": to.offset, "label": label}
    return x.graph.add("view", (x,), to.shape, x.dtype, attrs)


def view_value(x: Value, to: Layout, label: str) -> Value:
    """`x` read at `to`: a node, or `x` itself where that changes nothing."""
    return x if to == contiguous_layout(x.shape) else view_node(x, to, label)


def reshape_value(x: Value, shape: Shape) -> Value:
    return view_value(x, contiguous_layout(shape), "reshape")


def permute_value(x: Value, order: Sequence[int]) -> Value:
    return view_value(x, permute_layout(contiguous_layout(x.shape), tuple(order)), "permute")


def _view_reference(node: Any, x: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(x).reshape(-1)
    strides = tuple(s * flat.itemsize for s in node.attrs["strides"])
    return np.ndarray(node.attrs["shape"], flat.dtype, flat, node.attrs["offset"] * flat.itemsize, strides) \
        if numel(node.shape) else np.empty(node.shape, flat.dtype)


def _view_grad(g: Value, y: Value, x: Value) -> Value:
    """Undo a view: each element where it came from, sums where one came to several places."""
    at = Layout(y.node.attrs["shape"], y.node.attrs["strides"], y.node.attrs["offset"])
    return put_sums(g, at, x.shape)


def put_sums(x: Value, at: Layout, shape: Shape) -> Value:
    """A value of `shape` where each element is the sum of those of `x` that `at` places there: zero, if there are none."""
    if at.is_contiguous and numel(at.shape) == numel(shape):
        return reshape_value(x, shape)
    repeated = tuple(axis for axis, (e, s) in enumerate(zip(at.shape, at.strides, strict=True)) if s == 0 and e != 1)
    if repeated:
        x = OPERATIONS["sum"](x, repeated, dtype=x.dtype)
    axes = [axis for axis in range(len(at.shape)) if axis not in repeated and at.shape[axis] != 1]
    at = Layout(tuple(at.shape[a] for a in axes), tuple(at.strides[a] for a in axes), at.offset)
    x, at = _forwards(reshape_value(x, at.shape), at)
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


def _forwards(x: Value, at: Layout) -> tuple[Value, Layout]:
    """The same places with positive strides."""
    backwards = [a for a, s in enumerate(at.strides) if s < 0]
    if not backwards:
        return x, at
    return view_value(x, flip_layout(contiguous_layout(x.shape), backwards), "flip"), flip_layout(at, backwards)


def put_value(base: Value | None, x: Value, at: Layout, shape: Shape) -> Value:
    """A value of `shape` whose elements at `at` are `x` and the others `base`'s (zeros, if None)."""
    x, at = _forwards(x, at)
    if numel(at.shape) == numel(shape):
        order = sorted(range(len(at.shape)), key=lambda a: -at.strides[a])
        return reshape_value(permute_value(x, order), shape)
    if base is None:
        base = expand_value(x.graph.constant(0, x.dtype), shape)
    attrs = {"shape": at.shape, "strides": at.strides, "offset": at.offset}
    return x.graph.add("put", (base, x), shape, x.dtype, attrs)


def _put_reference(node: Any, base: np.ndarray, x: np.ndarray) -> np.ndarray:
    flat = np.array(base).reshape(-1)
    strides = tuple(s * flat.itemsize for s in node.attrs["strides"])
    if x.size:
        np.ndarray(node.attrs["shape"], flat.dtype, flat, node.attrs["offset"] * flat.itemsize, strides)[...] = x
    return flat.reshape(node.shape)


def _put_grad(g: Value, y: Value, base: Value, x: Value) -> Any:
    at = Layout(y.node.attrs["shape"], y.node.attrs["strides"], y.node.attrs["offset"])
    to_base = put_value(g, expand_value(g.graph.constant(0, g.dtype), at.shape), at, g.shape)
    return to_base, view_value(g, at, "slice")


primitive("view", "view", grad=_view_grad, reference=_view_reference)
primitive("put", "put", grad=_put_grad, reference=_put_reference)


# ---- the operations ----


def view_operation(name: str, rule: Callable[..., Layout | None]) -> None:
    """Make a layout rule an operation, and a view of tensors."""
    LAYOUT_RULES[name] = rule

    def define(input: Value, *args: Any, **attrs: Any) -> Value:
        to = rule(contiguous_layout(input.shape), *args, **attrs)
        assert to is not None, "a contiguous layout takes every view"
        return view_node(input, to, name)

    parameters = [*inspect.signature(define).parameters.values()][:1]
    parameters += [*inspect.signature(rule).parameters.values()][1:]
    define.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    define.__doc__ = rule.__doc__
    composite(name, 1, methods=())(define)


@composite("view_at", 1, methods=())
def view_at(input: Value, at: Layout) -> Value:
    """The elements of `input` at a layout of its row-major elements."""
    return view_value(input, at, "view")


@composite("fence", 1, methods=())
def fence(input: Value) -> Value:
    """`input`, such that what is computed from it is computed anew, even where the same was computed before."""
    to = contiguous_layout(input.shape)
    attrs = {"shape": to.shape, "strides": to.strides, "offset": 0, "fence": len(input.graph), "label": "fence"}
    return input.graph.add("view", (input,), to.shape, input.dtype, attrs)


for _name, _rule in [*LAYOUT_RULES.items()]:
    view_operation(_name, _rule)


@composite("put", 2, methods=())
def put(base: Value, value: Value, shape: Shape, strides: Shape, offset: int) -> Value:
    """`base` with the elements of its view (shape, strides, offset) replaced by `value`."""
    return put_value(base, expand_value(cast(value, base.dtype), shape), Layout(shape, strides, offset), base.shape)
