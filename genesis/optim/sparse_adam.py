"""SparseAdam: Adam that leaves alone what a gradient does not reach."""

from __future__ import annotations

import math

from genesis.ir.replayable import replayable_module
from genesis.ops.elementwise import sqrt, where
from genesis.ops.reduction import any
from genesis.optim.adam import BETAS
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, update_rule


@update_rule
def sparse_adam_update(
    parameter: Value, gradient: Value, average: Value, square: Value, step_size: Scalar, epsilon: Scalar, beta1: Scalar,
    fresh1: Scalar, beta2: Scalar, fresh2: Scalar, maximize: bool,
) -> Results:
    """m, s and p as in `adam_update`, in the rows (positions along the first axis) where the gradient is not all zeros."""
    gradient = descent(parameter, gradient, 0, maximize)
    met = gradient != 0
    met = any(met, tuple(range(1, gradient.ndim)), True) if gradient.ndim > 1 else met
    fresh = average_of(average, gradient, beta1, fresh1), average_of(square, gradient * gradient, beta2, fresh2)
    step = fresh[0] * step_size / (sqrt(fresh[1]) + epsilon)
    return where(met, parameter - step, parameter), where(met, fresh[0], average), where(met, fresh[1], square)


class SparseAdam(DeclaredOptimizer):
    """Adam for gradients that reach few rows of a parameter: the other rows, and their averages, stay as they are.

    Gradients are dense here: a row of zeros is one that was not reached.
    """

    lr: float = setting(default=1e-3, least=0, doc="the step size")
    betas: tuple[float, float] = BETAS
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    takes_complex = False
    operation, kinds = sparse_adam_update, ("exp_avg", "exp_avg_sq")
    example = "lr=0.1", "[0.9000, 1.9000]"
    hints = ()

    def shown(self, group: Group, state: State) -> State:
        return dict(state) if state["step"] else {}

    def settings(self, group: Group, age: int) -> Numbers:
        beta1, beta2 = group["betas"]
        step_size = float(group["lr"]) * math.sqrt(1 - beta2**age) / (1 - beta1**age)
        return step_size, group["eps"], beta1, 1 - beta1, beta2, 1 - beta2, group["maximize"]


replayable_module(__name__)
