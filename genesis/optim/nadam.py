"""NAdam: Adam with Nesterov's momentum (Dozat, 2016)."""

from __future__ import annotations

import math
from functools import lru_cache

from genesis.functions.from_data import tensor
from genesis.ir.dtypes import float32
from genesis.ops.elementwise import sqrt
from genesis.optim.adam import BETAS, averaging
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, shrunk, update_rule


@update_rule
def nadam_update(
    parameter: Value, gradient: Value, average: Value, square: Value, by_gradient: Scalar, by_average: Scalar, epsilon: Scalar,
    beta1: Scalar, fresh1: Scalar, beta2: Scalar, fresh2: Scalar, weight_decay: Scalar, kept: Scalar, maximize: bool,
) -> Results:
    """m, s as in `adam_update`;  p = kept * p - (by_gradient * g + by_average * m) / (sqrt(s) + epsilon)."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    average, square = average_of(average, gradient, beta1, fresh1), average_of(square, gradient * gradient, beta2, fresh2)
    step = (gradient * by_gradient + average * by_average) / (sqrt(square) + epsilon)
    return shrunk(parameter, kept) - step, average, square


class NAdam(DeclaredOptimizer):
    """Adam with Nesterov momentum: a step uses the next step's momentum.

    The first beta must stay constant: the product of all momenta is computed as if it did.
    """

    lr: float = setting(default=2e-3, least=0, doc="the step size")
    betas: tuple[float, float] = BETAS
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    momentum_decay: float = setting(default=4e-3, least=0, doc="how fast the momentum grows towards the first beta")
    decoupled_weight_decay: bool = setting(default=False, doc="have weight decay shrink the parameter itself, as AdamW does")
    operation, kinds = nadam_update, ("exp_avg", "exp_avg_sq")
    is_elementwise = True
    example = "lr=0.1", "[0.8944, 1.8944]"

    def shown(self, group: Group, state: State) -> State:
        kept, beta1 = super().shown(group, state), group["betas"][0]
        product = _product(beta1, group["momentum_decay"], state["step"])
        return {"step": kept.pop("step"), "mu_product": tensor(product, dtype=float32), **kept} if kept else {}

    def settings(self, group: Group, age: int) -> Numbers:
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        unbiased, growth = math.sqrt(1 - beta2**age), group["momentum_decay"]  # the squares' bias correction multiplies all
        by_gradient = lr * (1 - _momentum(beta1, growth, age)) / (1 - _product(beta1, growth, age))
        by_average = lr * _momentum(beta1, growth, age + 1) / (1 - _product(beta1, growth, age + 1))
        averages = averaging(group, group["decoupled_weight_decay"])
        return by_gradient * unbiased, by_average * unbiased, group["eps"] * unbiased, *averages


def _momentum(beta: float, growth: float, age: int) -> float:
    return float(beta * (1 - 0.5 * 0.96 ** (age * growth)))


@lru_cache(1 << 10)
def _logarithms(beta: float, growth: float) -> list[float]:
    return [0.0]


def _product(beta: float, growth: float, age: int) -> float:
    """The product of the momenta of steps 1 to `age`."""
    if not beta:
        return 0.0
    sums = _logarithms(beta, growth)
    while len(sums) <= age:
        sums.append(sums[-1] + math.log(_momentum(beta, growth, len(sums))))
    return math.exp(sums[age])
