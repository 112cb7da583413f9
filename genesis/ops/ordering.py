"""Sorting, medians, running sums and products. Their primitives are host operations.

The reference is what runs, unless a kernel takes the sums.

Only positions are found by sorting; values are gathered from there, so their gradients are a gather's.
"""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import DType, bool_, int32, int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axis, numel, reduced_shape
from genesis.ops.elementwise import clamp, isnan, where
from genesis.ops.indexing import check_index, gather_value
from genesis.ops.joining import cat
from genesis.ops.reduction import sum
from genesis.ops.registry import as_values, cast, composite, expand, primitive, promoted
from genesis.ops.results import Sorted
from genesis.ops.source import iota
from genesis.ops.views import flip_value, reshape_value, slice_value


# ---- primitives ----
def _argsort_reference(node: Node, x: np.ndarray) -> np.ndarray:
    axis = node.attrs["dim"]
    if x.dtype.kind == "V":  # bfloat16, of whose NaN NumPy's sort does not know
        x = x.astype(np.float32)
    if not node.attrs["descending"]:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")  # so that equal elements keep their order
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def _cumsum_reference(node: Node, x: np.ndarray) -> np.ndarray:
    wide = x.astype(node.dtype.compute.numpy) if node.dtype.compute is not node.dtype else x
    return np.cumsum(wide, node.attrs["dim"]).astype(node.dtype.numpy)


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
    """The cotangent goes through the same recurrence, from the last place to the first."""
    dim = y.node.attrs["dim"]
    after = flip_value(_moved(factors, dim, -1), dim)
    to_terms = flip_value(recurrence(after, flip_value(g, dim), dim), dim)
    return to_terms * _moved(y, dim, 1), to_terms


def _moved(x: Value, dim: int, by: int) -> Value:
    """`x` moved one place along `dim`, forwards or backwards; a 0 enters."""
    kept = slice_value(x, dim, max(0, -by), x.shape[dim] - max(0, by))
    first = x.graph.constant(0, x.dtype)
    filler = expand(first, (*x.shape[:dim], min(1, x.shape[dim]), *x.shape[dim + 1 :]))
    return cat([filler, kept] if by > 0 else [kept, filler], dim)


def recurrence(factors: Value, terms: Value, dim: int) -> Value:
    """y[k] = factors[k] * y[k-1] + terms[k] along `dim`."""
    return terms.graph.add("recurrence", (factors, terms), terms.shape, terms.dtype, {"dim": dim})


primitive("argsort", "host", reference=_argsort_reference)
primitive("recurrence", "host", grad=_recurrence_grad, reference=_recurrence_reference)
primitive("cumsum", "host", grad=_cumsum_grad, reference=_cumsum_reference)


# ---- the operations ----
@composite("cumsum", autocast="float32", in_place=True, takes_complex=True)
def cumsum(input: Value, dim: int, *, dtype: DType | None = None) -> Value:
    """The sums of the elements up to each place along `dim`. Integers and bools sum to int64."""
    axis = normalize_axis("cumsum", dim, input.ndim)
    x = cast(input, dtype or (int64 if input.dtype.category < 2 else input.dtype))
    return _cumsum_value(x, axis) if x.ndim else x


@composite("cumprod", autocast="float32", in_place=True, takes_complex=True)
def cumprod(input: Value, dim: int, *, dtype: DType | None = None) -> Value:
    """The products of the elements up to each place along `dim`. Integers and bools multiply to int64.

    Its gradient holds where elements are zero, too.

    >>> genesis.cumprod(genesis.tensor([2, 3, 4]), 0)
    tensor([ 2,  6, 24])
    """
    axis = normalize_axis("cumprod", dim, input.ndim)
    x = cast(input, dtype or (int64 if input.dtype.category < 2 else input.dtype))
    if not x.ndim:
        return x
    first = iota(x.graph, x.shape[axis]) == 0
    first = expand(reshape_value(first, (x.shape[axis], *(1,) * (x.ndim - axis - 1))), x.shape)
    return recurrence(x, where(first, x, 0), axis)


@composite("argsort")
def argsort(input: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    """The positions of the elements in order along `dim`; equal ones keep theirs, NaN counts as the greatest."""
    axis = normalize_axis("argsort", dim, input.ndim)
    x = input if input.ndim else reshape_value(input, (1,))
    at = x.graph.add("argsort", (x,), x.shape, int64, {"dim": axis, "descending": bool(descending)})
    return reshape_value(at, input.shape)


@composite("sort")
def sort(input: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Sorted:
    """(values, indices) in order along `dim`; equal elements keep theirs, NaN counts as the greatest."""
    at = argsort(input, dim, descending)
    if not input.ndim:
        return Sorted(input, at)
    return Sorted(gather_value(input, at, normalize_axis("sort", dim, input.ndim)), at)


@composite("topk")
def topk(input: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """(values, indices) of the `k` greatest (least, without `largest`) elements along `dim`, in order."""
    axis = normalize_axis("topk", dim, input.ndim)
    extent = input.shape[axis] if input.ndim else 1
    if not 0 <= k <= extent:
        raise ValueError(f"topk: k is {k}; want 0 to {extent}, the extent of dim {dim}")
    at = argsort(input, axis, largest)
    if not input.ndim:
        return Sorted(input, at)
    at = slice_value(at, axis, 0, k)
    return Sorted(gather_value(input, at, axis), at)


# ---- medians ----
def _median(name: str, input: Value, dim: int | None, keepdim: bool, skip: bool) -> Value | Sorted:
    """The lower middle of the elements along `dim`; NaN where one is, unless they are to `skip`."""
    x = reshape_value(input, (numel(input.shape),)) if dim is None or not input.ndim else input
    axis = 0 if dim is None else normalize_axis(name, dim, x.ndim)
    extent = x.shape[axis]
    if not extent:
        raise ValueError(f"{name}: shape {input.shape} has no elements along dim {dim}; want one at least")
    order = argsort(x, axis)
    if x.dtype.is_floating_point:
        missing = sum(cast(isnan(x), int64), axis, True)
        middle = (extent - missing - 1) // 2 if skip else where(missing > 0, extent - missing, (extent - 1) // 2)
        place = gather_value(order, clamp(middle, min=0), axis)
    else:
        place = slice_value(order, axis, (extent - 1) // 2, (extent - 1) // 2 + 1)
    values = gather_value(x, place, axis)
    if dim is None:
        return reshape_value(values, ())
    shape = place.shape if keepdim and input.ndim else reduced_shape(x.shape, (axis,))
    return Sorted(reshape_value(values, shape), reshape_value(place, shape))


@composite("median")
def median(input: Value, dim: int | None = None, keepdim: bool = False) -> Value | Sorted:
    """The lower of the middle elements; with `dim`, (values, indices) along it. NaN where there is one.

    The gradient goes to the element that was taken. Raises ValueError where there are no elements.

    >>> genesis.median(genesis.tensor([3.0, 1.0, 4.0, 2.0])), genesis.median(genesis.tensor([[3, 1, 2]]), 1).indices
    (tensor(2.), tensor([2]))
    """
    return _median("median", input, dim, keepdim, False)


@composite("nanmedian")
def nanmedian(input: Value, dim: int | None = None, keepdim: bool = False) -> Value | Sorted:
    """`median` of the elements that are not NaN; NaN where all are."""
    return _median("nanmedian", input, dim, keepdim, True)


# ---- finding values among others ----
@composite("searchsorted", (0, 1, 5), method=False)
def searchsorted(
    sorted_sequence: Value, input: Value, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """Where the elements of `input` would stand in `sorted_sequence`: before those that are equal, or behind them.

    Args:
        sorted_sequence: (n,), or (.., n) with the leading axes of `input`; ascending along its last axis.
        input: any shape, or (.., m).
        right, side: `right`, or side "right", is behind.
        sorter: the positions that sort `sorted_sequence`, of its shape, where it is in another order.

    By bisection, which all elements do together: no values are looked at by the host.

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
        next = found + step  # so many stand before, if the last of them does
        last = gather_value(a, where(next > extent, 1, next) - 1, axis)
        found = where((next > extent) | ((last > b) if right else (last >= b)), found, next)
    return reshape_value(found, shape)


@composite("bucketize", 2)
def bucketize(input: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> Value:
    """Which of the buckets between ascending `boundaries` (n,) each element is in; with `right`, these begin a bucket."""
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
