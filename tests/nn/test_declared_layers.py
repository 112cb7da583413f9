"""Layers that are declared: settings, and the function that is called with them."""

import copy
import inspect
import pickle

import pytest

import genesis
from genesis import nn
from genesis.capture.record.origins import origins
from genesis.nn import functional
from genesis.nn.layer import KW_ONLY, Layer


class Shifted(Layer, function=functional.softplus):
    """softplus, of one's own."""

    beta: float
    _: KW_ONLY
    threshold: float = 20.0


def test_a_declaration_gives_signatures_and_what_is_printed():
    assert str(inspect.signature(Shifted)) == "(beta: float, *, threshold: float = 20.0) -> 'None'"
    assert [*inspect.signature(Shifted.forward).parameters] == ["self", "input"]
    assert repr(Shifted(2.0)) == "Shifted(beta=2.0, threshold=20.0)"
    with pytest.raises(TypeError, match="positional argument"):
        Shifted(2.0, 20.0)


def test_settings_are_attributes_that_may_change():
    layer, x = Shifted(1.0), genesis.tensor([0.0])
    before = layer(x).item()
    layer.beta = 2.0
    assert layer(input=x).item() == pytest.approx(before / 2)
    assert copy.deepcopy(layer).beta == pickle.loads(pickle.dumps(layer)).beta == 2.0


def test_compiled_calls_notice_a_changed_setting():
    layer, x = nn.LeakyReLU(0.5), genesis.tensor([-1.0])
    compiled = genesis.compile(lambda x: layer(x) * 1)
    assert [compiled(x).item() for _ in range(3)] == [-0.5] * 3
    layer.negative_slope = 0.25
    assert [compiled(x).item() for _ in range(3)] == [-0.25] * 3


@pytest.mark.parametrize("first", [
    lambda x: genesis.distributions.Normal(x, 1.0).mean, lambda x: Shifted(1.0)(x), lambda x: nn.Softplus()(x)
], ids=["a distribution", "a layer of the user's", "a layer"])
def test_made_methods_are_of_their_classes_modules_whichever_is_recorded_first(first):
    origins.clear()
    genesis.compile(first)(genesis.ones(1))
    test_compiled_calls_notice_a_changed_setting()


def test_subclasses_write_their_own_methods():
    class Doubled(nn.Softmax):
        factor: float

        def __init__(self, factor):
            super().__init__(dim=0)
            self.factor = factor

        def forward(self, x):
            return super().forward(x) * self.factor

    assert Doubled(4.0)(genesis.zeros(2)).tolist() == [2.0, 2.0]
    assert repr(Doubled(4.0)) == "Doubled(dim=0)"


def test_settings_that_the_function_does_not_take_are_refused():
    with pytest.raises(TypeError, match=r"Wrong: its function has no parameters \['slope'\]"):
        class Wrong(Layer):
            slope: float = 1.0
            function = functional.relu


@pytest.mark.parametrize(("layer", "name", "shape"), [
    (nn.ReLU(), "relu", (2,)), (nn.Softplus(), "softplus", (2,)), (nn.MaxPool1d(2), "max_pool1d", (1, 4)),
    (nn.Conv2d(2, 2, 1), "conv2d", (2, 3, 3)), (nn.ConvTranspose1d(2, 2, 1), "conv_transpose1d", (2, 3)),
    (nn.Linear(3, 3), "linear", (3,)),
])
def test_layers_call_what_users_put_in_the_place_of_their_function(monkeypatch, layer, name, shape):
    monkeypatch.setattr(functional, name, lambda *arguments, **options: "another")
    assert layer(genesis.ones(shape)) == "another"


def test_a_declared_function_has_its_own_name_and_signature():
    assert nn.Conv2d.function.__name__ == "conv2d" and nn.Conv2d.function.__doc__ == functional.conv2d.__doc__
    assert inspect.signature(nn.Conv2d.function) == inspect.signature(functional.conv2d)


def test_a_layer_without_a_docstring_has_its_functions_whose_examples_call_the_layer():
    assert nn.Softmin.__doc__.splitlines() == [
        "softmax(-x) along `dim`.", "", ">>> genesis.nn.Softmin(dim=0)(genesis.tensor([1.0, 2.0, 3.0]))",
        "tensor([0.6652, 0.2447, 0.0900])"]
    assert nn.CrossEntropyLoss(reduction="none").__doc__ == nn.CrossEntropyLoss.__doc__
    assert 'nn.CrossEntropyLoss(reduction="none")(logits, genesis.tensor([0, 0]))' in nn.CrossEntropyLoss.__doc__
    assert "nn.RReLU(lower=0.25, upper=0.75).eval()(genesis.tensor([1.0, -2.0]))" in nn.RReLU.__doc__
    assert Shifted.__doc__ == "softplus, of one's own." and type("Mine", (nn.ReLU,), {}).__doc__ is None


def test_convolutions_of_other_weights_are_overridden_by_their_method():
    class Halved(nn.Conv1d):
        def _conv_forward(self, input, weight, bias):
            return super()._conv_forward(input, weight * 0.5, bias)

    x, layer = genesis.ones(2, 3), Halved(2, 2, 1, bias=False)
    plain = nn.Conv1d(2, 2, 1, bias=False)
    plain.load_state_dict(layer.state_dict())
    assert (layer(x) * 2).tolist() == plain(x).tolist()
