"""asin, acos, atan, atan2.

The polynomials are minimax fits of this project (Remez exchange, 60 digits) on the intervals stated with them.
"""

from __future__ import annotations

from genesis.codegen.cpu.vector_math.number import (
    INFINITY, NAN, DoubleWord, Number, constant, copy_sign, fma, in_float64, polynomial, where,
)

HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
PI = (3.141592653589793, 1.2246467991473532e-16)
QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)
TAN_PI_OVER_8 = 0.4142135623730951

# atan(t) = t + t^3 p(t^2) for |t| <= tan(pi/8): error 2^-59.5.
ATAN_TAIL = (
    -0.333333333333332, 0.19999999999953663, -0.14285714280203987, 0.11111110783813663, -0.09090897767074886,
    0.07692060361945327, -0.06663105459345318, 0.058478974277350035, -0.05039331011771513, 0.038064959759827564,
    -0.017907348964725164,
)  # fmt: skip
# asin(x) = x + x^3 p(x^2) for |x| <= 1/2: error 2^-55.9.
ASIN_TAIL = (
    0.16666666666665375, 0.07500000000344828, 0.04464285682195252, 0.03038195939641616, 0.022371751916612767,
    0.01735979594378386, 0.013884347578975727, 0.01217496097637911, 0.0065034394263029345, 0.019594562914653817,
    -0.016327040578152253, 0.031981926930657004,
)  # fmt: skip


def asin_parts(x: Number) -> tuple[Number, DoubleWord, Number]:
    """(near, y, tail): asin(|x|) is y + tail where |x| <= 1/2 (near), and pi/2 - 2 (y + tail) elsewhere."""
    size = abs(x)
    near = size <= 0.5
    half_gap = (1.0 - size) * 0.5
    square = where(near, size * size, half_gap)
    root = DoubleWord(half_gap).square_root()
    y = DoubleWord(where(near, size, root.high), where(near, 0.0, root.low))
    return near, y, fma(y.high * square, polynomial(square, ASIN_TAIL), y.low)


@in_float64
def asin(x: Number) -> Number:
    """Within 1 ulp: asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) beyond 1/2; NaN beyond 1."""
    near, y, tail = asin_parts(x)
    far_value = (constant(x, *HALF_PI) + y.high * -2.0 + tail * -2.0).value()
    return copy_sign(where(near, y.high + tail, far_value), x)


@in_float64
def acos(x: Number) -> Number:
    """Within 1 ulp: acos(x) = 2 asin(sqrt((1 - x) / 2)) beyond 1/2; NaN beyond 1."""
    near, y, tail = asin_parts(x)
    minus = x < 0.0
    base = where(near, constant(x, *HALF_PI).high, where(minus, PI[0], x.constant(0.0)))
    base_low = where(near, HALF_PI[1], where(minus, PI[1], x.constant(0.0)))
    factor = where(near, x.constant(1.0), 2.0)
    factor = where(near ^ minus, -factor, factor)
    return (DoubleWord(base, base_low) + y.high * factor + tail * factor).value()


@in_float64
def atan(x: Number) -> Number:
    """Within 2 ulp."""
    size = abs(x)
    inverted = size > 1.0
    angle = angle_of_ratio(where(inverted, 1.0, size), where(inverted, size, 1.0), inverted)
    return copy_sign(where(x.is_nan(), x, angle), x)


@in_float64
def atan2(y: Number, x: Number) -> Number:
    """The angle of the point (x, y), within 2 ulp; zeros and infinities as in C's atan2."""
    width, height = abs(x), abs(y)
    both_infinite = width.equals(INFINITY) & height.equals(INFINITY)
    longer = where(width < height, height, width)
    scale = where(longer > 2.0**1000, 0.25, where(longer < 2.0**-900, x.constant(2.0**100), 1.0))
    width, height = (where(both_infinite, 1.0, side * scale) for side in (width, height))
    inverted = height > width
    small, large = where(inverted, width, height), where(inverted, height, width)
    angle = copy_sign(angle_of_ratio(small, large, inverted, x.bits() < 0), y)
    return where(x.is_nan() | y.is_nan(), NAN, angle)


def angle_of_ratio(small: Number, large: Number, inverted: Number, reflected: Number | None = None) -> Number:
    """a = atan(small / large) for 0 <= small <= large; pi/2 - a where inverted; pi less that where reflected.

    Beyond pi/8, a = pi/4 + atan((small - large) / (small + large)): the whole is n pi/4 plus or minus a small arc.
    """
    wide = small > large * TAN_PI_OVER_8
    ratio = where(wide, small - large, small) / where(wide, small + large, large)
    t = where(small.equals(0.0), 0.0, ratio)
    eighths = where(wide, 1.0, where(inverted, 2.0, small.constant(0.0)))
    t = where(inverted, -t, t)
    if reflected is not None:
        eighths, t = where(reflected, 4.0 - eighths, eighths), where(reflected, -t, t)
    base = eighths * QUARTER_PI[0]
    base_low = fma(eighths, QUARTER_PI[0], -base) + eighths * QUARTER_PI[1]
    square = t * t
    tail = fma(t * square, polynomial(square, ATAN_TAIL), base_low)
    total = base + t
    return total + (tail + (t - (total - base)))
