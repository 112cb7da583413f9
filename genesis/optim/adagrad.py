"""Steps scaled by the sizes of past gradients: Adagrad, Adadelta, RMSprop and Adafactor."""

from __future__ import annotations

import math

import numpy as np

from genesis.functions.creation import zeros
from genesis.ir.dtypes import bfloat16
from genesis.ops.contraction import matmul
from genesis.ops.elementwise import clamp, maximum, rsqrt, sqrt
from genesis.ops.reduction import mean, sum
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, is_literal, shrunk, update_rule
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

    def first_value(self, slot: str, group: Group) -> float: return float(group["initial_accumulator_value"])

    def settings(self, group: Group, age: int) -> Numbers:
        lr = group["lr"] / (1 + (age - 1) * group["lr_decay"])
        return lr, float(group["eps"]), float(group["weight_decay"]), group["maximize"]

    def update_sparse(self, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int) -> None:
        if group["weight_decay"]:
            raise RuntimeError("Adagrad: weight_decay option is not compatible with sparse gradients; want 0")
        self._update_rows(parameters, gradients, group, age)


@update_rule
def adadelta_update(
    parameter: Value, gradient: Value, square: Value, delta: Value, lr: Scalar, rho: Scalar, fresh: Scalar, epsilon: Scalar,
    weight_decay: Scalar, maximize: bool,
) -> Results:
    """s = rho * s + fresh * g^2;  d = g * sqrt((a + epsilon) / (s + epsilon));  a = rho * a + fresh * d^2;  p = p - lr * d."""
    gradient = descent(parameter, gradient, weight_decay, maximize)
    square = average_of(square, gradient * gradient, rho, fresh)
    step = gradient * (sqrt(delta + epsilon) / sqrt(square + epsilon))
    return parameter - step * lr, square, average_of(delta, step * step, rho, fresh)


class Adadelta(DeclaredOptimizer):
    """Steps scaled by running averages of squared gradients and squared steps."""

    lr: float = setting(default=1.0, least=0, doc="a factor of the step")
    rho: float = setting(default=0.9, least=0, most=1, doc="how much of the averages is kept per step")
    eps: float = setting(default=1e-6, least=0, doc="added to the averages before their roots are taken")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    group_order = "lr rho eps weight_decay maximize capturable foreach differentiable"
    operation, kinds = adadelta_update, ("square_avg", "acc_delta")
    is_elementwise = steps_by_addition = True
    example = "eps=0.01", "[0.6877, 1.6848]"

    def settings(self, group: Group, age: int) -> Numbers:
        rho, decay = group["rho"], float(group["weight_decay"])
        return float(group["lr"]), rho, 1 - rho, group["eps"], decay, group["maximize"]


@update_rule
def rmsprop_update(
    parameter: Value, gradient: Value, square: Value, average: Value | None, velocity: Value | None, lr: Scalar, alpha: Scalar,
    fresh: Scalar, epsilon: Scalar, weight_decay: Scalar, momentum: Scalar, maximize: bool,
) -> Results:
    """s = alpha * s + fresh * g^2;  v = momentum * v + g / (sqrt(s) + epsilon);  p = p - lr * v.

    With `average`, a = alpha * a + fresh * g, and s - a^2 replaces s. Without `velocity` there is no momentum.
    """
    gradient = descent(parameter, gradient, weight_decay, maximize)
    square = average_of(square, gradient * gradient, alpha, fresh)
    average = None if average is None else average_of(average, gradient, alpha, fresh)
    step = gradient / (sqrt(square if average is None else square - average * average) + epsilon)
    velocity = None if velocity is None else velocity * momentum + step
    return parameter - (step if velocity is None else velocity) * lr, square, average, velocity


class RMSprop(DeclaredOptimizer):
    """Steps scaled by a running average of the gradient's square."""

    lr: float = setting(default=1e-2, least=0, doc="the step size")
    alpha: float = setting(default=0.99, least=0, doc="how much of the averages is kept per step")
    eps: float = setting(default=1e-8, least=0, doc="added to the square root that divides")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    momentum: float = setting(default=0, least=0, doc="how much of the last step is kept")
    centered: bool = setting(default=False, doc="divide by the standard deviation instead: the average's square is taken off")
    group_order = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
    operation, kinds = rmsprop_update, ("square_avg", "grad_avg", "momentum_buffer")
    is_elementwise = True
    example = "lr=0.01", "[0.9000, 1.9000]"

    def slots(self, group: Group) -> tuple[str, ...]:
        return "square_avg", *["momentum_buffer"] * (group["momentum"] > 0), *["grad_avg"] * bool(group["centered"])

    def settings(self, group: Group, age: int) -> Numbers:
        alpha, decay, momentum = float(group["alpha"]), float(group["weight_decay"]), float(group["momentum"])
        return float(group["lr"]), alpha, 1 - alpha, float(group["eps"]), decay, momentum, group["maximize"]


@update_rule
def adafactor_update(
    parameter: Value, gradient: Value, rows: Value | None, columns: Value | None, square: Value | None, rate: Scalar,
    least_scale: Scalar, kept: Scalar, old: Scalar, fresh: Scalar, clipping: Scalar, epsilon: float, maximize: bool,
) -> Results:
    """u = g / sqrt(s), scaled down to the root mean square `clipping`;  p = kept * p - max(least_scale, rms(p)) * rate * u.

    s is `square` = old * square + fresh * g^2, or of matrices the outer product of its means over columns and rows.
    """
    gradient = descent(parameter, gradient, 0, maximize)
    squares = gradient * gradient
    if rows is not None and columns is not None:
        rows = average_of(rows, mean(squares, -1, True), old, fresh)
        columns = average_of(columns, mean(squares, -2, True), old, fresh)
        estimate = matmul(rows, columns) / clamp(mean(rows, -2, True), min=epsilon)
    else:
        assert square is not None
        estimate = square = average_of(square, squares, old, fresh)
    update = rsqrt(clamp(estimate, min=epsilon * epsilon)) * gradient
    count = math.sqrt(parameter.node.numel)
    shrink = maximum(sqrt(sum(update * update)) / (clipping * count), 1.0)
    scale = maximum(sqrt(sum(parameter * parameter)) / count, least_scale) * rate / shrink
    moved = (parameter if is_literal(kept, 1) else shrunk(parameter, kept)) - update * scale
    return moved, rows, columns, square


class Adafactor(DeclaredOptimizer):
    """Steps scaled as in Adam, with the average of squares stored as one row and one column per matrix."""

    lr: float = setting(default=1e-2, least=0, doc="the greatest relative step; step t has 1 / sqrt(t) at most")
    beta2_decay: float = setting(default=-0.8, most=0, least=-1e9, doc="step t counts t**beta2_decay in the averages")
    eps: tuple[float | None, float] = setting(
        default=(None, 1e-3), doc="what squares count as at least (None: the dtype's eps), and the parameter's size"
    )
    d: float = setting(default=1.0, least=1, doc="what the root mean square of a step is at most, before scaling")
    weight_decay: float = setting(default=0.0, least=0, doc="times the step size, what a step shrinks the parameter by")
    takes_complex = False
    group_order = "lr beta2_decay eps d weight_decay foreach maximize"
    operation, kinds = adafactor_update, ("row_var", "col_var", "variance")
    example = "lr=0.1", "[0.8419, 1.8419]"
    hints = ("foreach",)

    def check(self, group: Group) -> None:
        super().check(group)
        first, second = group["eps"]
        if (first is not None and not first >= 0) or not second >= 0:
            raise ValueError(f"Adafactor: eps are {group['eps']}; want 0 or more, of which the first may be None")

    def state_of(self, parameter: Tensor, group: Group) -> State:
        state = self.state[parameter]
        if not state:
            shape = parameter.shape
            shapes = {"variance": shape} if len(shape) < 2 else {
                "row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}
            made = {slot: zeros(s, dtype=parameter.dtype, device=parameter.device) for slot, s in shapes.items()}
            state.update(step=0, **made)
        return state

    def update(self, parameters: list[Tensor], group: Group, age: int) -> None:
        """Update matrices and vectors separately: their state differs."""
        for matrices in (True, False):
            alike = [p for p in parameters if (p.ndim > 1) == matrices]
            if alike:
                self._update(alike, group, age, self.kinds[:2] if matrices else self.kinds[2:])

    def settings(self, group: Group, age: int) -> Numbers:
        lr, fresh = float(group["lr"]), age ** group["beta2_decay"]
        dtype = group["params"][0].dtype  # all of a group have one dtype
        epsilon = group["eps"][0]
        if epsilon is None:
            epsilon = 2.0**-7 if dtype is bfloat16 else float(np.finfo(dtype.numpy).eps)
        rate, kept = min(lr, 1 / math.sqrt(age)), 1 - lr * group["weight_decay"]
        return rate, group["eps"][1], kept, 1 - fresh, fresh, float(group["d"]), epsilon, group["maximize"]
