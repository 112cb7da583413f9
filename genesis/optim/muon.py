"""Muon: momentum with orthogonalized steps (Jordan et al., 2024)."""

from __future__ import annotations

import math

from genesis.ir.dtypes import bfloat16
from genesis.ops.contraction import product, swapped
from genesis.ops.elementwise import clamp, sqrt
from genesis.ops.reduction import sum
from genesis.ops.registry import cast, widened
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.update_rule import Results, Scalar, Value, average_of, shrunk, update_rule

_NAMES = (None, "original", "match_rms_adamw")


def orthogonal(x: Value, coefficients: tuple[float, float, float], steps: int, epsilon: float) -> Value:
    """Approximates U V^T of x = U S V^T by `steps` quintic Newton-Schulz iterations in bfloat16."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    y = cast(swapped(x) if tall else x, bfloat16)
    length = clamp(cast(sqrt(sum(widened(y) * widened(y))), bfloat16), min=epsilon)
    y = y / length
    for _ in range(steps):
        gram = product(y, swapped(y))
        update = cast(widened(gram) * b + product(gram, gram, wide=True) * c, bfloat16)
        y = cast(widened(y) * a + product(update, y, wide=True), bfloat16)
    return cast(swapped(y) if tall else y, x.dtype)


@update_rule
def muon_update(
    parameter: Value, gradient: Value, velocity: Value, lr: Scalar, kept: Scalar, momentum: Scalar, fresh: Scalar,
    nesterov: bool, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float, adjust: str | None,
) -> Results:
    """v = momentum * v + fresh * g;  p = kept * p - lr * orthogonal(v); with `nesterov`, of fresh * g + momentum * v."""
    velocity = average_of(velocity, gradient, momentum, fresh)
    step = orthogonal(average_of(velocity, gradient, momentum, fresh) if nesterov else velocity, ns_coefficients, ns_steps, eps)
    rows, columns = parameter.shape
    scale = 0.2 * math.sqrt(max(rows, columns)) if adjust == "match_rms_adamw" else math.sqrt(max(1.0, rows / columns))
    return shrunk(parameter, kept) - step * (lr * scale), velocity


class Muon(DeclaredOptimizer):
    """Momentum with steps orthogonalized as matrices, for the weights of hidden layers.

    Raises ValueError for parameters of other than two axes, and for an unknown `adjust_lr_fn`.
    """

    lr: float = setting(default=1e-3, least=0, doc="the step size")
    weight_decay: float = setting(default=0.1, least=0, doc="times the step size, what a step shrinks the parameter by")
    momentum: float = setting(default=0.95, least=0, doc="how much of the average of gradients is kept per step")
    nesterov: bool = setting(default=True, doc="step along (1 - momentum) * gradient + momentum * average instead")
    ns_coefficients: tuple[float, float, float] = setting(default=(3.4445, -4.775, 2.0315), doc="of the iteration's polynomial")
    eps: float = setting(default=1e-7, doc="what the norm of the step counts as at least")
    ns_steps: int = setting(default=5, doc="the iteration's steps, below 100")
    adjust_lr_fn: str | None = setting(
        default=None, doc="'original' (None): times sqrt(max(1, rows / columns)); 'match_rms_adamw': 0.2 * sqrt(max(both))"
    )
    takes_complex = False
    operation, kinds, hints = muon_update, ("momentum_buffer",), ()
    lacks = ("maximize",)

    def check(self, group: Group) -> None:
        super().check(group)
        if group["adjust_lr_fn"] not in _NAMES or len(group["ns_coefficients"]) != 3 or not group["ns_steps"] < 100:
            raise ValueError(f"Muon: adjust_lr_fn {group['adjust_lr_fn']!r}, {group['ns_steps']} steps of coefficients "
                             f"{group['ns_coefficients']}; want one of {_NAMES}, below 100, and three")
        for parameter in group["params"]:
            if parameter.ndim != 2:
                raise ValueError(f"Muon: a parameter has shape {parameter.shape}; want (rows, columns)")

    def shown(self, group: Group, state: State) -> State:
        return {"momentum_buffer": state["momentum_buffer"]} if state["step"] else {}

    def settings(self, group: Group, age: int) -> Numbers:
        lr, momentum = float(group["lr"]), group["momentum"]
        iteration = tuple(group["ns_coefficients"]), group["ns_steps"], group["eps"], group["adjust_lr_fn"]
        kept = 1 - lr * group["weight_decay"]
        return lr, kept, momentum, 1 - momentum, group["nesterov"], *iteration
