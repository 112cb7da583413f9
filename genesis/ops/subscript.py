"""Basic indexing, `x[1, 2:5, None]`, as one view: ints, slices and new axes in one layout rule."""

from __future__ import annotations

from genesis.ops.layout import Layout
from genesis.ops.views import view_operation

__all__ = ["Item", "subscript_layout"]

Item = int | tuple[int | None, int | None, int | None] | None


def subscript_layout(at: Layout, items: tuple[Item, ...]) -> Layout:
    """The elements at `items`: an int selects on its axis, (start, stop, step) slices it, None makes a new one."""
    shape, strides, offset, axis = [], [], at.offset, 0
    for item in items:
        if item is None:
            shape.append(1)
            strides.append(at.shape[axis] * at.strides[axis] if axis < len(at.shape) else 1)
            continue
        extent, stride = at.shape[axis], at.strides[axis]
        if isinstance(item, tuple):
            start, stop, step = slice(*item).indices(extent)
            count = len(range(start, stop, step))
            offset += start * stride if count else 0
            shape.append(count)
            strides.append(stride * step)
        else:
            if not -extent <= item < extent:
                raise IndexError(f"index {item} is out of range for axis {axis} with extent {extent}")
            offset += (item % extent) * stride
        axis += 1
    return Layout((*shape, *at.shape[axis:]), (*strides, *at.strides[axis:]), offset)


view_operation("subscript", subscript_layout, method=False, public=False)
