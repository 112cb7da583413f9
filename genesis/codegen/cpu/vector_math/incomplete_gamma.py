"""The regularized incomplete gamma functions P and Q, by formulas of the NIST Digital Library of Mathematical Functions.

Below a the series of P (8.11.4), above it the continued fraction of Q (8.9.2), summed as J. Steed's; of small a and x the
alternating series of Q (8.7.3); of large a near x Temme's expansion, uniform in x (8.12.8), with coefficients by 8.12.12. Each
lane takes one of them, and the loops end with their last lane. The density x^a e^-x / gamma(a + 1) of large a is C. Loader's
("Fast and accurate computation of binomial probabilities", 2000).
"""

from __future__ import annotations

from math import inf, nan, pi

from genesis.codegen.cpu.vector_math.error_function import erfc
from genesis.codegen.cpu.vector_math.exponential import exp, expm1
from genesis.codegen.cpu.vector_math.gamma_function import NEAR_TWO, STIRLING, lgamma
from genesis.codegen.cpu.vector_math.logarithm import log, log1p, pow
from genesis.codegen.cpu.vector_math.number import (
    Number, by_precision, copy_sign, fma, polynomial, repeated, square_root, where,
)

LARGE = 1000.0  # from here on a near x takes Temme's expansion
STILL, STILL_QUICK = 2.0**-54, 2.0**-32  # of a sum: a term that no longer counts
ATANH = tuple(1 / n for n in range(3, 30, 2))
# Of the powers of 1 / a, polynomials in eta, eta^2 / 2 = x / a - 1 - log(x / a), for |eta| < 0.21.
TEMME = (
    (-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194,
     -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
     -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08, -4.382036018453353e-09),
    (-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596, 0.00020576131687242798,
     -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09,
     1.378633446915721e-07, -5.752545603517705e-08),
    (0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06, -0.0001073665322636516,
     5.2923448829120125e-05, -1.2760635188618728e-05),
    (0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885, -7.561801671883977e-05),
    (-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902),
)  # fmt: skip


@by_precision(quick=lambda a, x: regularized(a, x, False, STILL_QUICK))
def igamma(a: Number, x: Number) -> Number:
    """P, within 20 ulp times 1 - log(P)."""
    return regularized(a, x, False, STILL)


@by_precision(quick=lambda a, x: regularized(a, x, True, STILL_QUICK))
def igammac(a: Number, x: Number) -> Number:
    """Q = 1 - P, within 20 ulp times 1 - log(Q)."""
    return regularized(a, x, True, STILL)


def regularized(a: Number, x: Number, upper: bool, still: float) -> Number:
    """P or Q, at the ends of their domain as in PyTorch, but NaN of NaN."""
    inside = (a > 0.0) & (x > 0.0) & (a < inf) & (x < inf)
    found = of_positive(where(inside, a, 1.0), where(inside, x, 1.0), upper, still)
    nothing, all_ = (1.0, 0.0) if upper else (0.0, 1.0)  # of the mass below x
    found = where(x.equals(0.0) | a.equals(inf), nothing, where(a.equals(0.0) | x.equals(inf), all_, where(inside, found, nan)))
    no_value = (a < 0.0) | (x < 0.0) | (a.equals(0.0) & x.equals(0.0)) | (a.equals(inf) & x.equals(inf))
    return where(no_value | a.is_nan() | x.is_nan(), nan, found)


def of_positive(a: Number, x: Number, upper: bool, still: float) -> Number:
    ratio = (a - x) / (a + x)
    uniform = (a >= LARGE) & (abs(ratio) < 0.1)
    beyond = (x >= a) & (x > (1.1 if upper else 1.0)) & ~uniform
    small = (x <= 1.1) & (a < where(x < 0.5, -0.4 / log(where(x < 0.5, x, 0.5)), x * 1.1))  # where Q is not 1 - P
    summed = ~(uniform | beyond | small) if upper else ~(uniform | beyond)
    deviance = deviance_of(a, x, ratio)
    density = density_of(a, x, deviance)
    low, high = series(a, x, density, summed, still), fraction(a, x, density, beyond, still)
    if not upper:
        return where(uniform, temme(a, x, deviance, -1.0), where(beyond, 1.0 - high, low))
    rest = where(small, alternating(a, x, small, still), 1.0 - low)
    return where(uniform, temme(a, x, deviance, 1.0), where(beyond, high, rest))


def deviance_of(a: Number, x: Number, ratio: Number) -> Number:
    """a log(a / x) - a + x: near x a series of `ratio`, which does not cancel."""
    near = abs(ratio) < 0.3
    small = where(near, ratio, 0.0)
    square = small * small
    close = fma(a - x, small, (a + a) * small * square * polynomial(square, ATANH))
    return where(near, close, fma(a, log(a / x), x - a))


def density_of(a: Number, x: Number, deviance: Number) -> Number:
    """x^a e^-x / gamma(a + 1)."""
    large = a >= 10.0
    inverse = 1.0 / where(large, a, 10.0)
    far = exp(-deviance - inverse * polynomial(inverse * inverse, STIRLING)) / square_root(where(large, a, 10.0) * (2 * pi))
    few, bounded = where(large, 1.0, a), where(x > 2000.0, 2000.0, x)  # beyond, nothing is left
    return where(large, far, pow(bounded, few) * exp(-bounded) * exp(-lgamma(few + 1.0)))


def series(a: Number, x: Number, density: Number, taken: Number, still: float) -> Number:
    """P: the density times 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + .."""

    def step(total: Number, term: Number, n: Number) -> tuple[Number, list[Number]]:
        term, n = term * (x / n), n + 1.0
        return term > total * still, [total + term, term, n]

    found = repeated(x, (1.0, where(taken, x.constant(1.0), 0.0), a + 1.0), step)[0] * density
    return where(found > 1.0, 1.0, found)


def fraction(a: Number, x: Number, density: Number, taken: Number, still: float) -> Number:
    """Q: a times the density times 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ..))."""

    def step(total: Number, term: Number, inverse: Number, n: Number) -> tuple[Number, list[Number]]:
        below = fma(n, 2.0, start)
        inverse = 1.0 / fma(n * (a - n), inverse, below)
        term = fma(below, inverse, -1.0) * term
        return abs(term) > total * still, [total + term, term, inverse, n + 1.0]

    start = where(taken, x - a, 1.0) + 1.0
    first = 1.0 / start
    total = repeated(x, (first, where(taken, first, 0.0), first, 1.0), step)[0]
    return total * a * density


def alternating(a: Number, x: Number, taken: Number, still: float) -> Number:
    """Q of small numbers: 1 - x^a / gamma(a + 1) (1 + a (-x / (a + 1) + x^2 / (2! (a + 2)) - ..))."""
    tiny = a < 0.5
    few = where(tiny, a, 0.0)
    log_gamma = where(tiny, fma(few, polynomial(few, NEAR_TWO), -log1p(few)), lgamma(where(tiny, 1.0, a) + 1.0))
    power = expm1(fma(a, log(x), -log_gamma))

    def step(total: Number, term: Number, n: Number) -> tuple[Number, list[Number]]:
        term = term * (-x / n)
        following = total + term / (a + n)
        return abs(term) > still * 0.25, [following, term, n + 1.0]

    total = repeated(x, (0.0, where(taken, x.constant(1.0), 0.0), 1.0), step)[0]
    return -power - (power + 1.0) * a * total


def temme(a: Number, x: Number, deviance: Number, side: float) -> Number:
    """Q, or P of the `side` -1."""
    eta = copy_sign(square_root(2.0 * deviance / a), x - a)
    inverse = 1.0 / a
    powers = polynomial(inverse, [polynomial(eta, row) for row in TEMME])
    rest = exp(-deviance) / square_root(a * (2 * pi)) * powers
    return fma(erfc(copy_sign(square_root(deviance), x - a) * side), 0.5, rest * side)
