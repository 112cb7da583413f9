"""Adagrad (Duchi, Hazan and Singer, 2011)."""

from __future__ import annotations

from genesis.ops.elementwise import sqrt
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, setting
from genesis.optim.sparse_gradients import update_rows
from genesis.optim.update_rule import Results, Scalar, Value, descent, update_rule
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor


@update_rule
def adagrad_update(
    parameter: Value, gradient: Value, total: Value, lr: Scalar, epsilon: Scalar, weight_decay: Scalar, maximize: bool
) -> Results:
    """s = s + g^2;  p = p - lr * g / (sqrt(s) + epsilon)."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    total = total + gradient * gradient
    return parameter - gradient * lr / (sqrt(total) + epsilon), total


class Adagrad(DeclaredOptimizer):
    """Steps scaled by the sum of all squares of the gradient so far."""

    lr: float = setting(default=1e-2, least=0, doc="the first step size; it is divided by 1 + lr_decay * (steps so far)")
    lr_decay: float = setting(default=0, least=0, doc="see `lr`")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    initial_accumulator_value: float = setting(default=0, least=0, doc="what the sums begin with")
    eps: float = setting(default=1e-10, least=0, doc="added to the square root that divides")
    group_order = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
    operation, kinds = adagrad_update, ("sum",)
    is_elementwise = True
    example = "lr=0.1", "[0.9000, 1.9000]"
    keeps_before_stepping = True
    hints = ("foreach", "differentiable", "fused")

    def first_value(self, slot: str, group: Group) -> float:
        return float(group["initial_accumulator_value"])

    def settings(self, group: Group, age: int) -> Numbers:
        lr = group["lr"] / (1 + (age - 1) * group["lr_decay"])
        return lr, float(group["eps"]), float(group["weight_decay"]), group["maximize"]

    def update_sparse(self, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int) -> None:
        if group["weight_decay"]:
            raise RuntimeError("Adagrad: weight_decay option is not compatible with sparse gradients; want 0")
        update_rows(self, parameters, gradients, group, age)
