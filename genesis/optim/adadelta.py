"""Adadelta (Zeiler, 2012)."""

from __future__ import annotations

from genesis.ops.elementwise import sqrt
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, update_rule


@update_rule
def adadelta_update(
    parameter: Value, gradient: Value, square: Value, delta: Value, lr: Scalar, rho: Scalar, fresh: Scalar, epsilon: Scalar,
    weight_decay: Scalar, maximize: bool,
) -> Results:
    """s = rho * s + fresh * g^2;  d = g * sqrt((a + epsilon) / (s + epsilon));  a = rho * a + fresh * d^2;  p = p - lr * d."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    square = average_of(square, gradient * gradient, rho, fresh)
    step = gradient * (sqrt(delta + epsilon) / sqrt(square + epsilon))
    return parameter - step * lr, square, average_of(delta, step * step, rho, fresh)


class Adadelta(DeclaredOptimizer):
    """Steps scaled by running averages of squared gradients and squared steps."""

    lr: float = setting(default=1.0, least=0, doc="a factor of the step")
    rho: float = setting(default=0.9, least=0, most=1, doc="how much of the averages is kept per step")
    eps: float = setting(default=1e-6, least=0, doc="added to the averages before their roots are taken")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    group_order = "lr rho eps weight_decay maximize capturable foreach differentiable"
    operation, kinds = adadelta_update, ("square_avg", "acc_delta")
    is_elementwise = steps_by_addition = True
    example = "eps=0.01", "[0.6877, 1.6848]"

    def settings(self, group: Group, age: int) -> Numbers:
        rho, decay = group["rho"], float(group["weight_decay"])
        return float(group["lr"]), rho, 1 - rho, group["eps"], decay, group["maximize"]
