"""Numbers of twice the precision: an unevaluated sum high + low with |low| at most half an ulp of high.

The algorithms are those of T. J. Dekker, "A floating-point technique for extending the available precision" (1971),
with the fused multiply-add in the place of his splitting, as in M. Joldes, J.-M. Muller, V. Popescu, "Tight and
rigorous error bounds for basic building blocks of double-word arithmetic" (ACM TOMS 44, 2017).
"""

from __future__ import annotations

from genesis.codegen.cpu.vector_math.number import Number, Operand, fma, square_root, where


class DoubleWord:
    """high + low; operators keep about 100 of 106 bits in float64."""

    __slots__ = ("high", "low")

    def __init__(self, high: Number, low: Operand = 0.0):
        self.high = high
        self.low = low if isinstance(low, Number) else high.constant(low)

    def __add__(self, other: DoubleWord | Operand) -> DoubleWord:
        if isinstance(other, DoubleWord):
            total = two_sum(self.high, other.high)
            return fast_two_sum(total.high, total.low + (self.low + other.low))
        total = two_sum(self.high, other)
        return fast_two_sum(total.high, total.low + self.low)

    def __mul__(self, other: DoubleWord | Operand) -> DoubleWord:
        if isinstance(other, DoubleWord):
            product = two_product(self.high, other.high)
            return fast_two_sum(product.high, product.low + fma(self.high, other.low, self.low * other.high))
        product = two_product(self.high, other)
        return fast_two_sum(product.high, fma(self.low, other, product.low))

    def __truediv__(self, other: DoubleWord) -> DoubleWord:
        quotient = self.high / other.high
        rest = fma(-quotient, other.high, self.high) + fma(-quotient, other.low, self.low)
        return fast_two_sum(quotient, rest / other.high)

    def __neg__(self) -> DoubleWord:
        return DoubleWord(-self.high, -self.low)

    def square_root(self) -> DoubleWord:
        root = square_root(self.high)
        rest = fma(-root, root, self.high) + self.low
        return fast_two_sum(root, where(root.equals(0.0), 0.0, rest / (root + root)))

    def value(self) -> Number:
        return self.high + self.low


def two_sum(a: Number, b: Operand) -> DoubleWord:
    """a + b without error."""
    total = a + b
    b_part = total - a
    return DoubleWord(total, (a - (total - b_part)) + (b - b_part))


def fast_two_sum(a: Number, b: Number) -> DoubleWord:
    """a + b without error, for |a| >= |b| or a = 0."""
    total = a + b
    return DoubleWord(total, b - (total - a))


def two_product(a: Number, b: Operand) -> DoubleWord:
    """a * b without error."""
    product = a * b
    return DoubleWord(product, fma(a, b, -product))


def constant(like: Number, high: float, low: float) -> DoubleWord:
    return DoubleWord(like.constant(high), low)
