"""Adafactor (Shazeer and Stern, 2018): the average of squares as a product of a row and a column."""

from __future__ import annotations

import math

import numpy as np

from genesis.functions.creation import zeros
from genesis.ir.annotations import Options
from genesis.ir.dtypes import bfloat16
from genesis.ops.contraction import matmul
from genesis.ops.elementwise import clamp, maximum, rsqrt, sqrt
from genesis.ops.reduction import mean, sum
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, descent, is_literal, shrunk, update_rule
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach


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

    def _load(self, parameter: Tensor, group: Group, saved: Options | None) -> None:
        if saved is None:
            self.state.pop(parameter, None)
            return
        state = self.state_of(parameter, group)
        state["step"] = int(saved["step"])
        for slot in self.kinds:
            if slot in state:
                state[slot] = detach(saved[slot]).to(parameter, copy=True)

    def update(self, parameters: list[Tensor], group: Group, age: int) -> None:
        """Update matrices and vectors separately: their state differs."""
        for matrices in (True, False):
            alike = [p for p in parameters if (p.ndim > 1) == matrices]
            if alike:
                self._update(alike, group, age, self.kinds[:2] if matrices else self.kinds[2:])

    def slots(self, group: Group) -> tuple[str, ...]:
        return self.kinds

    def settings(self, group: Group, age: int) -> Numbers:
        lr, fresh = float(group["lr"]), age ** group["beta2_decay"]
        dtype = group["params"][0].dtype  # all of a group have one dtype
        epsilon = group["eps"][0]
        if epsilon is None:
            epsilon = 2.0**-7 if dtype is bfloat16 else float(np.finfo(dtype.numpy).eps)
        rate, kept = min(lr, 1 / math.sqrt(age)), 1 - lr * group["weight_decay"]
        return rate, group["eps"][1], kept, 1 - fresh, fresh, float(group["d"]), epsilon, group["maximize"]
