"""PyTorch's rejection sampling on the CPU, element by element, from a Mersenne Twister's words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.functions.sequential_draws import normal_pairs, uniform_doubles
from genesis.runtime.mersenne_twister import MersenneTwister

_THIRD = np.float32(1) / np.float32(3)


def _even(stream: MersenneTwister) -> float:
    return float(uniform_doubles(stream, 1)[0])


def _gamma(stream: MersenneTwister, concentration: np.floating) -> float:
    """G. Marsaglia, W. Tsang, "A Simple Method for Generating Gamma Variables", 2000."""
    scale = 1.0
    if concentration == 0:
        return 0.0
    if concentration < 1:
        scale = float((1 - _even(stream)) ** float(1 / concentration))
        concentration = concentration + 1  # type: ignore[assignment]
    d = float(concentration - type(concentration)(_THIRD))
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        while y <= 0:
            x = float(normal_pairs(stream, 1)[0])
            y = 1 + c * x
        v, u = y**3, 1 - _even(stream)
        if u < 1 - 0.0331 * x**4 or math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return scale * d * v


def _poisson(stream: MersenneTwister, rate: float) -> float:
    """Products of uniform numbers below 10; from 10 on W. Hoermann, "The Transformed Rejection Method", 1993."""
    if rate < 10:
        count, product, end = 0, _even(stream) if rate else 0.0, math.exp(-rate)
        while product > end:
            count, product = count + 1, product * _even(stream)
        return float(count)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a, inverse, vr = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = _even(stream) - 0.5, _even(stream)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= vr:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        if math.log(v) + math.log(inverse) - math.log(a / (us * us) + b) <= k * math.log(rate) - rate - math.lgamma(k + 1):
            return float(k)


def _binomial(stream: MersenneTwister, count: float, p: float) -> float:
    if count <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return float(count)
    if p > 0.5:
        return count - _binomial(stream, count, 1 - p)
    return (_by_transformed_rejection if count * p >= 10 else _by_waiting)(stream, count, p)


def _by_waiting(stream: MersenneTwister, count: float, p: float) -> float:
    """The number of waiting times that fit into `count` trials (L. Devroye, 1986)."""
    total, found, logarithm = 0.0, 0, math.log1p(-p)
    while True:
        total += math.ceil(math.log(_even(stream)) / logarithm)
        if total > count:
            return float(found)
        found += 1


def _stirling(k: float) -> float:
    """The error of Stirling's formula for log k!."""
    if k <= 9:
        return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    square = (k + 1) ** 2
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _by_transformed_rejection(stream: MersenneTwister, count: float, p: float) -> float:
    """W. Hoermann, "The Generation of Binomial Random Variates", 1993: BTRS."""
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a, c, vr, r = -0.0873 + 0.0248 * b + 0.01 * p, count * p + 0.5, 0.92 - 4.2 / b, p / (1 - p)
    alpha, m = (2.83 + 5.1 / b) * deviation, math.floor((count + 1) * p)
    while True:
        u, v = _even(stream) - 0.5, _even(stream)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if us >= 0.07 and v <= vr:
            return float(k)
        if k < 0 or k > count:
            continue
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (count - m + 1))) + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(r * (count - k + 1) / (k + 1))
            + _stirling(m) + _stirling(count - m) - _stirling(k) - _stirling(count - k))
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)


def _each(draw: Callable[..., float]) -> Callable[..., np.ndarray]:
    """`draw` for each element of the parameters, in order."""
    def draws(stream: MersenneTwister, *parameters: np.ndarray) -> np.ndarray:
        drawn = [draw(stream, *given) for given in zip(*[p.reshape(-1) for p in parameters], strict=True)]
        return np.array(drawn, np.float64).reshape(parameters[0].shape)

    return draws


def _standard_gamma(stream: MersenneTwister, concentration: np.ndarray) -> np.ndarray:
    return np.maximum(_each(_gamma)(stream, concentration), _limits(concentration).tiny)


def _dirichlet(stream: MersenneTwister, concentration: np.ndarray) -> np.ndarray:
    parts = _each(_gamma)(stream, concentration.astype(np.float64))
    limits = _limits(concentration)
    return np.clip(parts / parts.sum(-1, keepdims=True), limits.tiny, 1 - limits.epsneg)


def _limits(parameters: np.ndarray) -> Any:
    """The least and greatest numbers between 0 and 1 of the parameters' dtype; of float32 for shorter ones."""
    return np.finfo(np.promote_types(parameters.dtype, np.float32))


def _von_mises(stream: MersenneTwister, concentration: np.ndarray) -> np.ndarray:
    """D. Best, N. Fisher, "Efficient Simulation of the von Mises Distribution", 1979."""
    k = concentration.astype(np.float64)
    tau = 1 + np.sqrt(1 + 4 * k * k)
    rho = (tau - np.sqrt(2 * tau)) / (2 * k)
    r = np.where(k < 1e-5, 1 / k + k, (1 + rho * rho) / (2 * rho))
    angle, done = np.zeros(k.shape), np.zeros(k.shape, bool)
    while not done.all():
        u, v, side = uniform_doubles(stream, 3 * k.size).reshape(3, *k.shape)
        z = np.cos(math.pi * u)
        f = (1 + r * z) / (r + z)
        c = k * (r - f)
        accepted = (c * (2 - c) - v > 0) | (np.log(c / v) + 1 - c >= 0)
        angle = np.where(accepted, np.sign(side - 0.5) * np.arccos(np.clip(f, -1, 1)), angle)
        done |= accepted
    return angle


SAMPLES: dict[str, Callable[..., np.ndarray]] = {
    "standard_gamma": _standard_gamma, "dirichlet": _dirichlet, "von_mises": _von_mises, "poisson": _each(_poisson),
    "binomial": _each(_binomial),
    "standard_beta": lambda stream, a, b: _dirichlet(stream, np.stack([a, b], -1))[..., 0],
}
