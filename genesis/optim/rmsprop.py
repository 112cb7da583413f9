"""RMSprop (Tieleman and Hinton, 2012), and its centered form (Graves, 2013)."""

from __future__ import annotations

from genesis.ops.elementwise import sqrt
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, update_rule


@update_rule
def rmsprop_update(
    parameter: Value, gradient: Value, square: Value, average: Value | None, velocity: Value | None, lr: Scalar, alpha: Scalar,
    fresh: Scalar, epsilon: Scalar, weight_decay: Scalar, momentum: Scalar, maximize: bool,
) -> Results:
    """s = alpha * s + fresh * g^2;  v = momentum * v + g / (sqrt(s) + epsilon);  p = p - lr * v.

    With `average`, a = alpha * a + fresh * g, and s - a^2 replaces s. Without `velocity` there is no momentum.
    """
    gradient = descent(parameter, gradient, weight_decay, maximize)
    square = average_of(square, gradient * gradient, alpha, fresh)
    average = None if average is None else average_of(average, gradient, alpha, fresh)
    step = gradient / (sqrt(square if average is None else square - average * average) + epsilon)
    velocity = None if velocity is None else velocity * momentum + step
    return parameter - (step if velocity is None else velocity) * lr, square, average, velocity


class RMSprop(DeclaredOptimizer):
    """Steps scaled by a running average of the gradient's square."""

    lr: float = setting(default=1e-2, least=0, doc="the step size")
    alpha: float = setting(default=0.99, least=0, doc="how much of the averages is kept per step")
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    momentum: float = setting(default=0, least=0, doc="how much of the last step is kept")
    centered: bool = setting(default=False, doc="divide by the standard deviation instead: the average's square is taken off")
    group_order = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
    operation, kinds = rmsprop_update, ("square_avg", "grad_avg", "momentum_buffer")
    is_elementwise = True
    example = "lr=0.01", "[0.9000, 1.9000]"

    def slots(self, group: Group) -> tuple[str, ...]:
        return "square_avg", *["momentum_buffer"] * (group["momentum"] > 0), *["grad_avg"] * bool(group["centered"])

    def settings(self, group: Group, age: int) -> Numbers:
        alpha, decay, momentum = float(group["alpha"]), float(group["weight_decay"]), float(group["momentum"])
        return float(group["lr"]), alpha, 1 - alpha, float(group["eps"]), decay, momentum, group["maximize"]
