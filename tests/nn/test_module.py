"""Modules: what they hold, how they are walked, saved and printed."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn


def network(m):
    return m.Sequential(m.Linear(4, 8), m.ReLU(), m.Sequential(m.Linear(8, 3, bias=False)))


def test_repr_reads_as_torchs():
    assert repr(network(nn)) == repr(network(torch.nn))
    assert repr(nn.Dropout(0.25)) == repr(torch.nn.Dropout(0.25))
    assert repr(nn.LayerNorm(5)) == repr(torch.nn.LayerNorm(5))


def test_state_dict_has_torchs_keys_and_shapes():
    ours, theirs = network(nn).state_dict(), network(torch.nn).state_dict()
    assert list(ours) == list(theirs)
    assert [v.shape for v in ours.values()] == [tuple(v.shape) for v in theirs.values()]


def test_parameters_are_walked_once_in_torchs_order():
    ours, theirs = network(nn), network(torch.nn)
    ours.add_module("again", ours[0])
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert len(list(ours.modules())) == len(list(theirs.modules()))


def test_state_dict_of_a_shared_module_names_every_path():
    model = nn.Sequential(nn.Linear(2, 2, bias=False))
    model.add_module("tied", model[0])
    assert list(model.state_dict()) == ["0.weight", "tied.weight"]


def test_load_state_dict_copies_values_and_dtypes():
    source, target = network(nn), network(nn)
    weights = {k: v.numpy().copy() for k, v in source.state_dict().items()}
    assert target.load_state_dict(source.state_dict()) == ([], [])
    with genesis.no_grad():
        source[0].weight.mul_(0)
    for key, value in target.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), weights[key])
    target.load_state_dict({k: v.astype(np.float64) for k, v in weights.items()})
    assert {v.dtype for v in target.state_dict().values()} == {genesis.float32}


def test_load_state_dict_is_strict_and_then_changes_nothing():
    model = nn.Linear(2, 2)
    before = model.weight.tolist()
    state = {"weight": genesis.zeros(2, 2), "extra": genesis.zeros(1)}
    with pytest.raises(RuntimeError, match="Missing key") as problem:
        model.load_state_dict(state)
    with pytest.raises(RuntimeError) as theirs:
        torch.nn.Linear(2, 2).load_state_dict({"weight": torch.zeros(2, 2), "extra": torch.zeros(1)})
    assert str(problem.value) == str(theirs.value)
    with pytest.raises(RuntimeError) as problem:
        nn.Sequential(model).load_state_dict({"0.weight": genesis.zeros(2, 3), "0.bias": genesis.zeros(2)})
    with pytest.raises(RuntimeError) as theirs:
        torch.nn.Sequential(torch.nn.Linear(2, 2)).load_state_dict({"0.weight": torch.zeros(2, 3), "0.bias": torch.zeros(2)})
    assert str(problem.value) == str(theirs.value).replace("torch.", "genesis.")
    assert model.weight.tolist() == before
    assert model.load_state_dict(state, strict=False) == (["bias"], ["extra"])
    assert model.weight.tolist() == [[0, 0], [0, 0]]


def test_load_state_dict_names_a_wrong_shape():
    with pytest.raises(RuntimeError, match=r"size mismatch for weight: .* shape genesis.Size\(\[3, 2\]\) from"):
        nn.Linear(2, 2, bias=False).load_state_dict({"weight": genesis.zeros(3, 2)}, strict=False)


def test_parameters_stay_the_same_leaves_when_loaded_and_converted():
    model = nn.Linear(2, 2)
    weight = model.weight
    model.to(genesis.float64).load_state_dict(model.state_dict())
    assert model.weight is weight and weight.is_leaf and weight.requires_grad and weight.dtype is genesis.float64


def test_a_parameter_is_not_replaced_by_a_plain_tensor():
    model = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="cannot assign Tensor as parameter 'weight'"):
        model.weight = genesis.zeros(2, 2)
    model.bias = None
    assert [name for name, _ in model.named_parameters()] == ["weight"]


def test_buffers_are_saved_if_persistent_and_never_learned():
    model = nn.Module()
    model.register_buffer("mean", genesis.zeros(2))
    model.register_buffer("scratch", genesis.zeros(2), persistent=False)
    model.mean = genesis.ones(2)
    assert list(model.state_dict()) == ["mean"] and model.state_dict()["mean"].tolist() == [1, 1]
    assert [name for name, _ in model.named_buffers()] == ["mean", "scratch"]
    assert list(model.parameters()) == []
    assert list(nn.Module().buffers()) == []


def test_train_and_eval_reach_everything_below():
    model = nn.Sequential(nn.Sequential(nn.Dropout(1.0)))
    x = genesis.ones(3)
    assert model(x).tolist() == [0, 0, 0]
    assert model.eval()(x).tolist() == [1, 1, 1]
    assert not any(module.training for module in model.modules())
    assert all(module.training for module in model.train().modules())


def test_apply_visits_children_first_and_in_order():
    def visited(nn):
        names = []
        nested = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))
        assert nested.apply(lambda module: names.append(type(module).__name__)) is nested
        return names

    assert visited(nn) == visited(torch.nn)


def test_zero_grad_and_requires_grad():
    model = nn.Linear(2, 1)
    model(genesis.ones(1, 2)).sum().backward()
    model.zero_grad(set_to_none=False)
    assert model.weight.grad.tolist() == [[0, 0]]
    model.zero_grad()
    assert model.weight.grad is None
    model.requires_grad_(False)
    assert not model(genesis.ones(1, 2)).requires_grad


def test_module_list_and_sequential_index_and_slice():
    layers = nn.ModuleList([nn.Linear(1, 2), nn.ReLU()])
    layers.append(nn.Linear(2, 3))
    assert len(layers) == 3 and layers[-1].out_features == 3 and len(layers[:2]) == 2
    model = nn.Sequential(*layers)
    model[1] = nn.Tanh()
    assert isinstance(model[1], nn.Tanh) and isinstance(model[1:], nn.Sequential)
    with pytest.raises(TypeError, match="wants modules, got int"):
        layers.append(3)


def test_a_module_needs_no_init_of_its_base():
    class Twice(nn.Module):
        def __init__(self):
            self.inner = nn.Linear(1, 1)

        def forward(self, x):
            return self.inner(self.inner(x))

    assert len(list(Twice().parameters())) == 2
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)


def test_conversions_by_name():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    for name in ("double", "half", "bfloat16", "float"):
        assert getattr(model, name)() is model
        wanted = getattr(torch.nn.Linear(3, 2), name)().weight.dtype
        assert model[0].weight.dtype.name == str(wanted).removeprefix("torch.")
        assert model[1].running_mean.dtype is model[0].weight.dtype and model[1].num_batches_tracked.dtype is genesis.int64
    assert model.type(genesis.float64)[0].bias.dtype is genesis.float64
    assert nn.Linear(2, 3).to(genesis.complex64)(genesis.ones(1, 2, dtype=genesis.complex64)).dtype is genesis.complex64
    with pytest.raises(TypeError, match="parameters stay floating"):
        model.type(genesis.int32)


def test_parts_by_their_paths():
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 2)), nn.BatchNorm1d(2))
    assert model.get_submodule("") is model and model.get_submodule("0.0") is model[0][0]
    assert model.get_parameter("0.0.weight") is model[0][0].weight
    assert model.get_buffer("1.running_mean") is model[1].running_mean
    for get, path, problem in (
        (model.get_submodule, "0.2", "Sequential has no module '2'"), (model.get_submodule, "0.0.weight", "no module 'weight'"),
        (model.get_parameter, "0.0.scale", "Linear has no parameter 'scale'"),
        (model.get_buffer, "1.weight", "BatchNorm1d has no buffer 'weight'"),
    ):
        with pytest.raises(AttributeError, match=problem):
            get(path)


def test_a_subclass_may_add_members_in_its_own_setattr():
    class Noted(nn.Module):
        def __setattr__(self, name, value):
            if isinstance(value, nn.Parameter):
                self.register_parameter(name, value)
            elif isinstance(value, nn.Module):
                self.add_module(name, value)
            else:
                super().__setattr__(name, value)

    model = Noted()
    model.scale = nn.Parameter(genesis.ones(2))
    model.layer = nn.Linear(2, 1)
    assert [name for name, _ in model.named_parameters()] == ["scale", "layer.weight", "layer.bias"]
    found = model._named_members(lambda module: module._parameters.items(), prefix="top")
    assert [name for name, _ in found] == ["top.scale", "top.layer.weight", "top.layer.bias"]


def test_children_that_override_a_conversion_are_asked():
    class Rotated(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.frozen = genesis.ones(2), nn.BatchNorm1d(2)
            self.register_buffer("steps", genesis.arange(2))

        def _apply(self, fn, recurse=True):
            super()._apply(fn, recurse)
            self.table = fn(self.table)
            return self

        def train(self, mode=True):
            super().train(mode)
            self.frozen.eval()
            return self

    inner = Rotated()
    model = nn.Sequential(nn.Sequential(inner), nn.Dropout())
    assert model.to(genesis.float64)[0][0].table.dtype is genesis.float64 is inner.frozen.weight.dtype
    assert inner.half().table.dtype is genesis.float16 and inner.steps.dtype is genesis.int64
    assert model.to("meta", genesis.float32)[0][0].table.device.type == "meta" == inner.steps.device.type
    assert model.train()[1].training and inner.training and not inner.frozen.training
    assert not any(module.training for module in model.eval().modules())
