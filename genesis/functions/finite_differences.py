"""Finite differences of sampled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.functions.overrides import overridable
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
    steps = [*spacing] if isinstance(spacing, list | tuple) else [spacing] * len(axes)
    if len({*axes}) < len(axes):
        raise ArgumentError(f"gradient: dim {listed} names an axis more than once")
    if edge_order not in (1, 2) or len(steps) != len(axes):
        raise ArgumentError(
            f"gradient: order {edge_order}, {len(steps)} spacings for {len(axes)} axes; want 1 or 2, and one each")
    x = input if input.dtype.category >= 2 else input.to(get_default_dtype())
    return tuple([_along(x, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True)])


def _along(x: Tensor, axis: int, step: Any, edge_order: int) -> Any:
    extent = x.shape[axis]
    if extent <= edge_order:
        raise ArgumentError(f"gradient: axis {axis} has extent {extent}; want {edge_order + 1} at least")
    shape = tuple(getattr(step, "shape", ()))
    if shape not in ((), (extent,)):
        raise ArgumentError(f"gradient: the coordinates along axis {axis} have shape {shape}; want ({extent},)")
    gaps = step.diff().reshape(*[-1 if a == axis else 1 for a in range(x.ndim)]) if shape else step

    def at(values: Any, start: int, count: int = 1) -> Any:
        return values if values is step else values.narrow(axis, start, count)

    slopes = x.diff(dim=axis) / gaps
    first, last = at(slopes, 0), at(slopes, extent - 2)
    if extent == 2:
        return call(OPERATIONS["cat"], ([first, last], axis))
    before, behind = at(gaps, 0, extent - 2), at(gaps, 1, extent - 2)
    left, center, right = (at(x, start, extent - 2) for start in range(3))
    if gaps is step:  # without the element between them, which may be infinite
        middle = (right - left) / (2 * step)
    else:
        outer = right * (before / behind) - left * (behind / before)
        middle = outer / (before + behind) + center * ((behind - before) / (before * behind))
    if edge_order == 2:  # the parabola through three points at either end
        bend = slopes.diff(dim=axis) / (before + behind)
        first = first - at(bend, 0) * at(gaps, 0)
        last = last + at(bend, extent - 3) * at(gaps, extent - 2)
    return call(OPERATIONS["cat"], ([first, middle, last], axis))
