"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.sparse_gradients import update_rows
from genesis.optim.update_rule import Results, Scalar, Value, descent, is_literal, update_rule
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor


@update_rule
def sgd_update(
    parameter: Value, gradient: Value, velocity: Value | None, lr: Scalar, momentum: Scalar, fresh: Scalar,
    weight_decay: Scalar, nesterov: bool, maximize: bool,
) -> Results:
    """v = momentum * v + fresh * g;  p = p - lr * v; with `nesterov`, lr * (g + momentum * v). Without momentum, v is g."""
    step = gradient = descent(parameter, gradient, weight_decay, maximize)
    if velocity is not None:
        velocity = velocity * momentum + (gradient if is_literal(fresh, 1) else gradient * fresh)
        step = gradient + velocity * momentum if nesterov else velocity
    return parameter - step * lr, velocity


class SGD(DeclaredOptimizer):
    """p = p - lr * v, with v = momentum * v + (1 - dampening) * gradient.

    Raises ValueError for nesterov without momentum or with dampening.
    """

    lr: float = setting(default=1e-3, least=0, doc="the step size")
    momentum: float = setting(default=0, least=0, doc="how much of the last step is kept")
    dampening: float = setting(default=0, doc="how much of a gradient the velocity leaves out (of the first, nothing)")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    nesterov: bool = setting(default=False, doc="step along gradient + momentum * v instead")

    operation, kinds = sgd_update, ("momentum_buffer",)
    is_elementwise = steps_by_addition = True
    example = "lr=0.1", "[0.8000, 1.6000]"
    hints = ("foreach", "differentiable", "fused")

    def check(self, group: Group) -> None:
        super().check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("SGD: nesterov wants a momentum above 0 and a dampening of 0")

    def slots(self, group: Group) -> tuple[str, ...]:
        return self.kinds if group["momentum"] else ()

    def shown(self, group: Group, state: State) -> State:
        return {name: state[name] for name in self.slots(group)} if state["step"] else {}

    def settings(self, group: Group, age: int) -> Numbers:
        fresh, decay = 1.0 if age == 1 else 1.0 - group["dampening"], float(group["weight_decay"])
        return float(group["lr"]), float(group["momentum"]), fresh, decay, group["nesterov"], group["maximize"]

    def update_sparse(self, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int) -> None:
        if group["weight_decay"]:
            raise RuntimeError("SGD: weight_decay is not compatible with sparse gradients; want 0")
        if group["momentum"]:  # every row updated once keeps moving
            self._update(parameters, group, age, self.slots(group), [g.to_dense() for g in gradients])
        else:
            update_rows(self, parameters, gradients, group, age)
