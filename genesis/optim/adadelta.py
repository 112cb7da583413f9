"""Adadelta (Zeiler, 2012)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.optim.optimizer import Group, Optimizer

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Steps as large as those before, by running averages of the squares of gradients and of steps.

    Args:
        params: tensors or groups of them.
        lr: a factor of the step.
        rho: how much of the averages is kept per step.
        eps: added to the averages before their roots are taken.
        weight_decay: times the parameter, added to its gradient.
        maximize: climb.
        hints: `foreach` and `capturable`, accepted and of no effect.

    Raises ValueError for a negative setting, and for a rho outside [0, 1].

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = Adadelta([x], eps=0.01)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.6877, 1.6848], requires_grad=True)
    """

    operation, kinds = "adadelta_update", ("square_avg", "acc_delta")
    not_negative = "lr", "eps", "weight_decay"

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *,
        maximize: bool = False, **hints: bool | None,
    ) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}, hints)

    def check(self, group: Group) -> None:
        """Raise ValueError for settings that make no sense."""
        super().check(group)
        if not 0 <= group["rho"] <= 1:
            raise ValueError(f"Adadelta: rho is {group['rho']}; want it in [0, 1]")

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """Those of `adadelta_update`."""
        rho = group["rho"]
        return float(group["lr"]), rho, 1 - rho, group["eps"], float(group["weight_decay"]), group["maximize"]
