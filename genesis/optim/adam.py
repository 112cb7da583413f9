"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

import math
from typing import ClassVar

from genesis.ir.annotations import Options
from genesis.ops.elementwise import maximum, sqrt
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, shrunk, update_rule
from genesis.tensor.handle import Tensor

BETAS = setting(
    default=(0.9, 0.999), least=0, below=1, doc="how much of the averages of the gradient and of its square is kept per step"
)


def averaging(group: Group, decoupled: bool) -> Numbers:
    """The last numbers of the Adam family: those of both averages, and weight decay, coupled or decoupled."""
    (beta1, beta2), decay = group["betas"], float(group["weight_decay"])
    joined, kept = (0.0, 1 - float(group["lr"]) * decay) if decoupled else (decay, 1.0)
    return beta1, 1 - beta1, beta2, 1 - beta2, joined, kept, group["maximize"]


@update_rule
def adam_update(
    parameter: Value, gradient: Value, average: Value, square: Value, largest: Value | None, step_size: Scalar, epsilon: Scalar,
    beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar, maximize: bool,
) -> Results:
    """m = beta1 * m + fresh1 * g;  s = beta2 * s + fresh2 * g^2;  p = kept * p - step_size * m / (sqrt(s) + epsilon).

    The order of Kingma and Ba, 2015, end of section 2: the bias corrections are folded into `step_size` and `epsilon`.
    `kept` is AdamW's decay, 1 - lr * weight_decay. With `largest` (AMSGrad), the largest s so far divides instead.
    """
    gradient = descent(parameter, gradient, weight_decay, maximize)
    average, square = average_of(average, gradient, beta1, fresh1), average_of(square, gradient * gradient, beta2, fresh2)
    largest = None if largest is None else maximum(largest, square)
    divisor = sqrt(square if largest is None else largest) + epsilon
    return shrunk(parameter, kept) - average * step_size / divisor, average, square, largest


class Adam(DeclaredOptimizer):
    """Steps scaled by running averages of the gradient and of its square."""

    lr: float = setting(default=1e-3, least=0, doc="the step size")
    betas: tuple[float, float] = BETAS
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    amsgrad: bool = setting(default=False, doc="divide by the largest average of squares so far (Reddi, Kale and Kumar, 2018)")

    operation, kinds = adam_update, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    is_elementwise = True
    example = "lr=0.1", "[0.9000, 1.9000]"
    hints = ("foreach", "capturable", "differentiable", "fused")
    group_order = "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay"
    decoupled_weight_decay: bool = setting(
        default=False, kw_only=True, doc="have weight decay shrink the parameter itself, as AdamW does")
    instead = ", please consider SparseAdam instead"

    def check(self, group: Group) -> None:
        betas = [beta for beta in group["betas"] if isinstance(beta, Tensor)]
        if len(betas) == 1 or any([beta.numel() != 1 for beta in betas]):
            raise ValueError(f"{type(self).__name__}: betas must be either both floats or both Tensors of one element, got "
                             f"{group['betas']}")
        super().check(group)

    def slots(self, group: Group) -> tuple[str, ...]:
        return self.kinds if group["amsgrad"] else self.kinds[:2]

    def settings(self, group: Group, age: int) -> Numbers:
        beta1, beta2 = group["betas"]
        unbiased = math.sqrt(1 - beta2**age)  # bias correction is folded into the numbers
        step_size = float(group["lr"]) * unbiased / (1 - beta1**age)
        return step_size, group["eps"] * unbiased, *averaging(group, group["decoupled_weight_decay"])


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself: p = p * (1 - lr * weight_decay) before the step."""

    weight_decay: float = setting(default=1e-2, least=0, doc="times the step size, what a step shrinks the parameter by")
    example = "lr=0.1", "[0.8990, 1.8980]"
    lacks = ("decoupled_weight_decay",)
    fixed: ClassVar[Options] = {"decoupled_weight_decay": True}
