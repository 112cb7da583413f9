"""Functions that draw random numbers, losses by distances, unpooling, and activations that write into their input."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.nn import functional as F
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(3, 5, 4))
BOTH = (genesis, torch)


# ---- random ----


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_selus_dropout_keeps_mean_and_variance(p):
    genesis.manual_seed(0)
    for dropout, shape in ((F.alpha_dropout, (400, 500)), (F.feature_alpha_dropout, (2000, 100, 1))):
        inputs = genesis.randn(shape)
        y, x = dropout(inputs, p, training=True).numpy(), inputs.numpy()
        assert abs(y.mean()) < 0.02 and abs(y.std() - 1) < 0.02
        scale = ((1 - p) * (1 + p * 1.7580993408473766**2)) ** -0.5
        dropped = np.isclose(y, -1.7580993408473766 * scale * (1 - p), atol=1e-5)
        assert abs(dropped.mean() - p) < 0.01
        np.testing.assert_allclose(y[~dropped], ((x + 1.7580993408473766 * p) * scale)[~dropped], atol=1e-5)


def test_channels_are_dropped_whole():
    genesis.manual_seed(0)
    y = nn.Dropout3d(0.5)(genesis.ones(40, 50, 2, 1, 2)).numpy().reshape(2000, 4)
    assert (y == y[:, :1]).all() and set(np.unique(y)) == {0, 2} and abs(y.mean() - 1) < 0.1
    z = nn.FeatureAlphaDropout(0.5)(genesis.ones(40, 50, 3)).numpy().reshape(2000, 3)
    assert (z == z[:, :1]).all() and len(np.unique(z)) == 2


@pytest.mark.parametrize("name", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"])
def test_dropout_writes_into_its_input_where_asked(name):
    module = getattr(nn, name)(0.5, inplace=True)
    x = genesis.ones({"Dropout1d": (2, 3, 2), "Dropout3d": (2, 3, 2, 2, 2)}.get(name, (2, 3, 2, 2)))
    assert module(x) is x and "inplace=True" in repr(module)
    assert (x.numpy() != 1).any()
    held = x.clone()
    assert module.eval()(x) is x and genesis.equal(x, held)


def test_random_slopes_lie_between_their_bounds():
    genesis.manual_seed(0)
    x = genesis.tensor([-1.0, 2.0]).expand(10_000, 2).clone().requires_grad_()
    y = F.rrelu(x, 0.2, 0.6, training=True)
    y.sum().backward()
    slopes = x.grad.numpy()[:, 0]
    np.testing.assert_array_equal(-y.detach().numpy()[:, 0], slopes)
    assert slopes.min() >= 0.2 and slopes.max() <= 0.6 and abs(slopes.mean() - 0.4) < 0.01
    assert (y.detach().numpy()[:, 1] == 2).all()
    assert_close(*[library.nn.functional.rrelu(library.tensor(ROWS)) for library in BOTH])


def test_samples_of_classes_have_their_probabilities_and_a_gradient():
    genesis.manual_seed(0)
    weights = np.array([0.5, 0.3, 0.2])
    logits = genesis.tensor(np.log(weights), requires_grad=True)
    hard = F.gumbel_softmax(logits.expand(20_000, 3), tau=0.5, hard=True)
    np.testing.assert_allclose(hard.detach().numpy().mean(0), weights, atol=0.015)
    assert set(np.unique(hard.detach().numpy().round(6))) == {0, 1}
    (hard * genesis.tensor([1.0, 2.0, 3.0], dtype=genesis.float64)).mean().backward()
    assert (logits.grad.numpy() != 0).all() and abs(logits.grad.numpy().sum()) < 1e-6
    soft = F.gumbel_softmax(genesis.zeros(4, 3), dim=0)
    np.testing.assert_allclose(soft.numpy().sum(0), 1, rtol=1e-5)


# ---- pairs ----


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, float("inf")])
def test_all_distances_are_torchs(p):
    found = []
    for library in BOTH:
        x = library.tensor(ROWS[0], requires_grad=True)
        y = library.nn.functional.pdist(x, p)
        if p:
            (y**2).sum().backward()
        found.append([y, x.grad if p else y])
    assert_close(*found, scale=10)


@pytest.mark.parametrize("settings", [{}, {"swap": True, "margin": 3.0}, {"reduction": "sum"}, {"reduction": "none"}])
@pytest.mark.parametrize("own", [False, True])
def test_a_loss_by_a_distance_of_ones_own_is_torchs(settings, own):
    found = []
    for library in BOTH:
        triple = [library.tensor(a, requires_grad=True) for a in ROWS]
        distance = (lambda a, b: (a - b).abs().amax(-1)) if own else None
        loss = library.nn.TripletMarginWithDistanceLoss(distance_function=distance, **settings)(*triple)
        loss.sum().backward()
        found.append([loss, *[x.grad for x in triple]])
    assert_close(*found, scale=10)


# ---- pooling undone ----


@pytest.mark.parametrize(("axes", "pooling", "shape"), [
    (1, (2,), (2, 3, 7)), (1, (3, 2, 1), (3, 8)), (2, ((2, 3), (2, 1), (0, 1)), (2, 2, 6, 5)), (2, (2,), (1, 5, 5)),
    (3, (2,), (1, 2, 4, 5, 4)),
])
def test_pooling_is_undone_as_torchs(axes, pooling, shape):
    found = []
    for library in BOTH:
        x = library.tensor(np.random.default_rng(1).permutation(np.prod(shape)).reshape(shape) * 1.0, requires_grad=True)
        y, at = getattr(library.nn, f"MaxPool{axes}d")(*pooling, return_indices=True)(x)
        back = getattr(library.nn, f"MaxUnpool{axes}d")(*pooling)(y, at, output_size=x.shape[-axes:])
        (back**2).sum().backward()
        found.append([back, x.grad])
    assert_close(*found)
    y, at = F.max_pool2d(genesis.arange(16.0).reshape(1, 4, 4), 2, return_indices=True)
    assert F.max_unpool2d(y, at, 2)[0, 1].tolist() == [0, 5, 0, 7]


# ---- in place ----


@pytest.mark.parametrize("name", [
    "relu", "leaky_relu", "elu", "celu", "selu", "hardtanh", "silu", "mish", "relu6", "hardsigmoid", "hardswish",
])
def test_activations_write_into_their_input_where_asked(name):
    found = []
    for library in BOTH:
        x = library.tensor(ROWS[0], requires_grad=True)
        y = x * 3
        assert getattr(library.nn.functional, name)(y, inplace=True) is y
        (y**2).sum().backward()
        other = library.tensor(ROWS[1])
        if hasattr(torch.nn.functional, name + "_"):
            assert getattr(library.nn.functional, name + "_")(other) is other
        found.append([y, x.grad, other])
    assert_close(*found, scale=1e4 if name == "hardsigmoid" else 1)  # torch's sixths are float32


def test_inplace_is_the_last_argument():
    x = genesis.tensor([-1.0, 8.0])
    assert F.elu(x, 2.0, True) is x and F.relu(x, True) is x and F.threshold(x, 0.5, -1.0, True) is x
    assert x.tolist() == [-1, 8] and F.threshold_(x, 9.0, 0.0) is x and x.tolist() == [0, 0]
    assert F.relu(x, False) is not x


# ---- modules ----


def test_parameters_by_name():
    weights = nn.ParameterDict({"a": genesis.zeros(2)})
    weights["b"] = nn.Parameter(genesis.ones(1))
    weights.update([("c", genesis.ones(3))])
    assert [*weights] == [*weights.keys()] == ["a", "b", "c"] and len(weights) == 3 and "b" in weights
    assert [name for name, _ in nn.Sequential(weights).named_parameters()] == ["0.a", "0.b", "0.c"]
    assert weights.pop("b").shape == (1,) and "b" not in weights and [p.shape for p in weights.values()] == [(2,), (3,)]
    del weights["a"]
    with pytest.raises(KeyError):
        weights["a"]
    with pytest.raises(KeyError, match="cannot name a parameter"):
        weights["update"] = genesis.ones(1)


def test_channels_are_normalised_together():
    for build in (lambda m: m.nn.Softmax2d(), lambda m: m.nn.LocalResponseNorm(3, alpha=0.5)):
        assert_close(*[build(library)(library.tensor(ROWS[None])) for library in BOTH])


@pytest.mark.parametrize(("build", "message"), [
    (lambda: F.alpha_dropout(genesis.ones(2), 2.0), "p is a probability"), (lambda: nn.Dropout3d(-1.0), "Dropout3d: p is a"),
    (lambda: F.rrelu(genesis.ones(2), 0.5, 0.25), "want lower to be no greater"),
    (lambda: F.pdist(genesis.ones(2)), "want p 0 or more"),
    (lambda: F.max_unpool1d(genesis.ones(1, 2), genesis.tensor([[0, 2]]), 2, output_size=(9,)), r"want \(4,\), or less"),
    (lambda: nn.Softmax2d()(genesis.ones(2, 2)), "input must be"),
    (lambda: F.local_response_norm(genesis.ones(2, 2), 2), "want 1 or more"),
    (lambda: nn.TripletMarginWithDistanceLoss(margin=0)(*[genesis.ones(1, 1)] * 3), "want it above 0"),
])
def test_settings_that_make_no_sense_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
