"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.optim.optimizer import Group, Optimizer

__all__ = ["SGD"]


class SGD(Optimizer):
    """p = p - lr * v, with v = momentum * v + (1 - dampening) * gradient.

    Args:
        params: tensors or groups of them.
        lr: the step size.
        momentum: how much of the last step is kept.
        dampening: how much of a gradient the velocity leaves out (of the first, nothing).
        weight_decay: times the parameter, added to its gradient.
        nesterov: step along gradient + momentum * v instead.
        maximize: climb.
        hints: `foreach` and `fused`, accepted and of no effect.

    Raises ValueError for a negative setting, and for nesterov without momentum or with dampening.

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = SGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.8000, 1.6000], requires_grad=True)
    """

    operation, kinds = "sgd_update", ("momentum_buffer",)
    not_negative = "lr", "momentum", "weight_decay"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False,
        **hints: bool | None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
        }, hints)

    def check(self, group: Group) -> None:
        """Raise ValueError for settings that make no sense."""
        super().check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("SGD: nesterov wants a momentum above 0 and a dampening of 0")

    def slots(self, group: Group) -> tuple[str, ...]:
        """The velocity, if there is momentum."""
        return ("momentum_buffer",) if group["momentum"] else ()

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """lr, momentum, how much of the gradient is taken up, weight decay, nesterov, maximize."""
        fresh = 1.0 if age == 1 else 1.0 - group["dampening"]
        return (
            float(group["lr"]), float(group["momentum"]), fresh, float(group["weight_decay"]), group["nesterov"],
            group["maximize"],
        )
