"""Resilient backpropagation (Riedmiller and Braun, 1993)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.functions.creation import full_like
from genesis.optim.optimizer import Group, Optimizer
from genesis.tensor.handle import Tensor

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Steps by the sign of the gradient alone, each element's longer while it keeps its sign and shorter when it turns.

    Args:
        params: tensors or groups of them.
        lr: the size of the first step.
        etas: the factors of a step that is shortened and of one that is lengthened.
        step_sizes: the least and the greatest step.
        maximize: climb.
        hints: `foreach` and `capturable`, accepted and of no effect.

    Raises ValueError for a negative step size, and for factors that do not lie on both sides of 1.

    >>> import genesis
    >>> x = genesis.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = Rprop([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.7500, -1.7500], requires_grad=True)
    """

    operation, kinds = "rprop_update", ("prev", "step_size")
    not_negative = ("lr",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, maximize: bool = False, **hints: bool | None,
    ) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}, hints)

    def check(self, group: Group) -> None:
        """Raise ValueError for settings that make no sense."""
        super().check(group)
        less, more = group["etas"]
        if not 0 < less < 1 < more:
            raise ValueError(f"Rprop: etas are {group['etas']}; want one between 0 and 1, and one above 1")

    def state_of(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        """The state of `parameter`: "step", "prev", and "step_size", which begins with the group's learning rate."""
        if parameter not in self.state:
            self.state[parameter] = {"step": 0, "step_size": full_like(parameter, group["lr"])}
        return super().state_of(parameter, group)

    def settings(self, group: Group, age: int) -> tuple[Any, ...]:
        """The factors, the bounds of steps, maximize."""
        return *group["etas"], *map(float, group["step_sizes"]), group["maximize"]
