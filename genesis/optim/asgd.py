"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

from __future__ import annotations

from genesis.functions.creation import tensor
from genesis.ir.dtypes import float32
from genesis.ir.replayable import replayable_module
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
    """Gradient descent by steps that become smaller; the average of the parameters is kept under "ax" in the state.
    """

    lr: float = setting(default=1e-2, least=0, doc="the first step size; step t has lr / (1 + lambd * lr * (t - 1))^alpha")
    lambd: float = setting(default=1e-4, doc="see `lr`; the parameter shrinks by this times the step size too")
    alpha: float = setting(default=0.75, doc="see `lr`")
    t0: float = setting(default=1e6, doc="the step after which averages are taken; before, they are the parameter")
    weight_decay: float = setting(default=0, least=0, doc="times the parameter, added to its gradient")
    operation, kinds = asgd_update, ("ax",)
    example = "lr=0.25, lambd=0.0", "[0.5000, 1.0000]"

    def shown(self, group: Group, state: State) -> State:
        eta, _, share, *_ = self.settings(group, state["step"] + 1)
        kept = super().shown(group, state)
        return {**kept, "eta": tensor(eta, dtype=float32), "mu": tensor(share, dtype=float32)} if kept else {}

    def settings(self, group: Group, age: int) -> Numbers:
        lr, lambd = float(group["lr"]), group["lambd"]
        eta, share = lr / (1 + lambd * lr * (age - 1)) ** group["alpha"], 1 / max(1, age - 1 - group["t0"])
        return eta, 1 - lambd * eta, share, float(group["weight_decay"]), group["maximize"]


replayable_module(__name__)
