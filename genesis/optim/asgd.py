"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.optim.optimizer import Group, Optimizer

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Gradient descent by steps that become smaller; the average of the parameters is kept under "ax" in the state.

    Args:
        params: tensors or groups of them.
        lr: the first step size; step t has lr / (1 + lambd * lr * (t - 1))^alpha.
        lambd: see `lr`; the parameter shrinks by this times the step size too.
        alpha: see `lr`.
        t0: the step after which averages are taken; before, they are the parameter.
        weight_decay: times the parameter, added to its gradient.
        maximize: climb.
        hints: `foreach` and `capturable`, accepted and of no effect.

    Raises ValueError for a negative setting.

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ASGD([x], lr=0.25, lambd=0.0)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    operation, kinds = "asgd_update", ("ax",)
    not_negative = "lr", "weight_decay"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0.0, *, maximize: bool = False, **hints: bool | None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize,
        }, hints)

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """The step size, what is kept of the parameter, the share of it in the average, weight decay, maximize."""
        lr, lambd = float(group["lr"]), group["lambd"]
        eta = lr / (1 + lambd * lr * (age - 1)) ** group["alpha"]
        share = 1 / max(1, age - 1 - group["t0"])
        return eta, 1 - lambd * eta, share, float(group["weight_decay"]), group["maximize"]
