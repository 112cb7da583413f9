"""Optimizers that are declared: the rule of one parameter, and a table of settings."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import numpy as np
import pytest

import genesis
from genesis import optim
from genesis.ops.registry import OPERATIONS
from genesis.optim.declaration import DeclaredOptimizer, setting
from genesis.optim.update_rule import Results, Scalar, Value, update_rule

DECLARED = [kind for _, kind in inspect.getmembers(optim, inspect.isclass) if issubclass(kind, DeclaredOptimizer)]


@pytest.mark.parametrize("kind", DECLARED)
def test_settings_are_arguments_defaults_and_documented(kind):
    arguments = inspect.signature(kind).parameters
    defaults = kind([genesis.ones(1, 1, requires_grad=True)]).defaults
    assert next(iter(arguments)) == "params" and get_type_hints(kind.__init__).keys() == {*arguments, "return"}
    for name, value in defaults.items():
        if name in kind.fixed:  # the constructor does not take it
            continue
        assert arguments[name].default == value
        assert f"    {name}: " in kind.__doc__


@pytest.mark.parametrize("kind", DECLARED)
def test_rules_are_rows_that_users_do_not_see(kind):
    assert OPERATIONS[kind.operation.name] is kind.operation
    assert not hasattr(genesis, kind.operation.name)


@pytest.mark.parametrize(("kind", "setting", "value"), [
    (kind, name, setting.least - 1) for kind in DECLARED for name, setting in kind._settings.items() if setting.range
])
def test_settings_out_of_range_are_refused(kind, setting, value):
    value = (value, 0.5) if setting == "betas" else value
    with pytest.raises(ValueError, match=f"{kind.__name__}: {setting} (is|are) .*; want "):
        kind([genesis.ones(1, requires_grad=True)], **{setting: value})


def test_a_subclass_may_write_its_own_constructor():
    class Slow(optim.SGD):
        def __init__(self, params):
            super().__init__(params, lr=1e-6, momentum=0.5)

    assert [*inspect.signature(Slow).parameters] == ["params"]
    assert Slow([genesis.ones(1, requires_grad=True)]).param_groups[0]["lr"] == 1e-6


def test_pairs_may_be_lists():
    parameter = genesis.ones(1, requires_grad=True)
    parameter.sum().backward()
    optim.Adam([parameter], lr=0.5, betas=[0.9, 0.999]).step()
    assert parameter.item() == pytest.approx(0.5)
    with pytest.raises(ValueError, match="betas are"):
        optim.Adam([parameter], betas=[0.9, 1.0])


@pytest.mark.parametrize("kind", [kind for kind in DECLARED if kind is not optim.SparseAdam])
def test_parameters_of_equal_shapes_move_as_they_would_alone(kind):
    def moved(groups):
        genesis.manual_seed(0)
        parameters = [genesis.nn.Parameter(genesis.randn(*shape)) for shape in [(3, 4), (3, 4), (4, 3), (3, 4), (3, 4)]]
        optimizers = [kind([parameters[n] for n in group]) for group in groups]
        for _ in range(2):
            for parameter in parameters:
                parameter.grad = parameter.detach() * 2 + 1
            parameters[1].grad, parameters[4].grad = parameters[0].grad, genesis.ones(3, 4)
            for optimizer in optimizers:
                optimizer.step()
        return [parameter.detach().numpy() for parameter in parameters]

    for together, alone in zip(moved([range(5)]), moved([[n] for n in range(5)]), strict=True):
        assert np.array_equal(together, alone)


def test_a_users_rule_runs_for_each_parameter():
    met = []

    @update_rule
    def counted_update(parameter: Value, gradient: Value, lr: Scalar) -> Results:
        met.append(parameter.shape)
        return (parameter - gradient * lr * len(met),)

    del OPERATIONS["counted_update"]  # no row of the library's

    class Counted(DeclaredOptimizer):
        lr: float = setting(default=1.0, least=0, doc="the step size")
        operation = counted_update
        example = "lr=0.1", "[0.9000, 1.9000]"

        def settings(self, group, age):
            return (group["lr"],)

    parameters = [genesis.zeros(2, requires_grad=True) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = genesis.ones(2)
    Counted(parameters).step()
    assert met == [(2,)] * 3 and [p[0].item() for p in parameters] == [-1, -2, -3]
