"""Views: one primitive, `view`, whose attributes are a shape, strides and an offset into its input's row-major elements.

Reshape, permute, slice, flip and expand are all this primitive with other numbers, so composing them, inverting them in
backward (`genesis.ops.view_gradient`) and folding them into a kernel's index maps are each written once. `put` writes to a
view.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, numel, sliced
from genesis.ops.layout import (
    LAYOUT_RULES, Layout, contiguous_layout, diagonal_layout, flip_layout, narrow_layout, permute_layout, slice_layout,
    transpose_layout,
)
from genesis.ops.registry import Names, cast, composite, expand as expand_value


# ---- the primitive ----
def view_node(x: Value, to: Layout, label: str) -> Value:
    """The node that reads `x` at `to`, even if that is the identity: a user's result needs its own gradient."""
    attrs = {"shape": to.shape, "strides": to.strides, "offset": to.offset, "label": label}
    return x.graph.add("view", (x,), to.shape, x.dtype, attrs)


def view_value(x: Value, to: Layout, label: str) -> Value:
    """`x` read at `to`: a node, or `x` itself if that is the identity."""
    return x if to == contiguous_layout(x.shape) else view_node(x, to, label)


def reshape_value(x: Value, shape: Shape) -> Value:
    return view_value(x, contiguous_layout(shape), "reshape")


def permute_value(x: Value, order: Sequence[int]) -> Value:
    return view_value(x, permute_layout(contiguous_layout(x.shape), tuple(order)), "permute")


def slice_value(x: Value, axis: int, start: int | None, end: int | None) -> Value:
    return view_value(x, slice_layout(contiguous_layout(x.shape), axis, start, end), "slice")


def flip_value(x: Value, *axes: int) -> Value:
    return view_value(x, flip_layout(contiguous_layout(x.shape), axes), "flip")


def diagonal_value(x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    return view_value(x, diagonal_layout(contiguous_layout(x.shape), offset, dim1, dim2), "diagonal")


def view_reference(node: Node, x: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(x).reshape(-1)
    strides = tuple(s * flat.itemsize for s in node.attrs["strides"])
    return np.ndarray(node.attrs["shape"], flat.dtype, flat, node.attrs["offset"] * flat.itemsize, strides) \
        if numel(node.shape) else np.empty(node.shape, flat.dtype)


def forwards(x: Value, at: Layout) -> tuple[Value, Layout]:
    """The same elements, addressed with positive strides."""
    backwards = [a for a, s in enumerate(at.strides) if s < 0]
    if not backwards:
        return x, at
    return flip_value(x, *backwards), flip_layout(at, backwards)


def put_value(base: Value | None, x: Value, at: Layout, shape: Shape) -> Value:
    """A value of `shape` whose elements at `at` are `x` and the others `base`'s (zeros, if None)."""
    x, at = forwards(x, at)
    if numel(at.shape) == numel(shape):
        order = sorted(range(len(at.shape)), key=lambda a: -at.strides[a])
        return reshape_value(permute_value(x, order), shape)
    if base is None:
        base = expand_value(x.graph.constant(0, x.dtype), shape)
    return x.graph.add("put", (base, x), shape, x.dtype, at._asdict())


def assembled(parts: Sequence[tuple[Value, Layout]], shape: Shape) -> Value:
    """A value of `shape` with parts at their layouts; the rest is never read."""
    first = parts[0][0]
    y = expand_value(first.graph.constant(0, first.dtype), shape)
    for part, at in parts:
        y = first.graph.add("put", (y, part), shape, first.dtype, {**at._asdict(), "rest": "unread"})
    return y


def put_reference(node: Node, base: np.ndarray, x: np.ndarray) -> np.ndarray:
    flat = np.array(base).reshape(-1)
    strides = tuple(s * flat.itemsize for s in node.attrs["strides"])
    if x.size:
        np.ndarray(node.attrs["shape"], flat.dtype, flat, node.attrs["offset"] * flat.itemsize, strides)[...] = x
    return flat.reshape(node.shape)


# ---- the operations ----
def view_operation(name: str, rule: Callable[..., Layout | None], is_view: bool = True, **names: Unpack[Names]) -> None:
    """Make a layout rule an operation and a view of tensors; without `is_view` it copies."""
    LAYOUT_RULES[name] = rule

    def define(input: Value, *args: Any, **attrs: Any) -> Value:
        to = rule(contiguous_layout(input.shape), *args, **attrs)
        assert to is not None, "a contiguous layout takes every view"
        return view_node(input, to, name)

    parameters = [*inspect.signature(define).parameters.values()][:1]
    parameters += [*inspect.signature(rule).parameters.values()][1:]
    define.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    define.__doc__ = rule.__doc__
    composite(name, 1, is_view=is_view, **Names(takes_complex=True) | names)(define)


@composite("view_at", 1, is_view=True, method=False, public=False, takes_complex=True)
def view_at(input: Value, at: Layout) -> Value:
    """The elements of `input` at a layout of its row-major elements."""
    return view_value(input, at, "view")


@composite("optimization_barrier", 1, method=False, public=False, takes_complex=True)
def optimization_barrier(input: Value) -> Value:
    """`input`, but common subexpressions are not merged across it: what follows is computed again."""
    to = contiguous_layout(input.shape)
    at = {"shape": to.shape, "strides": to.strides, "offset": 0}
    attrs = {**at, "barrier": len(input.graph), "label": "optimization_barrier"}
    return input.graph.add("view", (input,), to.shape, input.dtype, attrs)


def _layout_at(at: Layout, to: Layout) -> Layout | None:
    return Layout(to.shape, to.strides, at.offset + to.offset) if at.is_contiguous else None


for _name, _rule in [*LAYOUT_RULES.items()]:
    view_operation(_name, _rule, keywords={"size": "shape"} if _name in ("view", "expand") else {})
LAYOUT_RULES["view_at"] = _layout_at
view_operation("slice", slice_layout, method=False)
view_operation("transpose", transpose_layout, aliases=("swapaxes", "swapdims"), keywords={"axis0": "dim0", "axis1": "dim1"})
view_operation("flip", flip_layout, is_view=False)
view_operation("narrow_copy", narrow_layout, is_view=False)
view_operation("reshape_copy", LAYOUT_RULES["reshape"], is_view=False, method=False, public=False)


@composite("put", 2, method=False, public=False, takes_complex=True)
def put(base: Value, value: Value, shape: Shape, strides: Shape, offset: int) -> Value:
    """`base` with the elements of its view (shape, strides, offset) replaced by `value`."""
    return put_value(base, expand_value(cast(value, base.dtype), shape), Layout(shape, strides, offset), base.shape)


Item = int | tuple[int | None, int | None, int | None] | None


# ---- basic indexing, `x[1, 2:5, None]`, as one view ----
def subscript_layout(at: Layout, items: tuple[Item, ...]) -> Layout:
    """The elements at `items`: an int selects on its axis, (start, stop, step) slices it, None makes a new one."""
    shape, strides, offset, axis = [], [], at.offset, 0
    for item in items:
        if item is None:
            shape.append(1)
            strides.append(at.shape[axis] * at.strides[axis] if axis < len(at.shape) else 1)
            continue
        extent, stride = at.shape[axis], at.strides[axis]
        if isinstance(item, tuple):
            start, step, count = sliced(extent, *item)
            offset += start * stride if count else 0
            shape.append(count)
            strides.append(stride * step)
        else:
            if not -extent <= item < extent:
                raise IndexError(f"index {item} is out of range for axis {axis} with extent {extent}")
            offset += (item % extent) * stride
        axis += 1
    return Layout((*shape, *at.shape[axis:]), (*strides, *at.strides[axis:]), offset)


view_operation("subscript", subscript_layout, method=False, public=False)
