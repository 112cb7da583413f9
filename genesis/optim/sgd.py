"""Stochastic gradient descent with momentum, averaged, by signs alone, and with orthogonal steps."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from genesis.functions.from_data import tensor
from genesis.ir.annotations import Options
from genesis.ir.dtypes import bfloat16, float32
from genesis.ops.contraction import product, swapped
from genesis.ops.elementwise import clamp, sign, sqrt, where
from genesis.ops.reduction import sum
from genesis.ops.registry import cast, widened
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.update_rule import (
    Results, Scalar, Value, average_of, descent, in_both_parts, is_literal, shrunk, update_rule,
)
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor
from genesis.tracing.recording_hooks import refuse


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

    def slots(self, group: Group) -> tuple[str, ...]: return self.kinds if group["momentum"] else ()

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
            self._update_rows(parameters, gradients, group, age)


@update_rule
def asgd_update(
    parameter: Value, gradient: Value, average: Value, eta: Scalar, kept: Scalar, share: Scalar, weight_decay: Scalar,
    maximize: bool,
) -> Results:
    """p = kept * p - eta * g;  a = a + share * (p - a)."""
    updated = shrunk(parameter, kept) - descent(parameter, gradient, weight_decay, maximize) * eta
    return updated, updated if is_literal(share, 1) else average + (updated - average) * share


class ASGD(DeclaredOptimizer):
    """Gradient descent with decreasing steps; the state "ax" is the average of the parameters."""

    lr: float = setting(default=1e-2, least=0, doc="the first step size; step t has lr / (1 + lambd * lr * (t - 1))^alpha")
    lambd: float = setting(default=1e-4, doc="see `lr`; the parameter shrinks by this times the step size too")
    alpha: float = setting(default=0.75, doc="see `lr`")
    t0: float = setting(default=1e6, doc="the step after which averages are taken; before, they are the parameter")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    group_order = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
    operation, kinds = asgd_update, ("ax",)
    is_elementwise = True
    example = "lr=0.25, lambd=0.0", "[0.5000, 1.0000]"

    def shown(self, group: Group, state: State) -> State:
        age, kept = state["step"], super().shown(group, state)
        eta, share = self._size(group, age + 1), 1 / max(1, age - group["t0"])
        if not kept:
            return {}
        own = {"eta": tensor(eta, dtype=float32), "mu": tensor(share, dtype=float32)}
        return {"step": kept.pop("step"), **own, **kept}

    def settings(self, group: Group, age: int) -> Numbers:
        eta, share = self._size(group, age), 1 / max(1, age - 1 - group["t0"])
        known = self._known(group)
        known[age] = _decayed(group, age)
        if len(known) > _KEPT:
            del known[next(iter(known))]
        return eta, 1 - group["lambd"] * eta, share, float(group["weight_decay"]), group["maximize"]

    def load_state_dict(self, state_dict: Options) -> None:
        super().load_state_dict(state_dict)
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            states = [state_dict["state"].get(position, {}) for position in saved["params"]]
            self._known(group).update({int(state["step"]): float(state["eta"]) for state in states if "eta" in state})

    def _size(self, group: Group, age: int) -> float:
        """The size of step `age`."""
        size = self._known(group).get(age - 1)
        return _decayed(group, age - 1) if size is None else size

    def _known(self, group: Group) -> dict[int, float]:
        """Step -> the size of the next step, with the learning rate at that time, even if it has changed since."""
        index = next(place for place, other in enumerate(self.param_groups) if other is group)
        return vars(self).setdefault("_sizes", {}).setdefault(index, {})  # type: ignore[no-any-return]


_KEPT = 64  # steps: parameters of one group may differ in their ages


def _decayed(group: Group, age: int) -> float:
    """The size of the step after step `age` at the group's current rate."""
    lr = float(group["lr"])
    size: float = lr / (1 + group["lambd"] * lr * age) ** group["alpha"]
    return size


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

    def first_value(self, slot: str, group: Group) -> float: return float(group["lr"]) if slot == "step_size" else 0.0

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
