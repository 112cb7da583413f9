"""Reading and writing at computed positions: gather, scatter, index_select, and NumPy-style indexing by tensors.

Indices are data. The kernel checks them (`check_index`): a bad one never reaches memory, and the flush raises IndexError at
the user's line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.errors import FormOfAxesError, IndexTypeError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, broadcast_shapes, normalize_axis, numel
from genesis.ops.elementwise import where, zeros_like
from genesis.ops.registry import alike, cast, composite, expand, primitive, widened
from genesis.ops.source import iota
from genesis.ops.views import permute_value, reshape_value, slice_value

LARGE = 1 << 18  # bytes: a larger tensor is written in place, as copying it takes more than another launch


# ---- primitives ----
def _out_of_range(node: Node, index: int, extent: int) -> IndexError:
    lowest = -extent if node.attrs["wrap"] else 0
    return IndexError(f"{node.attrs['name']}: index {index} is out of range for extent {extent}; want {lowest} to {extent - 1}")


def _check_reference(node: Node, index: np.ndarray) -> np.ndarray:
    extent = node.attrs["extent"]
    bad = (index < (-extent if node.attrs["wrap"] else 0)) | (index >= extent)
    if np.any(bad):
        raise _out_of_range(node, int(index[bad].flat[0]), extent)
    return np.where(index < 0, index + extent, index)


primitive("check_index", "elementwise", reference=_check_reference, fault=_out_of_range)


def check_index(name: str, index: Value, extent: int, wrap: bool = True) -> Value:
    """`index`, checked to be in [0, extent); with `wrap` negative ones count from the end."""
    if index.dtype.category != 1:
        raise IndexTypeError(f"{name}: indices must be integers, got {index.dtype.name}")
    if extent == 0 and numel(index.shape):
        raise IndexError(f"{name}: an axis with extent 0 has no index; got indices of shape {index.shape}")
    index = cast(index, int64)
    return index.graph.add("check_index", (index,), index.shape, int64, {"extent": extent, "wrap": wrap, "name": name})


def along(node: Node, index: np.ndarray) -> tuple[Any, ...]:
    """The NumPy index of a gather: `index` along the node's `dim`, each element's own index along other axes."""
    indices: list[Any] = list(np.indices(index.shape, sparse=True))
    indices[node.attrs["dim"]] = index
    return tuple(indices)


def _gather_adjoint(g: Value, y: Value, x: Value, index: Value) -> tuple[Value | None, ...]:
    return scatter_value(zeros_like(x), index, g, y.node.attrs["dim"], "add"), None


def _gather_grad(g: Value, y: Value, x: Value, index: Value) -> tuple[Value | None, ...]:
    """Rows at the position `muted` send no gradient; with `shared`, rows at one position send their mean."""
    if y.node.attrs.get("shared"):
        dim = y.node.attrs["dim"]
        at = slice_value(index, dim + 1, 0, 1)
        zeros = expand(g.graph.constant(0, int64), (*x.shape[: dim + 1], at.shape[-1]))
        often = scatter_value(zeros, at, expand(g.graph.constant(1, int64), at.shape), dim, "add")
        g = g / cast(gather_value(often, at, dim), g.dtype)
    muted = y.node.attrs.get("muted")
    return _gather_adjoint(g if muted is None else where(index == muted, 0, g), y, x, index)


primitive(
    "gather", "gather", grad=_gather_grad, adjoint=_gather_adjoint,
    reference=lambda node, x, index: x[along(node, index)],
)


def scatter_value(base: Value, index: Value, source: Value, dim: int, mode: str) -> Value:
    """`base` with `source` set or added at `index` along `dim`; index is in range already."""
    if mode == "add" and base.dtype.compute is not base.dtype:  # 16-bit sums are rounded once, at the end
        return cast(scatter_value(widened(base), index, widened(source), dim, mode), base.dtype)
    attrs = {"dim": dim, "mode": mode}
    return base.graph.add("scatter", (base, index, source), base.shape, base.dtype, attrs)


def _scatter_reference(node: Node, base: np.ndarray, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    result = np.array(base)
    at = along(node, index)
    if node.attrs["mode"] == "add":
        np.add.at(result, at, source)
    else:
        result[at] = source
    return result


def _scatter_grad(g: Value, y: Value, base: Value, index: Value, source: Value) -> tuple[Value | None, ...]:
    dim = y.node.attrs["dim"]
    to_source = gather_value(g, index, dim)
    if y.node.attrs["mode"] == "add":
        return g, None, to_source
    return scatter_value(g, index, zeros_like(to_source), dim, "set"), None, to_source


def _scatter_adjoint(g: Value, y: Value, base: Value, index: Value, source: Value) -> tuple[Value | None, ...]:
    """Of several elements written to one, the last alone gets a cotangent."""
    to_base, _, to_source = _scatter_grad(g, y, base, index, source)
    if to_source is not None and y.node.attrs["mode"] == "set":
        dim = y.node.attrs["dim"]
        number = reshape_value(iota(g.graph, numel(index.shape)), index.shape)
        last = scatter_value(expand(g.graph.constant(0, int64), base.shape), index, number, dim, "set")
        to_source = where(gather_value(last, index, dim) == number, to_source, 0)
    return to_base, None, to_source


primitive("scatter", "scatter", grad=_scatter_grad, adjoint=_scatter_adjoint, reference=_scatter_reference)


def gather_value(x: Value, index: Value, dim: int, **of_rows: Any) -> Value:
    """The gather node; index is in range already. `of_rows`: what the gradient heeds."""
    return x.graph.add("gather", (x, index), index.shape, x.dtype, {"dim": dim, **of_rows})


# ---- gather and scatter along one axis ----
def _checked(name: str, input: Value, dim: int, index: Value) -> tuple[int, Value]:
    axis = normalize_axis(name, dim, input.ndim)
    if index.ndim != input.ndim:
        raise ValueError(f"{name}: index has {index.ndim} axes and input {input.ndim}; want the same number")
    for a, (have, limit) in enumerate(zip(index.shape, input.shape, strict=True)):
        if a != axis and have > limit:
            raise ValueError(f"{name}: index {index.shape} exceeds input {input.shape} along axis {a}")
    return axis, check_index(name, index, input.shape[axis], wrap=False)


def _with_axis(x: Value) -> Value:
    """A 0-d value as a vector of one."""
    return x if x.ndim else reshape_value(x, (1,))


def _with_axes(input: Value, dim: int, index: Value) -> tuple[Value, int, Value]:
    """As many axes for the index as for `input`, and one at least; those of an empty index do not matter."""
    input = _with_axis(input)
    return input, dim, _with_axis(index) if numel(index.shape) else reshape_value(index, (0,) * input.ndim)


@composite("gather", (0, 2), takes_complex=True)
def gather(input: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    """`out[i][j][k] = input[index[i][j][k]][j][k]` for dim 0, and so on for others.

    `index` is an integer tensor with the rank of `input`, no longer than it along other axes; the result has its shape.
    Raises ValueError for other shapes and, when evaluated, IndexError for an index that is negative or too large. The gradient
    is dense, whatever `sparse_grad`.

    >>> x = genesis.tensor([[1, 2], [3, 4]])
    >>> genesis.gather(x, 1, genesis.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    normalize_axis("gather", dim, input.ndim)
    if not numel(index.shape):  # its number of axes does not matter
        return reshape_value(slice_value(reshape_value(input, (numel(input.shape),)), 0, 0, 0), index.shape)
    axis, checked = _checked("gather", *_with_axes(input, dim, index))
    elements = gather_value(_with_axis(input), checked, axis)
    return elements if index.ndim else reshape_value(elements, ())


def scattered(name: str, input: Value, dim: int, index: Value, src: Value | float) -> tuple[int, Value, Value]:
    """The axis, the index and the part of `src` that it covers, checked."""
    axis, index = _checked(name, *_with_axes(input, dim, index))
    if isinstance(src, Value) and not src.is_scalar:
        src = _with_axis(src) if numel(index.shape) else expand(src.graph.constant(0, src.dtype), index.shape)
        alike(name, input, src)
        if src.ndim != index.ndim or any(i > s for i, s in zip(index.shape, src.shape, strict=True)):
            raise ValueError(f"{name}: index {index.shape} exceeds src {src.shape}")
        for a, extent in enumerate(index.shape):
            src = slice_value(src, a, 0, extent)
        return axis, index, src
    number = src if isinstance(src, Value) else input.graph.constant(src, input.dtype)
    return axis, index, expand(cast(number, input.dtype), index.shape)


def _scatter(name: str, input: Value, dim: int, index: Value, src: Value | float, mode: str) -> Value:
    axis, index, source = scattered(name, input, dim, index, src)
    written = scatter_value(_with_axis(input), index, source, axis, mode)
    return written if input.ndim else reshape_value(written, ())


@composite("scatter_add", (0, 2, 3), autocast="widest", in_place=True, takes_complex=True, elements=("src",))
def scatter_add(input: Value, dim: int, index: Value, src: Value) -> Value:
    """`input` with `src[i]` added at `index[i]` along `dim`.

    `index` and `src` have the rank of `input`, `src` its dtype (or it is a number). Only the part of `src` that
    the shape of `index` covers is added. Raises as `gather`, and TypeError where the dtypes differ.

    >>> genesis.scatter_add(genesis.zeros(3), 0, genesis.tensor([0, 2, 2]), genesis.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    return _scatter("scatter_add", input, dim, index, src, "add")


@composite("scatter", (0, 2, 3), in_place=True, keywords={"value": "src"}, takes_complex=True, elements=("src",))
def scatter(input: Value, dim: int, index: Value, src: Value, *, reduce: str | None = None) -> Value:
    """`input` with `src[i]` written at `index[i]` along `dim`; of several writes to one element the last wins.

    With `reduce` "add" it is added, with "multiply" multiplied; other values raise ValueError (see `scatter_reduce`). Arguments
    and errors are otherwise those of `scatter_add`.

    >>> genesis.scatter(genesis.zeros(3), 0, genesis.tensor([0, 2]), genesis.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    if reduce not in (None, "add", "multiply"):
        raise ValueError(f"scatter: reduce is {reduce!r}; want 'add' or 'multiply', or scatter_reduce for others")
    if reduce == "multiply":
        axis, index, source = scattered("scatter", input, dim, index, src)
        attrs = {"dim": axis, "mode": "mul"}
        base = _with_axis(input)
        folded = input.graph.add("scatter_fold", (base, index, source), base.shape, input.dtype, attrs)
        return folded if input.ndim else reshape_value(folded, ())
    return _scatter("scatter", input, dim, index, src, "add" if reduce else "set")


@composite("index_select", (0, 2), takes_complex=True)
def index_select(input: Value, dim: int, index: Value) -> Value:
    """The slices of `input` at the positions `index` (1-d) along `dim`.

    Raises ValueError for an `index` of more axes and, when evaluated, IndexError for one that is negative or too large.

    >>> genesis.index_select(genesis.tensor([[1, 2], [3, 4]]), 1, genesis.tensor([1, 1, 0]))
    tensor([[2, 2, 1],
            [4, 4, 3]])
    """
    if not input.ndim:
        return reshape_value(index_select.define(_with_axis(input), dim, index), ())
    axis = normalize_axis("index_select", dim, input.ndim)
    if index.ndim > 1:
        raise FormOfAxesError(f"index_select: index must be 1-d, got shape {index.shape}")
    index = check_index("index_select", reshape_value(index, (numel(index.shape),)), input.shape[axis], wrap=False)
    shape = (*input.shape[:axis], index.shape[0], *input.shape[axis + 1 :])
    row = tuple(index.shape[0] if a == axis else 1 for a in range(input.ndim))
    return gather_value(input, expand(reshape_value(index, row), shape), axis)


@composite("embedding", 2, method=False, takes_complex=True)
def embedding(input: Value, weight: Value, padding_idx: int | None = None, scale_grad_by_freq: bool = False) -> Value:
    """The rows of `weight` (entries, width) at the positions `input` (any shape).

    The row `padding_idx` gets no gradient; with `scale_grad_by_freq`, a row's is divided by its number of occurrences. Raises
    ValueError for a `weight` of another rank and, when evaluated, IndexError for a position out of range.

    >>> genesis.nn.functional.embedding(genesis.tensor([1, 0]), genesis.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if weight.ndim != 2:
        raise ValueError(f"embedding: weight must be (entries, width), got shape {weight.shape}")
    flat = check_index("embedding", reshape_value(input, (numel(input.shape), 1)), weight.shape[0], wrap=False)
    at = expand(flat, (flat.shape[0], weight.shape[1]))
    rows = gather_value(weight, at, 0, muted=padding_idx, shared=scale_grad_by_freq)
    return reshape_value(rows, (*input.shape, weight.shape[1]))


# ---- x[i, j] with integer tensors ----
def _linear_index(
    input: Value, axes: Sequence[int], indices: Sequence[Value], name: str, wrap: bool
) -> tuple[Value, Value, Shape, int, list[int]]:
    """Indices on `axes` as one linear index into those axes merged: at their position if adjacent, otherwise in front.

    (input with merged axes, the index expanded to its rows, the indices' shape, the merged axis, the order of the axes).
    """
    adjacent = list(axes) == list(range(axes[0], axes[0] + len(axes)))
    rest = [a for a in range(input.ndim) if a not in axes]
    at, order = (axes[0], [*range(input.ndim)]) if adjacent else (0, [*axes, *rest])
    extents = [input.shape[a] for a in axes]
    try:
        shape = broadcast_shapes("index", *(i.shape for i in indices))
    except ValueError as problem:
        raise FormOfAxesError(*problem.args) from None
    linear = None
    for index, extent in zip(indices, extents, strict=True):
        checked = expand(check_index(name, index, extent, wrap), shape)
        linear = checked if linear is None else linear * extent + checked
    assert linear is not None
    before, after = [input.shape[a] for a in rest[:at]], [input.shape[a] for a in rest[at:]]
    merged = reshape_value(permute_value(input, order), (*before, numel(extents), *after))
    flat = reshape_value(linear, (numel(shape),) + (1,) * len(after))
    return merged, expand(flat, (*before, numel(shape), *after)), shape, at, order


@composite("index", 1, method=False, public=False, takes_complex=True)
def index(input: Value, axes: tuple[int, ...], *indices: Value) -> Value:
    """`input[.., indices, ..]`: integer tensors on `axes`, as in NumPy; full slices on the other axes."""
    merged, linear, shape, at, _ = _linear_index(input, axes, indices, "index", True)
    return reshape_value(gather_value(merged, linear, at), (*merged.shape[:at], *shape, *merged.shape[at + 1 :]))


@composite("index_put", 2, method=False, takes_complex=True)
def index_put(
    input: Value, values: Value, axes: tuple[int, ...], accumulate: bool, name: str, wrap: bool, *indices: Value
) -> Value:
    """`input` with `values`, of its dtype, written (or added) at `input[.., indices, ..]`; errors use `name`; `wrap` allows
    negative indices."""
    alike(name, input, values)
    merged, linear, own, at, order = _linear_index(input, axes, indices, name, wrap)
    shape = (*merged.shape[:at], *own, *merged.shape[at + 1 :])
    if broadcast_shapes("index_put", values.shape, shape) != shape:
        raise ValueError(f"index_put: values of shape {values.shape} do not broadcast to {shape}")
    source = reshape_value(expand(values, shape), linear.shape)
    written = scatter_value(merged, linear, source, at, "add" if accumulate else "set")
    front = reshape_value(written, tuple([input.shape[a] for a in order]))
    return permute_value(front, [order.index(a) for a in range(input.ndim)])


# ---- views whose offset is an argument of the program ----
def _places(offset: Value, shape: Shape, strides: Shape) -> Value:
    """The flat positions (n,) of the elements of a view."""
    places = expand(cast(offset, int64), shape)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        if extent > 1 and stride:
            row = tuple(extent if a == axis else 1 for a in range(len(shape)))
            places = places + reshape_value(iota(offset.graph, extent), row) * stride
    return reshape_value(places, (numel(shape),))


@composite("dynamic_view", 1, method=False, public=False, takes_complex=True)
def dynamic_view(input: Value, offset: Value, shape: Shape, strides: Shape) -> Value:
    """The elements of `input` at a layout (shape, strides, offset), which the caller has found to lie within it."""
    flat = reshape_value(input, (numel(input.shape),))
    return reshape_value(gather_value(flat, _places(offset, shape, strides), 0), shape)


@composite("dynamic_put", 2, method=False, public=False, takes_complex=True)
def dynamic_put(base: Value, value: Value, offset: Value, shape: Shape, strides: Shape) -> Value:
    """`base` with its elements at such a layout replaced by `value`; each lies in one place."""
    flat = reshape_value(base, (numel(base.shape),))
    source = reshape_value(expand(cast(value, base.dtype), shape), (numel(shape),))
    return reshape_value(scatter_value(flat, _places(offset, shape, strides), source, 0, "set"), base.shape)
