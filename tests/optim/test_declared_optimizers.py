"""Optimizers that are declared: the rule of one parameter, and a table of settings."""

import inspect

import pytest

import genesis
from genesis import optim
from genesis.ops.registry import OPERATIONS
from genesis.optim.declaration import DeclaredOptimizer

DECLARED = [kind for _, kind in inspect.getmembers(optim, inspect.isclass) if issubclass(kind, DeclaredOptimizer)]


@pytest.mark.parametrize("kind", DECLARED)
def test_settings_are_arguments_defaults_and_documented(kind):
    arguments = inspect.signature(kind).parameters
    defaults = kind([genesis.ones(1, 1, requires_grad=True)]).defaults
    assert next(iter(arguments)) == "params"
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
