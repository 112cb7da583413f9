"""Views, which are strides in genesis, as ONNX's operators: Reshape, Transpose, Slice, Expand or Gather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.ops.layout import Layout
from genesis.shipping.dynamic import Formula, fitted

Point = tuple[int, ...]  # values of the dynamic sizes


class ViewOperator(NamedTuple):
    """An operator in a chain: its name, constant operands, attributes. Some operands' numbers may be Formulas."""

    op: str
    operands: tuple[Any, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()

    def at(self, point: Point) -> ViewOperator:
        """The operator at given sizes."""
        operands = [[n.at(point) if isinstance(n, Formula) else n for n in one] for one in self.operands]
        return ViewOperator(self.op, tuple(np.array(one, np.int64) for one in operands), self.attributes)


def steps_of(base: Shape, layout: Layout) -> list[ViewOperator]:
    """The operators that give a view of a contiguous tensor of shape `base`.

    >>> [step.op for step in steps_of((2, 3), Layout((3, 2), (1, 3), 0))]
    ['Transpose', 'Reshape']
    """
    shape, strides, offset = layout
    kept = [axis for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)) if stride and extent > 1]
    inner = Layout(tuple(shape[axis] for axis in kept), tuple(strides[axis] for axis in kept), offset)
    found = None if 0 in shape else _whole(base, inner) or _slice(base, layout)
    if found is None:
        return [_reshape((-1,)), ViewOperator("Gather", (offsets_of(layout),), (("axis", 0),))]
    plain = tuple(extent if axis in kept else 1 for axis, extent in enumerate(shape))
    found.append(_reshape(plain))
    return found if plain == shape else [*found, ViewOperator("Expand", (np.array(shape, np.int64),))]


def steps_at_sizes(
    grid: Sequence[Point], ends: Sequence[Point], view: Callable[[Point], tuple[Shape, Layout]]
) -> list[ViewOperator] | None:
    """The operators that give a view whose base and layout depend on sizes; None if they differ between sizes.

    They are fitted to the sizes of the `grid`, and checked at the `ends` of the ranges too, where an extent of 1 may need other
    operators.
    """
    found = [steps_of(*view(point)) for point in grid]
    if any(step.op == "Gather" for step in found[0]) or any(_kinds(steps) != _kinds(found[0]) for steps in found):
        return None
    made = []
    for same in zip(*found, strict=True):
        operands = [_varying(grid, columns) for columns in zip(*(step.operands for step in same), strict=True)]
        if None in operands:
            return None
        made.append(ViewOperator(same[0].op, tuple(operands), same[0].attributes))
    return made if all(_agree([step.at(point) for step in made], *view(point)) for point in (*grid, *ends)) else None


def _kinds(steps: Sequence[ViewOperator]) -> list[Any]:
    return [(step.op, step.attributes, [len(one) for one in step.operands]) for step in steps]


def _as_lists(steps: Sequence[ViewOperator]) -> list[Any]:
    return [(step.op, step.attributes, [one.tolist() for one in step.operands]) for step in steps]


def _varying(grid: Sequence[Point], columns: Sequence[np.ndarray]) -> list[int | Formula] | None:
    """An operand's numbers, as formulas where they depend on sizes. None if one has no formula."""
    numbers = [[int(n) for n in values] for values in zip(*columns, strict=True)]
    formulas = [values[0] if len({*values}) == 1 else fitted(grid, values) for values in numbers]
    return None if None in formulas else formulas  # type: ignore[return-value]


def _agree(steps: Sequence[ViewOperator], base: Shape, layout: Layout) -> bool:
    """Whether the operators select the elements of a view."""
    if _as_lists(steps) == _as_lists(steps_of(base, layout)):
        return True
    x = np.arange(numel(base)).reshape(base)
    try:
        for step in steps:
            x = _NUMPY[step.op](x, *step.operands, **dict(step.attributes))
    except (ValueError, IndexError):
        return False
    return np.array_equal(x, offsets_of(layout))


_NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "Reshape": lambda x, shape: x.reshape(shape), "Transpose": lambda x, perm: x.transpose(perm), "Expand": np.broadcast_to,
    "Slice": lambda x, starts, ends, axes, steps: x[tuple(map(slice, starts, ends, steps))],
}


def offsets_of(layout: Layout) -> np.ndarray:
    """The offset of each element of a layout."""
    offsets = np.full(layout.shape, layout.offset, np.int64)
    for axis, (extent, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        offsets += (np.arange(extent) * stride).reshape([-1 if k == axis else 1 for k in range(len(layout.shape))])
    return offsets


def _reshape(shape: Sequence[int]) -> ViewOperator:
    return ViewOperator("Reshape", (np.array(shape, np.int64),))


def _whole(base: Shape, at: Layout) -> list[ViewOperator] | None:
    """All elements, in another order of axes; None for another view. Every axis has several elements."""
    order = sorted(range(len(at.shape)), key=lambda axis: -at.strides[axis])
    whole = tuple(at.shape[axis] for axis in order)
    if at.offset or numel(whole) != numel(base) or tuple(at.strides[axis] for axis in order) != contiguous_strides(whole):
        return None
    back = [order.index(axis) for axis in range(len(order))]
    if back == sorted(back):
        return [_reshape(whole)]
    first = [] if whole == base else [_reshape(whole)]
    return [*first, ViewOperator("Transpose", (), (("perm", back),))]


def _slice(base: Shape, at: Layout) -> list[ViewOperator] | None:
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
    return [ViewOperator("Slice", tuple(np.array(one, np.int64) for one in (starts, ends, range(len(own)), steps)))]
