"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

from __future__ import annotations

from genesis.functions.from_data import tensor
from genesis.ir.annotations import Options
from genesis.ir.dtypes import float32
from genesis.optim.declaration import DeclaredOptimizer, Group, Numbers, State, setting
from genesis.optim.update_rule import Results, Scalar, Value, descent, is_literal, shrunk, update_rule


@update_rule
def asgd_update(
    parameter: Value, gradient: Value, average: Value, eta: Scalar, kept: Scalar, share: Scalar, weight_decay: Scalar,
    maximize: bool,
) -> Results:
    """p = kept * p - eta * g;  a = a + share * (p - a)."""
    updated = shrunk(parameter, kept) - descent(parameter, gradient, weight_decay, maximize) * eta
    return updated, updated if is_literal(share, 1) else average + (updated - average) * share


class ASGD(DeclaredOptimizer):
    """Gradient descent with decreasing steps; the state "ax" is the average of the parameters.
    """

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
