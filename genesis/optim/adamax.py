"""Adamax (Kingma and Ba, 2015, section 7.1)."""

from __future__ import annotations

from genesis.ops.elementwise import abs as magnitude
from genesis.ops.elementwise import maximum
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, update_rule


@update_rule
def adamax_update(
    parameter: Value, gradient: Value, average: Value, norm: Value, step_size: Scalar, epsilon: Scalar, beta1: Scalar,
    fresh1: Scalar, beta2: Scalar, weight_decay: Scalar, maximize: bool,
) -> Results:
    """m = beta1 * m + fresh1 * g;  u = max(beta2 * u, |g| + epsilon);  p = p - step_size * m / u."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    average, norm = average_of(average, gradient, beta1, fresh1), maximum(norm * beta2, magnitude(gradient) + epsilon)
    return parameter - average * step_size / norm, average, norm


class Adamax(DeclaredOptimizer):
    """Adam with steps scaled by a decaying maximum of gradients instead of the average of squares."""

    lr: float = setting(default=2e-3, least=0, doc="the step size")
    betas: tuple[float, float] = setting(default=(0.9, 0.999), least=0, below=1, doc="how much of both is kept per step")
    eps: float = setting(default=1e-8, least=0, doc="added to the size of each gradient")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    group_order = "lr betas eps weight_decay foreach maximize differentiable capturable"
    operation, kinds = adamax_update, ("exp_avg", "exp_inf")
    is_elementwise = True
    example = "lr=0.1", "[0.9000, 1.9000]"

    def settings(self, group: Group, age: int) -> Numbers:
        beta1, beta2 = group["betas"]
        step_size = float(group["lr"]) / (1 - beta1**age)  # bias correction
        return step_size, group["eps"], beta1, 1 - beta1, beta2, float(group["weight_decay"]), group["maximize"]
