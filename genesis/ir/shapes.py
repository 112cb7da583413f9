"""Arithmetic on shapes, strides and axes. Errors name the operation, the actual and the expected values."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from genesis.ir.errors import ArgumentError
from genesis.ir.symbolic_sizes import Size

Shape = tuple[int, ...]

numel: Callable[[Iterable[int]], int] = math.prod


@functools.lru_cache(maxsize=4096)
def contiguous_strides(shape: Shape) -> Shape:
    """Row-major strides, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The offset of the lowest element, and one more than that of the highest; (0, 0) if there is none.

    >>> reach((3, 2), (2, 1)), reach((3,), (-2,)), reach((0, 2), (2, 1))
    ((0, 6), (-4, 1), (0, 0))
    """
    if 0 in shape:
        return 0, 0
    ends = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return sum(end for end in ends if end < 0), 1 + sum(end for end in ends if end > 0)


def broadcast_shapes(name: str, *shapes: Shape) -> Shape:
    """The shape to which all broadcast; raises ValueError, naming the operation, if they do not."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, extent in enumerate(shape, rank - len(shape)):
            if extent != 1 and result[axis] not in (1, extent):
                listed = " and ".join(str(s) for s in shapes)
                raise ArgumentError(
                    f"{name}: shapes {listed} do not broadcast: axis {axis - rank} has extents {result[axis]} and "
                    f"{extent}; want them equal, or one of them 1"
                )
            if extent != 1:
                result[axis] = extent
    return tuple(result)


def normalize_axis(name: str, axis: int, rank: int) -> int:
    """`axis` counted from the front; raises IndexError when it is outside [-rank, rank-1] (0-d counts as 1-d).

    A bool is a TypeError, as in `x.sum(True)`, where `keepdim` was meant.
    """
    if axis.__class__ is int and -rank <= axis < rank:
        return axis % rank
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(f"{name}: dim must be an int, got {type(axis).__name__} {axis!r}")
    axis = operator.index(axis)
    bound = max(rank, 1)
    if not -bound <= axis < bound:
        raise IndexError(f"{name}: dim {axis} is out of range for a {rank}-d tensor; want {-bound} to {bound - 1}")
    return axis % bound


def normalize_axes(name: str, axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Sorted axes counted from the front; None (and an empty sequence) means all of them."""
    if axes is None or (not isinstance(axes, int) and hasattr(axes, "__len__") and len(axes) == 0):
        return tuple(range(rank))
    listed = tuple(axes) if isinstance(axes, tuple | list) else (axes,)
    result = sorted(normalize_axis(name, axis, rank) for axis in listed)
    if len(set(result)) != len(result):
        raise ValueError(f"{name}: dim {listed} names an axis twice")
    return tuple(axis for axis in result if axis < rank)


def sliced(extent: int, start: int | None, stop: int | None, step: int | None) -> tuple[int, int, int]:
    """The first index that `start:stop:step` takes of an axis, the step, and how many indices it takes.

    >>> sliced(5, -4, None, None), sliced(5, None, None, -2), sliced(5, 4, 1, 1)
    ((1, 1, 4), (4, -2, 3), (4, 1, 0))
    """
    by = 1 if step is None else as_size(step)
    if by == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, extent) if by > 0 else (-1, extent - 1)
    first, last = [default if end is None else _clamped(as_size(end), extent, low, high)
                   for end, default in zip((start, stop), (low, high) if by > 0 else (high, low), strict=True)]
    reach = last - first if by > 0 else first - last
    return first, by, 0 if reach <= 0 else (reach - 1) // abs(by) + 1


def _clamped(at: int, extent: int, low: int, high: int) -> int:
    at = at + extent if at < 0 else at
    return low if at < low else high if at > high else at


def as_size(number: Any) -> int:
    """A number as an int; a symbolic size as it is."""
    return number if number.__class__ is Size else operator.index(number)  # type: ignore[no-any-return,return-value]


def reduced_shape(shape: Shape, axes: Sequence[int], keepdim: bool = False) -> Shape:
    """`shape` without `axes`, or with extent 1 there."""
    if keepdim:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def resolve_reshape(name: str, shape: Shape, wanted: Sequence[int]) -> Shape:
    """`wanted` with -1 replaced; raises ValueError if the element counts differ."""
    total = numel(shape)
    known = numel(extent for extent in wanted if extent != -1)
    holes = sum(1 for extent in wanted if extent == -1)
    if any(extent < -1 for extent in wanted) or holes > 1:
        raise ValueError(f"{name}: shape {tuple(wanted)} is not valid; want extents >= 0 and at most one -1")
    if holes and known and total % known == 0:
        return tuple(total // known if extent == -1 else extent for extent in wanted)
    if holes or known != total:
        raise ValueError(f"{name}: a tensor of shape {shape} has {total} elements, which do not fill shape {tuple(wanted)}")
    return tuple(wanted)
