"""Views as ONNX's operators: a view is strides in genesis, and Reshape, Transpose, Slice, Expand or Gather there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ops.layout import Layout


class Step(NamedTuple):
    """An operator on the step before: its name, constant operands, attributes."""

    op: str
    operands: tuple[np.ndarray, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()


def steps_of(base: Shape, layout: Layout) -> list[Step]:
    """The operators that give a view of a contiguous tensor of shape `base`.

    >>> [step.op for step in steps_of((2, 3), Layout((3, 2), (1, 3), 0))]
    ['Transpose', 'Reshape']
    """
    shape, strides, offset = layout
    kept = [axis for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)) if stride and extent > 1]
    inner = Layout(tuple(shape[axis] for axis in kept), tuple(strides[axis] for axis in kept), offset)
    found = None if 0 in shape else _whole(base, inner) or _slice(base, layout)
    if found is None:
        return [_reshape((-1,)), Step("Gather", (places_of(layout),), (("axis", 0),))]
    plain = tuple(extent if axis in kept else 1 for axis, extent in enumerate(shape))
    found.append(_reshape(plain))
    return found if plain == shape else [*found, Step("Expand", (np.array(shape, np.int64),))]


def places_of(layout: Layout) -> np.ndarray:
    """Where the elements of a layout lie."""
    places = np.full(layout.shape, layout.offset, np.int64)
    for axis, (extent, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        places += (np.arange(extent) * stride).reshape([-1 if k == axis else 1 for k in range(len(layout.shape))])
    return places


def _reshape(shape: Sequence[int]) -> Step:
    return Step("Reshape", (np.array(shape, np.int64),))


def _whole(base: Shape, at: Layout) -> list[Step] | None:
    """All elements, in another order of axes; None for another view. Every axis has several elements."""
    order = sorted(range(len(at.shape)), key=lambda axis: -at.strides[axis])
    whole = tuple(at.shape[axis] for axis in order)
    if at.offset or numel(whole) != numel(base) or tuple(at.strides[axis] for axis in order) != contiguous_strides(whole):
        return None
    back = [order.index(axis) for axis in range(len(order))]
    if back == sorted(back):
        return [_reshape(whole)]
    first = [] if whole == base else [_reshape(whole)]
    return [*first, Step("Transpose", (), (("perm", back),))]


def _slice(base: Shape, at: Layout) -> list[Step] | None:
    """A slice along each axis of the base; None for another view."""
    own, rest = contiguous_strides(base), at.offset
    if len(own) != len(at.shape):
        return None
    starts, ends, steps = [], [], []
    for extent, stride, one, most in zip(at.shape, at.strides, own, base, strict=True):
        start, rest = divmod(rest, one)
        step, off = divmod(stride, one) if extent > 1 else (1, 0)
        end = start + (extent - 1) * step + 1
        if off or step < 1 or end > most:
            return None
        starts.append(start)
        ends.append(end)
        steps.append(step)
    return [Step("Slice", tuple(np.array(one, np.int64) for one in (starts, ends, range(len(own)), steps)))]
