"""erf, erfc and the reciprocal square root.

For x >= 0, (1 + 2x) e^(x^2) erfc(x) is smooth to infinity and a polynomial in t = (x - 4) / (x + 4), the form of M.
Shepherd, J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (Math. Comp. 36, 1981). The
polynomials are minimax fits of this project (Remez exchange, 60 digits).
"""

from __future__ import annotations

from genesis.codegen.cpu.vector_math.exponential import exp_of_sum
from genesis.codegen.cpu.vector_math.number import (
    DoubleWord, Number, copy_sign, fast_two_sum, fma, in_float64, polynomial, square_root, two_product, two_sum, where,
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


@in_float64
def erfc(x: Number) -> Number:
    """1 - erf(x), within 2 ulp."""
    tail = erfc_of_positive(abs(x))
    near = two_sum(-x, 1.0) + x * -polynomial(x * x, ERF_NEAR)
    return where(abs(x) < 1.0, near.value(), where(x < 0.0, 2.0 - tail, tail))


def erfc_of_positive(x: Number) -> Number:
    """e^(-x^2) p(t) / (1 + 2x), the quotient and x^2 in two words."""
    bounded = where(x > 28.0, 28.0, x)
    t = (bounded - 4.0) / (bounded + 4.0)
    first, *others = ERFC_FAR
    top = fast_two_sum(x.constant(first), t * polynomial(t, others))
    quotient = top / two_sum(bounded + bounded, 1.0)
    square = two_product(bounded, -bounded)
    return exp_of_sum(DoubleWord(square.high, square.low + quotient.low / quotient.high), quotient.high)


def rsqrt(x: Number) -> Number:
    """1 / sqrt(x), within 2 ulp."""
    return 1.0 / square_root(x)
