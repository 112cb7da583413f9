"""Sorting and running sums. Their primitives are host operations: the reference is what runs, unless a kernel takes the sums.

Only positions are found by sorting; values are gathered from there, so their gradients are a gather's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.ir.dtypes import DType, int64
from genesis.ir.graph import Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.indexing import gather_value
from genesis.ops.layout import contiguous_layout, flip_layout, slice_layout
from genesis.ops.registry import cast, composite, primitive
from genesis.ops.views import reshape_value, view_value

__all__ = ["Sorted", "argsort", "cumsum", "sort", "topk"]


class Sorted(NamedTuple):
    """Values in order, and the positions that they came from."""

    values: Any
    indices: Any


# ---- primitives ----


def _argsort_reference(node: Any, x: np.ndarray) -> np.ndarray:
    axis = node.attrs["dim"]
    if not node.attrs["descending"]:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")  # so that equal elements keep their order
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def _cumsum_reference(node: Any, x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float32) if node.dtype.compute is not node.dtype else x
    return np.cumsum(wide, node.attrs["dim"]).astype(node.dtype.numpy)


def _cumsum_grad(g: Value, y: Value, x: Value) -> Value:
    dim = y.node.attrs["dim"]
    return _backwards(_cumsum_value(_backwards(g, dim), dim), dim)


def _backwards(x: Value, dim: int) -> Value:
    return view_value(x, flip_layout(contiguous_layout(x.shape), (dim,)), "flip")


def _cumsum_value(x: Value, dim: int) -> Value:
    return x.graph.add("cumsum", (x,), x.shape, x.dtype, {"dim": dim})


primitive("argsort", "host", reference=_argsort_reference)
primitive("cumsum", "host", grad=_cumsum_grad, reference=_cumsum_reference)


# ---- the operations ----


@composite("cumsum", autocast="float32")
def cumsum(input: Value, dim: int, *, dtype: DType | None = None) -> Value:
    """The sums of the elements up to each place along `dim`. Integers and bools sum to int64."""
    axis = normalize_axis("cumsum", dim, input.ndim)
    x = cast(input, dtype or (int64 if input.dtype.category < 2 else input.dtype))
    return _cumsum_value(x, axis) if x.ndim else x


@composite("argsort")
def argsort(input: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    """The positions of the elements in order along `dim`; equal ones keep theirs, NaN counts as the greatest."""
    axis = normalize_axis("argsort", dim, input.ndim)
    x = input if input.ndim else reshape_value(input, (1,))
    at = x.graph.add("argsort", (x,), x.shape, int64, {"dim": axis, "descending": bool(descending)})
    return reshape_value(at, input.shape)


@composite("sort")
def sort(input: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """(values, indices) in order along `dim`; equal elements keep theirs, NaN counts as the greatest."""
    at = argsort(input, dim, descending)
    if not input.ndim:
        return Sorted(input, at)
    return Sorted(gather_value(input, at, normalize_axis("sort", dim, input.ndim)), at)


@composite("topk")
def topk(input: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """(values, indices) of the `k` greatest (least, without `largest`) elements along `dim`, in order."""
    axis = normalize_axis("topk", dim, input.ndim)
    extent = input.shape[axis] if input.ndim else 1
    if not 0 <= k <= extent:
        raise ValueError(f"topk: k is {k}; want 0 to {extent}, the extent of dim {dim}")
    at = argsort(input, axis, largest)
    if not input.ndim:
        return Sorted(input, at)
    at = view_value(at, slice_layout(contiguous_layout(at.shape), axis, 0, k), "slice")
    return Sorted(gather_value(input, at, axis), at)
