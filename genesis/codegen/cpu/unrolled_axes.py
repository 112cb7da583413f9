"""Unrolled axes: short ones whose points are written one after the other in the innermost loop, and blocks of contractions.

A short axis holds the elements that a vector steps over, such as the 2 x 2 of a pooling or the 3 of a colour: its points share
one wide load, which is taken apart, and one wide store. A block is a few neighbours along a kept axis of a sum of products:
what one of them has loaded serves the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from llvmlite import ir

from genesis.codegen.cpu.addressing import address
from genesis.codegen.cpu.nest import Nest, PendingStore
from genesis.codegen.cpu.registers import I64
from genesis.ir.annotations import Key
from genesis.lower.kernel import Instruction

__all__ = ["at_each_point", "load_strided", "store_strided"]


def at_each_point(nest: Nest, axes: Sequence[int], body: Callable[[], None]) -> None:
    """`body` at each point of the unrolled `axes`; then the wide stores that the points have filled."""
    for point in product(*(range(nest.unrolled[axis]) for axis in axes)):
        nest.point = dict(zip(axes, point, strict=True))
        for axis, position in nest.point.items():
            first = nest.block_start.get(axis)
            nest.index[axis] = I64(position) if first is None else nest.builder.add(first, I64(position))
        nest.bound.update(axes)
        body()
    nest.bound.difference_update(axes)
    nest.point = {}
    for at in nest.pending_stores.values():
        nest.lanes.wide_store(at.values, at.start, at.dtype, at.stride, nest.mask)
    nest.pending_stores.clear()


def load_strided(nest: Nest, i: Instruction, stride: int) -> ir.Value:
    """Load `i` at the point at hand, lanes `stride` apart: a part of a wide load, which the first of its points makes."""
    key, start, offset, offsets = _wide_access(nest, i, stride)
    wide = next((scope[key] for scope in reversed(nest.scopes) if key in scope), None)
    if wide is None:
        wide = nest.scopes[-1][key] = nest.lanes.wide_load(start, i.dtype.name, stride, offsets, nest.mask)
    return nest.lanes.strided(wide, i.dtype.name, stride, offset)


def store_strided(nest: Nest, i: Instruction, value: ir.Value, stride: int) -> None:
    """Store `value` at the point at hand, lanes `stride` apart, once all points of the wide store have their values."""
    key, start, offset, _ = _wide_access(nest, i, stride)
    nest.pending_stores.setdefault(key, PendingStore(start, stride, i.dtype.name, {})).values[offset] = value


def _wide_access(nest: Nest, i: Instruction, stride: int) -> tuple[Key, ir.Value, int, list[int]]:
    """The wide access that the point at hand shares with its neighbours: its key and start, the point's offset, all offsets."""
    assert i.access is not None
    beside = [axis for axis in nest.kernel.unrolled if axis in nest.point and i.access.strides[axis] == 1]
    group, offset = divmod(sum(nest.point[axis] for axis in beside), stride)
    reached = {sum(point) for point in product(*(range(nest.unrolled[axis]) for axis in beside))}
    offsets = [n for n in range(stride) if group * stride + n in reached]
    start = nest.lanes.element_pointer(address(nest, i.access, beside), I64(group * stride), i.dtype.name)
    elsewhere = (position for axis, position in nest.point.items() if axis in i.varies and axis not in beside)
    return (id(i), group, *elsewhere), start, offset, offsets
