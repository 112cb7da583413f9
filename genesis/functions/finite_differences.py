"""Finite differences of sampled functions."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.functions.overrides import overridable
from genesis.functions.ranges import arange
from genesis.ir.dtypes import get_default_dtype
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import normalize_axis
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor


@overridable
def gradient(
    input: Tensor, *, spacing: float | Sequence[float | Tensor] | None = 1, dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The slopes of `input` along each of `dim` (all axes, if None): of parabolas through three neighbours (Fornberg, 1988).

    Args:
        spacing: the distance of neighbours, a number or one for each axis; or the coordinates, a vector for each axis.
        edge_order: at the ends, 1 uses the slope of a line, 2 of a parabola.

    Raises ValueError for another order, for axes that are too short, and unless there is one spacing per axis.

    >>> genesis.gradient(genesis.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    listed = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = [normalize_axis("gradient", d, input.ndim) for d in listed]
    spacing = 1 if spacing is None else spacing
    steps = [spacing] * len(axes) if isinstance(spacing, int | float) else list(spacing)
    if len({*axes}) < len(axes):
        raise ArgumentError(f"gradient: dim {listed} names an axis more than once")
    if edge_order not in (1, 2) or len(steps) != len(axes):
        raise ArgumentError(
            f"gradient: order {edge_order}, {len(steps)} spacings for {len(axes)} axes; want 1 or 2, and one each")
    x = input if input.dtype.category >= 2 else input.to(get_default_dtype())
    return tuple([_along(x, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True)])


def _along(x: Tensor, axis: int, step: float | Tensor, edge_order: int) -> Tensor:
    extent = x.shape[axis]
    if extent <= edge_order:
        raise ArgumentError(f"gradient: axis {axis} has extent {extent}; want {edge_order + 1} at least")
    points = step if isinstance(step, Tensor) else arange(extent, dtype=x.dtype, device=x.device) * float(step)
    if points.shape != (extent,):
        raise ArgumentError(f"gradient: the coordinates along axis {axis} have shape {points.shape}; want ({extent},)")
    gaps = points.narrow(0, 1, extent - 1) - points.narrow(0, 0, extent - 1)
    gaps = gaps.reshape(*[-1 if a == axis else 1 for a in range(x.ndim)])
    slopes = (x.narrow(axis, 1, extent - 1) - x.narrow(axis, 0, extent - 1)) / gaps

    def at(values: Tensor, start: int, count: int = 1) -> Tensor:
        return values.narrow(axis, start, count)

    first, last = at(slopes, 0), at(slopes, extent - 2)
    if extent > 2:
        before, behind = at(gaps, 0, extent - 2), at(gaps, 1, extent - 2)
        left, center, right = (at(x, start, extent - 2) for start in range(3))
        if isinstance(step, Tensor):
            outer = right * (before / behind) - left * (behind / before)
            middle = outer / (before + behind) + center * ((behind - before) / (before * behind))
        else:  # without the element between them, which may be infinite
            middle = (right - left) / (2 * step)
        if edge_order == 2:  # the parabola through three points at either end
            bend = (at(slopes, 1, extent - 2) - at(slopes, 0, extent - 2)) / (before + behind)
            first = first - at(bend, 0) * at(gaps, 0)
            last = last + at(bend, extent - 3) * at(gaps, extent - 2)
        parts = [first, middle, last]
    else:
        parts = [first, last]
    return call(OPERATIONS["cat"], (parts, axis))
