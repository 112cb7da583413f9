"""Addresses at equal distances, such as of rows, from few registers: addressing modes scale an index by up to eight."""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import POINTER

MOST = 8  # addresses from one start, by four registers of distances; more addresses have a second start


class Spacing:
    """Multiples of a distance: the odd ones are in registers."""

    def __init__(self, builder: ir.IRBuilder, distance: ir.Value, itemsize: int, count: int) -> None:
        self.builder = builder
        self.odd = {n: distance * (n * itemsize) for n in (0, *range(1, count, 2))}

    def after(self, start: ir.Value, n: int) -> ir.Value:
        """The address `n` distances after a start."""
        power = max((p for p in (1, 2, 4, 8) if n % p == 0), default=1) if n else 1
        return self.builder.gep(start, [self.odd[n // power]], inbounds=True, source_etype=ir.IntType(8 * power))

    def spread(self, start: ir.Value, count: int) -> list[ir.Value]:
        """`count` addresses from `start` on."""
        starts = [opaque(self.builder, self.after(start, n)) for n in range(0, count, MOST)]
        return [self.after(starts[n // MOST], n % MOST) for n in range(count)]


def opaque(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    """The pointer, hidden from LLVM's optimizer.

    Otherwise LLVM computes each row's address from the previous one: eleven additions for 24 multiplications, too many for
    processors that issue four instructions a cycle (Cascade Lake: 85 to 94% of its peak without them).
    """
    return builder.asm(ir.FunctionType(POINTER, [POINTER]), "", "=r,0", [pointer])
