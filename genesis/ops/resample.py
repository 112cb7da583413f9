"""Resampling of images, signals and volumes: to another size, or at given positions, by weighted sums of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product as combinations
from math import floor as whole
from operator import add
from typing import Any

from genesis.ir.dtypes import DType, float32, float64, int32, int64, uint8
from genesis.ir.errors import UnknownModeError
from genesis.ir.graph import Value
from genesis.ir.shapes import as_size, numel
from genesis.ir.symbolic_sizes import Size
from genesis.ops.contraction import matmul, swapped
from genesis.ops.elementwise import ceil, clamp, exp2, floor, log2, maximum, round, where
from genesis.ops.indexing import gather_value
from genesis.ops.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from genesis.ops.reduction import amax, sum
from genesis.ops.registry import cast, composite, expand, widened
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, slice_value

Tap = tuple[Value, Value | None]  # (each result's index of a neighbour along an axis, its weight or None for 1)
AXES = {  # mode -> number of axes that it resamples
    "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,),
    "area": (1, 2, 3),
}
_STEEPNESS, _STEEPNESS_OF_MEANS = -0.75, -0.5  # of Keys' cubic, PyTorch's values without and with `antialias`


# ---- the positions and weights of neighbours ----
def _positions(x: Value, count: int, scale: float, dtype: DType, half: bool) -> Value:
    """The source positions of results 0 to `count` - 1 along an axis; with `half`, relative to pixel centres."""
    at = cast(iota(x.graph, count), dtype)
    return (at + 0.5) * scale - 0.5 if half else at * scale


def _nearest(x: Value, extent: int, count: int, scale: float, exact: bool) -> list[Tap]:
    at = cast(iota(x.graph, count), float32)  # as PyTorch, whatever the dtype of x
    return [(_within(floor((at + 0.5) * scale if exact else at * scale), extent), None)]


def _within(at: Value, extent: int) -> Value:
    return clamp(cast(at, int64), 0, extent - 1)


def _linear(x: Value, extent: int, count: int, scale: float, corners: bool) -> list[Tap]:
    at = clamp(_positions(x, count, scale, x.dtype, not corners), min=0)
    low = floor(at)
    return [(_within(low, extent), 1 - (at - low)), (_within(low + 1, extent), at - low)]


def _cubic(x: Value, extent: int, count: int, scale: float, corners: bool) -> list[Tap]:
    """Keys, 1981."""
    at = _positions(x, count, scale, x.dtype, not corners)
    low = floor(at)
    return [(_within(low + (k - 1), extent), weight) for k, weight in enumerate(cubic_weights(at - low))]


def cubic_weights(t: Value) -> tuple[Value, ...]:
    """The weights of the four neighbours of a position that is `t` after the second of them."""
    a = _STEEPNESS
    return _far(t + 1, a), _near(t, a), _near(1 - t, a), _far(2 - t, a)


def _near(d: Value, a: float) -> Value:
    """Keys' cubic within a distance of 1."""
    return ((a + 2) * d - (a + 3)) * d * d + 1


def _far(d: Value, a: float) -> Value:
    """Keys' cubic from a distance of 1 to 2."""
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


# ---- one axis after the other ----
def _resampled(x: Value, axis: int, taps: Sequence[Tap]) -> Value:
    def part(at: Value, weight: Value | None) -> Value:
        along = (*(1,) * axis, at.shape[0], *(1,) * (x.ndim - axis - 1))
        shape = (*x.shape[:axis], at.shape[0], *x.shape[axis + 1 :])
        found = gather_value(x, expand(reshape_value(at, along), shape), axis)
        return found if weight is None else found * reshape_value(weight, along)

    return reduce(add, [part(*tap) for tap in taps])


def _averaged(x: Value, axis: int, count: int, step: float, mode: str) -> Value:
    """Weighted means of the elements near each result; the support widens when downsampling."""
    return _weighted(x, axis, _mean_weights(x, axis, count, step, mode))


def _weighted(x: Value, axis: int, weights: Value) -> Value:
    """Weighted sums along one of the last two axes; weights are (results, elements)."""
    return matmul(x, swapped(weights)) if axis == x.ndim - 1 else matmul(weights, x)


def _mean_weights(x: Value, axis: int, count: int, step: float, mode: str) -> Value:
    centres = reshape_value(_positions(x, count, 1.0, x.dtype, False) + 0.5, (count, 1)) * step
    distance = abs(_positions(x, x.shape[axis], 1.0, x.dtype, False) + 0.5 - centres) * (1 / max(step, 1.0))
    if mode == "bicubic":
        a = _STEEPNESS_OF_MEANS
        weights = where(distance < 1, _near(distance, a), where(distance < 2, _far(distance, a), 0))
    else:
        weights = clamp(1 - distance, min=0)
    return weights / sum(weights, 1, True)


def _repeated(x: Value, axis: int, times: int) -> Value:
    """Each element repeated `times` times: a view, whose gradient is a sum."""
    shape = (*x.shape[: axis + 1], times, *x.shape[axis + 1 :])
    spread = expand(reshape_value(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])), shape)
    return reshape_value(spread, (*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1 :]))


def _sizes(
    input: Value, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The result's extents, and the given scales that are used."""
    extents = input.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ValueError(f"interpolate: size is {size} and scale_factor {scale_factor}; want one of them")
    given = size if scale_factor is None else scale_factor
    each = tuple(given) if isinstance(given, tuple | list) else (given,) * len(extents)
    if len(each) != len(extents) or any(g <= 0 for g in each):
        raise ValueError(f"interpolate: {given} for shape {input.shape}; want a number above 0 for each of {len(extents)} axes")
    if scale_factor is None:
        return tuple([as_size(n) if n.__class__ is Size else int(n) for n in each]), (None,) * len(each)
    sizes = tuple([whole(e * float(f)) for e, f in zip(extents, each, strict=True)])
    return sizes, (None,) * len(each) if recompute else tuple([float(f) for f in each])


@composite("interpolate", method=False, namespace="nn.functional")
def interpolate(
    input: Value, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Value:
    """`input` (n, c, ..) at another size: `size`, or `scale_factor` times its own, for all axes after c or for each.

    Args:
        mode: "nearest", "nearest-exact" (of 1 to 3 axes), "linear" (1), "bilinear", "bicubic" (2), "trilinear" (3), "area"
            (means of parts; 1 to 3).
        align_corners: in linear and cubic modes, corner elements map to corner results; by default the outer edges of
            elements and results coincide.
        recompute_scale_factor: use the ratio of the rounded extents instead of `scale_factor`.
        antialias: in modes "bilinear" and "bicubic", downsampling averages over all elements between results.

    Raises ValueError for another mode or one that does not fit the axes, unless exactly one of `size` and `scale_factor` is
    given, and for `antialias` in other modes; TypeError for integers, except in nearest modes and for uint8 images, which are
    rounded.

    >>> x = genesis.tensor([[[1.0, 3.0]]])
    >>> interpolate = genesis.nn.functional.interpolate
    >>> interpolate(x, scale_factor=2), interpolate(x, size=3, mode="linear", align_corners=True)
    (tensor([[[1., 1., 3., 3.]]]), tensor([[[1., 2., 3.]]]))
    """
    axes = input.ndim - 2
    if mode not in AXES or axes not in AXES[mode]:
        fitting = [name for name, ranks in AXES.items() if axes in ranks]
        want = f"one of {', '.join(fitting)}" if fitting else "3 to 5 axes"
        raise UnknownModeError(f"interpolate: mode {mode!r} for shape {input.shape}; want {want}")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError(f"interpolate: align_corners has no meaning in mode {mode!r}; want None")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate: antialias has no meaning in mode {mode!r}; want 'bilinear' or 'bicubic'")
    sizes, scales = _sizes(input, size, scale_factor, recompute_scale_factor)
    rounds = input.dtype is uint8 and mode in ("bilinear", "bicubic")
    if not mode.startswith("nearest") and not input.dtype.is_floating_point and not rounds:
        raise TypeError(f"interpolate: mode {mode!r} wants floating numbers, got {input.dtype.name}; convert with .float()")
    if 0 in input.shape[2:] or 0 in sizes:
        raise ValueError(f"interpolate: shape {input.shape} to {sizes}; want an element at least along each axis")
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[axes - 1](input, sizes)
    if rounds:
        return _rounded(input, sizes, scales, mode, bool(align_corners), antialias)
    x = input if mode.startswith("nearest") else widened(input)
    for axis, (count, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        x = _along(x, axis, count, scale, mode, bool(align_corners), antialias)
    return cast(x, input.dtype)


def _rounded(
    image: Value, sizes: Sequence[int], scales: Sequence[float | None], mode: str, corners: bool, antialias: bool
) -> Value:
    """uint8 images, as in PyTorch: rows first, rounding to uint8 after each axis; weights are integers below 2^15."""
    for axis in (3, 2):
        extent, count = image.shape[axis], sizes[axis - 2]
        step = _step(extent, count, scales[axis - 2], corners)
        if count == extent and step == 1:
            continue
        x = cast(image, float64)
        if antialias:
            weights = _mean_weights(x, axis, count, step, mode)
            units = _units(weights)
            total = _weighted(x, axis, _whole(weights * units))
        else:
            taps = _merged((_cubic if mode == "bicubic" else _linear)(x, extent, count, step, corners))
            units = _units(reduce(maximum, [weight for _, weight in taps]))
            total = _resampled(x, axis, [(at, _whole(weight * units)) for at, weight in taps])
        image = cast(clamp(floor((total + units / 2) / units), 0, 255), uint8)
    return image


def _merged(taps: Sequence[Tap]) -> list[tuple[Value, Value]]:
    """Taps beyond the edge use the edge element: the last of them gets the sum of their weights."""
    positions, weights = zip(*taps, strict=True)
    merged = list(weights)
    for k in range(len(taps) - 1):
        same = positions[k] == positions[k + 1]
        merged[k + 1] = merged[k + 1] + where(same, merged[k], 0)
        merged[k] = where(same, 0, merged[k])
    return list(zip(positions, merged, strict=True))


def _units(weights: Value) -> Value:
    """The fixed-point scale of 1: the largest power of two that keeps the weights below 2^15."""
    largest = amax(weights)
    return exp2(ceil(log2((2**15 - 0.5) / largest)) - 1)


def _whole(x: Value) -> Value:
    """Rounds to the nearest integer, ties away from 0."""
    return where(x < 0, -floor(0.5 - x), floor(x + 0.5))


def _step(extent: int, count: int, scale: float | None, corners: bool) -> float:
    """The distance between results, in elements."""
    if corners:
        return (extent - 1) / (count - 1) if count > 1 else 0.0
    return extent / count if scale is None else 1 / scale


def _along(x: Value, axis: int, count: int, scale: float | None, mode: str, corners: bool, antialias: bool) -> Value:
    extent = x.shape[axis]
    step = _step(extent, count, scale, corners)
    if count == extent and step == 1:
        return x
    if antialias:
        return _averaged(x, axis, count, step, mode)
    if mode.startswith("nearest"):
        if count % extent == 0 and step * count == extent:
            return _repeated(x, axis, count // extent)
        return _resampled(x, axis, _nearest(x, extent, count, step, mode == "nearest-exact"))
    taps: Callable[..., list[Tap]] = _cubic if mode == "bicubic" else _linear
    return _resampled(x, axis, taps(x, extent, count, step, corners))


# ---- at given positions (a flow field) ----
def _reflected(at: Value, low: float, high: float) -> Value:
    """`at` reflected between two mirrors."""
    span = high - low
    if span <= 0:
        return at * 0
    far = abs(at - low)
    turns = floor(far / span)
    rest = far - turns * span
    return where(turns - 2 * floor(turns / 2) == 0, rest, span - rest) + low


def _looked_up(at: Value, extent: int, padding: str, corners: bool) -> Value:
    """The position to read for `at` under the padding mode; unchanged for "zeros"."""
    if padding == "zeros":
        return at
    if padding == "reflection":
        at = _reflected(at, 0.0, extent - 1.0) if corners else _reflected(at, -0.5, extent - 0.5)
    return clamp(at, 0, extent - 1)


def _taps(at: Value, extent: int, mode: str, padding: str, corners: bool) -> list[Tap]:
    if mode == "bicubic":
        low = floor(at)
        positions = [_looked_up(low + (k - 1), extent, padding, corners) for k in range(4)]
        return [*zip(positions, cubic_weights(at - low), strict=True)]
    at = _looked_up(at, extent, padding, corners)
    if mode == "nearest":
        return [(round(at), None)]
    low = floor(at)
    return [(low, 1 - (at - low)), (low + 1, at - low)]


def _checked(input: Value, grid: Value, mode: str, padding_mode: str) -> int:
    """The number of sampled axes, after checks."""
    axes = input.ndim - 2
    if axes not in (2, 3) or grid.ndim != input.ndim or grid.shape[0] != input.shape[0] or grid.shape[-1] != axes:
        raise ValueError(f"grid_sample: input {input.shape}, grid {grid.shape}; want (n, c, h, w) and (n, .., .., 2), or "
                         "(n, c, d, h, w) and (n, .., .., .., 3)")
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and axes == 3):
        raise ValueError(f"grid_sample: mode {mode!r} for shape {input.shape}; want 'bilinear', 'nearest', of images 'bicubic'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: padding_mode must be 'zeros', 'border' or 'reflection', got {padding_mode!r}")
    if 0 in input.shape[2:] or grid.dtype is not input.dtype or not input.dtype.is_floating_point:
        raise ValueError(f"grid_sample: {input.dtype.name} {input.shape} by a {grid.dtype.name} grid; want one floating dtype, "
                         "and an element at least along each axis")
    return axes


@composite("grid_sample", 2, method=False, namespace="nn.functional")
def grid_sample(
    input: Value, grid: Value, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Value:
    """`input` (n, c, h, w) sampled at the positions `grid` (n, i, j, 2): (n, c, i, j); for volumes, positions are triples.

    Args:
        grid: positions as (x, y) or (x, y, z), from -1 to 1 along w, h and d.
        mode: "bilinear" (of the 4 or 8 neighbours), "nearest", or "bicubic" (of images).
        padding_mode: values beyond the edges: "zeros", the "border", or a "reflection".
        align_corners: -1 and 1 are the centres of the corner elements; otherwise their outer edges.

    Raises ValueError for other shapes, dtypes, modes and paddings.

    >>> x, middle = genesis.arange(4.0).reshape(1, 1, 2, 2), genesis.zeros(1, 1, 1, 2)
    >>> genesis.nn.functional.grid_sample(x, middle)
    tensor([[[[1.5000]]]])
    """
    axes, corners = _checked(input, grid, mode, padding_mode), bool(align_corners)
    x, positions = widened(input), widened(grid)
    extents, (n, channels), out = input.shape[2:], input.shape[:2], grid.shape[1:-1]
    count = numel(out)
    taps = []
    for axis, extent in enumerate(extents):
        last = axes - 1 - axis
        at = reshape_value(slice_value(positions, grid.ndim - 1, last, last + 1), (n, 1, count))
        at = (at + 1) * (0.5 * (extent - 1)) if corners else ((at + 1) * extent - 1) * 0.5
        taps.append(_taps(at, extent, mode, padding_mode, corners))
    flat = reshape_value(x, (n, channels, numel(extents)))
    total = reduce(add, [_corner(flat, chosen, extents) for chosen in combinations(*taps)])
    return cast(reshape_value(total, (n, channels, *out)), input.dtype)


def _corner(flat: Value, chosen: tuple[Tap, ...], extents: tuple[int, ...]) -> Value:
    """One neighbour of each position times its weight; zero where it is outside."""
    index, inside, weight = None, None, None
    dtype = int32 if numel(extents) < 1 << 31 else int64  # processors without AVX-512 convert to 64 bits one by one
    for (at, share), extent in zip(chosen, extents, strict=True):
        here = (at >= 0) & (at <= extent - 1)
        step = cast(clamp(at, 0, extent - 1), dtype)
        index = step if index is None else index * extent + step
        inside = here if inside is None else inside & here
        weight = share if weight is None else weight if share is None else weight * share
    assert index is not None and inside is not None
    part = gather_value(flat, expand(cast(index, int64), (*flat.shape[:2], index.shape[-1])), 2)
    return where(inside, part if weight is None else part * weight, 0)
