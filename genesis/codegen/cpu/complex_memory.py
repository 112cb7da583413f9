"""Loads and stores of complex numbers: interleaved parts in memory, a register for each part."""

from __future__ import annotations

from typing import NamedTuple

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import I64, PART


class Pair(NamedTuple):
    """x + iy."""

    x: ir.Value
    y: ir.Value


def load_pair(
    lanes: Lanes, start: ir.Value, offsets: ir.Value | None, stride: int | ir.Value, dtype: str, mask: ir.Value | None
) -> Pair:
    """Load the numbers `stride` apart from `start` on: one for all lanes, adjacent ones (deinterleaved), or gathered ones.

    With `offsets`, in numbers, one for each lane: those at the offsets.
    """
    part = PART[dtype]
    if offsets is None and stride == 0:
        return Pair(*[lanes.load_uniform(lanes.element_pointer(start, k, part), part) for k in (0, 1)])
    if offsets is None and stride == 1:
        wide = lanes.wide_load(start, part, 2, (0, 1), mask)
        return Pair(*[lanes.strided(wide, part, 2, k) for k in (0, 1)])
    at = _offsets_in_parts(lanes, offsets, stride)
    return Pair(*[lanes.gather(start, lanes.add(at, k), part, mask) for k in (0, 1)])


def store_pair(lanes: Lanes, z: Pair, start: ir.Value, stride: int | ir.Value, dtype: str, mask: ir.Value | None) -> None:
    """Store a number for each lane, `stride` apart from `start` on; adjacent ones take `Lanes.wide_store`."""
    part = PART[dtype]
    if stride == 0:
        for k, value in enumerate(z):
            lanes.store_uniform(value, lanes.element_pointer(start, k, part), part)
    else:
        at = _offsets_in_parts(lanes, None, stride)
        for k, value in enumerate(z):
            lanes.scatter_store(lanes.splat(value), start, lanes.add(at, k), part, mask)


def _offsets_in_parts(lanes: Lanes, offsets: ir.Value | None, stride: int | ir.Value) -> ir.Value:
    """The offsets of the lanes' real parts, counted in parts."""
    if offsets is None:
        doubled = I64(2 * stride) if isinstance(stride, int) else lanes.shift_left(stride, 1)
        return lanes.multiply(lanes.lane_index(), doubled)
    return lanes.shift_left(offsets, 1)
