"""Taps: short axes along which lie the elements that a vector steps over (the 2 x 2 of a pooling, the 3 of a colour).

They are spelled out, one after the other, inside a loop over vectors. What their loads read is read once for all of them,
as one wide load that is taken apart; what they store is put together first, and stored as one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir

from genesis.codegen.cpu.registers import I64
from genesis.lower.kernel import Instruction

if TYPE_CHECKING:
    from genesis.codegen.cpu.emit import Emitter

__all__ = ["TAP", "Unwritten", "at_each_tap", "read_tap", "write_tap"]

TAP = "tap"  # marks the scope of a tap, whose code runs on from that of the tap before


class Unwritten(NamedTuple):
    """Where taps are to be stored side by side, and the values of those that have come."""

    start: ir.Value
    apart: int
    dtype: str
    values: dict[int, ir.Value]


def at_each_tap(emitter: Emitter, reduced: bool, body: Callable[[], None]) -> None:
    """`body` at each point of the taps that are reduced, or of those that are not; then what they have stored."""
    kernel = emitter.kernel
    taps = [axis for axis in kernel.taps if kernel.axes[axis][1] == reduced]
    if not taps:
        body()
        return
    emitter.hoist(kernel.needed(kernel.targets(emitter.step if reduced else None)))
    for places in product(*(range(kernel.taps[axis]) for axis in taps)):
        emitter.scopes.append({TAP: True})
        emitter.index |= {axis: I64(place) for axis, place in zip(taps, places, strict=True)}
        emitter.bound.update(taps)
        body()
        emitter.scopes.pop()
    emitter.bound.difference_update(taps)
    _write_if_last(emitter)


def read_tap(emitter: Emitter, i: Instruction, apart: int) -> ir.Value:
    """Load `i`, whose lanes lie `apart`, at the present tap: a part of a wide load."""
    key, start, tap, taps = _among(emitter, i, apart)
    wide = next((scope[key] for scope in reversed(emitter.scopes) if key in scope), None)
    if wide is None:
        wide = emitter.lanes.wide_load(start, i.dtype.name, apart, taps, emitter.mask)
        next(scope for scope in reversed(emitter.scopes) if TAP not in scope)[key] = wide
    value: ir.Value = wide(tap)
    return value


def write_tap(emitter: Emitter, i: Instruction, value: ir.Value, apart: int) -> None:
    """Store `value`, whose lanes lie `apart`, at the present tap: as soon as no other tap can come."""
    key, start, tap, _ = _among(emitter, i, apart)
    emitter.unwritten.setdefault(key, Unwritten(start, apart, i.dtype.name, {})).values[tap] = value
    _write_if_last(emitter)


def _write_if_last(emitter: Emitter) -> None:
    if TAP in emitter.scopes[-1]:
        return
    for place in emitter.unwritten.values():
        emitter.lanes.store_apart(place.values, place.start, place.dtype, place.apart, emitter.mask)
    emitter.unwritten.clear()


def _among(emitter: Emitter, i: Instruction, apart: int) -> tuple[Any, ir.Value, int, list[int]]:
    """For the present tap of an access: what it shares with others beside it, where these begin, which it is, and all."""
    assert i.access is not None
    extents = {axis: extent for axis, extent in emitter.kernel.taps.items() if axis in emitter.bound}
    beside = [axis for axis in extents if i.access.strides[axis] == 1]
    group, tap = divmod(sum(emitter.index[axis].constant for axis in beside), apart)
    reached = {sum(places) for places in product(*(range(extents[axis]) for axis in beside))}
    taps = [t for t in range(apart) if group * apart + t in reached]
    offset = emitter.builder.add(emitter.offset(i.access, beside), I64(group * apart))
    start = emitter.lanes.element_pointer(emitter.words[i.access.pointer], offset, i.dtype.name)
    elsewhere = (emitter.index[axis].constant for axis in extents if axis in i.varies and axis not in beside)
    return (id(i), group, *elsewhere), start, tap, taps
