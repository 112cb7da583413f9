"""How the lanes of a vector become one value: as a balanced tree, lane i with lane i + width/2; the same bits every time."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from genesis.codegen.cpu.registers import I32, constants, is_varying
from genesis.codegen.cpu.vectors import Vectors

__all__ = ["HorizontalReduce"]


class HorizontalReduce(Vectors):
    """Reductions over the lanes of a vector."""

    def reduce_add(self, x: ir.Value) -> ir.Value:
        return self.reduce_by(self.add, x)

    def reduce_multiply(self, x: ir.Value) -> ir.Value:
        return self.reduce_by(self.multiply, x)

    def reduce_minimum(self, x: ir.Value, dtype: str | None = None) -> ir.Value:
        """The least; NaN if any is NaN."""
        return self.reduce_by(lambda a, b: self.minimum(a, b, dtype), x)

    def reduce_maximum(self, x: ir.Value, dtype: str | None = None) -> ir.Value:
        """The greatest; NaN if any is NaN."""
        return self.reduce_by(lambda a, b: self.maximum(a, b, dtype), x)

    def reduce_and(self, x: ir.Value) -> ir.Value:
        return self.reduce_by(self.logical_and, x)

    def reduce_or(self, x: ir.Value) -> ir.Value:
        return self.reduce_by(self.logical_or, x)

    def reduce_by(self, combine: Callable[[ir.Value, ir.Value], ir.Value], x: ir.Value) -> ir.Value:
        """All lanes, combined pairwise."""
        while is_varying(x) and x.type.count > 1:
            half = x.type.count // 2
            lower = self.builder.shuffle_vector(x, x, constants(I32, range(half)))
            upper = self.builder.shuffle_vector(x, x, constants(I32, range(half, 2 * half)))
            x = combine(lower, upper)
        return self.extract(x, 0)
