"""Adamax (Kingma and Ba, 2015, section 7.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.optim.adam import AdamLike
from genesis.optim.optimizer import Group

__all__ = ["Adamax"]


class Adamax(AdamLike):
    """Adam whose steps are scaled by the greatest gradient of late, not by the average of squares.

    Args:
        params: tensors or groups of them.
        lr: the step size.
        betas: how much of the average of the gradient and of the greatest one is kept per step.
        eps: added to the size of each gradient.
        weight_decay: times the parameter, added to its gradient.
        maximize: climb.
        hints: `foreach` and `capturable`, accepted and of no effect.

    Raises ValueError for a negative setting, and for a beta outside [0, 1).

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = Adamax([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    operation, kinds = "adamax_update", ("exp_avg", "exp_inf")

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, *, maximize: bool = False, **hints: bool | None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        }, hints)

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """Those of `adamax_update`; the average's bias towards its first zero is undone in the step size."""
        beta1, beta2 = group["betas"]
        step_size = float(group["lr"]) / (1 - beta1**age)
        return step_size, group["eps"], beta1, 1 - beta1, beta2, float(group["weight_decay"]), group["maximize"]
