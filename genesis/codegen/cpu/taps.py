"""Axes that are spelled out, point after point, in the innermost loop: taps, and the blocks of contractions.

A tap is a short axis along which lie the elements that a vector steps over (the 2 x 2 of a pooling, the 3 of a colour).
What taps load is read once for all of them, as one wide load that is taken apart; what they store is put together first.
A block is a few neighbours along a kept axis of a sum of products: what one of them has loaded serves the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from llvmlite import ir

from genesis.codegen.cpu.addressing import address
from genesis.codegen.cpu.nest import Nest, Unwritten
from genesis.codegen.cpu.registers import I64
from genesis.lower.kernel import Instruction

__all__ = ["at_each_point", "read_tap", "write_tap"]


def at_each_point(nest: Nest, axes: Sequence[int], body: Callable[[], None]) -> None:
    """`body` at each point of the spelled-out `axes`; then what it has stored."""
    for places in product(*(range(nest.spelled[axis]) for axis in axes)):
        nest.places = dict(zip(axes, places, strict=True))
        for axis, place in nest.places.items():
            first = nest.first.get(axis)
            nest.index[axis] = I64(place) if first is None else nest.builder.add(first, I64(place))
        nest.bound.update(axes)
        body()
    nest.bound.difference_update(axes)
    nest.places = {}
    for at in nest.unwritten.values():
        nest.lanes.store_apart(at.values, at.start, at.dtype, at.apart, nest.mask)
    nest.unwritten.clear()


def read_tap(nest: Nest, i: Instruction, apart: int) -> ir.Value:
    """Load `i`, whose lanes lie `apart`, at the present tap: a part of a wide load."""
    key, start, tap, taps = _among(nest, i, apart)
    wide = next((scope[key] for scope in reversed(nest.scopes) if key in scope), None)
    if wide is None:
        wide = nest.scopes[-1][key] = nest.lanes.wide_load(start, i.dtype.name, apart, taps, nest.mask)
    value: ir.Value = wide(tap)
    return value


def write_tap(nest: Nest, i: Instruction, value: ir.Value, apart: int) -> None:
    """Store `value`, whose lanes lie `apart`, at the present tap, when all taps have come."""
    key, start, tap, _ = _among(nest, i, apart)
    nest.unwritten.setdefault(key, Unwritten(start, apart, i.dtype.name, {})).values[tap] = value


def _among(nest: Nest, i: Instruction, apart: int) -> tuple[Any, ir.Value, int, list[int]]:
    """For the present tap of an access: what it shares with others beside it, where these begin, which it is, and all."""
    assert i.access is not None
    beside = [axis for axis in nest.kernel.unrolled if axis in nest.places and i.access.strides[axis] == 1]
    group, tap = divmod(sum(nest.places[axis] for axis in beside), apart)
    reached = {sum(places) for places in product(*(range(nest.spelled[axis]) for axis in beside))}
    taps = [t for t in range(apart) if group * apart + t in reached]
    start = nest.lanes.element_pointer(address(nest, i.access, beside), I64(group * apart), i.dtype.name)
    elsewhere = (place for axis, place in nest.places.items() if axis in i.varies and axis not in beside)
    return (id(i), group, *elsewhere), start, tap, taps
