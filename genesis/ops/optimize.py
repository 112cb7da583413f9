"""One step of an optimizer over many parameters: elementwise expressions that lowering fuses into one kernel each.

Sequences go in and come out, so that a step over any number of parameters is recorded as one call. Numbers that a
schedule changes are operands: they reach the compiled program as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from operator import or_
from typing import Any

from genesis.ir.graph import Value
from genesis.ops.elementwise import abs as magnitude
from genesis.ops.elementwise import clamp, isfinite, logical_not, maximum, pow, sqrt
from genesis.ops.reduction import amax, any, sum
from genesis.ops.registry import Operation, cast, composite, widened

__all__ = [
    "Lists", "Scalar", "Values", "adagrad_update", "adam_update", "averaged", "clip_to_norm", "clip_to_value", "gradients_of",
    "is_literal", "rmsprop_update", "sgd_update", "shrunk", "unscale", "update",
]

Values = Sequence[Value]
Lists = tuple[Values, ...]
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


def averaged(held: Values, fresh: Values, kept: Scalar, share: Scalar) -> list[Value]:
    """Running averages: kept * held + share * fresh."""
    return [h * kept + f * share for h, f in zip(held, fresh, strict=True)]


def shrunk(parameters: Values, kept: Scalar) -> list[Value]:
    """The parameters after weight decay of their own."""
    return list(parameters) if is_literal(kept, 1) else [p * kept for p in parameters]


def _like(values: Values, models: Values) -> tuple[Value, ...]:
    """The values in the dtypes of their models."""
    return tuple(cast(v, m.dtype) for v, m in zip(values, models, strict=True))


def update(name: str, slots: int, numbers: int) -> Callable[[Callable[..., Lists]], Operation]:
    """Decorator: one step of an optimizer, of the parameters, their gradients, so many slots and so many numbers.

    It computes in the dtype that arithmetic runs in. What it returns, new parameters and new values of the slots, comes in
    the dtypes of the parameters, one list after the other; slots that are not used are empty.
    """

    def register(define: Callable[..., Lists]) -> Operation:
        @wraps(define)
        def step(parameters: Values, *rest: Any) -> tuple[Value, ...]:
            tensors, settings = (parameters, *rest[: slots + 1]), rest[slots + 1 :]
            found = define(*[[widened(v) for v in values] for values in tensors], *settings)
            return tuple([v for values in found for v in _like(values, parameters[: len(values)])])

        return composite(name, range(slots + 2, slots + 2 + numbers), methods=())(step)

    return register


# ---- updates ----


@update("sgd_update", slots=1, numbers=4)
def sgd_update(
    parameters: Values, gradients: Values, velocities: Values, lr: Scalar, momentum: Scalar, fresh: Scalar,
    weight_decay: Scalar, nesterov: bool, maximize: bool,
) -> Lists:
    """v = momentum * v + fresh * g;  p = p - lr * v, or p - lr * (g + momentum * v) with `nesterov`.

    Without `velocities`, p = p - lr * g. Returns the new parameters, then the velocities.
    """
    steps = grads = gradients_of(parameters, gradients, weight_decay, maximize)
    if velocities:
        drawn = grads if is_literal(fresh, 1) else [g * fresh for g in grads]
        velocities = [v * momentum + g for v, g in zip(velocities, drawn, strict=True)]
        steps = [g + v * momentum for g, v in zip(grads, velocities, strict=True)] if nesterov else list(velocities)
    updated = [p - s * lr for p, s in zip(parameters, steps, strict=True)]
    return updated, velocities


@update("adam_update", slots=3, numbers=8)
def adam_update(
    parameters: Values, gradients: Values, averages: Values, squares: Values, maxima: Values, step_size: Scalar,
    epsilon: Scalar, beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar,
    maximize: bool,
) -> Lists:
    """m = beta1 * m + fresh1 * g;  s = beta2 * s + fresh2 * g^2;  p = kept * p - step_size * m / (sqrt(s) + epsilon).

    The order of Kingma and Ba, 2015, end of section 2: the bias corrections are folded into `step_size` and `epsilon`.
    `kept` is AdamW's decay, 1 - lr * weight_decay. With `maxima` (AMSGrad), the largest s so far divides instead.
    Returns the new parameters, then the averages, the squares and the maxima.
    """
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    averages = averaged(averages, grads, beta1, fresh1)
    squares = [s * beta2 + g * g * fresh2 for s, g in zip(squares, grads, strict=True)]
    maxima = [maximum(t, s) for t, s in zip(maxima, squares, strict=True)] if maxima else []
    updated = [
        p - m * step_size / (sqrt(s) + epsilon)
        for p, m, s in zip(shrunk(parameters, kept), averages, maxima or squares, strict=True)
    ]
    return updated, averages, squares, maxima


@update("rmsprop_update", slots=3, numbers=6)
def rmsprop_update(
    parameters: Values, gradients: Values, squares: Values, averages: Values, velocities: Values, lr: Scalar,
    alpha: Scalar, fresh: Scalar, epsilon: Scalar, weight_decay: Scalar, momentum: Scalar, maximize: bool,
) -> Lists:
    """s = alpha * s + fresh * g^2;  v = momentum * v + g / (sqrt(s) + epsilon);  p = p - lr * v.

    With `averages`, a = alpha * a + fresh * g, and s - a^2 stands for s. Without `velocities` there is no momentum.
    Returns the new parameters, then the squares, the averages and the velocities.
    """
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    squares = [s * alpha + g * g * fresh for s, g in zip(squares, grads, strict=True)]
    averages = [a * alpha + g * fresh for a, g in zip(averages, grads, strict=True)] if averages else []
    variances = [s - a * a for s, a in zip(squares, averages, strict=True)] if averages else squares
    steps = [g / (sqrt(v) + epsilon) for g, v in zip(grads, variances, strict=True)]
    velocities = [v * momentum + s for v, s in zip(velocities, steps, strict=True)] if velocities else []
    updated = [p - s * lr for p, s in zip(parameters, velocities or steps, strict=True)]
    return updated, squares, averages, velocities


@update("adagrad_update", slots=1, numbers=3)
def adagrad_update(
    parameters: Values, gradients: Values, sums: Values, lr: Scalar, epsilon: Scalar, weight_decay: Scalar, maximize: bool
) -> Lists:
    """s = s + g^2;  p = p - lr * g / (sqrt(s) + epsilon). Returns the new parameters, then the sums."""
    grads = gradients_of(parameters, gradients, weight_decay, maximize)
    sums = [s + g * g for s, g in zip(sums, grads, strict=True)]
    updated = [p - g * lr / (sqrt(s) + epsilon) for p, g, s in zip(parameters, grads, sums, strict=True)]
    return updated, sums


# ---- gradient clipping ----


@composite("clip_to_norm", (1,), methods=())
def clip_to_norm(gradients: Values, max_norm: Scalar, norm_type: float) -> tuple[Value, ...]:
    """The norm of all gradients taken as one vector, then the gradients scaled down to `max_norm` where it is larger."""
    grads = [widened(g) for g in gradients]
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
    return total, *_like([g * scale for g in grads], gradients)


@composite("clip_to_value", (1, 2), methods=())
def clip_to_value(gradients: Values, low: Scalar, high: Scalar) -> tuple[Value, ...]:
    """The gradients held within [low, high]."""
    return tuple(clamp(g, min=low, max=high) for g in gradients)


# ---- loss scaling ----


@composite("unscale", (1,), methods=())
def unscale(gradients: Values, inverse: Scalar) -> tuple[Value, ...]:
    """Whether a gradient is infinite or NaN somewhere, then the gradients times `inverse`."""
    overflow = reduce(or_, [any(logical_not(isfinite(g))) for g in gradients])
    return overflow, *_like([g * inverse for g in gradients], gradients)
