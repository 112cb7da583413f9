"""Prefetching of what is packed next: computing tiles leaves memory idle, and packing then hits the second-level cache."""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir

from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.product.tile import counted
from genesis.codegen.cpu.registers import I8, I32, I64, POINTER

__all__ = ["Ahead", "Region"]

LINE = 64  # bytes
# Measured on a GPT step: packing that waits for memory, two cycles an element, was 12%; prefetched it is 5%, the prefetches 2%.
# Tried without effect: prefetching moments and activations for the kernels behind a product, which evicts packed strips.


class Region(NamedTuple):
    """A part of a matrix: its start, the bytes of a line, the bytes from line to line, and the number of lines."""

    start: ir.Value
    width: ir.Value
    distance: ir.Value
    lines: ir.Value


class Ahead:
    """Prefetches a region in about `steps` equal parts."""

    def __init__(self, lanes: Lanes, region: Region, steps: ir.Value) -> None:
        self.lanes, self.region = lanes, region
        b = self.builder = lanes.builder
        lines = b.udiv(b.add(region.width, I64(LINE - 1)), I64(LINE))
        wanted = b.mul(lines, region.lines)
        self.each = b.udiv(b.sub(b.add(wanted, steps), I64(1)), steps)
        with b.goto_entry_block():
            self.left, self.place, self.at = b.alloca(I64), b.alloca(POINTER), b.alloca(I64)
        for variable, value in ((self.left, wanted), (self.place, region.start), (self.at, I64(0))):
            b.store(value, variable)

    def step(self) -> None:
        """Prefetch the next part."""
        b = self.builder
        left = b.load(self.left, typ=I64)
        count = b.select(b.icmp_signed("<", left, self.each), left, self.each)
        b.store(b.sub(left, count), self.left)
        with counted(b, I64(0), count):
            place, at = b.load(self.place, typ=POINTER), b.load(self.at, typ=I64)
            line = b.gep(place, [at], source_etype=I8)
            self.lanes.intrinsic("prefetch", ir.VoidType(), [line, I32(0), I32(2), I32(1)], overloads=(POINTER,))
            following = b.add(at, I64(LINE))
            done = b.icmp_signed(">=", following, self.region.width)
            b.store(b.select(done, I64(0), following), self.at)
            b.store(b.select(done, b.gep(place, [self.region.distance], source_etype=I8), place), self.place)
