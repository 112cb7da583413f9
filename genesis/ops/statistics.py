"""Moments, reductions that ignore NaN, quantiles, covariances, and integrals by the trapezoidal rule."""

from __future__ import annotations

from genesis.ir.dtypes import DType, int64
from genesis.ir.errors import ArgumentTypeError, EmptyError
from genesis.ir.graph import Value
from genesis.ir.shapes import normalize_axis, numel
from genesis.ops.arrangement import diag
from genesis.ops.complex_primitives import complex_value, conjugate, imag_value, real_value
from genesis.ops.contraction import matmul, swapped
from genesis.ops.elementwise import clamp, floor, isnan, round, sqrt, where
from genesis.ops.indexing import gather_value
from genesis.ops.ordering import cumsum, kth, rows_along, sort
from genesis.ops.reduction import Axes, amax, amin, any, corrected, mean, std, sum, var
from genesis.ops.registry import Operation, cast, composite, expand, floating_dtype, widened
from genesis.ops.results import Extrema, Sorted
from genesis.ops.rows import checked, formula
from genesis.ops.views import permute_value, reshape_value, slice_value


@composite("aminmax")
def aminmax(input: Value, *, dim: int | None = None, keepdim: bool = False) -> Extrema:
    """(min, max) over `dim`, or all elements; NaN wins.

    >>> genesis.aminmax(genesis.tensor([3, 1, 2])).max
    tensor(3)
    """
    return Extrema(amin(input, dim, keepdim), amax(input, dim, keepdim))


def _with_mean(deviation: Operation, what: str) -> Operation:
    def define(
        input: Value, dim: Axes = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
    ) -> tuple[Value, Value]:
        dim, correction = corrected(name, dim, unbiased, correction)
        return deviation(input, dim, keepdim=keepdim, correction=correction), mean(input, dim, keepdim)

    name = f"{deviation.name}_mean"
    return composite(name, doc=f"({what}, mean), as `{deviation.name}` and `mean`.", takes_complex=True)(define)


std_mean, var_mean = _with_mean(std, "standard deviation"), _with_mean(var, "variance")


@composite("count_nonzero", takes_complex=True)
def count_nonzero(input: Value, dim: Axes = None) -> Value:
    """The number of nonzero elements over `dim`."""
    return sum(cast(input != 0, int64), dim)


# ---- ignoring NaN ----
@composite("nansum", takes_complex=True)
def nansum(input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Value:
    """The sum over `dim` where NaN counts as 0.

    >>> genesis.nansum(genesis.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    return sum(where(isnan(input), 0, input), dim, keepdim, dtype=dtype)


@composite("nanmean")
def nanmean(input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Value:
    """The mean over `dim` of what is not NaN."""
    x = widened(cast(input, dtype or input.dtype))
    if not x.dtype.is_floating_point:
        raise TypeError(f"nanmean: wants a floating tensor, got {x.dtype.name}")
    there = cast(~isnan(x), x.dtype)
    return cast(nansum(x, dim, keepdim) / sum(there, dim, keepdim), dtype or input.dtype)


# ---- order ----
_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str, input: Value, q: Value | float, dim: int | None, keepdim: bool, interpolation: str) -> Value:
    """The quantiles of sorted rows: at q of the way from the first index to the last valid one."""
    if interpolation not in _BETWEEN:
        raise ValueError(f"{name}: interpolation {interpolation!r}; want one of {', '.join(_BETWEEN)}")
    if not input.dtype.is_floating_point:
        raise TypeError(f"{name}: wants a floating tensor, got {input.dtype.name}")
    if not numel(input.shape):
        raise ValueError(f"{name}: shape {input.shape} has no elements; want one at least")
    at = q if isinstance(q, Value) else input.graph.constant(float(q), input.dtype)
    if at.ndim > 1:
        raise ValueError(f"{name}: q must be a number or 1-d, got shape {at.shape}")
    axis = 0 if dim is None else normalize_axis(name, dim, input.ndim)
    x = input if dim is not None and input.ndim else reshape_value(input, (numel(input.shape),))
    rows = sort(rows_along(x, axis)).values
    lead, extent = rows.shape[:-1], rows.shape[-1]
    missing = isnan(rows)
    wide = widened(rows)
    if name == "nanquantile":
        last = sum(cast(~missing, wide.dtype), -1, True) - 1
    else:
        last = expand(wide.graph.constant(extent - 1, wide.dtype), (*lead, 1))
    count = numel(at.shape)
    at = cast(at, wide.dtype)
    at = where(checked((at >= 0) & (at <= 1), f"{name}: q is not within [0, 1]"), at, 0)
    position = reshape_value(at, (1,) * len(lead) + (count,)) * last
    if name == "quantile":  # the last is NaN, if there is one
        position = where(any(missing, -1, True), extent - 1, position)
    found = _between(wide, where(position < 0, 0, position), extent, interpolation)
    kept = (1,) * input.ndim if dim is None else (*lead[:axis], 1, *lead[axis:]) if input.ndim else ()
    shape = (*at.shape, *(kept if keepdim else lead))
    return cast(reshape_value(permute_value(found, [len(lead), *range(len(lead))]), shape), input.dtype)


def _between(rows: Value, position: Value, extent: int, interpolation: str) -> Value:
    """The elements at fractional positions of the rows' last axis, which is `extent` long."""
    def at(positions: Value) -> Value:
        index = cast(positions, int64)
        return gather_value(rows, where(index < extent, index, extent - 1), rows.ndim - 1)

    below = floor(position)
    part = position - below
    if interpolation == "lower":
        return at(below)
    if interpolation == "higher":
        return at(below + cast(part > 0, part.dtype))
    if interpolation == "nearest":
        return at(round(position))
    low, high = at(below), at(below + cast(part > 0, part.dtype))
    return low + (high - low) * (cast(part > 0, part.dtype) * 0.5 if interpolation == "midpoint" else part)


@composite("quantile", 2)
def quantile(input: Value, q: Value, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Value:
    """The `q`-th quantiles, a number in [0, 1] or a vector, over `dim` (all elements, if None); NaN propagates.

    A vector `q` adds a first axis. `interpolation` between neighbours is linear, lower, higher, midpoint or
    nearest.

    >>> genesis.quantile(genesis.tensor([4.0, 1.0, 2.0, 3.0]), genesis.tensor([0.0, 0.5]))
    tensor([1.0000, 2.5000])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@composite("nanquantile", 2)
def nanquantile(
    input: Value, q: Value, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Value:
    """As `quantile`, ignoring NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


@composite("kthvalue")
def kthvalue(input: Value, k: int, dim: int = -1, keepdim: bool = False) -> Sorted:
    """(value, index) of the `k`-th least element along `dim`, counted from 1.

    >>> genesis.kthvalue(genesis.tensor([3, 1, 2]), 2).values
    tensor(2)
    """
    axis = normalize_axis("kthvalue", dim, input.ndim)
    extent = input.shape[axis] if input.ndim else 1
    if not extent:
        raise EmptyError(f"kthvalue: shape {input.shape} has no elements along dim {dim}; want one at least")
    if not 1 <= k <= extent:
        raise ValueError(f"kthvalue: k is {k}; want 1 to {extent}, the extent of dim {dim}")
    return kth(rows_along(input, axis), k - 1, axis, keepdim, input.ndim)


msort = formula("msort", lambda input: sort(input, 0).values, "The elements in order along axis 0.")


# ---- covariance ----
@composite("cov", (0, 2, 3), takes_complex=True)
def cov(input: Value, *, correction: int = 1, fweights: Value | None = None, aweights: Value | None = None) -> Value:
    """The covariances of the rows of `input` (variables, observations), or the variance of a vector.

    `fweights` (ints) are the observations' counts, `aweights` their weights.

    >>> genesis.cov(genesis.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([[ 2.0000, -1.0000],
            [-1.0000,  0.5000]])
    """
    if input.ndim > 2:
        raise ValueError(f"cov: wants a vector or a matrix, got shape {input.shape}")
    x = cast(input, floating_dtype(input.dtype))
    rows = reshape_value(x, (1, numel(x.shape))) if x.ndim < 2 else x
    count = rows.shape[1]
    weights = [w for w in (fweights, aweights) if w is not None]
    for w in weights:
        if w.shape != (count,):
            raise ValueError(f"cov: weights have shape {w.shape}; want ({count},), one for each observation")
    if fweights is not None and fweights.dtype.category != 1:
        raise ArgumentTypeError(f"cov: fweights, which count, are {fweights.dtype.name}; want integers")
    if aweights is not None and aweights.dtype.category != 2:
        raise ArgumentTypeError(f"cov: aweights are {aweights.dtype.name}; want floating numbers")
    if not weights:
        centred = rows - mean(rows, 1, True) if count else rows
        freedom: Value | float = max(count - correction, 0)
        products = matmul(centred, swapped(conjugate(centred)))
    else:
        weight = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        total = sum(weight)  # in the weights' dtype, as in PyTorch
        centred = rows - sum(rows * weight, 1, True) / total
        freedom = total - (correction if aweights is None else correction * sum(weight * aweights) / total)
        freedom = where(freedom < 0, 0, freedom)
        products = matmul(centred * weight, swapped(conjugate(centred)))
    found = products / freedom
    return reshape_value(found, () if x.ndim < 2 or rows.shape[0] == 1 else found.shape)


@composite("corrcoef", takes_complex=True)
def corrcoef(input: Value) -> Value:
    """The correlation coefficients of the rows of `input` (variables, observations), within [-1, 1]."""
    c = cov(input)
    if not c.ndim:
        return c / c
    size = c.shape[0]
    deviation = sqrt(diag(c))
    scaled = c / reshape_value(deviation, (size, 1)) / deviation
    if scaled.dtype.is_complex:
        return complex_value(clamp(real_value(scaled), -1, 1), clamp(imag_value(scaled), -1, 1))
    return clamp(scaled, -1, 1)


# ---- integrals ----
def _pieces(y: Value, x: Value | None, dx: float, dim: int) -> tuple[Value, int]:
    """The trapezoids between neighbours along an axis, and the axis."""
    y = cast(y, floating_dtype(y.dtype)) if x is None else y
    axis = normalize_axis("trapezoid", dim, y.ndim)
    heights = slice_value(y, axis, 1, None) + slice_value(y, axis, 0, -1)
    if x is None:
        return heights * (dx / 2), axis
    if x.ndim == 1:
        if x.shape[0] != y.shape[axis]:
            raise ValueError(f"trapezoid: x has {x.shape[0]} points and y {y.shape[axis]} along dim {dim}; want as many")
        gaps = slice_value(x, 0, 1, None) - slice_value(x, 0, 0, -1)
        widths = reshape_value(gaps, (*gaps.shape, *(1,) * (y.ndim - axis - 1)))
    else:
        along = normalize_axis("trapezoid", dim, x.ndim)
        widths = slice_value(x, along, 1, None) - slice_value(x, along, 0, -1)
    return heights * widths / 2, axis


@composite("trapezoid", 2, method=False, aliases=("trapz",), takes_complex=True)
def trapezoid(y: Value, x: Value | None = None, *, dx: float = 1, dim: int = -1) -> Value:
    """The integral of `y` along `dim` by the trapezoidal rule: at the points `x`, or at distances `dx`.

    >>> genesis.trapezoid(genesis.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    areas, axis = _pieces(y, x, dx, dim)
    return sum(areas, axis - y.ndim)


@composite("cumulative_trapezoid", 2, method=False, takes_complex=True)
def cumulative_trapezoid(y: Value, x: Value | None = None, *, dx: float = 1, dim: int = -1) -> Value:
    """The integrals of `y` up to each point along `dim` but the first, as `trapezoid`."""
    areas, axis = _pieces(y, x, dx, dim)
    return cumsum(areas, axis - y.ndim)
