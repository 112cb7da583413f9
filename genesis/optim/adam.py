"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from genesis.optim.optimizer import Group, Optimizer

__all__ = ["Adam", "AdamLike", "AdamW"]


class AdamLike(Optimizer):
    """The base of those that keep running averages, by two betas: of the gradient and of its square."""

    kinds: tuple[str, ...] = ("exp_avg", "exp_avg_sq")
    not_negative: tuple[str, ...] = ("lr", "eps", "weight_decay")

    def check(self, group: Group) -> None:
        """Raise ValueError for settings that make no sense."""
        super().check(group)
        if not all(0 <= beta < 1 for beta in group["betas"]):
            raise ValueError(f"{type(self).__name__}: betas are {group['betas']}; want them in [0, 1)")

    def averaging(self, group: Group, decoupled: bool) -> tuple[Any, ...]:
        """The settings that end those of a step: of both averages, and of weight decay, which joins the gradient or, if it is
        `decoupled`, shrinks the parameter.
        """
        (beta1, beta2), decay = group["betas"], float(group["weight_decay"])
        joined, kept = (0.0, 1 - float(group["lr"]) * decay) if decoupled else (decay, 1.0)
        return beta1, 1 - beta1, beta2, 1 - beta2, joined, kept, group["maximize"]


class Adam(AdamLike):
    """Steps scaled by running averages of the gradient and of its square.

    Args:
        params: tensors or groups of them.
        lr: the step size.
        betas: how much of the averages of the gradient and of its square is kept per step.
        eps: added to the square root that divides.
        weight_decay: times the parameter, added to its gradient.
        amsgrad: divide by the largest average of squares so far (Reddi, Kale and Kumar, 2018).
        maximize: climb.
        hints: `foreach`, `fused` and `capturable`, accepted and of no effect.

    Raises ValueError for a negative setting, and for a beta outside [0, 1).

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    decoupled = False  # whether weight decay shrinks the parameter instead of joining its gradient

    operation, kinds = "adam_update", ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
        **hints: bool | None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
        }, hints)

    def slots(self, group: Group) -> tuple[str, ...]:
        """The averages of the gradient and of its square, and AMSGrad's maximum of the latter."""
        return self.kinds if group["amsgrad"] else self.kinds[:2]

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """Those of `adam_update`; the averages' bias towards their first zeros is undone in the step size and eps."""
        beta1, beta2 = group["betas"]
        unbiased = math.sqrt(1 - beta2**age)
        step_size = float(group["lr"]) * unbiased / (1 - beta1**age)
        return step_size, group["eps"] * unbiased, *self.averaging(group, self.decoupled)


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself: p = p * (1 - lr * weight_decay) before the step."""

    decoupled = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
        **hints: bool | None,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **hints)
