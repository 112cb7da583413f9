"""Hurwitz' zeta function by the Euler-Maclaurin formula: its first terms, and a series for the others (F. Johansson, "Rigorous
high-precision computation of the Hurwitz zeta function and its derivatives", Numerical Algorithms 69, 2015)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from genesis.codegen.cpu.vector_math.exponential import exp
from genesis.codegen.cpu.vector_math.logarithm import log, pow
from genesis.codegen.cpu.vector_math.number import Number, by_precision, fma, repeated, where

TERMS = 10
# B(2j) / (2j)!, of Bernoulli's numbers: after so many, what is left is below 2^-60 of the first term.
SERIES = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000,
    43867 / 5109094217170944000, -174611 / 802857662698291200000, 77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)  # fmt: skip
Power = Callable[[Number, Number], Number]


@by_precision(quick=lambda x, q: by_powers(x, q, lambda base, exponent: exp(log(base) * exponent)))
def zeta(x: Number, q: Number) -> Number:
    """The sum of (q + k)^-x from k = 0 on, within 8 ulp; for q < 0, of its largest term at least."""
    return by_powers(x, q, pow)


def by_powers(x: Number, q: Number, power: Power) -> Number:
    lanes, below = x.lanes, q < 0.0
    whole = x.like(lanes.floor(q.value))

    def of_negative() -> Number:
        """The sum over all whole numbers, which has period 1, less the sum of the terms before q."""
        rest = q - whole
        half = x * 0.5
        odd = half.like(lanes.floor(half.value)).differs(half)
        above, under, beyond = (of_positive(x, at, power) for at in (rest, (whole + 1.0) - q, 1.0 - q))
        # Equal terms on both sides of 0, as of q = -1.5, cancel exactly in this order.
        return where(odd, (above - under) + beyond, (above + under) - beyond)

    main = of_positive(x, where(below, 1.0, q), power)
    found = main.like(lanes.patched(main.value, (below & (x > 1.0)).value, lambda: of_negative().value))
    no_power = below & x.like(lanes.floor(x.value)).differs(x)
    found = where(q.is_nan() | no_power, nan, found)
    found = where((q <= 0.0) & whole.equals(q), inf, found)
    return where(x.equals(1.0), inf, where(x < 1.0, nan, found))


def of_positive(x: Number, q: Number, power: Power) -> Number:
    """zeta for q > 0 and x > 1."""

    def step(total: Number, k: Number) -> tuple[Number, list[Number]]:
        return k < TERMS - 1.0, [total + power(q + k, -x), k + 1.0]

    total, _ = repeated(x, (0.0, 0.0), step)
    far = q + float(TERMS)
    integral = power(far, 1.0 - x) / (x - 1.0)
    inverse, small = 1.0 / far, where(x > 1e3, 1e3, x)  # a greater x leaves nothing of this
    series = x.constant(SERIES[-1])
    for j in reversed(range(1, len(SERIES))):
        ratio = ((small + (2.0 * j - 1.0)) * inverse) * ((small + 2.0 * j) * inverse)
        series = fma(series, ratio, SERIES[j - 1])
    return total + (integral + power(far, -x) * fma(small * inverse, series, 0.5))
