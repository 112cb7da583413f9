"""The modules, parameters and buffers of a module as dictionaries, and lists of modules with None in the place of one."""

import pytest
import torch

import genesis
from genesis import nn


def both(build):
    """What is built of genesis' layers and of torch's."""
    return build(nn), build(torch.nn)


def test_members_are_views_of_attributes():
    layer = nn.BatchNorm1d(2)
    model = nn.Sequential(nn.Linear(2, 2), layer)
    assert list(model._modules) == ["0", "1"] and model._modules["1"] is layer
    assert list(layer._parameters) == ["weight", "bias"]
    assert list(layer._buffers) == ["running_mean", "running_var", "num_batches_tracked"]
    model._modules["1"] = nn.ReLU()
    assert isinstance(model[1], nn.ReLU)
    del model._modules["0"]
    assert [type(m) for m in model] == [nn.ReLU]
    with pytest.raises(KeyError):
        model._modules["training"]


@pytest.mark.parametrize("change", [
    lambda lib: lib.ModuleList([None, lib.ReLU(), None]), lambda lib: lib.ModuleList([lib.ReLU()]).append(None),
    lambda lib: lib.ModuleList([lib.ReLU(), lib.Tanh()])[:1],
    lambda lib: lib.ModuleList([lib.ReLU()]) + lib.ModuleList([lib.Tanh()]),
    lambda lib: lib.Sequential(lib.ReLU(), lib.Tanh()).insert(0, lib.Sigmoid()), lambda lib: lib.ModuleList(None),
    lambda lib: lib.Sequential(lib.ReLU()) + lib.Sequential(lib.Tanh()),
])
def test_lists_of_modules_hold_what_those_of_torch_hold(change):
    ours, theirs = both(change)
    assert [*ours._modules] == [*theirs._modules] and len(ours) == len(theirs)
    assert [m and type(m).__name__ for m in ours] == [m and type(m).__name__ for m in theirs]


def test_lists_are_changed_as_torch_changes_them():
    for lib in (nn, torch.nn):
        held = lib.ModuleList([lib.ReLU(), lib.Tanh(), lib.Sigmoid()])
        held.insert(1, lib.Identity())
        del held[0]
        held += [lib.ELU()]
        last = held.pop(-1)
        assert [type(m).__name__ for m in held] == ["Identity", "Tanh", "Sigmoid"] and type(last).__name__ == "ELU"
        assert [*held._modules] == ["0", "1", "2"]


def test_state_dict_takes_a_prefix_and_a_destination():
    for lib in (nn, torch.nn):
        layer, into = lib.Linear(2, 1), {"other": None}
        assert layer.state_dict(destination=into, prefix="head.", keep_vars=True) is into
        assert [*into] == ["other", "head.weight", "head.bias"] and into["head.weight"] is layer.weight
        tied = lib.Sequential(layer, layer)
        names = [name for name, _ in tied.named_parameters(remove_duplicate=False)]
        assert names == ["0.weight", "0.bias", "1.weight", "1.bias"]
        assert len([*tied.named_modules(remove_duplicate=False)]) == 3 and len([*tied.named_modules()]) == 2


@pytest.mark.parametrize("lib", [genesis, torch])
def test_members_stand_in_the_order_in_which_they_became_members(lib):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.late = None  # an attribute, until it is a member
            self.register_parameter("reserved", None)
            self.add_module("block", None)
            self.first = nn.Linear(1, 1)
            self.weight = nn.Parameter(lib.ones(1))
            self.late = nn.Linear(1, 1)
            self.reserved = nn.Parameter(lib.ones(1))
            self.block = nn.Linear(1, 1)

    net = Net()
    assert [name for name, _ in net.named_children()] == ["block", "first", "late"]
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["reserved", "weight"]
    net.first = None
    net.late = None
    net.first = nn.ReLU()
    assert [name for name, _ in net.named_children()] == ["block", "first"]
    net.reserved = None
    net.reserved = nn.Parameter(lib.zeros(1))
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["reserved", "weight"]


def test_parameters_go_through_a_register_parameter_that_somebody_has_put_in_its_place(monkeypatch):
    for lib, kind in ((genesis.nn, genesis.nn.Parameter), (torch.nn, torch.nn.Parameter)):
        plain = lib.Module.register_parameter

        def on_meta(module, name, parameter, plain=plain, kind=kind):
            plain(module, name, parameter)
            if parameter is not None:
                settings = module._parameters[name].__dict__ | {"requires_grad": parameter.requires_grad}
                module._parameters[name] = kind(module._parameters[name].to("meta"), **settings)

        with monkeypatch.context() as replaced:
            replaced.setattr(lib.Module, "register_parameter", on_meta)
            layers = lib.Sequential(lib.Linear(2, 3, bias=False), lib.BatchNorm1d(3))
            layers.own = kind(layers[0].weight.detach())
        assert [str(p.device) for p in layers.parameters()] == ["meta"] * 4
        assert lib.Linear(2, 3).weight.device.type == "cpu"
    assert genesis.device("meta:0").type == "meta"


def test_the_dict_of_a_tensor_has_the_users_attributes():
    for lib in (genesis, torch):
        tensor = lib.nn.Linear(2, 2).weight
        assert vars(tensor) == {}
        tensor.note = 1
        tensor.__dict__["more"] = 2
        tensor.__dict__.update(third=3)
        assert (tensor.more, vars(tensor)) == (2, {"note": 1, "more": 2, "third": 3})
        assert tensor.__dict__.pop("more") == 2
        assert not hasattr(tensor, "more")
