"""Reductions and running sums. `axis` is an axis, several, or None for all."""

from __future__ import annotations

import builtins
from collections.abc import Callable

from genesis import ops
from genesis.ir.dtypes import DType, bool_, int64, uint8, uint64
from genesis.ir.shapes import normalize_axis
from genesis.tensor.handle import Tensor

Axis = int | tuple[int, ...] | None
Bool = builtins.bool


def _over(x: Tensor, axis: Axis) -> int | tuple[int, ...]:
    """The axes to reduce over; an empty tuple names none, where the rows of operations take it for all."""
    return tuple(range(x.ndim)) if axis is None else axis


def _total(x: Tensor, dtype: DType | None) -> DType:
    """The dtype of sums: the one that is asked for, or the widest integer of the array's signedness."""
    if dtype is not None or x.dtype.category >= 2:
        return dtype or x.dtype
    return int64 if x.dtype.is_signed or x.dtype is bool_ else uint64


def sum(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: Bool = False) -> Tensor:
    """The sums; those of integers have 64 bits."""
    return x.to(_total(x, dtype)) if axis == () else ops.sum(x, _over(x, axis), keepdims, dtype=_total(x, dtype))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: DType | None = None, keepdims: Bool = False) -> Tensor:
    """The products; those of integers have 64 bits."""
    return x.to(_total(x, dtype)) if axis == () else ops.prod(x, _over(x, axis), keepdims, dtype=_total(x, dtype))


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: Bool = False) -> Tensor:
    """The means."""
    return x.clone() if axis == () else ops.mean(x, _over(x, axis), keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: Bool = False) -> Tensor:
    """The variances: sums of squares over their number less `correction`."""
    return ops.mul(x, 0) if axis == () else ops.var(x, _over(x, axis), keepdim=keepdims, correction=correction)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: Bool = False) -> Tensor:
    """The square roots of the variances."""
    return ops.mul(x, 0) if axis == () else ops.std(x, _over(x, axis), keepdim=keepdims, correction=correction)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: Bool = False) -> Tensor:
    """The greatest elements."""
    return x.clone() if axis == () else ops.amax(x, _over(x, axis), keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: Bool = False) -> Tensor:
    """The least elements."""
    return x.clone() if axis == () else ops.amin(x, _over(x, axis), keepdims)


def _truth(x: Tensor) -> Tensor:
    return ops.ne(x, 0) if x.dtype is uint8 else x  # of which the row, as PyTorch, makes uint8


def all(x: Tensor, /, *, axis: Axis = None, keepdims: Bool = False) -> Tensor:
    """Whether no element is zero."""
    return ops.ne(x, 0) if axis == () else ops.all(_truth(x), _over(x, axis), keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: Bool = False) -> Tensor:
    """Whether an element is not zero."""
    return ops.ne(x, 0) if axis == () else ops.any(_truth(x), _over(x, axis), keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: Bool = False) -> Tensor:
    """The number of nonzero elements."""
    return sum(ops.ne(x, 0), axis=axis, keepdims=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: Bool = False) -> Tensor:
    """The index of the first greatest element, in the order of rows if `axis` is None."""
    return _index_of(ops.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: Bool = False) -> Tensor:
    """The index of the first least element, in the order of rows if `axis` is None."""
    return _index_of(ops.argmin, x, axis, keepdims)


def _index_of(find: Callable[..., Tensor], x: Tensor, axis: int | None, keepdims: Bool) -> Tensor:
    if axis is None and keepdims:
        return find(x).reshape((1,) * x.ndim)
    return find(x) if axis is None else find(x, axis, keepdims)


def _running(x: Tensor, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise ValueError(f"cumulative_sum, cumulative_prod: an array of {x.ndim} axes wants `axis`")
    return normalize_axis("cumulative_sum", axis or 0, x.ndim)


def _begun(x: Tensor, axis: int, first: int, include_initial: Bool) -> Tensor:
    if not include_initial:
        return x
    start = x.new_full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), first)
    return ops.cat([start, x], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: Bool = False
) -> Tensor:
    """The sums up to each element along `axis`, with a 0 before them if `include_initial`."""
    axis = _running(x, axis)
    return _begun(ops.cumsum(x, axis, dtype=_total(x, dtype)), axis, 0, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: Bool = False
) -> Tensor:
    """The products up to each element along `axis`, with a 1 before them if `include_initial`."""
    axis = _running(x, axis)
    return _begun(ops.cumprod(x, axis, dtype=_total(x, dtype)), axis, 1, include_initial)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The differences of neighbours along `axis`, taken `n` times."""
    return ops.diff(x, n, axis, prepend, append)
