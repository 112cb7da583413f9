"""erf, erfc, the normal distribution's integral's logarithm, the inverses of both, and the reciprocal square root.

For x >= 0, (1 + 2x) e^(x^2) erfc(x) is smooth to infinity and a polynomial in t = (x - 4) / (x + 4), the form of M.
Shepherd, J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (Math. Comp. 36, 1981). The
polynomials are minimax fits of this project (Remez exchange, 60 digits); beyond 28 erfcx is its asymptotic series (M.
Abramowitz, I. Stegun, "Handbook of Mathematical Functions" (1964), 7.1.23). The inverse is that of the normal distribution by
M. Wichura, "Algorithm AS 241: The percentage points of the normal distribution" (Applied Statistics 37, 1988).
"""

from __future__ import annotations

from math import pi, sqrt

from genesis.codegen.cpu.vector_math.exponential import exp, exp_of_sum
from genesis.codegen.cpu.vector_math.logarithm import log, log1p
from genesis.codegen.cpu.vector_math.number import (
    INFINITY, NAN, DoubleWord, Number, by_precision, copy_sign, fast_two_sum, fma, in_float64, polynomial, square_root,
    two_product, two_sum, where,
)

# erf(x) = x + x p(x^2) for |x| <= 1: error 2^-62.7.
ERF_NEAR = (
    0.1283791670955126, -0.3761263890318375, 0.11283791670954857, -0.026866170645072678, 0.005223977624778513,
    -0.0008548326978594512, 0.00012055331031103575, -1.4925593358688415e-05, 1.6460970309186638e-06, -1.634999736999644e-07,
    1.4657684679478863e-08, -1.1364883727089688e-09, 5.943894954409058e-11,
)  # fmt: skip
# In float32, erf(x) = x + x p(x^2 - 0.75) for 0 <= x <= 1.25: error 2^-29.9; and 1 - p(x - 2)^4 up to 4: error 2^-28.4.
ERF_NEAR_FLOAT32 = (
    -0.100108803, -0.244588418, 0.0669189314, -0.015131088, 0.00284684136, -0.000455688168, 6.41807152e-05, -7.57297996e-06,
)  # fmt: skip
ERF_FAR_FLOAT32 = (
    0.261522391, -0.288862426, 0.0991340744, 0.00690321421, -0.012217169, 0.00154492131, 0.000725150279, -0.000195095669,
)  # fmt: skip
# (1 + 2x) e^(x^2) erfc(x) for 0 <= x <= 28 in t = (x - 4) / (x + 4): error 2^-56.0.
ERFC_FAR = (
    1.2329951186255526, -0.1396211168405629, 0.015379652102619856, 0.06809705425473578, -0.10103906603630472,
    0.0937328349968486, -0.06633036581251271, 0.037167515561512876, -0.016197734048769136, 0.005031969766161082,
    -0.0007577734037237416, -0.00019925557357453974, 0.0001506224700299972, -2.440290280326725e-05, -1.122528299650509e-05,
    5.7172131707593475e-06, 3.019543926138588e-07, -8.341265210009123e-07, 6.240563627185034e-08, 1.14468050732285e-07,
    -7.807709849464657e-09, -1.3352312611049561e-08, -1.7015090451088446e-09,
)  # fmt: skip
ERFCX_SERIES = tuple(c / sqrt(pi) for c in (1.0, -1 / 2, 3 / 4, -15 / 8, 105 / 16, -945 / 32, 10395 / 64))

# Wichura's quotients of polynomials: of 0.425^2 - (y / 2)^2 for |y| < 0.85; of r - 1.6, r = sqrt(-log((1 - |y|) / 2)), up to 5;
# of r - 5 beyond.
QUANTILES = (
    ((3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125, 45921.953931549871457,
      67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
     (1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077, 21213.794301586595867, 39307.895800092710610,
      28729.085735721942674, 5226.4952788528545610)),
    ((1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504, 1.27045825245236838258,
      0.241780725177450611770, 0.0227238449892691845833, 7.74545014278341407640e-4),
     (1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550, 0.148103976427480074590,
      0.0151986665636164571966, 5.47593808499534494600e-4, 1.05075007164441684324e-9)),
    ((6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 0.296560571828504891230, 0.0265321895265761230930,
      1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
     (1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525, 7.86869131145613259100e-4,
      1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15)),
)  # fmt: skip
# In float32, erfinv(x) / x in w = -log(1 - x^2) up to 5: error 2^-27.2; beyond, in sqrt(w), its range up to 4.2 mapped to
# [-1, 1]: error 2^-25.4.
ERFINV_NEAR = (
    0.88622695, 0.23201372, 0.0115491655, -0.0023352706, -0.00012653947, 4.4048804e-05, 4.1506632e-06, -2.0082714e-06,
    2.243043e-07, -8.931926e-09,
)  # fmt: skip
ERFINV_FAR = (
    3.051757, 0.98678136, 0.0055440464, -0.0038705466, 0.002557299, -0.0017145321, 0.0009965939, -0.00031952074,
    -8.537283e-05, 8.0068916e-05,
)  # fmt: skip
ERFINV_SLOPE = 2 / (4.2 - sqrt(5))


def erf(x: Number) -> Number:
    """Within 1 ulp: a polynomial near 0, 1 - erfc(x) beyond."""
    size = abs(x)
    if x.dtype == "float32":
        return copy_sign(erf_of_positive_float32(size), x)
    near = fma(size, polynomial(x * x, ERF_NEAR), size)
    return copy_sign(where(size < 1.0, near, 1.0 - erfc_of_positive(size)), x)


def erf_of_positive_float32(x: Number) -> Number:
    """Near 0 and beyond by polynomials of one degree: one evaluation serves both, each lane with its own coefficients."""
    # Without e^x: gelu of 4M numbers 1.22 to 0.92 ms, erf 1.09 to 0.72, at 1.03 ulp.
    far = x >= 1.25  # not of a NaN, which x + x p keeps
    coefficients = [where(far, x.constant(b), a) for a, b in zip(ERF_NEAR_FLOAT32, ERF_FAR_FLOAT32, strict=True)]
    p = polynomial(where(far, where(x > 4.0, 4.0, x) - 2.0, fma(x, x, -0.75)), coefficients)
    square = p * p
    return where(far, fma(-square, square, 1.0), fma(x, p, x))


def quick_erfc(x: Number) -> Number:
    bounded = where(abs(x) > 28.0, 28.0, abs(x))
    tail = exp(-bounded * bounded) * polynomial((bounded - 4.0) / (bounded + 4.0), ERFC_FAR) / fma(bounded, 2.0, 1.0)
    return where(x < 0.0, 2.0 - tail, tail)


@by_precision(quick=quick_erfc)
def erfc(x: Number) -> Number:
    """1 - erf(x), within 2 ulp."""
    tail = erfc_of_positive(abs(x))
    near = two_sum(-x, 1.0) + x * -polynomial(x * x, ERF_NEAR)
    is_near = abs(x) < 0.8  # where erfc is above 1/4: an error of the polynomial is half a unit there, and twice that below
    return where(is_near, near.value(), where(x < 0.0, 2.0 - tail, tail))


def erfc_of_positive(x: Number) -> Number:
    """e^(-x^2) p(t) / (1 + 2x), the quotient and x^2 in two words."""
    bounded = where(x > 28.0, 28.0, x)
    quotient, square = scaled_tail(bounded), two_product(bounded, -bounded)
    return exp_of_sum(DoubleWord(square.high, square.low + quotient.low / quotient.high), quotient.high)


def scaled_tail(x: Number) -> DoubleWord:
    """e^(x^2) erfc(x) = p(t) / (1 + 2x) for 0 <= x <= 28."""
    t = (x - 4.0) / (x + 4.0)
    first, *others = ERFC_FAR
    return fast_two_sum(x.constant(first), t * polynomial(t, others)) / two_sum(x + x, 1.0)


@in_float64
def erfcx(x: Number) -> Number:
    """e^(x^2) erfc(x), within 4 ulp."""
    square = two_product(x, x)
    positive = erfcx_of_positive(abs(x))
    return where(x < 0.0, exp_of_sum(square, 2.0) - positive, positive)


def erfcx_of_positive(x: Number) -> Number:
    is_far = x > 28.0
    inverse = 1.0 / where(is_far, x, 28.0)
    far = inverse * polynomial(inverse * inverse, ERFCX_SERIES)
    return where(is_far, far, scaled_tail(where(is_far, 28.0, x)).value())


@in_float64
def log_ndtr(x: Number) -> Number:
    """The logarithm of the normal distribution's integral up to x, within 4 ulp: of the tail beyond |x|, or of the rest."""
    scaled_tail = erfcx_of_positive(abs(x) * sqrt(0.5)) * 0.5
    square = two_product(x, x * -0.5)
    rest = log1p(-exp_of_sum(square, scaled_tail))
    return where(x < 0.0, log(scaled_tail) + square.high, rest)


def erfinv(x: Number) -> Number:
    """Within 4 ulp; NaN beyond 1."""
    size = abs(x)
    tail = 1.0 - size
    if x.dtype == "float32":
        result = x * erfinv_slope_float32(-log(tail * (1.0 + size)))
    else:
        result = copy_sign(normal_quantile(size * 0.5, tail * 0.5) * sqrt(0.5), x)
    return where(size < 1.0, result, where(size.equals(1.0), copy_sign(INFINITY, x), NAN))


def erfinv_slope_float32(w: Number) -> Number:
    """erfinv(x) / x by w = -log(1 - x^2), as M. Giles, "Approximating the erfinv function" (GPU Computing Gems 2, 2011)."""
    far = w > 5.0
    coefficients = [where(far, w.constant(b), a) for a, b in zip(ERFINV_NEAR, ERFINV_FAR, strict=True)]
    beyond = fma(square_root(w), ERFINV_SLOPE, -1.0 - ERFINV_SLOPE * sqrt(5))
    return polynomial(where(far, beyond, w), coefficients)


@in_float64
def ndtri(x: Number) -> Number:
    """The normal distribution's quantile of a probability, within 4 ulp; NaN beyond 0 and 1."""
    is_low = x < 0.5
    tail = where(is_low, x, 1.0 - x)
    result = normal_quantile(abs(x - 0.5), tail)
    result = where(tail > 0.0, result, where(tail.equals(0.0), x.constant(INFINITY), NAN))
    return where(is_low, -result, result)


def normal_quantile(half: Number, tail: Number) -> Number:
    """The quantile of 1/2 + half, whose tail is 1/2 - half. One quotient serves all ranges, each lane with its coefficients."""
    is_near, root = half < 0.425, square_root(-log(tail))
    is_far = root > 5.0
    argument = where(is_near, fma(-half, half, 0.180625), where(is_far, root - 5.0, root - 1.6))
    parts = []
    for ranges in zip(*QUANTILES, strict=True):
        coefficients = [where(is_near, half.constant(near), where(is_far, half.constant(far), middle))
                        for near, middle, far in zip(*ranges, strict=True)]
        parts.append(polynomial(argument, coefficients))
    return parts[0] / parts[1] * where(is_near, half, 1.0)


def rsqrt(x: Number) -> Number:
    """1 / sqrt(x), within 2 ulp."""
    return 1.0 / square_root(x)
