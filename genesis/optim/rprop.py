"""Resilient backpropagation (Riedmiller and Braun, 1993)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from genesis.functions.from_data import tensor
from genesis.ops.elementwise import clamp, sign, where
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, setting
from genesis.optim.update_rule import Results, Scalar, Value, descent, in_both_parts, update_rule
from genesis.tensor.handle import Tensor
from genesis.tracing.recording_hooks import refuse


@update_rule
def rprop_update(
    parameter: Value, gradient: Value, last: Value, size: Value, less: Scalar, more: Scalar, least: Scalar, most: Scalar,
    maximize: bool,
) -> Results:
    """Steps against the gradient's sign: `more` times as long while it stays, `less` times, and not taken, when it turns."""
    gradient = descent(parameter, gradient, 0, maximize)
    turn = gradient * last
    size = clamp(where(turn > 0, size * more, where(turn < 0, size * less, size)), min=least, max=most)
    gradient = where(turn < 0, 0, gradient)
    return parameter - sign(gradient) * size, gradient, size


class Rprop(DeclaredOptimizer):
    """Steps only by the gradient's sign; each element's step grows while the sign is constant and shrinks when it changes.

    Raises ValueError unless the factors are below and above 1.
    """

    lr: float = setting(default=1e-2, least=0, doc="the size of the first step")
    etas: tuple[float, float] = setting(default=(0.5, 1.2), doc="the factors of a step that is shortened, and lengthened")
    step_sizes: tuple[float, float] = setting(default=(1e-6, 50), doc="the least and the greatest step")
    _rates: ClassVar[Any]  # per optimizer: its groups' rates when they were added
    group_order = "lr etas step_sizes foreach maximize differentiable capturable"
    operation, kinds = rprop_update, ("prev", "step_size")
    is_elementwise = True
    example = "lr=0.25", "[0.7500, 1.7500]"

    def check(self, group: Group) -> None:
        super().check(group)
        if not 0 < group["etas"][0] < 1 < group["etas"][1]:
            raise ValueError(f"Rprop: etas are {group['etas']}; want one between 0 and 1, and one above 1")

    def first_value(self, slot: str, group: Group) -> float:
        return float(group["lr"]) if slot == "step_size" else 0.0

    def add_param_group(self, group: Group) -> None:
        super().add_param_group(group)
        vars(self).setdefault("_rates", []).append(self.param_groups[-1]["lr"])

    def update(self, parameters: list[Tensor], group: Group, age: int) -> None:
        index = next(place for place, other in enumerate(self.param_groups) if other is group)
        if age == 1 and group["lr"] != self._rates[index]:  # a schedule has started since: it determines the first steps
            refuse("the size of the first steps changes")
            for parameter in parameters:  # computed now, so that the first step runs the same program as all others
                sizes = np.full(parameter.shape, in_both_parts(float(group["lr"]), parameter.dtype), parameter.dtype.numpy)
                self.state[parameter]["step_size"] = tensor(sizes, device=parameter.device)
        super().update(parameters, group, age)

    def settings(self, group: Group, age: int) -> Numbers:
        return *group["etas"], *map(float, group["step_sizes"]), group["maximize"]
