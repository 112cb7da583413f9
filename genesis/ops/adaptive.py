"""One step of an optimizer, as in `optimize`: Adam's further kin, Adadelta, averaged descent, and Rprop."""

from __future__ import annotations

from genesis.ir.graph import Value
from genesis.ops.elementwise import abs as magnitude
from genesis.ops.elementwise import clamp, maximum, sign, sqrt, where
from genesis.ops.optimize import Scalar, Values, gradients_of, is_literal, like, wide
from genesis.ops.registry import composite

__all__ = ["adadelta_update", "adamax_update", "asgd_update", "nadam_update", "radam_update", "rprop_update"]


def _averaged(held: Values, fresh: Values, kept: Scalar, share: Scalar) -> list[Value]:
    return [h * kept + f * share for h, f in zip(held, fresh, strict=True)]


def _shrunk(parameters: Values, kept: Scalar) -> list[Value]:
    return list(parameters) if is_literal(kept, 1) else [p * kept for p in parameters]


def _squared(values: Values) -> list[Value]:
    return [v * v for v in values]


@composite("adamax_update", (4, 5, 6, 7, 8, 9), methods=())
def adamax_update(
    parameters: Values, gradients: Values, averages: Values, norms: Values, step_size: Scalar, epsilon: Scalar,
    beta1: Scalar, fresh1: Scalar, beta2: Scalar, weight_decay: Scalar, maximize: bool,
) -> tuple[Value, ...]:
    """m = beta1 * m + fresh1 * g;  u = max(beta2 * u, |g| + epsilon);  p = p - step_size * m / u.

    Returns the new parameters, then the averages and the norms.
    """
    stored = parameters
    parameters, gradients, averages, norms = wide(parameters, gradients, averages, norms)
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    averages = _averaged(averages, grads, beta1, fresh1)
    norms = [maximum(u * beta2, magnitude(g) + epsilon) for u, g in zip(norms, grads, strict=True)]
    updated = [p - m * step_size / u for p, m, u in zip(parameters, averages, norms, strict=True)]
    return like(updated, stored) + like(averages, stored) + like(norms, stored)


@composite("nadam_update", (4, 5, 6, 7, 8, 9, 10, 11, 12), methods=())
def nadam_update(
    parameters: Values, gradients: Values, averages: Values, squares: Values, by_gradient: Scalar, by_average: Scalar,
    epsilon: Scalar, beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar,
    maximize: bool,
) -> tuple[Value, ...]:
    """m, s as in `adam_update`;  p = kept * p - (by_gradient * g + by_average * m) / (sqrt(s) + epsilon).

    Returns the new parameters, then the averages and the squares.
    """
    stored = parameters
    parameters, gradients, averages, squares = wide(parameters, gradients, averages, squares)
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    averages = _averaged(averages, grads, beta1, fresh1)
    squares = _averaged(squares, _squared(grads), beta2, fresh2)
    updated = [
        p - (g * by_gradient + m * by_average) / (sqrt(s) + epsilon)
        for p, g, m, s in zip(_shrunk(parameters, kept), grads, averages, squares, strict=True)
    ]
    return like(updated, stored) + like(averages, stored) + like(squares, stored)


@composite("radam_update", (4, 5, 6, 7, 8, 9, 10, 11, 12), methods=())
def radam_update(
    parameters: Values, gradients: Values, averages: Values, squares: Values, rectified: Scalar, plain: Scalar,
    epsilon: Scalar, beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar,
    maximize: bool,
) -> tuple[Value, ...]:
    """m, s as in `adam_update`;  p = kept * p - m * (rectified / (sqrt(s) + epsilon) + plain).

    Returns the new parameters, then the averages and the squares.
    """
    stored = parameters
    parameters, gradients, averages, squares = wide(parameters, gradients, averages, squares)
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    averages = _averaged(averages, grads, beta1, fresh1)
    squares = _averaged(squares, _squared(grads), beta2, fresh2)
    updated = [
        p - m * (rectified / (sqrt(s) + epsilon) + plain)
        for p, m, s in zip(_shrunk(parameters, kept), averages, squares, strict=True)
    ]
    return like(updated, stored) + like(averages, stored) + like(squares, stored)


@composite("adadelta_update", (4, 5, 6, 7, 8), methods=())
def adadelta_update(
    parameters: Values, gradients: Values, squares: Values, deltas: Values, lr: Scalar, rho: Scalar, fresh: Scalar,
    epsilon: Scalar, weight_decay: Scalar, maximize: bool,
) -> tuple[Value, ...]:
    """s = rho * s + fresh * g^2;  d = g * sqrt(a + epsilon) / sqrt(s + epsilon);  a = rho * a + fresh * d^2;  p = p - lr * d.

    Returns the new parameters, then the squares s and the squares a of steps.
    """
    stored = parameters
    parameters, gradients, squares, deltas = wide(parameters, gradients, squares, deltas)
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    squares = _averaged(squares, _squared(grads), rho, fresh)
    steps = [
        g * (sqrt(a + epsilon) / sqrt(s + epsilon)) for g, a, s in zip(grads, deltas, squares, strict=True)
    ]
    deltas = _averaged(deltas, _squared(steps), rho, fresh)
    updated = [p - d * lr for p, d in zip(parameters, steps, strict=True)]
    return like(updated, stored) + like(squares, stored) + like(deltas, stored)


@composite("asgd_update", (3, 4, 5, 6), methods=())
def asgd_update(
    parameters: Values, gradients: Values, averages: Values, eta: Scalar, kept: Scalar, share: Scalar, weight_decay: Scalar,
    maximize: bool,
) -> tuple[Value, ...]:
    """p = kept * p - eta * g;  a = a + share * (p - a). Returns the new parameters, then the averages."""
    stored = parameters
    parameters, gradients, averages = wide(parameters, gradients, averages)
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    updated = [p - g * eta for p, g in zip(_shrunk(parameters, kept), grads, strict=True)]
    averages = updated if is_literal(share, 1) else [a + (p - a) * share for a, p in zip(averages, updated, strict=True)]
    return like(updated, stored) + like(averages, stored)


@composite("rprop_update", (4, 5, 6, 7), methods=())
def rprop_update(
    parameters: Values, gradients: Values, last: Values, sizes: Values, less: Scalar, more: Scalar, least: Scalar,
    most: Scalar, maximize: bool,
) -> tuple[Value, ...]:
    """Steps against the gradient's sign, longer by `more` where it is the last one's, shorter by `less`, and none, where not.

    Returns the new parameters, then the gradients that count as the last ones, and the sizes of steps.
    """
    stored = parameters
    parameters, gradients, last, sizes = wide(parameters, gradients, last, sizes)
    grads = gradients_of(parameters, gradients, 0, maximize)
    turns = [g * before for g, before in zip(grads, last, strict=True)]
    sizes = [
        clamp(where(t > 0, s * more, where(t < 0, s * less, s)), min=least, max=most) for t, s in zip(turns, sizes, strict=True)
    ]
    grads = [where(t < 0, 0, g) for t, g in zip(turns, grads, strict=True)]
    updated = [p - sign(g) * s for p, g, s in zip(parameters, grads, sizes, strict=True)]
    return like(updated, stored) + like(grads, stored) + like(sizes, stored)
