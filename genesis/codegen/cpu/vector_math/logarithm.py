"""log, log2, log10, log1p, log1pexp, pow and the inverse hyperbolic functions.

x = 2^k m with sqrt(1/2) <= m < sqrt(2), and log(m) = 2 atanh(s) with s = (m - 1) / (m + 1), as in W. J. Cody, W.
Waite (1980). The polynomials are minimax fits of this project (Remez exchange, 60 digits) on those intervals.
"""

from __future__ import annotations

from genesis.codegen.cpu.vector_math.exponential import LOG_2, exp, exp_of_sum
from genesis.codegen.cpu.vector_math.number import (
    INFINITY, MANTISSA_BITS, NAN, SMALLEST_NORMAL, DoubleWord, Number, by_precision, constant, copy_sign, fma, polynomial,
    power_of_two, square_root, two_product, two_sum, where,
)

ROOT_HALF_BITS = {"float32": 0x3F3504F3, "float64": 0x3FE6A09E667F3BCD}

# log(1 + f) = f - f^2/2 + f^3 p(f): error 2^-27.3.
LOG_TAIL_FLOAT32 = (
    0.333333313, -0.250008225, 0.200012326, -0.166232973, 0.142015576, -0.131605923, 0.127633229, -0.0763562992,
)  # fmt: skip
# log(1 + y) = y + y^2 p(y) for y in [0, 1]: relative error 2^-24.9.
LOG_TAIL_TO_TWO = (
    -0.49999997, 0.333328426, -0.249865264, 0.19854106, -0.158475652, 0.115618452,
    -0.0667577237, 0.0252240542, -0.00446621142,
)  # fmt: skip
# log(1 + f) = 2s + s^3 p(s^2): error 2^-59.5.
LOG_TAIL_FLOAT64 = (
    0.6666666666666735, 0.39999999999408464, 0.2857142874393903, 0.22222198396969273, 0.18183574334261518, 0.15313773771284084,
    0.14798916131505876,
)  # fmt: skip
# log(1 + f) = 2s + 2/3 s^3 + s^5 p(s^2): error 2^-73.5.
LOG_TAIL_EXTENDED = (
    0.39999999999999974, 0.28571428571445295, 0.22222222217489818, 0.18181818876225228, 0.15384556457282342,
    0.13336333663584066, 0.11674483346291384, 0.11991841277569068,
)  # fmt: skip
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
LOG10_E = (0.4342944819032518, 1.098319650216765e-17)


def split(x: Number) -> tuple[Number, Number]:
    """(m, k) with x = 2^k m and m in [sqrt(1/2), sqrt(2)), for x positive and finite."""
    bits = MANTISSA_BITS[x.dtype]
    tiny = x < SMALLEST_NORMAL[x.dtype]
    pattern = where(tiny, x * 2.0 ** (bits + 1), x).bits()
    k = (pattern - ROOT_HALF_BITS[x.dtype]) >> bits
    return (pattern - (k << bits)).as_float(), where(tiny, k - (bits + 1), k)


def at_the_ends(x: Number, result: Number) -> Number:
    """`result` where x is positive and finite; the logarithm's limits elsewhere."""
    end = where(x < 0.0, NAN, where(x.equals(0.0), -INFINITY, x))
    return where((x > 0.0) & (x < INFINITY), result, end)


def log(x: Number) -> Number:
    """Natural logarithm, within 2 ulp."""
    m, exponent = split(x)
    f = m - 1.0
    if x.dtype == "float32":
        square = f * f
        tail = fma(f * square, polynomial(f, LOG_TAIL_FLOAT32), square * -0.5)
    else:
        tail = tail_in_float64(f)
    return at_the_ends(x, with_power(exponent.to(x.dtype), f, tail))


def tail_in_float64(f: Number) -> Number:
    """log(1 + f) - f."""
    s = f / (2.0 + f)
    square = s * s
    half_square = f * f * 0.5
    return fma(s, fma(square, polynomial(square, LOG_TAIL_FLOAT64), half_square), -half_square)


def with_power(k: Number, f: Number, tail: Number) -> Number:
    """k log(2) + f + tail."""
    high, low = LOG_2[f.dtype]
    return fma(k, high, f + fma(k, low, tail))


def log_extended(x: DoubleWord) -> DoubleWord:
    """The logarithm of a positive finite float64 double word, to some 2^-65 of its value."""
    m, k = split(x.high)
    smaller = power_of_two(where(k > 1000, -1000, -k))
    return log_of_rest(two_sum(m - 1.0, where(k < -1000, 0.0, x.low * smaller))) + log_of_power(k)


def log_of_power(k: Number) -> DoubleWord:
    high, low = LOG_2["float64"]
    return constant(k.to("float64"), high, low) * k.to("float64")


def log_of_rest(f: DoubleWord) -> DoubleWord:
    """log(1 + f), f within [sqrt(1/2) - 1, sqrt(2) - 1]."""
    s = f / (f + 2.0)
    square = s * s
    cube = s * square
    tail = cube.high * square.high * polynomial(square.high, LOG_TAIL_EXTENDED)
    return s * 2.0 + (constant(tail, *TWO_THIRDS) * cube + tail)


@by_precision(quick=lambda x: log(x) * LOG2_E[0])
def log2(x: Number) -> Number:
    """Base-2 logarithm, within 1 ulp."""
    m, k = split(x)
    return at_the_ends(x, (log_of_rest(DoubleWord(m - 1.0)) * constant(x, *LOG2_E) + k.to("float64")).value())


@by_precision(quick=lambda x: log(x) * LOG10_E[0])
def log10(x: Number) -> Number:
    """Base-10 logarithm, within 1 ulp."""
    return at_the_ends(x, (log_extended(DoubleWord(x)) * constant(x, *LOG10_E)).value())


def quick_log1p(x: Number) -> Number:
    near = x + 1.0
    return log1p_at_the_ends(x, log(near) + (x - (near - 1.0)) / near)


@by_precision(quick=quick_log1p)
def log1p(x: Number) -> Number:
    """log(1 + x), within 1 ulp."""
    return log1p_at_the_ends(x, log_extended(two_sum(x, 1.0)).value())


def log1pexp(x: Number) -> Number:
    """log(1 + e^x), within 2 ulp: x where positive, and log(1 + e^-|x|), of a number from 1 to 2 without ends to look at."""
    positive, y = where(x > 0.0, x, 0.0), exp(-abs(x))
    if x.dtype == "float32":
        return positive + fma(y * y, polynomial(y, LOG_TAIL_TO_TWO), y)
    upper = y > 0.41421356
    f = where(upper, (y - 1.0) * 0.5, y)
    return positive + with_power(where(upper, y.constant(1.0), 0.0), f, tail_in_float64(f))


def log1p_at_the_ends(x: Number, result: Number) -> Number:
    end = where(x < -1.0, NAN, where(x.equals(-1.0), -INFINITY, x))
    return where((x > -1.0) & (x < INFINITY) & x.differs(0.0), result, end)


def quick_power(x: Number, y: Number) -> Number:
    return power_at_the_ends(x, y, exp_of_sum(DoubleWord(log(abs(x)) * y)))


@by_precision(quick=quick_power)
def pow(x: Number, y: Number) -> Number:
    """x^y as e^(y log|x|), within 2 ulp, with the special cases of C's pow."""
    logarithm = log_extended(DoubleWord(abs(x)))
    rough = logarithm.high * y
    product = logarithm * y
    far = abs(rough) > 800.0
    exponent = DoubleWord(where(far, rough, product.high), where(far, 0.0, product.low))
    return power_at_the_ends(x, y, exp_of_sum(exponent))


def power_at_the_ends(x: Number, y: Number, result: Number) -> Number:
    """`result`, which holds for |x| positive and finite, with the sign of x^y and with its limits elsewhere."""
    size = abs(x)
    half = y * 0.5
    whole = y.like(y.lanes.floor(y.value)).equals(y)
    odd = whole & half.like(half.lanes.floor(half.value)).differs(half)
    result = where(size.equals(0.0), where(y < 0.0, INFINITY, y.constant(0.0)), result)
    result = where(size.equals(INFINITY), where(y < 0.0, 0.0, size), result)
    result = where((x.bits() < 0) & odd, -result, result)
    no_root = (x < 0.0) & (size < INFINITY) & ~whole
    result = where(no_root | x.is_nan() | y.is_nan(), NAN, result)
    return where(y.equals(0.0) | x.equals(1.0) | (x.equals(-1.0) & abs(y).equals(INFINITY)), 1.0, result)


NEGLIGIBLE_CUBE = 2.0**-28  # below it, x^3 is lost beside x
SQUARE_OVERFLOWS = 2.0**500  # above it, sqrt(x^2 + 1) is taken to be x


def log_of_sum_with_root(x: Number, offset: float) -> Number:
    """log(x + sqrt(x^2 + offset)) for x >= 0."""
    far = x > SQUARE_OVERFLOWS
    bounded = where(far, 1.0, x)
    total = (two_product(bounded, bounded) + offset).square_root() + bounded
    logarithm = log_extended(DoubleWord(where(far, x, total.high), where(far, 0.0, total.low)))
    high, low = LOG_2["float64"]
    beyond = logarithm + constant(x, high, low)
    return where(x < INFINITY, where(far, beyond.value(), logarithm.value()), x)


def quick_asinh(x: Number) -> Number:
    size = abs(x)
    square = size * size
    gap = size + square / (square_root(square + 1.0) + 1.0)
    return copy_sign(where(size < INFINITY, quick_log1p(gap), size), x)


def quick_acosh(x: Number) -> Number:
    gap = x - 1.0
    return where(x < 1.0, NAN, quick_log1p(gap + square_root(gap * (x + 1.0))))


def quick_atanh(x: Number) -> Number:
    size = abs(x)
    return copy_sign(quick_log1p((size + size) / (1.0 - size)) * 0.5, x)


@by_precision(quick=quick_asinh)
def asinh(x: Number) -> Number:
    """Within 1 ulp: log(|x| + sqrt(x^2 + 1)) in two words."""
    size = abs(x)
    return where(size < NEGLIGIBLE_CUBE, x, copy_sign(log_of_sum_with_root(size, 1.0), x))


@by_precision(quick=quick_acosh)
def acosh(x: Number) -> Number:
    """Within 1 ulp: log(x + sqrt(x^2 - 1)) in two words; NaN below 1."""
    return where(x < 1.0, NAN, log_of_sum_with_root(x, -1.0))


@by_precision(quick=quick_atanh)
def atanh(x: Number) -> Number:
    """Within 1 ulp: log((1 + |x|) / (1 - |x|)) / 2 in two words; NaN beyond 1."""
    size = abs(x)
    ratio = two_sum(size, 1.0) / two_sum(-size, 1.0)
    inside = log_extended(ratio).value() * 0.5
    end = where(size.equals(1.0), INFINITY, where(size > 1.0, NAN, size))
    return where(size < NEGLIGIBLE_CUBE, x, copy_sign(where(size < 1.0, inside, end), x))
