"""A line search for the strong Wolfe conditions (J. Nocedal, S. Wright, "Numerical Optimization", 2006, 3.5).

Steps grow until two of them bracket a solution; then the bracket shrinks, both by cubic interpolation. The safeguards are
PyTorch's, so that both take the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from genesis.tensor.handle import Tensor

DECREASE, CURVATURE, MOST = 1e-4, 0.9, 25


class Point(NamedTuple):
    """What is known at a step: the loss, its gradient, and its slope along the direction."""

    step: float
    loss: float
    gradient: Tensor
    slope: float


def cubic_minimum(a: Point, b: Point, least: float, most: float) -> float:
    """The minimum of the cubic through two points with their slopes, clamped to the bounds; their middle, if it has none."""
    if a.step > b.step:
        a, b = b, a
    d = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = d * d - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2
    root = math.sqrt(square)
    step = b.step - (b.step - a.step) * ((b.slope + root - d) / (b.slope - a.slope + 2 * root))
    return min(max(step, least), most)


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, step: float, length: float, tolerance: float
) -> tuple[Point, int]:
    """(the point found, how often the loss was computed), from `start` at step 0, with `step` tried first.

    `length` is the greatest element of the direction; an interval that moves nothing by more than `tolerance` is not parted.
    """
    before, now, count = start, evaluate(step), 1
    bracket: list[Point] = []
    while not bracket and count <= MOST:
        if _too_high(now, start) or (count > 2 and now.loss >= before.loss):
            bracket = [before, now]
        elif abs(now.slope) <= -CURVATURE * start.slope:
            return now, count
        elif now.slope >= 0:
            bracket = [before, now]
        else:
            step = cubic_minimum(before, now, now.step + 0.01 * (now.step - before.step), now.step * 10)
            before, now, count = now, evaluate(step), count + 1
    return _zoomed(evaluate, start, bracket or [start, now], count, length, tolerance)


def _too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + DECREASE * point.step * start.slope


def _zoomed(
    evaluate: Callable[[float], Point], start: Point, bracket: list[Point], count: int, length: float, tolerance: float
) -> tuple[Point, int]:
    """The same, of an interval that holds a step that will do."""
    low, high = sorted(bracket, key=lambda point: point.loss)
    slow = False  # the last step was near an end already
    while count <= MOST and abs(high.step - low.step) * length >= tolerance:
        least, most = sorted((low.step, high.step))
        step, margin = cubic_minimum(low, high, least, most), 0.1 * (most - least)
        near = min(most - step, step - least) < margin
        if near and (slow or step >= most or step <= least):
            step = most - margin if abs(step - most) < abs(step - least) else least + margin
            near = False
        slow = near
        now, count = evaluate(step), count + 1
        if _too_high(now, start) or now.loss >= low.loss:
            low, high = (low, now) if low.loss <= now.loss else (now, low)
            continue
        if abs(now.slope) <= -CURVATURE * start.slope:
            return now, count
        if now.slope * (high.step - low.step) >= 0:
            high = low
        low = now
    return low, count
