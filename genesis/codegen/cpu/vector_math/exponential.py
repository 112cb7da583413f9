"""exp, exp2, expm1, sigmoid, sinh, cosh, tanh.

x = k log(2) + r with |r| <= log(2)/2, log(2) in two words (W. J. Cody, W. Waite, "Software Manual for the
Elementary Functions", 1980), so that exp(x) = 2^k exp(r). The polynomials are minimax fits of this project (Remez
exchange, 60 digits) on that interval.
"""

from __future__ import annotations

from genesis.codegen.cpu.vector_math.number import (
    DoubleWord, Number, Operand, clamp, copy_sign, fast_two_sum, fma, in_float64, nearest_integer, nearest_multiple, polynomial,
    power_of_two, scale_of, scaled, two_sum, where,
)

LOG2_E = 1.4426950408889634
LOG_2 = {"float32": (0.693147182, -1.90465421e-09), "float64": (0.6931471805599453, 2.3190468138462996e-17)}

# Below the first the result is 0, above the second it overflows.
RANGE = {"float32": (-176.0, 89.0), "float64": (-1418.0, 710.0)}
RANGE_BASE_2 = {"float32": (-254.0, 129.0), "float64": (-2046.0, 1025.0)}
FURTHER = 64  # times as far below, where the processor's instruction scales
LEAST_SIGMOID = {"float32": -104.5, "float64": -746.0}  # below, it rounds to 0

# exp(r) = 1 + r + r^2 q(r): error 2^-28.2 and 2^-58.0.
EXP_TAIL = {
    "float32": (0.5, 0.166665182, 0.041666206, 0.00836891867, 0.00139505416),
    "float64": (
        0.5000000000000013, 0.166666666666667, 0.04166666666651501, 0.00833333333330719, 0.001388888894714095,
        0.0001984126991737127, 2.480148979667503e-05, 2.7557216339716774e-06, 2.76313372341473e-07, 2.5117843628871168e-08,
    ),
}  # fmt: skip

# sinh(r) = r + r^3 p(r^2), error 2^-74.5; cosh(r) = 1 + r^2 p(r^2), error 2^-83.6.
SINH_TAIL = (
    0.16666666666666666, 0.008333333333333337, 0.0001984126984125317, 2.7557319265265137e-06, 2.505205672199289e-08,
    1.609084234602554e-10,
)  # fmt: skip
COSH_TAIL = (
    0.5, 0.041666666666666664, 0.0013888888888888896, 2.480158730156317e-05, 2.7557319267918406e-07, 2.0876713036645914e-09,
    1.14935274170303e-11,
)  # fmt: skip

# tanh(x) = x + x^3 p(x^2) for |x| < 0.625: error 2^-27.8.
TANH_TAIL = (-0.333332837, 0.133314937, -0.0537436008, 0.0206508208, -0.00571721513)


def reduced(x: Number) -> tuple[Number, Number]:
    """(r, k) with x = k log(2) + r."""
    k, exponent = nearest_integer(x, LOG2_E)
    return rest_of(x, k), exponent


def rest_of(x: Number, k: Number) -> Number:
    high, low = LOG_2[x.dtype]
    return fma(-k, low, fma(-k, high, x))


def exp_of_rest(r: Number) -> Number:
    return polynomial(r, (1.0, 1.0, *EXP_TAIL[r.dtype]))


def clamped(x: Number, bounds: tuple[float, float]) -> Number:
    """x clamped within what `scaled` takes, so that from far below it gives 0 by a factor of 0."""
    # A product that rounds into the subnormals or to 0 takes Intel's processors 150 cycles, and softmax's masks are e^-inf.
    # Causal attention of 16 x 8 heads of 128 tokens, Cascade Lake: 9.9 to 5.0 ms, with backward 21.4 to 11.1.
    low, high = bounds
    return clamp(x, FURTHER * low if x.lanes.has_scaling(x.value) else low, high)


def exp(x: Number) -> Number:
    """e^x, within 1 ulp."""
    bounded = clamped(x, RANGE[x.dtype])
    k, shifted = nearest_multiple(bounded, LOG2_E)
    return scaled(exp_of_rest(rest_of(bounded, k)), k, shifted)


def exp_within(x: Number) -> Number:
    """e^x where that is a normal number, within 1 ulp: one factor scales, and nothing has to be clamped back."""
    k, shifted = nearest_multiple(x, LOG2_E)
    return exp_of_rest(rest_of(x, k)) * scale_of(shifted, x.dtype)


def exp_of_sum(x: DoubleWord, factor: Operand = 1.0) -> Number:
    """factor e^(high + low), rounded once into the subnormals; within 1 ulp if factor is 1."""
    bounded = clamped(x.high, RANGE[x.high.dtype])
    k, shifted = nearest_multiple(bounded, LOG2_E)
    r = rest_of(bounded, k) + where(bounded.equals(x.high), x.low, 0.0)
    return scaled(exp_of_rest(r) * factor, k, shifted)


def exp2(x: Number) -> Number:
    """2^x, within 1 ulp."""
    high, low = LOG_2[x.dtype]
    bounded = clamped(x, RANGE_BASE_2[x.dtype])
    k, shifted = nearest_multiple(bounded, 1.0)
    fraction = bounded - k
    return scaled(exp_of_rest(fma(fraction, high, fraction * low)), k, shifted)


def expm1(x: Number) -> Number:
    """e^x - 1, within 2 ulp."""
    r, k = reduced(clamp(x, -44.0, RANGE[x.dtype][1]))
    rest = fma(r * r, polynomial(r, EXP_TAIL[x.dtype]), r)
    top = k > 100
    scale = power_of_two(where(top, k - 1, k))
    grown = fma(rest, scale, scale - where(top, x.constant(0.5), 1.0))
    return copy_sign(where(top, grown + grown, grown), x)


def sigmoid(x: Number) -> Number:
    """1 / (1 + e^-x), within 2 ulp: for x = k log(2) + r it is 2^k / (2^k + 1 + (e^-r - 1)).

    All of it is taken 2^60 times, so that no 2^k is subnormal.
    """
    # One division: 7.3 to 4.6 ns for 16 elements.
    one = 2.0**60
    bounded = clamp(x, LEAST_SIGMOID[x.dtype], 44.0)
    k, shifted = nearest_multiple(bounded, LOG2_E)
    r, scale = rest_of(bounded, k), scale_of(shifted + 60, x.dtype)
    slope = polynomial(r, [-one * c * (-1) ** n for n, c in enumerate((1.0, *EXP_TAIL[x.dtype]))])
    bottom = fast_two_sum(x.constant(one), scale)
    return scale / (bottom.high + fma(r, slope, bottom.low))


def hyperbolic_parts(x: Number) -> tuple[Number, Number, Number, Number]:
    """For 0 <= x = k log(2) + r: sinh(r), cosh(r) - 1, sinh(k log(2)) / 2 and cosh(k log(2)) / 2."""
    r, k = reduced(where(x > 710.6, 710.6, x))
    square = r * r
    sinh_rest = fma(r * square, polynomial(square, SINH_TAIL), r)
    cosh_rest = square * polynomial(square, COSH_TAIL)
    up, down = power_of_two(k - 2), power_of_two(-2 - where(k > 100, 100, k))
    return sinh_rest, cosh_rest, up - down, up + down


@in_float64
def sinh(x: Number) -> Number:
    """Within 2 ulp: sinh(a + r) = sinh(a) + (sinh(a) (cosh(r) - 1) + cosh(a) sinh(r))."""
    sinh_rest, cosh_rest, sinh_part, cosh_part = hyperbolic_parts(abs(x))
    half = sinh_part + fma(sinh_part, cosh_rest, cosh_part * sinh_rest)
    return copy_sign(half + half, x)


@in_float64
def cosh(x: Number) -> Number:
    """Within 2 ulp: cosh(a + r) = cosh(a) + (cosh(a) (cosh(r) - 1) + sinh(a) sinh(r))."""
    sinh_rest, cosh_rest, sinh_part, cosh_part = hyperbolic_parts(abs(x))
    half = cosh_part + fma(cosh_part, cosh_rest, sinh_part * sinh_rest)
    return half + half


def tanh(x: Number) -> Number:
    """Within 2 ulp: in float32 1 - 2 / (e^2x + 1) and near 0 a polynomial, in float64 expm1(2x) / (expm1(2x) + 2)."""
    magnitude = abs(x)
    if x.dtype == "float32":
        bounded = where(magnitude > 10.0, 10.0, magnitude)
        # e^x by one factor: tanh(a) * exp(-b * b) 2.0 to 1.75 ms, with the same bits.
        e = exp_within(bounded + bounded)
        square = x * x
        near = fma(magnitude * square, polynomial(square, TANH_TAIL), magnitude)
        return copy_sign(where(magnitude < 0.625, near, 1.0 - 2.0 / (e + 1.0)), x)
    bounded = where(magnitude > 20.0, 20.0, magnitude)
    r, k = reduced(bounded + bounded)
    scale = power_of_two(k)
    rest = fast_two_sum(r, r * r * polynomial(r, EXP_TAIL[x.dtype]))
    grown = two_sum(scale - 1.0, rest.high * scale)
    grown = DoubleWord(grown.high, fma(rest.low, scale, grown.low))
    return copy_sign((grown / (grown + 2.0)).value(), x)
