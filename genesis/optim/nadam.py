"""NAdam: Adam with Nesterov's momentum (Dozat, 2016)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from genesis.optim.adam import AdamLike
from genesis.optim.optimizer import Group

__all__ = ["NAdam"]


class NAdam(AdamLike):
    """Adam that looks a step ahead: the next step's momentum counts in this one's.

    Args:
        params: tensors or groups of them.
        lr: the step size.
        betas: how much of the averages of the gradient and of its square is kept per step.
        eps: added to the square root that divides.
        weight_decay: times the parameter, added to its gradient.
        momentum_decay: how fast the momentum grows towards the first beta.
        decoupled_weight_decay: have weight decay shrink the parameter itself, as AdamW does.
        maximize: climb.
        hints: `foreach` and `capturable`, accepted and of no effect.

    The first beta is meant to stay as it is: the product of all momenta counts as if it always had. Raises ValueError for
    a negative setting, and for a beta outside [0, 1).

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = NAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8944, 1.8944], requires_grad=True)
    """

    operation = "nadam_update"
    not_negative = "lr", "eps", "weight_decay", "momentum_decay"

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        maximize: bool = False, **hints: bool | None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
        }, hints)

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """Those of `nadam_update`; what undoes the bias of squares multiplies all that their root divides, and eps."""
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        unbiased, growth = math.sqrt(1 - beta2**age), group["momentum_decay"]
        by_gradient = lr * (1 - _momentum(beta1, growth, age)) / (1 - _product(beta1, growth, age))
        by_average = lr * _momentum(beta1, growth, age + 1) / (1 - _product(beta1, growth, age + 1))
        return (
            by_gradient * unbiased, by_average * unbiased, group["eps"] * unbiased,
            *self.averaging(group, group["decoupled_weight_decay"]),
        )


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
