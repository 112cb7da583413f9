"""RAdam: Adam whose first steps wait for a variance (Liu et al., 2020)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from genesis.optim.adam import AdamLike
from genesis.optim.optimizer import Group

__all__ = ["RAdam"]


class RAdam(AdamLike):
    """Adam whose steps are rectified by what is known of the variance; before anything is, they follow the average alone.

    Args:
        params: tensors or groups of them.
        lr: the step size.
        betas: how much of the averages of the gradient and of its square is kept per step.
        eps: added to the square root that divides.
        weight_decay: times the parameter, added to its gradient.
        decoupled_weight_decay: have weight decay shrink the parameter itself, as AdamW does.
        maximize: climb.
        hints: `foreach` and `capturable`, accepted and of no effect.

    Raises ValueError for a negative setting, and for a beta outside [0, 1).

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = RAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    operation = "radam_update"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, maximize: bool = False, **hints: bool | None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
        }, hints)

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """Those of `radam_update`: a rectified step, or a plain one as long as the variance is not known."""
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        bias1, bias2 = 1 - beta1**age, 1 - beta2**age
        most = 2 / (1 - beta2) - 1
        known = most - 2 * age * beta2**age / bias2  # the length of the average's memory so far
        rectified, plain = 0.0, lr / bias1
        if known > 5:
            share = (known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known)
            rectified, plain = plain * math.sqrt(share * bias2), 0.0
        return rectified, plain, group["eps"], *self.averaging(group, group["decoupled_weight_decay"])
