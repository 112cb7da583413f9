"""The first input of each module of PyTorch's database, beside torch's: `python -m tests.conformance` runs all of them."""

import contextlib

import pytest

import genesis
from genesis import nn
from tests.conformance import modules
from tests.conformance.expected import FAILURES

ENTRIES = {modules.title(entry): entry for entry in modules.entries()}
SAMPLED = ("build", "repr", "values", "gradients", "copies", "state", "moves")
SLOW = {"LinearCrossEntropyLoss"}  # its inputs are large


@pytest.mark.parametrize("title", [title for title in ENTRIES if title not in SLOW])
def test_modules_agree_with_torch(title):
    for kind in (kind for kind in SAMPLED if title not in FAILURES[f"modules {kind}"]):
        with genesis.eager(), contextlib.suppress(NotImplementedError):
            modules.CHECKS[kind](ENTRIES[title], limit=1)


@pytest.mark.parametrize("title", [title for title, entry in ENTRIES.items() if entry.info.module_error_inputs_func])
def test_modules_refuse_what_torch_refuses(title):
    modules.check_errors(ENTRIES[title])


# ---- lazy layers ----
def test_a_lazy_layer_becomes_one_by_its_first_input_and_keeps_its_parameters():
    layer = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    optimizer = genesis.optim.SGD(layer.parameters(), lr=0.5)
    weight = layer[0].weight
    assert repr(layer[0]) == "LazyLinear(in_features=0, out_features=3, bias=True)"
    layer(genesis.ones(2, 4)).sum().backward()
    assert type(layer[0]) is nn.Linear and layer[0].weight is weight and weight.shape == (3, 4)
    assert type(layer[1]) is nn.BatchNorm1d and layer[1].running_mean.shape == (3,)
    before = layer[1].bias.tolist()
    optimizer.step()
    assert layer[1].bias.tolist() != before


@pytest.mark.parametrize(("lazy", "made", "extents"), [
    (lambda: nn.LazyConv2d(4, 3, groups=2), lambda: nn.Conv2d(6, 4, 3, groups=2), (5, 5)),
    (lambda: nn.LazyConvTranspose1d(4, 3), lambda: nn.ConvTranspose1d(6, 4, 3), (5,)),
    (lambda: nn.LazyInstanceNorm2d(), lambda: nn.InstanceNorm2d(6, affine=True, track_running_stats=True), (5, 5)),
])
def test_a_lazy_layer_becomes_what_it_loads_when_it_is_called(lazy, made, extents):
    layer, source = lazy(), made()
    layer.load_state_dict(source.state_dict())
    assert type(layer).__name__ == f"Lazy{type(source).__name__}" and not layer.has_uninitialized_params()
    layer(genesis.zeros(1, 6, *extents))
    assert repr(layer) == repr(source)
    assert all((a == b).all() for a, b in zip(layer.parameters(), source.parameters(), strict=True))


def test_set_submodule():
    net = nn.Sequential(nn.Sequential(nn.ReLU()))
    net.set_submodule("0.0", nn.Tanh())
    assert repr(net.get_submodule("0.0")) == "Tanh()"
    with pytest.raises(AttributeError):
        net.set_submodule("0.5", nn.Tanh(), strict=True)
    with pytest.raises(ValueError, match="empty"):
        net.set_submodule("", nn.Tanh())
