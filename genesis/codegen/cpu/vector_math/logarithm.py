"""log, log2, log10, log1p, log1pexp, pow and the inverse hyperbolic functions.

x = 2^k m with sqrt(1/2) <= m < sqrt(2), and log(m) = 2 atanh(s) with s = (m - 1) / (m + 1), as in W. J. Cody, W.
Waite (1980). The polynomials are minimax fits of this project (Remez exchange, 60 digits) on those intervals.
"""

from __future__ import annotations

from genesis.codegen.cpu.vector_math.exponential import LOG_2, exp, exp_of_sum
from genesis.codegen.cpu.vector_math.number import (
    INFINITY, MANTISSA_BITS, NAN, SMALLEST_NORMAL, DoubleWord, Number, Operand, by_precision, constant, copy_sign, fast_two_sum,
    fma, polynomial, power_of_two, two_product, two_sum, where,
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
LOG10_2 = (0.301029995663157, 8.241712586023572e-13)  # k times the first is exact
NO_LOW_WORD = 2.0**60  # a sum's second word is lost above it


def split(x: Number) -> tuple[Number, Number]:
    """(m, k) with x = 2^k m and m in [sqrt(1/2), sqrt(2)), for x positive and finite."""
    bits = MANTISSA_BITS[x.dtype]
    tiny = x < SMALLEST_NORMAL[x.dtype]
    m, k = split_normal(where(tiny, x * 2.0 ** (bits + 1), x))
    return m, where(tiny, k - (bits + 1), k)


def split_normal(x: Number) -> tuple[Number, Number]:
    """`split` of what is not subnormal."""
    bits, pattern = MANTISSA_BITS[x.dtype], x.bits()
    k = (pattern - ROOT_HALF_BITS[x.dtype]) >> bits
    return (pattern - (k << bits)).as_float(), k


def at_the_ends(x: Number, result: Number) -> Number:
    """`result` where x is positive and finite; the logarithm's limits elsewhere."""
    end = where(x < 0.0, NAN, where(x.equals(0.0), -INFINITY, x))
    return where((x > 0.0) & (x < INFINITY), result, end)


def log(x: Number) -> Number:
    """Natural logarithm, within 1 ulp."""
    m, exponent = split(x)
    tail, _ = tail_and_inverse(m - 1.0)
    return at_the_ends(x, with_power(exponent.to(x.dtype), m - 1.0, tail))


def tail_and_inverse(f: Number) -> tuple[Number, Number]:
    """log(1 + f) - f; and 1 / (1 + f) to five bits, for what is far less than f."""
    if f.dtype == "float32":
        square = f * f
        return fma(f * square, polynomial(f, LOG_TAIL_FLOAT32), square * -0.5), (1.0 - f) * (square + 1.0)
    s = f / (2.0 + f)
    square = s * s
    return fma(s, rest_over_s(f, square), f * f * -0.5), (1.0 - s) * (1.0 - s) * (square + 1.0)


def rest_over_s(f: Number, square: Number) -> Number:
    """(log(1 + f) - f + f^2/2) / s in float64, for the square of s = f / (2 + f)."""
    return fma(square, polynomial(square, LOG_TAIL_FLOAT64), f * f * 0.5)


def with_power(k: Number, f: Number, tail: Number) -> Number:
    """k log(2) + f + tail."""
    high, low = LOG_2[f.dtype]
    return fma(k, high, f + fma(k, low, tail))


def log_of_sum(x: DoubleWord, doublings: Operand = 0) -> Number:
    """log(2^doublings x) within 1 ulp, even near 1, for x positive, finite and with no bits below the normal numbers."""
    m, k = split_normal(x.high)
    low = where(x.high > NO_LOW_WORD, 0.0, x.low * power_of_two(-k))
    tail, inverse = tail_and_inverse(m - 1.0)
    return with_power((k + doublings).to(x.high.dtype), m - 1.0, fma(low, inverse, tail))


def log_extended(x: DoubleWord) -> DoubleWord:
    """The logarithm of a positive finite float64 double word, to some 2^-65 of its value."""
    m, k = split(x.high)
    smaller, exponent = power_of_two(where(k > 1000, -1000, -k)), k.to("float64")
    rest = log_of_rest(two_sum(m - 1.0, where(k < -1000, 0.0, x.low * smaller)))
    return rest + constant(exponent, *LOG_2["float64"]) * exponent


def log_of_rest(f: DoubleWord) -> DoubleWord:
    """log(1 + f), f within [sqrt(1/2) - 1, sqrt(2) - 1]."""
    s = f / (f + 2.0)
    square = s * s
    cube = s * square
    tail = cube.high * square.high * polynomial(square.high, LOG_TAIL_EXTENDED)
    return s * 2.0 + (constant(tail, *TWO_THIRDS) * cube + tail)


def log_to_base(x: Number, scale: tuple[float, float], log_of_two: tuple[float, float]) -> Number:
    """scale log(x): f - f^2/2 in two words times scale in two words, to which k log(2) is added without rounding."""
    m, exponent = split(x)
    f, k = m - 1.0, exponent.to(x.dtype)
    s, half_square = f / (2.0 + f), f * f * 0.5
    high = f - half_square
    low = fma(s, rest_over_s(f, s * s), (f - high) - half_square)
    product = two_product(high, scale[0])
    rest = fma(high, scale[1], fma(low, scale[0], product.low))
    total = fast_two_sum(k * log_of_two[0], product.high)
    return at_the_ends(x, total.high + (total.low + fma(k, log_of_two[1], rest)))


@by_precision(quick=lambda x: log(x) * LOG2_E[0])
def log2(x: Number) -> Number:
    """Base-2 logarithm, within 1 ulp."""
    return log_to_base(x, LOG2_E, (1.0, 0.0))


@by_precision(quick=lambda x: log(x) * LOG10_E[0])
def log10(x: Number) -> Number:
    """Base-10 logarithm, within 1 ulp."""
    return log_to_base(x, LOG10_E, LOG10_2)


def log1p(x: Number) -> Number:
    """log(1 + x), within 1 ulp."""
    end = where(x < -1.0, NAN, where(x.equals(-1.0), -INFINITY, x))
    return where((x > -1.0) & (x < INFINITY) & x.differs(0.0), log_of_sum(two_sum(x, 1.0)), end)


def log1pexp(x: Number) -> Number:
    """log(1 + e^x), within 2 ulp: x where positive, and log(1 + e^-|x|), of a number from 1 to 2 without ends to look at."""
    positive, y = where(x > 0.0, x, 0.0), exp(-abs(x))
    if x.dtype == "float32":
        return positive + fma(y * y, polynomial(y, LOG_TAIL_TO_TWO), y)
    upper = y > 0.41421356
    f = where(upper, (y - 1.0) * 0.5, y)
    return positive + with_power(where(upper, y.constant(1.0), 0.0), f, tail_and_inverse(f)[0])


@by_precision(quick=lambda x, y: power_at_the_ends(x, y, exp_of_sum(DoubleWord(log(abs(x)) * y))))
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


ONE_IS_NEGLIGIBLE = 2.0**30  # above it, sqrt(x^2 + 1) is taken to be x


def log_of_sum_with_root(x: Number, offset: float) -> Number:
    """log(x + sqrt(x^2 + offset)) for x >= 0."""
    far = x > ONE_IS_NEGLIGIBLE
    bounded = where(far, 1.0, x)
    total = (two_product(bounded, bounded) + offset).square_root() + bounded
    either = DoubleWord(where(far, x, total.high), where(far, 0.0, total.low))
    return where(x < INFINITY, log_of_sum(either, where(far, x.bits().constant(1), 0)), x)


def asinh(x: Number) -> Number:
    """Within 1 ulp: log(|x| + sqrt(x^2 + 1)) of two words."""
    return copy_sign(log_of_sum_with_root(abs(x), 1.0), x)


def acosh(x: Number) -> Number:
    """Within 1 ulp: log(x + sqrt(x^2 - 1)) of two words; NaN below 1."""
    return where(x < 1.0, NAN, log_of_sum_with_root(x, -1.0))


def atanh(x: Number) -> Number:
    """Within 1 ulp: log((1 + |x|) / (1 - |x|)) / 2 of two words; NaN beyond 1."""
    size = abs(x)
    inside = log_of_sum(two_sum(size, 1.0) / two_sum(-size, 1.0)) * 0.5
    end = where(size.equals(1.0), INFINITY, where(size > 1.0, NAN, size))
    return copy_sign(where(size < 1.0, inside, end), x)
