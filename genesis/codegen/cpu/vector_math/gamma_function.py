"""The logarithm of the gamma function and its first two derivatives.

Positive arguments: Stirling's series from 8 on (from 10 on for the derivatives), below it the recurrence, down to [1, 2.5),
where lgamma(2 + t) = t p(t), which keeps both zeros exact; negative ones: the reflection formulas (M. Abramowitz, I. Stegun,
"Handbook of Mathematical Functions" (1964), 6.1, 6.3, 6.4). The polynomials are fits of this project at Chebyshev's points (50
digits). Near zeros that no formula has exactly, those between negative poles and the positive one of digamma, the error is
bounded absolutely.
"""

from __future__ import annotations

from math import inf, log as ln, nan, pi

from genesis.codegen.cpu.vector_math.logarithm import log
from genesis.codegen.cpu.vector_math.number import Number, fma, in_float64, polynomial, where

# lgamma(2 + t) = t p(t) for -1 <= t <= 1/2: error 2^-60.0.
NEAR_TWO = (
    0.42278433509846713, 0.3224670334241132, -0.06735230105319834, 0.020580808427782545, -0.00738555102864718,
    0.0028905103308881548, -0.00119275391279137, 0.0005096695195232586, -0.00022315473734605751, 9.945761812447018e-05,
    -4.492644222281323e-05, 2.050592876277496e-05, -9.438728766398323e-06, 4.384464557671723e-06, -2.0357722207202847e-06,
    9.126385549074723e-07, -4.980294850851435e-07, 3.078632454867443e-07, 1.0972222093777794e-07, 1.8885883410223268e-08,
    -4.164998756491859e-07, -2.864781907816563e-07, 1.7117572289653236e-07, 4.005617021266417e-07, 2.3677061951413951e-07,
    5.3377529619981506e-08,
)  # fmt: skip
# sin(pi r) = r p(r^2) and cos(pi r) = p(r^2) for |r| <= 1/2: errors 2^-69.8 and 2^-67.1.
SINE = (
    3.141592653589793, -5.16771278004997, 2.5501640398773455, -0.5992645293207869, 0.08214588661099356, -0.007370430943702136,
    0.0004663027874593273, -2.1915250301851375e-05, 7.94853903737232e-07, -2.228371216069697e-08,
)  # fmt: skip
COSINE = (
    1.0, -4.934802200544679, 4.058712126416768, -1.3352627688545549, 0.235330630357995, -0.025806891376592964,
    0.0019295741872812349, -0.00010463741681752138, 4.300724172734847e-06, -1.34352129509532e-07,
)  # fmt: skip
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
ITS_DERIVATIVE = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
ITS_SECOND_DERIVATIVE = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


@in_float64
def lgamma(x: Number) -> Number:
    """log |gamma(x)|: within 6 ulp; for negative arguments of lgamma(1 - x), and of 1 at least."""
    negative = x < 0.0
    main = of_positive(where(negative, 1.0 - x, x))
    rest, _ = from_nearest(x)
    sine = abs(rest * polynomial(rest * rest, SINE))
    tiny = abs(x) < 1e-200  # where a sine would be subnormal
    reflected = where(tiny, 0.0, x.constant(ln(pi))) - log(where(tiny, abs(x), sine)) - main
    reflected = where(rest.equals(0.0), inf, reflected)  # at the poles, all that is large among them
    return where(abs(x).equals(inf), inf, where(negative, reflected, main))


def of_positive(x: Number) -> Number:
    """lgamma of positive numbers, by one logarithm: of x, or of what the recurrence takes off it."""
    u, product = x, x.constant(1.0)
    for _ in range(6):  # from below 8 to below 2.5
        high = u >= 2.5
        u = where(high, u - 1.0, u)
        product = where(high, product * u, product)
    small, large = x < 1.5, x >= 8.0
    logarithm = log(where(small | large, x, product))
    t = where(small, x - 1.0, where(large, 0.0, u - 2.0))
    near = fma(t, polynomial(t, NEAR_TWO), where(small, -logarithm, logarithm))
    inverse = 1.0 / where(large, x, 8.0)
    series = inverse * polynomial(inverse * inverse, STIRLING)
    far = fma(x - 0.5, logarithm - 1.0, series + (0.5 * ln(2 * pi) - 0.5))
    return where(large, far, near)


@in_float64
def digamma(x: Number) -> Number:
    """The derivative of lgamma: within 8 ulp, of 1 at least."""
    negative = x < 0.0
    v = where(negative, 1.0 - x, x)
    small = v < 10.0
    top, below, u = v.constant(0.0), v.constant(1.0), where(small, v, 1.0)
    for k in range(10):  # the sum of 1 / (v + k)
        top, below = fma(top, u + float(k), below), below * (u + float(k))
    far = where(small, v + 10.0, v)
    inverse = 1.0 / far
    square = inverse * inverse
    main = log(far) - fma(square, polynomial(square, ITS_DERIVATIVE), 0.5 * inverse)
    main = main - where(small, top / below, 0.0)
    rest, _ = from_nearest(x)
    square = rest * rest
    reflected = main - pi * polynomial(square, COSINE) / (rest * polynomial(square, SINE))
    reflected = where(rest.equals(0.0), nan, reflected)
    return where(x.equals(0.0), -1.0 / x, where(negative, reflected, main))


@in_float64
def trigamma(x: Number) -> Number:
    """The derivative of digamma: within 8 ulp, of trigamma(1 - x) at least."""
    negative = x < 0.0
    v = where(negative, 1.0 - x, x)
    small = v < 10.0
    top, below, u = v.constant(0.0), v.constant(1.0), where(small, v, 1.0)
    for k in range(10):  # the sum of 1 / (v + k)^2
        square = (u + float(k)) * (u + float(k))
        top, below = fma(top, square, below), below * square
    inverse = 1.0 / where(small, v + 10.0, v)
    square = inverse * inverse
    main = fma(inverse * square, polynomial(square, ITS_SECOND_DERIVATIVE), fma(square, 0.5, inverse))
    main = main + where(small, top / below, 0.0)
    rest, _ = from_nearest(x)
    sine = rest * polynomial(rest * rest, SINE)
    reflected = where(x.equals(-inf), inf, pi * pi / (sine * sine) - main)
    return where(negative, reflected, main)


def from_nearest(x: Number) -> tuple[Number, Number]:
    """x less the nearest integer, and that integer."""
    k = x.like(x.lanes.rint(x.value))
    return x - k, k
