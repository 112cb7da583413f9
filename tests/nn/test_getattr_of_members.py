"""Modules whose class has a `__getattr__`, and layers among several bases: the same classes on PyTorch."""

import copy
import pickle

import numpy as np
import pytest

import genesis

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("library", [torch, genesis], ids=["torch", "genesis"])


def asking(library, base=None):
    class Asking(base or library.nn.Module):
        def __init__(self, *args):
            super().__init__(*args)
            self.asked = []
            self.layer = library.nn.Linear(2, 1)
            self.scale = library.nn.Parameter(library.ones(1))
            self.register_buffer("mean", library.zeros(2))
            self.plain = library.ones(3)

        def __getattr__(self, name):
            found = super().__getattr__(name)
            self.__dict__["asked"].append(name)
            return found

        def forward(self, x):
            return self.layer(x - self.mean) * self.scale

    return Asking


@BOTH
def test_getattr_of_the_class_is_asked_for_members_and_for_nothing_else(library):
    net = asking(library)()
    assert net.layer is net._modules["layer"] and net.scale is net._parameters["scale"] and net.mean is net._buffers["mean"]
    assert net.asked == ["layer", "scale", "mean"]
    assert net.plain.shape == (3,) and net.training and callable(net.forward) and net.asked == ["layer", "scale", "mean"]
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        net.absent  # noqa: B018
    assert not hasattr(net, "other") and set(net.state_dict()) == {"layer.weight", "layer.bias", "scale", "mean"}
    net.scale = None
    assert net.scale is None and [name for name, _ in net.named_parameters()] == ["layer.weight", "layer.bias"]
    del net.layer
    assert not hasattr(net, "layer") and not list(net.children())


@BOTH
def test_a_wrapper_passes_on_what_the_wrapped_module_has(library):
    class Wrapper(library.nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

    inner = library.nn.Linear(2, 1)
    assert Wrapper(inner).weight is inner.weight and Wrapper(inner).in_features == 2
    assert [name for name, _ in Wrapper(inner).named_parameters()] == ["module.weight", "module.bias"]


def test_a_getattr_that_makes_another_value_is_what_forward_and_compiled_calls_see():
    class Doubled(genesis.nn.Module):
        factor = 2.0

        def __init__(self):
            super().__init__()
            self.weight = genesis.nn.Parameter(genesis.tensor([3.0]))

        def __getattr__(self, name):
            found = super().__getattr__(name)
            return found * self.factor if name == "weight" else found

        def forward(self, x):
            return self.weight * x

    net = Doubled()
    compiled = genesis.compile(net)
    assert [compiled(genesis.ones(1)).tolist() for _ in range(3)] == [[6.0]] * 3
    net.factor = 5.0
    assert compiled(genesis.ones(1)).tolist() == net(genesis.ones(1)).tolist() == [15.0]
    net(genesis.ones(1)).sum().backward()
    assert net._parameters["weight"].grad.tolist() == [5.0] and copy.deepcopy(net)._parameters["weight"].tolist() == [3.0]


@BOTH
def test_recurrent_layers_give_the_parameters_whose_names_are_computed(library):
    layer, cell = library.nn.GRU(3, 4, num_layers=2), library.nn.LSTMCell(3, 4)
    assert [tuple(layer.__getattr__(f"weight_ih_l{i}").shape) for i in range(2)] == [(12, 3), (12, 4)]
    assert cell.__getattr__("bias_hh").shape == (16,)
    with pytest.raises(AttributeError, match="weight_ih_l2"):
        layer.__getattr__("weight_ih_l2")


class Pickled(genesis.nn.Linear):
    def __getattr__(self, name):
        return super().__getattr__(name)


def test_such_modules_are_pickled_and_train():
    net = pickle.loads(pickle.dumps(Pickled(2, 1)))
    before = net.weight.detach().clone()
    optimizer = genesis.optim.SGD(net.parameters(), lr=0.1)
    net(genesis.ones(3, 2)).sum().backward()
    optimizer.step()
    assert np.allclose((before - net.weight.detach()).tolist(), 0.3)


@BOTH
def test_deletions_of_members_by_item_do_not_come_back_to_the_class(library):
    class Own(library.nn.Module):
        def __delattr__(self, name):
            if name in self._parameters:
                del self._parameters[name]
            else:
                super().__delattr__(name)

        def __setattr__(self, name, value):
            if isinstance(value, library.nn.Parameter):
                self._parameters[name] = value
            else:
                super().__setattr__(name, value)

    net = Own()
    net.weight = library.nn.Parameter(library.ones(2))
    assert list(net.state_dict()) == ["weight"]
    del net.weight
    assert not list(net.state_dict())


LAYERS = {
    "Linear": (2, 1), "Bilinear": (2, 2, 1), "Conv2d": (1, 1, 1), "BatchNorm1d": (2,), "LayerNorm": (2,), "GroupNorm": (1, 2),
    "Embedding": (3, 2), "GRU": (2, 2), "LSTMCell": (2, 2), "ReLU": (), "Softmax": (1,), "CrossEntropyLoss": (),
    "MaxPool2d": (2,), "Dropout": (), "Flatten": (), "Identity": (), "MultiheadAttention": (2, 1), "ZeroPad2d": (1,),
    "PReLU": (), "Sequential": (), "ModuleList": (), "ModuleDict": (), "ParameterList": (),
    "TransformerEncoderLayer": (2, 1, 2), "RMSNorm": (2,), "PairwiseDistance": (), "Upsample": (None, 2.0),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_initializes_the_base_that_stands_behind_it(name):
    for library in (torch, genesis):
        class Named(library.nn.Module):
            def __init__(self):
                self.__dict__["given"] = True
                super().__init__()

        class Both(getattr(library.nn, name), Named):
            pass

        assert Both(*LAYERS[name]).given


@BOTH
def test_a_module_does_not_initialize_what_stands_behind_it_unless_it_is_asked_to(library):
    class Other:
        def __init__(self, size=1):
            self.size = size

    class Plain(library.nn.Module, Other):
        pass

    class Calling(library.nn.Module, Other):
        call_super_init = True

    assert not hasattr(Plain(), "size") and Calling(size=3).size == 3
    with pytest.raises(TypeError):
        Plain(3)


@BOTH
def test_a_parameter_dict_holds_what_is_no_tensor_as_it_is(library):
    held = library.nn.ParameterDict({"scale": library.ones(2), "gate": None, "note": "x"})
    assert sorted(held) == ["gate", "note", "scale"] and held["gate"] is None and held["note"] == "x" and len(held) == 3
    assert [name for name, _ in held.named_parameters()] == list(held.state_dict()) == ["scale"]
    held["gate"] = library.zeros(1)
    held["scale"] = None
    assert [name for name, _ in held.named_parameters()] == ["gate"] and "scale" in held and held["scale"] is None
    del held["note"]
    assert "note" not in held and copy.deepcopy(held)["scale"] is None
