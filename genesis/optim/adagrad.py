"""Adagrad (Duchi, Hazan and Singer, 2011)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.functions.creation import full_like
from genesis.optim.optimizer import Group, Optimizer
from genesis.tensor.handle import Tensor

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Steps scaled by the sum of all squares of the gradient so far.

    Args:
        params: tensors or groups of them.
        lr: the step size of the first step; it is divided by 1 + lr_decay * (steps so far).
        lr_decay: see `lr`.
        weight_decay: times the parameter, added to its gradient.
        initial_accumulator_value: what the sums begin with.
        eps: added to the square root that divides.
        maximize: climb.
        hints: `foreach` and `fused`, accepted and of no effect.

    Raises ValueError for a negative setting.

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = Adagrad([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000, 1.9000], requires_grad=True)
    """

    operation, kinds = "adagrad_update", ("sum",)
    not_negative = "lr", "lr_decay", "eps", "weight_decay", "initial_accumulator_value"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False, **hints: bool | None,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
        }, hints)

    def state_of(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        """The state of `parameter`: "step", and "sum", which begins with the group's initial value."""
        if parameter not in self.state:
            self.state[parameter] = {"step": 0, "sum": full_like(parameter, group["initial_accumulator_value"])}
        return super().state_of(parameter, group)

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """The learning rate, which falls from step to step, eps, weight decay, maximize."""
        lr = group["lr"] / (1 + (age - 1) * group["lr_decay"])
        return lr, float(group["eps"]), float(group["weight_decay"]), group["maximize"]
