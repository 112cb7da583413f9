"""RMSprop (Tieleman and Hinton, 2012), and its centered form (Graves, 2013)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.optim.optimizer import Group, Optimizer

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Steps scaled by a running average of the gradient's square.

    Args:
        params: tensors or groups of them.
        lr: the step size.
        alpha: how much of the averages is kept per step.
        eps: added to the square root that divides.
        weight_decay: times the parameter, added to its gradient.
        momentum: how much of the last step is kept.
        centered: divide by the standard deviation instead: the average's square is taken off.
        maximize: climb.
        hints: `foreach` and `capturable`, accepted and of no effect.

    Raises ValueError for a negative setting.

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = RMSprop([x], lr=0.01)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    operation, kinds = "rmsprop_update", ("square_avg", "grad_avg", "momentum_buffer")
    not_negative = "lr", "eps", "momentum", "weight_decay", "alpha"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
        momentum: float = 0.0, centered: bool = False, *, maximize: bool = False, **hints: bool | None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "maximize": maximize,
        }, hints)

    def slots(self, group: Group) -> tuple[str, ...]:
        """The average of squares, the velocity, and the average of gradients, as far as they are used."""
        wanted = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return tuple([name for name, used in wanted.items() if used])

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """lr, alpha, 1 - alpha, eps, weight decay, momentum, maximize."""
        alpha = float(group["alpha"])
        return (
            float(group["lr"]), alpha, 1 - alpha, float(group["eps"]), float(group["weight_decay"]),
            float(group["momentum"]), group["maximize"],
        )
