"""Axes that are spelled out, point after point, in the innermost loop: taps, and the blocks of contractions.

A tap is a short axis along which lie the elements that a vector steps over (the 2 x 2 of a pooling, the 3 of a colour).
What taps load is read once for all of them, as one wide load that is taken apart; what they store is put together first.
A block is a few neighbours along a kept axis of a sum of products: what one of them has loaded serves the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir

from genesis.codegen.cpu.registers import I64
from genesis.lower.kernel import Instruction

if TYPE_CHECKING:
    from genesis.codegen.cpu.emit import Emitter

__all__ = ["Unwritten", "at_each_point", "read_tap", "write_tap"]


class Unwritten(NamedTuple):
    """Where taps are to be stored side by side, and the values of those that have come."""

    start: ir.Value
    apart: int
    dtype: str
    values: dict[int, ir.Value]


def at_each_point(emitter: Emitter, axes: Sequence[int], body: Callable[[], None]) -> None:
    """`body` at each point of the spelled-out `axes`; then what it has stored."""
    for places in product(*(range(emitter.spelled[axis]) for axis in axes)):
        emitter.places = dict(zip(axes, places, strict=True))
        for axis, place in emitter.places.items():
            first = emitter.first.get(axis)
            emitter.index[axis] = I64(place) if first is None else emitter.builder.add(first, I64(place))
        emitter.bound.update(axes)
        body()
    emitter.bound.difference_update(axes)
    emitter.places = {}
    for at in emitter.unwritten.values():
        emitter.lanes.store_apart(at.values, at.start, at.dtype, at.apart, emitter.mask)
    emitter.unwritten.clear()


def read_tap(emitter: Emitter, i: Instruction, apart: int) -> ir.Value:
    """Load `i`, whose lanes lie `apart`, at the present tap: a part of a wide load."""
    key, start, tap, taps = _among(emitter, i, apart)
    wide = next((scope[key] for scope in reversed(emitter.scopes) if key in scope), None)
    if wide is None:
        wide = emitter.scopes[-1][key] = emitter.lanes.wide_load(start, i.dtype.name, apart, taps, emitter.mask)
    value: ir.Value = wide(tap)
    return value


def write_tap(emitter: Emitter, i: Instruction, value: ir.Value, apart: int) -> None:
    """Store `value`, whose lanes lie `apart`, at the present tap, when all taps have come."""
    key, start, tap, _ = _among(emitter, i, apart)
    emitter.unwritten.setdefault(key, Unwritten(start, apart, i.dtype.name, {})).values[tap] = value


def _among(emitter: Emitter, i: Instruction, apart: int) -> tuple[Any, ir.Value, int, list[int]]:
    """For the present tap of an access: what it shares with others beside it, where these begin, which it is, and all."""
    assert i.access is not None
    beside = [axis for axis in emitter.kernel.taps if axis in emitter.places and i.access.strides[axis] == 1]
    group, tap = divmod(sum(emitter.places[axis] for axis in beside), apart)
    reached = {sum(places) for places in product(*(range(emitter.spelled[axis]) for axis in beside))}
    taps = [t for t in range(apart) if group * apart + t in reached]
    start = emitter.lanes.element_pointer(emitter.start(i.access, beside), I64(group * apart), i.dtype.name)
    elsewhere = (place for axis, place in emitter.places.items() if axis in i.varies and axis not in beside)
    return (id(i), group, *elsewhere), start, tap, taps
