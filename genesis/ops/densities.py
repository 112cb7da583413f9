"""Densities of gamma and beta numbers, without the cancellation of large logarithms of gamma functions.

By C. Loader ("Fast and accurate computation of binomial probabilities", 2000): of Stirling's formula's error, which is small,
and of deviances, which are small where densities are large. All hold in any dtype, for parameters of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from math import log as ln, pi

from genesis.ir.dtypes import float64
from genesis.ir.graph import Value
from genesis.ops.arithmetic import xlogy
from genesis.ops.elementwise import abs, exp, log, log1p, where
from genesis.ops.reduction import sum
from genesis.ops.registry import Operation, cast, composite, promoted, widened
from genesis.ops.special import digamma, lgamma

HALF_LOG_TWO_PI = 0.5 * ln(2 * pi)
FAR = 10.0  # from where on asymptotic series have all digits
# Of Bernoulli's numbers B: B / (2n (2n - 1)) of Stirling's series, and B / 2n of that of its derivative.
_LGAMMA = 1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156
_DIGAMMA = 1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12
_ATANH = tuple([1 / n for n in range(3, 30, 2)])


def _series(coefficients: tuple[float, ...], x: Value) -> Value:
    """The power series of x; half of it gives the digits of float32."""
    terms = coefficients if x.dtype is float64 else coefficients[: (len(coefficients) + 1) // 2]
    total = x * terms[-1]
    for coefficient in terms[-2:0:-1]:
        total = (total + coefficient) * x
    return total + terms[0]


def _stirling_error(input: Value) -> Value:
    far = input >= FAR
    large, small = where(far, input, FAR), where(far, 1, input)
    near = lgamma(small) - ((small - 0.5) * log(small) - small + HALF_LOG_TWO_PI)
    return where(far, _series(_LGAMMA, 1 / (large * large)) / large, near)


def _digamma_error(input: Value) -> Value:
    far = input >= FAR
    large, small = where(far, input, FAR), where(far, 1, input)
    inverse = 1 / large
    square = inverse * inverse
    return where(far, 0.5 * inverse + square * _series(_DIGAMMA, square), log(small) - digamma(small))


def _log_beta(a: Value, b: Value) -> Value:
    total = a + b
    powers = 0.5 * log(total / a / b) - a * log1p(b / a) - b * log1p(a / b)
    return HALF_LOG_TWO_PI + powers + _stirling_error(a) + _stirling_error(b) - _stirling_error(total)


def _log_peak(a: Value) -> Value:
    """log(a^a e^-a / gamma(a))."""
    return 0.5 * log(a) - HALF_LOG_TWO_PI - _stirling_error(a)


def _near_deviance(x: Value, mean: Value) -> tuple[Value, Value]:
    """Whether x is near its mean, and x log(x / mean) - x + mean if so: a series of (x - mean) / (x + mean)."""
    difference = x - mean
    ratio = difference / (x + mean)
    near = abs(ratio) < 0.3
    ratio = where(near, ratio, 0)
    square = ratio * ratio
    return near, difference * ratio + 2 * x * ratio * square * _series(_ATANH, square)


def _deviance(x: Value, mean: Value) -> Value:
    zero = x == 0
    near, series = _near_deviance(where(zero, 1, x), where(zero, 1, mean))
    far = xlogy(x, where(near, 1, x / mean)) - x + mean
    return where(zero, mean, where(near, series, far))


def _gamma_divergence(a: Value, b: Value, mean: Value) -> Value:
    return (_deviance(b, mean) - 0.5 * log(b / a) + _stirling_error(b) - _stirling_error(a) + (b - a) * _digamma_error(a))


def _density(a: Value, mean: Value, log_x: Value, log_at_peak: Value) -> Value:
    """log(x^(a - 1) e^-mean / gamma(a)) - a log_at_peak, where log(x) is `log_at_peak` if `mean` is a.

    That is the peak's height less the deviance.
    """
    near, deviance = _near_deviance(a, mean)
    return _log_peak(a) + where(near, -deviance - log_x, (a - 1) * log_x - a * log_at_peak + a - mean)


def _log_gamma_density(a: Value, x: Value) -> Value:
    steep, end = (x == 0) & (a != 1), (x == 0) | (x == float("inf"))
    inside = where(end, 1, x)
    density = where(end, -x, _density(a, inside, log(inside), log(a)))
    return where(steep, (a - 1) * log(where(steep, x, 1)), density)


def _share(a: Value, total: Value, log_x: Value) -> Value:
    """The term of a share x with one concentration, given their total."""
    edge, log_share = log_x == float("-inf"), log(a / total)
    steep, inside = edge & (a != 1), where(edge, 0, log_x)
    density = where(edge, -log_share, _density(a, total * exp(inside), inside, log_share))
    return where(steep, (a - 1) * where(steep, log_x, 1), density)


def _log_beta_density(a: Value, b: Value, log_x: Value, log_y: Value) -> Value:
    total = a + b
    return _share(a, total, log_x) + _share(b, total, log_y) - _log_peak(total)


def _log_dirichlet_density(a: Value, log_x: Value) -> Value:
    return sum(_share(a, sum(a, -1, True), log_x), -1) - _log_peak(sum(a, -1))


def _row(name: str, expression: Callable[..., Value], doc: str) -> Operation:
    """An operation of its expression's parameters in one dtype, rounded at its end."""

    @wraps(expression)
    def define(*operands: Value) -> Value:
        values = promoted(*operands, floating=True)
        return cast(expression(*[widened(x) for x in values]), values[0].dtype)

    return composite(name, len(signature(expression).parameters), doc=doc, method=False, public=False)(define)


stirling_error = _row("stirling_error", _stirling_error, "lgamma(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2), of positive x.")
digamma_error = _row("digamma_error", _digamma_error, "log(x) - digamma(x), of positive x.")
deviance = _row("deviance", _deviance, "x log(x / mean) - x + mean, of x >= 0.")
gamma_divergence = _row(
    "gamma_divergence", _gamma_divergence,
    "The divergence of gamma distributions of concentrations a and b, the first of this mean where the other's rate is 1.")
log_beta = _row("log_beta", _log_beta, "lgamma(a) + lgamma(b) - lgamma(a + b), of positive numbers.")
log_gamma_density = _row("log_gamma_density", _log_gamma_density, "log(x^(a - 1) e^-x / gamma(a)).")
log_beta_density = _row(
    "log_beta_density", _log_beta_density, "log(x^(a - 1) y^(b - 1) / beta(a, b)), of logarithms of x + y = 1.")
log_dirichlet_density = _row(
    "log_dirichlet_density", _log_dirichlet_density,
    "The logarithm of Dirichlet's density along the last axis, of logarithms of shares x whose sum is 1.")
