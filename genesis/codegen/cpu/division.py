"""Division of floats and integers; none traps."""

from __future__ import annotations

from llvmlite import ir

from genesis.codegen.cpu.conversion import Conversion
from genesis.codegen.cpu.registers import DOUBLE, FLOATING, UNSIGNED, Value, element_type

__all__ = ["Division"]


class Division(Conversion):
    """Quotients and remainders."""

    def floor_divide(self, a: Value, b: Value, dtype: str) -> ir.Value:
        """Python's `//`. Of integers, x // 0 is 0 and the quotient wraps; of floats, as torch: x // 0 is x / 0."""
        a, b = self.matched(a, b)
        if dtype not in FLOATING:
            quotient, rest = self.divide_integers(a, b, dtype)
            if dtype not in UNSIGNED:
                quotient = self.select(self._opposed(rest, b, dtype), self.subtract(quotient, 1), quotient)
            return self.select(self.compare("==", b, 0, dtype), 0, quotient)
        rest = self.fmod(a, b)
        quotient = self.divide(self.subtract(a, rest), b)
        opposed = self._opposed(rest, b, dtype)
        quotient = self.select(opposed, self.subtract(quotient, 1.0), quotient)
        floored = self.floor(quotient)
        # (a - rest) / b is rounded, so it may lie just below the integer that it stands for.
        nearly_next = self.compare(">", self.subtract(quotient, floored), 0.5, dtype)
        floored = self.select(nearly_next, self.add(floored, 1.0), floored)
        ratio = self.divide(a, b)
        floored = self.select(self.compare("==", quotient, 0.0, dtype), self.copy_sign(0.0, ratio), floored)
        return self.select(self.compare("==", b, 0.0, dtype), ratio, floored)

    def remainder(self, a: Value, b: Value, dtype: str) -> ir.Value:
        """Python's `%`, with the divisor's sign. Of integers x % 0 is 0; of floats, as in torch, NaN."""
        a, b = self.matched(a, b)
        if dtype not in FLOATING:
            _, rest = self.divide_integers(a, b, dtype)
            if dtype not in UNSIGNED:
                rest = self.select(self._opposed(rest, b, dtype), self.add(rest, b), rest)
            return self.select(self.compare("==", b, 0, dtype), 0, rest)
        rest = self.fmod(a, b)
        return self.select(self._opposed(rest, b, dtype), self.add(rest, b), rest)

    def fmod(self, a: Value, b: Value) -> ir.Value:
        """C's fmod: exact, with the dividend's sign; NaN for x % 0 and inf % y."""
        # In double, a quotient below 2^52 truncates to the true integer or the one above it, so one fused step leaves the
        # remainder or the remainder less b. Wider gaps go to the C library, lane by lane.
        a, b = self.matched(a, b)
        dtype = "float64" if element_type(a) == DOUBLE else "float32"
        wide_a, wide_b = (self.convert(self.absolute(x), dtype, "float64") for x in (a, b))
        quotient = self.truncate(self.divide(wide_a, wide_b))
        rest = self.fma(self.negate(quotient), wide_b, wide_a)
        rest = self.select(self.compare("<", rest, 0.0, "float64"), self.add(rest, wide_b), rest)
        itself_or_nan = self.fma(wide_a, 0.0, wide_a)
        rest = self.select(self.compare("==", wide_b, float("inf"), "float64"), itself_or_nan, rest)
        library = self.declared("fmod", DOUBLE, [DOUBLE, DOUBLE])
        hard = self.compare(">=", quotient, 2.0**52, "float64")
        rest = self.patched(rest, hard, lambda: self.per_lane(library, wide_a, wide_b))
        return self.copy_sign(self.convert(rest, "float64", dtype), a)

    def integer_fmod(self, a: Value, b: Value, dtype: str) -> ir.Value:
        """C's `%`, with the dividend's sign; x itself if y is 0."""
        a, b = self.matched(a, b)
        return self.divide_integers(a, b, dtype)[1]

    def _opposed(self, rest: ir.Value, divisor: ir.Value, dtype: str) -> ir.Value:
        """Where a non-zero remainder lies on the other side of zero from the divisor."""
        unequal = self.logical_xor(self.compare("<", rest, 0, dtype), self.compare("<", divisor, 0, dtype))
        return self.logical_and(unequal, self.compare("!=", rest, 0, dtype))

    def divide_integers(self, a: ir.Value, b: ir.Value, dtype: str) -> tuple[ir.Value, ir.Value]:
        """The truncated quotient and its remainder."""
        # x86 traps on division by 0, and of the least integer by -1: neither divisor reaches the instruction.
        if dtype in UNSIGNED:
            quotient = self.builder.udiv(a, self.select(self.compare("==", b, 0, dtype), 1, b))
        else:
            minus_one = self.compare("==", b, -1, dtype)
            trapping = self.logical_or(minus_one, self.compare("==", b, 0, dtype))
            quotient = self.builder.sdiv(a, self.select(trapping, 1, b))
            quotient = self.select(minus_one, self.negate(a), quotient)
        return quotient, self.subtract(a, self.multiply(quotient, b))
