"""Sampling images (or volumes) at places that are data: a flow field tells where each result comes from."""

from __future__ import annotations

from itertools import product as combinations

from genesis.ir.dtypes import int64
from genesis.ir.graph import Value
from genesis.ir.shapes import numel
from genesis.ops.elementwise import abs as magnitude
from genesis.ops.elementwise import clamp, floor, round, where
from genesis.ops.indexing import gather_value
from genesis.ops.registry import cast, composite, expand, widened
from genesis.ops.resample import cubic_weights
from genesis.ops.views import reshape_value, slice_value

__all__ = ["grid_sample"]

Tap = tuple[Value, Value | None]  # a place along an axis, a whole number, and its weight (1, if None)


def _reflected(at: Value, low: float, high: float) -> Value:
    """`at` between two mirrors."""
    span = high - low
    if span <= 0:
        return at * 0
    far = magnitude(at - low)
    turns = floor(far / span)
    rest = far - turns * span
    return where(turns - 2 * floor(turns / 2) == 0, rest, span - rest) + low


def _within(at: Value, extent: int, padding: str, corners: bool) -> Value:
    """Where `at` is looked up; for zeros, where it is."""
    if padding == "zeros":
        return at
    if padding == "reflection":
        at = _reflected(at, 0.0, extent - 1.0) if corners else _reflected(at, -0.5, extent - 0.5)
    return clamp(at, 0, extent - 1)


def _taps(at: Value, extent: int, mode: str, padding: str, corners: bool) -> list[Tap]:
    if mode == "bicubic":
        low = floor(at)
        places = [_within(low + (k - 1), extent, padding, corners) for k in range(4)]
        return [*zip(places, cubic_weights(at - low), strict=True)]
    at = _within(at, extent, padding, corners)
    if mode == "nearest":
        return [(round(at), None)]
    low = floor(at)
    return [(low, 1 - (at - low)), (low + 1, at - low)]


def _checked(input: Value, grid: Value, mode: str, padding_mode: str) -> int:
    """The number of axes that are sampled."""
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
    """What `input` (n, c, h, w) has at the places `grid` (n, i, j, 2): (n, c, i, j); or volumes, with three numbers each.

    Args:
        grid: places as (x, y) or (x, y, z), from -1 to 1 along w, h and d.
        mode: "bilinear" (of the 4 or 8 neighbours), "nearest", or "bicubic" (of images).
        padding_mode: what is beyond the ends: "zeros", the "border", or the "reflection" of what is there.
        align_corners: -1 and 1 are the middles of the corners' elements; otherwise their outer edges.

    Raises ValueError for other shapes, dtypes, modes and paddings.

    >>> import genesis
    >>> x, middle = genesis.arange(4.0).reshape(1, 1, 2, 2), genesis.zeros(1, 1, 1, 2)
    >>> genesis.nn.functional.grid_sample(x, middle)
    tensor([[[[1.5000]]]])
    """
    axes, corners = _checked(input, grid, mode, padding_mode), bool(align_corners)
    x, places = widened(input), widened(grid)
    extents, (n, channels), out = input.shape[2:], input.shape[:2], grid.shape[1:-1]
    count = numel(out)
    taps = []
    for axis, extent in enumerate(extents):
        last = axes - 1 - axis
        at = reshape_value(slice_value(places, grid.ndim - 1, last, last + 1), (n, 1, count))
        at = (at + 1) * (0.5 * (extent - 1)) if corners else ((at + 1) * extent - 1) * 0.5
        taps.append(_taps(at, extent, mode, padding_mode, corners))
    flat = reshape_value(x, (n, channels, numel(extents)))
    total = None
    for chosen in combinations(*taps):
        part = _corner(flat, chosen, extents)
        total = part if total is None else total + part
    assert total is not None
    return cast(reshape_value(total, (n, channels, *out)), input.dtype)


def _corner(flat: Value, chosen: tuple[Tap, ...], extents: tuple[int, ...]) -> Value:
    """The elements at one neighbour of each place, times its weight; zeros where there is none."""
    index, inside, weight = None, None, None
    for (at, share), extent in zip(chosen, extents, strict=True):
        here = (at >= 0) & (at <= extent - 1)
        step = cast(clamp(at, 0, extent - 1), int64)
        index = step if index is None else index * extent + step
        inside = here if inside is None else inside & here
        weight = share if weight is None else weight if share is None else weight * share
    assert index is not None and inside is not None
    part = gather_value(flat, expand(index, (*flat.shape[:2], index.shape[-1])), 2)
    return where(inside, part if weight is None else part * weight, 0)
