"""Activations, losses, distances and containers against torch's: values, gradients, reprs."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from tests.tolerances import assert_close

ACTIVATIONS = {
    "LeakyReLU": (), "ReLU6": (), "ELU": (0.5,), "CELU": (0.5,), "SELU": (), "Softplus": (2.0, 3.0), "Softsign": (), "Mish": (),
    "LogSigmoid": (), "Hardtanh": (-2.0, 1.5), "Hardsigmoid": (), "Hardswish": (), "Hardshrink": (0.7,), "Softshrink": (0.7,),
    "Tanhshrink": (), "Threshold": (0.1, 20.0), "PReLU": (3,), "GLU": (1,), "LogSoftmax": (1,), "Softmin": (-1,),
}
EDGES = np.array([0.0, 1e3, -1e3, 90.0, -90.0, 0.3, -0.3, 4.0])


def both(build, *arrays):
    """Results, and the gradients of floating inputs, in genesis and torch."""
    found = []
    for library, m in ((genesis, nn), (torch, torch.nn)):
        inputs = [library.tensor(a, requires_grad=a.dtype == np.float64) for a in arrays]
        y = build(m)(*inputs)
        (y * (1 + library.arange(y.numel(), dtype=library.float64).reshape(y.shape))).sum().backward()
        found.append([y, *[x.grad for x in inputs if x.requires_grad]])
    return found


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_is_torchs(name):
    def build(m):
        return getattr(m, name)(*ACTIVATIONS[name]).to(genesis.float64 if m is nn else torch.float64)

    assert repr(build(nn)) == repr(build(torch.nn))
    x = np.random.default_rng(0).normal(size=(5, 6 if name == "GLU" else 3)) * 2
    if name == "GLU":
        assert_close(*both(build, x))
    else:
        loose = 1e4 if name == "Hardsigmoid" else 1  # torch's derivative is a sixth in float32
        assert_close(*both(build, np.concatenate([x, np.repeat(EDGES[:, None], 3, 1)])), scale=loose)


def test_large_arguments_leave_gradients_finite():
    for name in ("ELU", "CELU", "SELU", "Softplus", "LogSigmoid", "Mish"):
        x = genesis.tensor([-1e4, 1e4], requires_grad=True)
        getattr(nn, name)()(x).sum().backward()
        assert np.isfinite(x.grad.numpy()).all(), name


def test_in_place_activations_write_to_their_input():
    x = genesis.tensor([-1.0, 2.0])
    y = nn.ReLU(inplace=True)(x)
    assert y is x and x.tolist() == [0, 2]
    w = genesis.tensor([-1.0, 2.0], requires_grad=True)
    nn.Sequential(nn.ELU(), nn.LeakyReLU(0.1, inplace=True))(w * 2).sum().backward()
    expected = torch.tensor([-1.0, 2.0], requires_grad=True)
    torch.nn.Sequential(torch.nn.ELU(), torch.nn.LeakyReLU(0.1, inplace=True))(expected * 2).sum().backward()
    assert_close(w.grad, expected.grad)
    assert repr(nn.ReLU(inplace=True)) == "ReLU(inplace=True)"
    assert repr(nn.LeakyReLU(inplace=True)) == "LeakyReLU(negative_slope=0.01, inplace=True)"


RANDOM = np.random.default_rng(0)
A, B, C = RANDOM.normal(size=(3, 4, 6))
P, Q = RANDOM.uniform(0.05, 0.95, size=(2, 4, 6))
SIGNS = np.where(RANDOM.normal(size=(4, 6)) > 0, 1, -1)
LOSSES = {
    "SmoothL1Loss": ({"beta": 0.5}, (A, B)), "HuberLoss": ({"delta": 0.5}, (A, B)), "KLDivLoss": ({}, (np.log(P), Q)),
    "BCELoss": ({}, (P, Q)), "BCEWithLogitsLoss": ({}, (A * 50, Q)), "MarginRankingLoss": ({"margin": 0.5}, (A, B, SIGNS)),
    "HingeEmbeddingLoss": ({}, (A, SIGNS)), "SoftMarginLoss": ({}, (A, SIGNS)),
    "CosineEmbeddingLoss": ({"margin": 0.1}, (A, B, SIGNS[:, 0])), "TripletMarginLoss": ({"swap": True}, (A, B, C)),
    "NLLLoss": ({"ignore_index": 2}, (np.log(P), np.array([0, 2, 5, 1]))),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_is_torchs(name, reduction):
    settings, arrays = LOSSES[name]
    with np.errstate(all="ignore"):
        ours, theirs = both(lambda m: getattr(m, name)(**settings, reduction=reduction), *arrays)
    assert_close(ours, theirs, scale=10)


def test_losses_take_weights():
    weight, positive = RANDOM.uniform(size=(2, 6))

    def of(m, array):
        return (genesis if m is nn else torch).tensor(array)

    for build, arrays in (
        (lambda m: m.BCELoss(weight=of(m, weight)), (P, Q)),
        (lambda m: m.BCEWithLogitsLoss(of(m, weight), pos_weight=of(m, positive)), (A, Q)),
        (lambda m: m.NLLLoss(of(m, weight)), (np.log(P), np.array([0, 2, 5, 1]))),
        (lambda m: m.CrossEntropyLoss(of(m, weight), ignore_index=5, label_smoothing=0.2), (A, np.array([0, 2, 5, 1]))),
    ):
        assert_close(*both(build, *arrays), scale=10)


def test_distances_and_bilinear_are_torchs():
    assert_close(*both(lambda m: m.CosineSimilarity(dim=0), A, B))
    assert_close(*both(lambda m: m.PairwiseDistance(3.0, keepdim=True), A, B), scale=10)
    zeros = np.zeros((4, 6))
    assert_close(*both(lambda m: m.CosineSimilarity(), zeros, B))
    ours, theirs = nn.Bilinear(6, 3, 5).to(genesis.float64), torch.nn.Bilinear(6, 3, 5).double()
    ours.load_state_dict(theirs.state_dict())
    assert_close(*both(lambda m: ours if m is nn else theirs, A, B[:, :3].copy()), scale=10)
    assert repr(ours) == repr(theirs)


# ---- embedding, dropout, shapes ----


def test_the_padding_row_is_zeros_and_stays():
    layer = nn.Embedding(5, 2, padding_idx=-4)
    assert not layer.weight[1].any() and layer.weight[0].all()
    layer(genesis.tensor([[1, 3], [1, 1]])).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [0, 0, 0, 2, 0]
    assert repr(layer) == repr(torch.nn.Embedding(5, 2, padding_idx=-4))
    with pytest.raises(ValueError, match="padding_idx 5 is outside a table of 5 entries"):
        nn.Embedding(5, 2, padding_idx=5)


@pytest.mark.parametrize(("layer", "shape", "axes"), [
    ("Dropout1d", (50, 40, 3), 1), ("Dropout2d", (50, 40, 2, 3), 2), ("Dropout2d", (50, 40, 3), 1),
    ("Dropout3d", (400, 1, 2, 3), 3),
])
def test_dropout_takes_whole_channels(layer, shape, axes):
    genesis.manual_seed(0)
    y = getattr(nn, layer)(0.25)(genesis.ones(shape)).numpy().reshape(-1, np.prod(shape[-axes:]))
    assert (y == y[:, :1]).all() and np.unique(y).tolist() == pytest.approx([0, 4 / 3])
    assert abs((y[:, 0] == 0).mean() - 0.25) < 0.06


def test_unflatten_and_identity():
    assert nn.Unflatten(1, (2, -1))(genesis.ones(3, 6)).shape == (3, 2, 3)
    assert repr(nn.Unflatten(1, (2, 3))) == repr(torch.nn.Unflatten(1, (2, 3)))
    x = genesis.ones(2)
    assert nn.Identity(54, unused=True)(x) is x


# ---- containers, vectors ----


def test_module_dict_reads_as_torchs():
    def build(m):
        layers = m.ModuleDict({"linear": m.Linear(2, 3), "choice": m.ReLU()})
        layers["last"] = m.Tanh()
        layers.update([("choice", m.Sigmoid())])
        del layers["last"]
        return layers

    ours, theirs = build(nn), build(torch.nn)
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    assert [*ours] == [*ours.keys()] == ["linear", "choice"] and len(ours) == 2 and "choice" in ours
    assert isinstance(ours.pop("choice"), nn.Sigmoid) and [k for k, _ in ours.items()] == ["linear"]
    with pytest.raises(KeyError):
        ours["choice"]
    with pytest.raises(TypeError, match="wants modules, got int"):
        ours["n"] = 3
    with pytest.raises(KeyError, match="cannot name a module"):
        ours["forward"] = nn.ReLU()


def test_parameter_list_belongs_to_its_module():
    weights = nn.ParameterList([genesis.ones(2), nn.Parameter(genesis.zeros(3))])
    weights.append(genesis.ones(1))
    weights[-1] = genesis.zeros(4)
    model = nn.Sequential(nn.Linear(1, 1))
    model.weights = weights
    assert [p.shape for p in model.parameters()] == [(1, 1), (1,), (2,), (3,), (4,)]
    assert len(weights) == 3 and weights[1].requires_grad and len(weights[:2]) == 2


def test_parameter_lists_hold_anything_and_a_parameter_twice():
    lists = []
    for lib in (genesis, torch):
        shared = lib.nn.Parameter(lib.ones(2))
        made = lib.nn.ParameterList([shared, 5.0, lib.zeros(1), shared])
        made.append("a")
        lists.append((len(made), [type(p).__name__ for p in made], len([*made.parameters()]), [*made.state_dict()],
                      repr(made).replace("genesis.", "torch.")))
    assert lists[0] == lists[1]


def test_parameters_become_a_vector_and_return():
    model = nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (8,) and vector.requires_grad
    nn.utils.vector_to_parameters(genesis.arange(8.0), model.parameters())
    assert model.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and model.bias.tolist() == [6, 7] and model.weight.is_leaf
    with pytest.raises(ValueError, match=r"a vector of shape \(7,\) for 8 elements"):
        nn.utils.vector_to_parameters(genesis.ones(7), model.parameters())


@pytest.mark.parametrize("lib", [genesis, torch])
def test_names_in_a_dict_of_modules_are_a_set(lib):
    made = lib.nn.ModuleDict({"b": lib.nn.ReLU(), "a": lib.nn.Tanh()})
    assert made.keys() == {"a": 1, "b": 2}.keys() and made.keys() - {"b"} == {"a"} and [*made.keys()] == ["b", "a"]
    assert [name for name, _ in made.items()] == ["b", "a"] and [*made.values()][1] is made["a"] and "a" in made
    made.pop("b")
    made.clear()
    assert not len(made) and "a" not in made


@pytest.mark.parametrize("change", [
    lambda model, layer: model.insert(-1, layer), lambda model, layer: model.insert(2, layer),
    lambda model, layer: model.insert(3, layer), lambda model, layer: model.insert(-3, layer),
    lambda model, layer: model * 2, lambda model, layer: 3 * model, lambda model, layer: model * 0,
    lambda model, layer: model * 1.5, lambda model, layer: model.__imul__(3), lambda model, layer: model.__imul__(0),
])
def test_a_sequence_grows_by_repetition_and_insertion_as_in_torch(change):
    def grown(library):
        model = library.nn.Sequential(library.nn.ReLU(), library.nn.Tanh())
        try:
            changed = change(model, library.nn.ELU())
        except (IndexError, TypeError, ValueError) as problem:
            changed = type(problem).__name__
        names = [[type(layer).__name__ for layer in found] for found in (model, changed) if not isinstance(found, str)]
        return names, changed is model, changed if isinstance(changed, str) else [name for name, _ in changed.named_children()]

    assert grown(genesis) == grown(torch)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_a_loss_of_two_sizes_is_warned_of(name):
    for lib in (genesis, torch):
        with pytest.warns(UserWarning, match="that is different to the input size") as warned:
            getattr(lib.nn.functional, name)(lib.ones(3, 1), lib.ones(3))
        assert {warning.filename for warning in warned} == {__file__}
