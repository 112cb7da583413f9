"""sin, cos, tan.

x = k pi/2 + r with |r| <= pi/4, pi/2 in three words (W. J. Cody, W. Waite, 1980). Lanes where |x| is too large for that
take a rare path, the C library's float64 function one lane after the other. The polynomials are minimax fits of this
project (Remez exchange, 60 digits) on |r| <= pi/4.
"""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import DOUBLE
from genesis.codegen.cpu.vector_math.number import (
    DoubleWord, Number, fast_two_sum, fma, in_float64, nearest_integer, polynomial, two_product, two_sum, where,
)

TWO_OVER_PI = 0.6366197723675814
HALF_PI = {
    "float32": (1.57079637, -4.37113883e-08, -1.71512451e-15),
    "float64": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
HUGE = {"float32": 2.0**14, "float64": 2.0**27}

# sin(r) = r + r^3 p(r^2): error 2^-28.0 and 2^-58.0. cos(r) = 1 - r^2/2 + r^4 p(r^2): error 2^-33.3 and 2^-64.2.
SIN_TAIL = {
    "float32": (-0.166666552, 0.00833217613, -0.000195169705),
    "float64": (
        -0.16666666666666632, 0.008333333333322387, -0.0001984126982978265, 2.755731368179045e-06, -2.5050756334216697e-08,
        1.5896682513584572e-10,
    ),
}  # fmt: skip
COS_TAIL = {
    "float32": (0.0416666456, -0.00138873653, 2.44381299e-05),
    "float64": (
        0.0416666666666666, -0.001388888888887407, 2.4801587289446013e-05, -2.755731434116307e-07, 2.0875721669516707e-09,
        -1.135956083633259e-11,
    ),
}  # fmt: skip


def reduced(x: Number) -> tuple[DoubleWord, Number]:
    """(r, k mod 4) with x = k pi/2 + r, for |x| up to HUGE. In float32 the low word of r is left out."""
    first, second, third = HALF_PI[x.dtype]
    k, quadrant = nearest_integer(x, TWO_OVER_PI)
    high = fma(-k, first, x)
    if x.dtype == "float32":
        return DoubleWord(fma(-k, third, fma(-k, second, high))), quadrant
    product = two_product(k, -second)
    total = two_sum(high, product.high)
    return fast_two_sum(total.high, total.low + fma(-k, third, product.low)), quadrant


def with_huge(x: Number, value: Number, name: str) -> Number:
    """`value`, with the lanes where `x` is huge, infinite or NaN taken from the C library's function `name`."""
    lanes = x.lanes

    def rare() -> ir.Value:
        function = lanes.declared(name, DOUBLE, [DOUBLE])
        wide = lanes.convert(x.value, x.dtype, "float64")
        return lanes.convert(lanes.per_lane(function, wide), "float64", value.dtype)

    return value.like(lanes.patched(value.value, (~(abs(x) < HUGE[x.dtype])).value, rare))


def sin_of_rest(r: DoubleWord) -> Number:
    square = r.high * r.high
    tail = r.high * square * polynomial(square, SIN_TAIL[r.high.dtype])
    if r.high.dtype == "float64":
        tail = tail + fma(square * -0.5, r.low, r.low)
    return r.high + tail


def cos_of_rest(r: DoubleWord) -> Number:
    square = r.high * r.high
    half = square * 0.5
    tail = square * square * polynomial(square, COS_TAIL[r.high.dtype])
    if r.high.dtype == "float64":
        tail = fma(-r.high, r.low, tail)
    top = 1.0 - half
    return top + (((1.0 - top) - half) + tail)


def sin_of_quarter(r: DoubleWord, quadrant: Number) -> Number:
    """sin(r + quadrant pi/2)."""
    value = where((quadrant & 1).equals(0), sin_of_rest(r), cos_of_rest(r))
    sign = (quadrant & 2) << (30 if value.dtype == "float32" else 62)
    return (value.bits() ^ sign).as_float()


def sin(x: Number) -> Number:
    """Within 2 ulp for every x."""
    return with_huge(x, where(x.equals(0.0), x, sin_of_quarter(*reduced(x))), "sin")


def cos(x: Number) -> Number:
    """Within 2 ulp for every x."""
    r, quadrant = reduced(x)
    return with_huge(x, sin_of_quarter(r, quadrant + 1), "cos")


@in_float64
def tan(x: Number) -> Number:
    """Within 2 ulp for every x."""
    r, quadrant = reduced(x)
    sine, cosine = sin_of_rest(r), cos_of_rest(r)
    even = (quadrant & 1).equals(0)
    return with_huge(x, where(x.equals(0.0), x, where(even, sine, -cosine) / where(even, cosine, sine)), "tan")
