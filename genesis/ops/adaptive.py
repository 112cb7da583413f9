"""One step of an optimizer, as in `optimize`: Adam's further kin, Adadelta, averaged descent, and Rprop."""

from __future__ import annotations

from genesis.ir.graph import Value
from genesis.ops.elementwise import abs as magnitude
from genesis.ops.elementwise import clamp, maximum, sign, sqrt, where
from genesis.ops.optimize import Lists, Scalar, Values, averaged, gradients_of, is_literal, shrunk, update

__all__ = ["adadelta_update", "adamax_update", "asgd_update", "nadam_update", "radam_update", "rprop_update"]


def _squared(values: Values) -> list[Value]:
    return [v * v for v in values]


@update("adamax_update", slots=2, numbers=6)
def adamax_update(
    parameters: Values, gradients: Values, averages: Values, norms: Values, step_size: Scalar, epsilon: Scalar,
    beta1: Scalar, fresh1: Scalar, beta2: Scalar, weight_decay: Scalar, maximize: bool,
) -> Lists:
    """m = beta1 * m + fresh1 * g;  u = max(beta2 * u, |g| + epsilon);  p = p - step_size * m / u.

    Returns the new parameters, then the averages and the norms.
    """
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    averages = averaged(averages, grads, beta1, fresh1)
    norms = [maximum(u * beta2, magnitude(g) + epsilon) for u, g in zip(norms, grads, strict=True)]
    updated = [p - m * step_size / u for p, m, u in zip(parameters, averages, norms, strict=True)]
    return updated, averages, norms


@update("nadam_update", slots=2, numbers=9)
def nadam_update(
    parameters: Values, gradients: Values, averages: Values, squares: Values, by_gradient: Scalar, by_average: Scalar,
    epsilon: Scalar, beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar,
    maximize: bool,
) -> Lists:
    """m, s as in `adam_update`;  p = kept * p - (by_gradient * g + by_average * m) / (sqrt(s) + epsilon).

    Returns the new parameters, then the averages and the squares.
    """
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    averages = averaged(averages, grads, beta1, fresh1)
    squares = averaged(squares, _squared(grads), beta2, fresh2)
    updated = [
        p - (g * by_gradient + m * by_average) / (sqrt(s) + epsilon)
        for p, g, m, s in zip(shrunk(parameters, kept), grads, averages, squares, strict=True)
    ]
    return updated, averages, squares


@update("radam_update", slots=2, numbers=9)
def radam_update(
    parameters: Values, gradients: Values, averages: Values, squares: Values, rectified: Scalar, plain: Scalar,
    epsilon: Scalar, beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar,
    maximize: bool,
) -> Lists:
    """m, s as in `adam_update`;  p = kept * p - m * (rectified / (sqrt(s) + epsilon) + plain).

    Returns the new parameters, then the averages and the squares.
    """
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    averages = averaged(averages, grads, beta1, fresh1)
    squares = averaged(squares, _squared(grads), beta2, fresh2)
    updated = [
        p - m * (rectified / (sqrt(s) + epsilon) + plain)
        for p, m, s in zip(shrunk(parameters, kept), averages, squares, strict=True)
    ]
    return updated, averages, squares


@update("adadelta_update", slots=2, numbers=5)
def adadelta_update(
    parameters: Values, gradients: Values, squares: Values, deltas: Values, lr: Scalar, rho: Scalar, fresh: Scalar,
    epsilon: Scalar, weight_decay: Scalar, maximize: bool,
) -> Lists:
    """s = rho * s + fresh * g^2;  d = g * sqrt(a + epsilon) / sqrt(s + epsilon);  a = rho * a + fresh * d^2;  p = p - lr * d.

    Returns the new parameters, then the squares s and the squares a of steps.
    """
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    squares = averaged(squares, _squared(grads), rho, fresh)
    steps = [
        g * (sqrt(a + epsilon) / sqrt(s + epsilon)) for g, a, s in zip(grads, deltas, squares, strict=True)
    ]
    deltas = averaged(deltas, _squared(steps), rho, fresh)
    updated = [p - d * lr for p, d in zip(parameters, steps, strict=True)]
    return updated, squares, deltas


@update("asgd_update", slots=1, numbers=4)
def asgd_update(
    parameters: Values, gradients: Values, averages: Values, eta: Scalar, kept: Scalar, share: Scalar, weight_decay: Scalar,
    maximize: bool,
) -> Lists:
    """p = kept * p - eta * g;  a = a + share * (p - a). Returns the new parameters, then the averages."""
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    updated = [p - g * eta for p, g in zip(shrunk(parameters, kept), grads, strict=True)]
    averages = updated if is_literal(share, 1) else [a + (p - a) * share for a, p in zip(averages, updated, strict=True)]
    return updated, averages


@update("rprop_update", slots=2, numbers=4)
def rprop_update(
    parameters: Values, gradients: Values, last: Values, sizes: Values, less: Scalar, more: Scalar, least: Scalar,
    most: Scalar, maximize: bool,
) -> Lists:
    """Steps against the gradient's sign, longer by `more` where it is the last one's, shorter by `less`, and none, where not.

    Returns the new parameters, then the gradients that count as the last ones, and the sizes of steps.
    """
    grads = gradients_of(parameters, gradients, 0, maximize)
    turns = [g * before for g, before in zip(grads, last, strict=True)]
    sizes = [
        clamp(where(t > 0, s * more, where(t < 0, s * less, s)), min=least, max=most) for t, s in zip(turns, sizes, strict=True)
    ]
    grads = [where(t < 0, 0, g) for t, g in zip(turns, grads, strict=True)]
    updated = [p - sign(g) * s for p, g, s in zip(parameters, grads, sizes, strict=True)]
    return updated, grads, sizes
