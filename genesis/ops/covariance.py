"""Covariances, and integrals by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from genesis.ir.graph import Value
from genesis.ir.shapes import normalize_axis, numel
from genesis.ops.arrangement import diag
from genesis.ops.contraction import matmul, swapped
from genesis.ops.elementwise import clamp, sqrt, where
from genesis.ops.ordering import cumsum
from genesis.ops.reduction import mean, sum
from genesis.ops.registry import cast, composite, floating_dtype
from genesis.ops.views import reshape_value, slice_value

__all__ = ["cov"]


# ---- covariance ----


@composite("cov", (0, 2, 3))
def cov(input: Value, *, correction: int = 1, fweights: Value | None = None, aweights: Value | None = None) -> Value:
    """The covariances of the rows of `input` (variables, observations), or the variance of a vector.

    `fweights` (ints) say how often each observation counts, `aweights` how much.

    >>> import genesis
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
    if not weights:
        centred = rows - mean(rows, 1, True) if count else rows
        freedom: Any = max(count - correction, 0)
        products = matmul(centred, swapped(centred))
    else:
        weight = cast(weights[0] if len(weights) == 1 else weights[0] * weights[1], x.dtype)
        total = sum(weight)
        centred = rows - sum(rows * weight, 1, True) / total
        scale = correction if aweights is None else correction * sum(weight * cast(aweights, x.dtype)) / total
        freedom = total - scale
        freedom = where(freedom < 0, 0, freedom)
        products = matmul(centred * weight, swapped(centred))
    found = products / freedom
    return reshape_value(found, () if x.ndim < 2 or rows.shape[0] == 1 else found.shape)


@composite("corrcoef")
def corrcoef(input: Value) -> Value:
    """The correlation coefficients of the rows of `input` (variables, observations), within [-1, 1]."""
    c = cov(input)
    if not c.ndim:
        return c / c
    size = c.shape[0]
    deviation = sqrt(diag(c))
    scaled = c / reshape_value(deviation, (size, 1)) / deviation
    return clamp(scaled, -1, 1)


# ---- integrals ----


def _pieces(y: Value, x: Value | None, dx: float, dim: int) -> tuple[Value, int]:
    """The areas under the lines between neighbours along an axis."""
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


@composite("trapezoid", 2, method=False, aliases=("trapz",))
def trapezoid(y: Value, x: Value | None = None, *, dx: float = 1, dim: int = -1) -> Value:
    """The integral of `y` along `dim` by the trapezoidal rule: at the points `x`, or at distances `dx`.

    >>> import genesis
    >>> genesis.trapezoid(genesis.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    areas, axis = _pieces(y, x, dx, dim)
    return sum(areas, axis - y.ndim)


@composite("cumulative_trapezoid", 2, method=False)
def cumulative_trapezoid(y: Value, x: Value | None = None, *, dx: float = 1, dim: int = -1) -> Value:
    """The integrals of `y` up to each point along `dim` but the first, as `trapezoid`."""
    areas, axis = _pieces(y, x, dx, dim)
    return cumsum(areas, axis - y.ndim)
