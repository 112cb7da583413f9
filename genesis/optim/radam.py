"""RAdam: Adam with rectified variance in the first steps (Liu et al., 2020)."""

from __future__ import annotations

import math

from genesis.ops.elementwise import sqrt
from genesis.optim.adam import BETAS, averaging
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, shrunk, update_rule


@update_rule
def radam_update(
    parameter: Value, gradient: Value, average: Value, square: Value, rectified: Scalar, plain: Scalar, epsilon: Scalar,
    beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar, maximize: bool,
) -> Results:
    """m, s as in `adam_update`;  p = kept * p - m * (rectified / (sqrt(s) + epsilon) + plain)."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    average, square = average_of(average, gradient, beta1, fresh1), average_of(square, gradient * gradient, beta2, fresh2)
    return shrunk(parameter, kept) - average * (rectified / (sqrt(square) + epsilon) + plain), average, square


class RAdam(DeclaredOptimizer):
    """Adam with steps rectified by the variance of the average of squares; the first steps use only the average gradient."""

    lr: float = setting(default=1e-3, least=0, doc="the step size")
    betas: tuple[float, float] = BETAS
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    decoupled_weight_decay: bool = setting(default=False, doc="have weight decay shrink the parameter itself, as AdamW does")
    group_order = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
    operation, kinds = radam_update, ("exp_avg", "exp_avg_sq")
    is_elementwise = steps_by_addition = True
    example = "lr=0.1", "[0.8000, 1.6000]"

    def settings(self, group: Group, age: int) -> Numbers:
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        bias1, bias2 = 1 - beta1**age, 1 - beta2**age
        most = 2 / (1 - beta2) - 1
        known = most - 2 * age * beta2**age / bias2  # the effective length of the average so far
        rectified, plain = 0.0, lr / bias1
        if known > 5:  # the variance is tractable
            share = (known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known)
            rectified, plain = plain * math.sqrt(share * bias2), 0.0
        return rectified, plain, group["eps"], *averaging(group, group["decoupled_weight_decay"])
