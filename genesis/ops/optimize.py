"""One step of an optimizer over many parameters: elementwise expressions that lowering fuses into one kernel each.

Sequences go in and come out, so that a step over any number of parameters is recorded as one call. Numbers that a
schedule changes are operands: they reach the compiled program as arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from genesis.ir.graph import Value
from genesis.ops.elementwise import abs as magnitude
from genesis.ops.elementwise import clamp, isfinite, logical_not, maximum, pow, sqrt
from genesis.ops.reduction import amax, any, sum
from genesis.ops.registry import cast, composite, widened

__all__ = [
    "Scalar", "Values", "adagrad_update", "adam_update", "clip_to_norm", "clip_to_value", "gradients_of", "is_literal", "like",
    "rmsprop_update", "sgd_update", "unscale", "wide",
]

Values = Sequence[Value]
Scalar = Value | float


def is_literal(x: Scalar, literal: float) -> bool:
    """True for the Python number `literal`, which a definition may simplify away."""
    return not isinstance(x, Value) and x == literal


def gradients_of(parameters: Values, gradients: Values, weight_decay: Scalar, maximize: bool) -> list[Value]:
    """The directions to descend: the sign turned if maximizing, and `weight_decay` times the parameter added."""
    directions = [-g for g in gradients] if maximize else list(gradients)
    if is_literal(weight_decay, 0):
        return directions
    return [g + p * weight_decay for p, g in zip(parameters, directions, strict=True)]


def like(values: Values, models: Values) -> tuple[Value, ...]:
    """The values in the dtypes of their models."""
    return tuple(cast(v, m.dtype) for v, m in zip(values, models, strict=True))


def wide(*lists: Values) -> list[list[Value]]:
    """All values in the dtype that arithmetic runs in."""
    return [[widened(v) for v in values] for values in lists]


# ---- updates ----


@composite("sgd_update", (3, 4, 5, 6), methods=())
def sgd_update(
    parameters: Values, gradients: Values, velocities: Values, lr: Scalar, momentum: Scalar, fresh: Scalar,
    weight_decay: Scalar, nesterov: bool, maximize: bool,
) -> tuple[Value, ...]:
    """v = momentum * v + fresh * g;  p = p - lr * v, or p - lr * (g + momentum * v) with `nesterov`.

    Without `velocities`, p = p - lr * g. Returns the new parameters, then the velocities.
    """
    stored = parameters
    parameters, gradients, velocities = wide(parameters, gradients, velocities)
    steps = grads = gradients_of(parameters, gradients, weight_decay, maximize)
    if velocities:
        drawn = grads if is_literal(fresh, 1) else [g * fresh for g in grads]
        velocities = [v * momentum + g for v, g in zip(velocities, drawn, strict=True)]
        steps = [g + v * momentum for g, v in zip(grads, velocities, strict=True)] if nesterov else list(velocities)
    updated = [p - s * lr for p, s in zip(parameters, steps, strict=True)]
    return like(updated, stored) + like(velocities, stored[: len(velocities)])


@composite("adam_update", (5, 6, 7, 8, 9, 10, 11, 12), methods=())
def adam_update(
    parameters: Values, gradients: Values, averages: Values, squares: Values, maxima: Values, step_size: Scalar,
    epsilon: Scalar, beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar,
    maximize: bool,
) -> tuple[Value, ...]:
    """m = beta1 * m + fresh1 * g;  s = beta2 * s + fresh2 * g^2;  p = kept * p - step_size * m / (sqrt(s) + epsilon).

    The order of Kingma and Ba, 2015, end of section 2: the bias corrections are folded into `step_size` and `epsilon`.
    `kept` is AdamW's decay, 1 - lr * weight_decay. With `maxima` (AMSGrad), the largest s so far divides instead.
    Returns the new parameters, then the averages, the squares and the maxima.
    """
    stored = parameters
    parameters, gradients, averages, squares, maxima = wide(parameters, gradients, averages, squares, maxima)
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    averages = [m * beta1 + g * fresh1 for m, g in zip(averages, grads, strict=True)]
    squares = [s * beta2 + g * g * fresh2 for s, g in zip(squares, grads, strict=True)]
    maxima = [maximum(t, s) for t, s in zip(maxima, squares, strict=True)] if maxima else []
    updated = []
    for p, m, s in zip(parameters, averages, maxima or squares, strict=True):
        held = p if is_literal(kept, 1) else p * kept
        updated.append(held - m * step_size / (sqrt(s) + epsilon))
    return tuple(
        cast(value, parameter.dtype)
        for values in (updated, averages, squares, maxima)
        for value, parameter in zip(values, stored, strict=False)
    )


@composite("rmsprop_update", (5, 6, 7, 8, 9, 10), methods=())
def rmsprop_update(
    parameters: Values, gradients: Values, squares: Values, averages: Values, velocities: Values, lr: Scalar,
    alpha: Scalar, fresh: Scalar, epsilon: Scalar, weight_decay: Scalar, momentum: Scalar, maximize: bool,
) -> tuple[Value, ...]:
    """s = alpha * s + fresh * g^2;  v = momentum * v + g / (sqrt(s) + epsilon);  p = p - lr * v.

    With `averages`, a = alpha * a + fresh * g, and s - a^2 stands for s. Without `velocities` there is no momentum.
    Returns the new parameters, then the squares, the averages and the velocities.
    """
    stored = parameters
    parameters, gradients, squares, averages, velocities = wide(parameters, gradients, squares, averages, velocities)
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    squares = [s * alpha + g * g * fresh for s, g in zip(squares, grads, strict=True)]
    averages = [a * alpha + g * fresh for a, g in zip(averages, grads, strict=True)] if averages else []
    variances = [s - a * a for s, a in zip(squares, averages, strict=True)] if averages else squares
    steps = [g / (sqrt(v) + epsilon) for g, v in zip(grads, variances, strict=True)]
    velocities = [v * momentum + s for v, s in zip(velocities, steps, strict=True)] if velocities else []
    updated = [p - s * lr for p, s in zip(parameters, velocities or steps, strict=True)]
    return tuple([v for values in (updated, squares, averages, velocities) for v in like(values, stored[: len(values)])])


@composite("adagrad_update", (3, 4, 5), methods=())
def adagrad_update(
    parameters: Values, gradients: Values, sums: Values, lr: Scalar, epsilon: Scalar, weight_decay: Scalar, maximize: bool
) -> tuple[Value, ...]:
    """s = s + g^2;  p = p - lr * g / (sqrt(s) + epsilon). Returns the new parameters, then the sums."""
    stored = parameters
    parameters, gradients, sums = wide(parameters, gradients, sums)
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    sums = [s + g * g for s, g in zip(sums, grads, strict=True)]
    updated = [p - g * lr / (sqrt(s) + epsilon) for p, g, s in zip(parameters, grads, sums, strict=True)]
    return like(updated, stored) + like(sums, stored)


# ---- gradient clipping ----


@composite("clip_to_norm", (1,), methods=())
def clip_to_norm(gradients: Values, max_norm: Scalar, norm_type: float) -> tuple[Value, ...]:
    """The norm of all gradients taken as one vector, then the gradients scaled down to `max_norm` where it is larger."""
    (grads,) = wide(gradients)
    if norm_type == float("inf"):
        total = amax(magnitude(grads[0]))
        for g in grads[1:]:
            total = maximum(total, amax(magnitude(g)))
    else:
        powers = [sum(g * g if norm_type == 2 else pow(magnitude(g), norm_type)) for g in grads]
        total = powers[0]
        for power in powers[1:]:
            total = total + power
        total = sqrt(total) if norm_type == 2 else pow(total, 1 / norm_type)
    scale = clamp(max_norm / (total + 1e-6), max=1.0)
    return total, *like([g * scale for g in grads], gradients)


@composite("clip_to_value", (1, 2), methods=())
def clip_to_value(gradients: Values, low: Scalar, high: Scalar) -> tuple[Value, ...]:
    """The gradients held within [low, high]."""
    return tuple(clamp(g, min=low, max=high) for g in gradients)


# ---- loss scaling ----


@composite("unscale", (1,), methods=())
def unscale(gradients: Values, inverse: Scalar) -> tuple[Value, ...]:
    """Whether a gradient is infinite or NaN somewhere, then the gradients times `inverse`."""
    overflow = reduce(or_, [any(logical_not(isfinite(g))) for g in gradients])
    return overflow, *like([g * inverse for g in gradients], gradients)
