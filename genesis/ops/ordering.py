"""Sorting, medians, running sums and products. Their primitives are host operations.

The reference runs, unless a kernel computes the sums. Sorting gives only indices; values are gathered at these, so their
gradient is gather's.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan

import numpy as np

from genesis.ir.dtypes import DType, bool_, float32, int32, int64
from genesis.ir.errors import EmptyError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axis, numel
from genesis.ops.conversion import stop_gradient, with_value
from genesis.ops.elementwise import clamp, isnan, where
from genesis.ops.indexing import check_index, gather_value
from genesis.ops.joining import cat
from genesis.ops.reduction import sum
from genesis.ops.registry import Reference, as_values, cast, composite, expand, primitive, promoted
from genesis.ops.results import Sorted
from genesis.ops.source import uniform
from genesis.ops.views import flip_value, permute_value, reshape_value, slice_value

FEW = 8  # rows are sorted whole if more than one element in this many is wanted


# ---- primitives ----
def _positions_in_order(x: np.ndarray, descending: bool = False) -> np.ndarray:
    if x.dtype.kind == "V":  # bfloat16: NumPy's sort does not handle its NaN
        x = x.astype(np.float32)
    if not descending:
        return np.argsort(x, -1, kind="stable")
    backwards = np.argsort(np.flip(x, -1), -1, kind="stable")  # so that equal elements keep their order
    return x.shape[-1] - 1 - np.flip(backwards, -1)


def _mode_reference(node: Node, x: np.ndarray) -> np.ndarray:
    found = np.empty((*x.shape[:-1], 1), np.int64)
    for row in np.ndindex(x.shape[:-1]):
        _, kinds, counts = np.unique(x[row], return_inverse=True, return_counts=True)
        found[row] = np.flatnonzero(kinds == counts.argmax())[-1]
    return found


def _accumulated(accumulate: Callable[[np.ndarray, int], np.ndarray]) -> Reference:
    return lambda node, x: accumulate(x.astype(node.dtype.compute.numpy), node.attrs["dim"]).astype(node.dtype.numpy)


def _cumsum_grad(g: Value, y: Value, x: Value) -> Value:
    dim = y.node.attrs["dim"]
    return flip_value(_cumsum_value(flip_value(g, dim), dim), dim)


def _cumsum_value(x: Value, dim: int) -> Value:
    return x.graph.add("cumsum", (x,), x.shape, x.dtype, {"dim": dim})


def _recurrence_reference(node: Node, factors: np.ndarray, terms: np.ndarray) -> np.ndarray:
    wide = node.dtype.compute.numpy
    a, result = (np.moveaxis(x, node.attrs["dim"], 0) for x in (factors.astype(wide), terms.astype(wide)))
    for k in range(1, len(result)):
        result[k] += a[k] * result[k - 1]
    return np.moveaxis(result, 0, node.attrs["dim"]).astype(node.dtype.numpy)


def _recurrence_grad(g: Value, y: Value, factors: Value, terms: Value) -> tuple[Value | None, ...]:
    """The cotangent follows the same recurrence, from the last element to the first."""
    dim = y.node.attrs["dim"]
    after = flip_value(moved(factors, dim, -1), dim)
    to_terms = flip_value(recurrence(after, flip_value(g, dim), dim), dim)
    return to_terms * moved(y, dim, 1), to_terms


def _cumprod_grad(g: Value, y: Value, x: Value) -> Value:
    """The gradient of the recurrence y[k] = x[k] * y[k-1] from y[-1] = 1, which needs no division."""
    dim = y.node.attrs["dim"]
    after = flip_value(moved(x, dim, -1), dim)
    return flip_value(recurrence(after, flip_value(g, dim), dim), dim) * moved(y, dim, 1, 1)


def moved(x: Value, dim: int, by: int, entering: float = 0) -> Value:
    """`x` shifted by one along `dim`, forwards or backwards; the number `entering` fills the gap."""
    kept = slice_value(x, dim, max(0, -by), x.shape[dim] - max(0, by))
    first = x.graph.constant(entering, x.dtype)
    filler = expand(first, (*x.shape[:dim], min(1, x.shape[dim]), *x.shape[dim + 1 :]))
    return cat([filler, kept] if by > 0 else [kept, filler], dim)


def recurrence(factors: Value, terms: Value, dim: int) -> Value:
    """y[k] = factors[k] * y[k-1] + terms[k] along `dim`; factors[0] is not read."""
    return terms.graph.add("recurrence", (factors, terms), terms.shape, terms.dtype, {"dim": dim})


primitive("argsort", "host", reference=lambda node, x: _positions_in_order(x, node.attrs["descending"]), contiguous=True)
primitive("topk_indices", "host", contiguous=True,
          reference=lambda node, x: _positions_in_order(x, node.attrs["largest"])[..., : node.shape[-1]])
primitive("kth_index", "host", contiguous=True,
          reference=lambda node, x, ranks: np.take_along_axis(_positions_in_order(x), ranks, -1))
primitive("mode_index", "host", reference=_mode_reference, contiguous=True)
primitive("recurrence", "host", grad=_recurrence_grad, reference=_recurrence_reference)
primitive("cumsum", "host", grad=_cumsum_grad, reference=_accumulated(np.cumsum))
primitive("cumprod", "host", grad=_cumprod_grad, reference=_accumulated(np.cumprod))


# ---- rows along an axis ----
def rows_along(x: Value, axis: int) -> Value:
    """`x` with `axis` as the last one; a 0-d value as a row of one."""
    if not x.ndim:
        return reshape_value(x, (1,))
    return x if axis == x.ndim - 1 else permute_value(x, [*(a for a in range(x.ndim) if a != axis), axis])


def as_before(rows: Value, axis: int, ndim: int) -> Value:
    """`rows` with their last axis moved back to `axis`, of `ndim`."""
    if not ndim:
        return reshape_value(rows, ())
    return rows if axis == ndim - 1 else permute_value(rows, [*range(axis), ndim - 1, *range(axis, ndim - 1)])


def _order(rows: Value, descending: bool) -> Value:
    return rows.graph.add("argsort", (rows,), rows.shape, int64, {"descending": bool(descending)})


def _taken(rows: Value, indices: Value, axis: int, ndim: int) -> Sorted:
    """(values, indices) of the elements of rows at `indices`."""
    return Sorted(as_before(gather_value(rows, indices, rows.ndim - 1), axis, ndim), as_before(indices, axis, ndim))


# ---- the operations ----
@composite("cumsum", autocast="float32", in_place=True, takes_complex=True)
def cumsum(input: Value, dim: int, *, dtype: DType | None = None) -> Value:
    """The sums of the elements up to each one along `dim`. Integers and bools sum to int64."""
    axis = normalize_axis("cumsum", dim, input.ndim)
    x = cast(input, dtype or (int64 if input.dtype.category < 2 else input.dtype))
    return _cumsum_value(x, axis) if x.ndim else x


@composite("cumprod", autocast="float32", in_place=True, takes_complex=True)
def cumprod(input: Value, dim: int, *, dtype: DType | None = None) -> Value:
    """The products of the elements up to each one along `dim`. Integers and bools multiply to int64.

    The gradient is also right where elements are zero.

    >>> genesis.cumprod(genesis.tensor([2, 3, 4]), 0)
    tensor([ 2,  6, 24])
    """
    axis = normalize_axis("cumprod", dim, input.ndim)
    x = cast(input, dtype or (int64 if input.dtype.category < 2 else input.dtype))
    if not x.ndim:
        return x
    return x.graph.add("cumprod", (x,), x.shape, x.dtype, {"dim": axis})


@composite("argsort")
def argsort(input: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    """The indices that sort along `dim`. Equal elements keep their order; NaN is the greatest."""
    axis = normalize_axis("argsort", dim, input.ndim)
    return as_before(_order(rows_along(input, axis), descending), axis, input.ndim)


@composite("randperm", 2, method=False, public=False)
def randperm(seed: Value, start: Value, count: int) -> Value:
    """0 to `count` - 1 in random order: that of whole numbers of 24 bits, which are sorted in a pass less than floats."""
    return argsort(cast(uniform(seed, start, (count,), float32) * 2.0**24, int32), stable=True)


@composite("sort")
def sort(input: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Sorted:
    """(values, indices) sorted along `dim`. Equal elements keep their order; NaN is the greatest."""
    axis = normalize_axis("sort", dim, input.ndim)
    rows = rows_along(input, axis)
    return _taken(rows, _order(rows, descending), axis, input.ndim)


@composite("topk")
def topk(input: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """(values, indices) of the `k` greatest (least, without `largest`) elements along `dim`, in order."""
    axis = normalize_axis("topk", dim, input.ndim)
    extent = input.shape[axis] if input.ndim else 1
    if not 0 <= k <= extent:
        raise ValueError(f"topk: k is {k}; want 0 to {extent}, the extent of dim {dim}")
    rows, k = rows_along(input, axis), k if input.ndim else 1  # 0-d: the element itself, as in PyTorch
    if extent < FEW * k:
        return _taken(rows, slice_value(_order(rows, largest), rows.ndim - 1, 0, k), axis, input.ndim)
    attrs = {"largest": bool(largest)}
    return _taken(rows, rows.graph.add("topk_indices", (rows,), (*rows.shape[:-1], k), int64, attrs), axis, input.ndim)


# ---- one element of each row ----
def kth(rows: Value, rank: Value | int, axis: int, keepdim: bool, ndim: int) -> Sorted:
    """The element of a rank (from 0) in each row along `axis`, of `ndim` axes; the axis is dropped unless `keepdim`."""
    shape = (*rows.shape[:-1], 1)
    ranks = expand(rows.graph.constant(rank, int64), shape) if isinstance(rank, int) else rank
    found = _taken(rows, rows.graph.add("kth_index", (rows, ranks), shape, int64, {}), axis, ndim)
    return found if keepdim or not ndim else Sorted(*[reshape_value(x, rows.shape[:-1]) for x in found])


@composite("mode_index", method=False, public=False)
def mode_index(input: Value, dim: int) -> Value:
    """The last index of the most frequent element along `dim`, which is kept; of equally frequent ones, the least."""
    rows = rows_along(input, dim)
    return as_before(rows.graph.add("mode_index", (rows,), (*rows.shape[:-1], 1), int64, {}), dim, input.ndim)


def _median(name: str, input: Value, dim: int | None, keepdim: bool, skip: bool) -> Value | Sorted:
    """The lower middle of the elements along `dim`; NaN if there is one, unless `skip`."""
    x = reshape_value(input, (numel(input.shape),)) if dim is None or not input.ndim else input
    axis = 0 if dim is None else normalize_axis(name, dim, x.ndim)
    extent = x.shape[axis]
    if not extent and dim is None and x.dtype.is_floating_point:
        return sum(x) + nan
    if not extent:
        raise EmptyError(f"{name}: shape {input.shape} has no elements along dim {dim}; want one at least")
    rows = rows_along(x, axis)
    middle: Value | int = (extent - 1) // 2
    if x.dtype.is_floating_point:
        missing = sum(cast(isnan(rows), int64), -1, True)
        middle = clamp((extent - missing - 1) // 2, min=0) if skip else where(missing > 0, extent - missing, middle)
    found = kth(rows, middle, axis, keepdim, 1 if dim is None else input.ndim)
    if dim is not None:
        return found
    value = reshape_value(found.values, ())
    if not x.dtype.is_floating_point:
        return value
    alike = where(isnan(x), isnan(value), x == value)  # which share the gradient
    return with_value(sum(where(alike, x, 0)) / sum(cast(alike, x.dtype)), stop_gradient(value))


@composite("median")
def median(input: Value, dim: int | None = None, keepdim: bool = False) -> Value | Sorted:
    """The lower of the middle elements; with `dim`, (values, indices) along it. NaN where there is one.

    The gradient goes to the selected element; without `dim`, equally to all that equal it. Of no elements, NaN; ValueError with
    `dim` or of integers.

    >>> genesis.median(genesis.tensor([3.0, 1.0, 4.0, 2.0])), genesis.median(genesis.tensor([[3, 1, 2]]), 1).indices
    (tensor(2.), tensor([2]))
    """
    return _median("median", input, dim, keepdim, False)


@composite("nanmedian")
def nanmedian(input: Value, dim: int | None = None, keepdim: bool = False) -> Value | Sorted:
    """`median` of the elements that are not NaN; NaN if all are."""
    return _median("nanmedian", input, dim, keepdim, True)


# ---- finding values among others ----
@composite("searchsorted", (0, 1, 5), method=False)
def searchsorted(
    sorted_sequence: Value, input: Value, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """The index at which each element of `input` would be inserted into `sorted_sequence`: before equal elements, or after
    them.

    Args:
        sorted_sequence: (n,), or (.., n) with the leading axes of `input`; ascending along its last axis.
        input: any shape, or (.., m).
        right, side: `right`, or side "right", inserts after equal elements.
        sorter: the indices that sort `sorted_sequence`, of its shape, if it is not sorted.

    A bisection over all elements at once; the host reads no values.

    >>> genesis.searchsorted(genesis.tensor([1.0, 3.0, 5.0]), genesis.tensor([0.0, 3.0, 9.0]))
    tensor([0, 1, 3])
    """
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if right and side == "left":
        raise ValueError("searchsorted: right=True with side='left' contradict each other; give one of them")
    sequence, x = as_values(sorted_sequence, input)
    if sorter is not None:
        if sorter.shape != sequence.shape or sorter.dtype is not int64:
            raise ValueError(f"searchsorted: sorter is {sorter.dtype.name} {sorter.shape}; want int64 {sequence.shape}")
        sequence = gather_value(sequence, check_index("searchsorted", sorter, sequence.shape[-1], False), sequence.ndim - 1)
    if sequence.ndim != 1 and sequence.shape[:-1] != x.shape[:-1]:
        raise ValueError(f"searchsorted: sorted_sequence has shape {sequence.shape} and input {x.shape}; want (n,), or (.., n) "
                         "and (.., m)")
    found = _bisected(sequence, x, right or side == "right")
    return cast(found, int32) if out_int32 else found


def _bisected(sequence: Value, x: Value, right: bool) -> Value:
    shape, axis = x.shape, sequence.ndim - 1
    a, b = promoted(sequence, reshape_value(x, (numel(shape),)) if axis == 0 else x)
    extent = sequence.shape[-1]
    found = expand(a.graph.constant(0, int64), b.shape)
    step = 1 << extent.bit_length()
    while step := step >> 1:
        next = found + step  # this many come before, if the last of them does
        last = gather_value(a, where(next > extent, 1, next) - 1, axis)
        found = where((next > extent) | ((last > b) if right else (last >= b)), found, next)
    return reshape_value(found, shape)


@composite("bucketize", 2)
def bucketize(input: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> Value:
    """The bucket between ascending `boundaries` (n,) of each element; with `right`, boundaries belong to the next bucket."""
    if boundaries.ndim != 1:
        raise ValueError(f"bucketize: boundaries must be 1-d, got shape {boundaries.shape}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@composite("isin", 2, method=False)
def isin(elements: Value, test_elements: Value, *, assume_unique: bool = False, invert: bool = False) -> Value:
    """Whether each element is among `test_elements`.

    >>> genesis.isin(genesis.tensor([1, 2, 3]), genesis.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    x, tests = promoted(elements, test_elements)
    count = numel(tests.shape)
    if not count:
        return expand(x.graph.constant(invert, bool_), x.shape)
    ordered = sort(reshape_value(tests, (count,))).values
    flat = reshape_value(x, (numel(x.shape),))
    at = _bisected(ordered, flat, False)
    there = gather_value(ordered, where(at == count, count - 1, at), 0) == flat
    return reshape_value(~there if invert else there, x.shape)
