"""Parametrized modules beside torch's: what they compute, hold, print and learn; copies, files and compiled calls."""

import copy
import pickle

import numpy as np
import pytest
import torch

import genesis
from tests.conformance.converting import converted
from tests.tolerances import assert_close

BOTH = [genesis, torch]
WEIGHTS = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5], [1.5, 0.0, 1.0]], np.float32)


def layers(rows=3, columns=3):
    """A linear layer of each library, with the same parameters."""
    torch.manual_seed(0)
    theirs = torch.nn.Linear(columns, rows)
    ours = genesis.nn.Linear(columns, rows)
    ours.load_state_dict(converted(dict(theirs.state_dict())))
    return ours, theirs


def same_results(ours, theirs, x=None, tolerance=1e-5):
    """The same results and gradients of all parameters."""
    x = np.linspace(-1, 1, 2 * theirs.weight.shape[1], dtype=np.float32).reshape(2, -1) if x is None else x
    have, want = ours(genesis.tensor(x)), theirs(torch.tensor(x))
    np.testing.assert_allclose(have.detach().numpy(), want.detach().numpy(), rtol=tolerance, atol=tolerance)
    have.square().sum().backward()
    want.square().sum().backward()
    named = dict(theirs.named_parameters())
    assert [*named] == [name for name, _ in ours.named_parameters()]
    for name, parameter in ours.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), named[name].grad.numpy(), rtol=1e-3, atol=tolerance * 10)
        parameter.grad = named[name].grad = None


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    pair = layers(2, 3)
    for library, layer in zip(BOTH, pair, strict=True):
        library.nn.utils.parametrizations.weight_norm(layer, dim=dim)
    assert repr(pair[0]) == repr(pair[1])
    assert [(n, tuple(t.shape)) for n, t in pair[0].state_dict().items()] == [
        (n, tuple(t.shape)) for n, t in pair[1].state_dict().items()]
    same_results(*pair)
    old = {"bias": genesis.zeros(2), "weight_g": pair[0].parametrizations.weight.original0.detach(),
           "weight_v": genesis.ones(2, 3)}
    pair[0].load_state_dict(old)
    assert pair[0].parametrizations.weight.original1.tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("library", BOTH, ids=["genesis", "torch"])
def test_a_direction_shares_its_memory_with_a_tied_weight(library):
    layer, tied = library.nn.Linear(2, 2), library.nn.Linear(2, 2)
    tied.weight = layer.weight
    library.nn.utils.parametrizations.weight_norm(layer)
    with library.no_grad():
        tied.weight.fill_(3.0)
    assert layer.parametrizations.weight.original1.tolist() == [[3.0, 3.0]] * 2


@pytest.mark.parametrize("make", [
    lambda nn: nn.Linear(4, 3), lambda nn: nn.Conv2d(2, 3, 3), lambda nn: nn.ConvTranspose1d(2, 3, 3),
    lambda nn: nn.LayerNorm(4),
])
def test_spectral_norm(make):
    pair = [make(library.nn) for library in BOTH]
    for library, layer in zip(BOTH, pair, strict=True):
        library.nn.utils.parametrizations.spectral_norm(layer)
    assert repr(pair[0]) == repr(pair[1])
    pair[0].load_state_dict(converted(dict(pair[1].state_dict())))
    for mode in (True, False):
        have, want = pair[0].train(mode).weight, pair[1].train(mode).weight
        np.testing.assert_allclose(have.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    for (_, a), (_, b) in zip(pair[0].named_buffers(), pair[1].named_buffers(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(shape, kind, trivial):
    pair = layers(*shape)
    if not trivial and kind != "householder":
        for library, layer in zip(BOTH, pair, strict=True):
            library.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind or "cayley", use_trivialization=False)
    else:
        for library, layer in zip(BOTH, pair, strict=True):
            library.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)
    assert repr(pair[0]) == repr(pair[1])
    for layer in pair:
        q = layer.weight.detach().numpy().astype(np.float64)
        q = q if shape[0] >= shape[1] else q.T
        np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=1e-5)
    if shape[0] == shape[1] or not trivial:  # else noise is part of the base
        np.testing.assert_allclose(pair[0].weight.detach().numpy(), pair[1].weight.detach().numpy(), atol=1e-5)
    pair[0].load_state_dict(converted(dict(pair[1].state_dict())))
    same_results(*pair, tolerance=1e-4)
    if trivial or kind == "householder":
        q = np.linalg.qr(np.random.default_rng(0).normal(size=shape if shape[0] >= shape[1] else shape[::-1]))[0]
        q = (q if shape[0] >= shape[1] else q.T).astype(np.float32)
        pair[0].weight = genesis.tensor(q)
        np.testing.assert_allclose(pair[0].weight.detach().numpy(), q, atol=1e-5)


def rank_one(library):
    class RankOne(library.nn.Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0], z[0]

    return RankOne()


def symmetric(library):
    class Symmetric(library.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, a):
            return a.triu()

    return Symmetric()


def test_own_parametrizations_one_after_the_other():
    pair = layers()
    for library, layer in zip(BOTH, pair, strict=True):
        parametrize = library.nn.utils.parametrize
        assert not parametrize.is_parametrized(layer)
        weight = layer.weight
        assert parametrize.register_parametrization(layer, "weight", symmetric(library)) is layer
        assert layer.parametrizations.weight.original is weight
        parametrize.register_parametrization(layer, "weight", library.nn.Tanh())
        parametrize.register_parametrization(layer, "bias", library.nn.Softplus())
        assert parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(layer, "other")
        assert parametrize.type_before_parametrizations(layer) is library.nn.Linear
        assert type(layer).__name__ == "ParametrizedLinear"
    assert repr(pair[0]) == repr(pair[1])
    same_results(*pair)
    for library, layer in zip(BOTH, pair, strict=True):
        with pytest.raises(RuntimeError, match="right_inverse"):
            layer.weight = library.tensor(WEIGHTS)
        library.nn.utils.parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
        library.nn.utils.parametrize.remove_parametrizations(layer, "bias")
        assert type(layer) is library.nn.Linear and not hasattr(layer, "parametrizations")
    assert repr(pair[0]) == repr(pair[1])
    same_results(*pair)


def test_several_originals():
    pair = layers()
    for library, layer in zip(BOTH, pair, strict=True):
        parametrize = library.nn.utils.parametrize
        parametrize.register_parametrization(layer, "weight", rank_one(library))
        with parametrize.cached():
            assert layer.weight is layer.weight
        layer.weight = library.tensor(WEIGHTS)
    same_results(*pair)
    for library, layer in zip(BOTH, pair, strict=True):
        parametrize = library.nn.utils.parametrize
        other = library.nn.Linear(3, 3)
        parametrize.transfer_parametrizations_and_params(layer, other)
        assert other.parametrizations.weight.original0 is layer.parametrizations.weight.original0
        with pytest.raises(ValueError, match="leave"):
            parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
        parametrize.remove_parametrizations(layer, "weight")
        assert isinstance(layer.weight, library.nn.Parameter)
    same_results(*pair)


@pytest.mark.parametrize("library", BOTH)
def test_what_does_not_fit_is_refused(library):
    class Half(library.nn.Module):
        def forward(self, x):
            return x[:1]

    parametrize, layer = library.nn.utils.parametrize, library.nn.Linear(3, 3)
    for name in ("other", "in_features"):
        with pytest.raises(ValueError):
            parametrize.register_parametrization(layer, name, library.nn.Tanh())
    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(layer, "weight", Half())
    assert not parametrize.is_parametrized(layer) and type(layer) is library.nn.Linear
    parametrize.register_parametrization(layer, "weight", Half(), unsafe=True)
    assert layer.weight.shape == (1, 3)
    with pytest.raises(ValueError):
        parametrize.remove_parametrizations(layer, "bias")
    with pytest.raises(ValueError):
        library.nn.utils.parametrizations.orthogonal(library.nn.Linear(3, 3), "bias")
    with pytest.raises(ValueError):
        library.nn.utils.parametrizations.spectral_norm(library.nn.Linear(3, 3), n_power_iterations=0)


def test_copies_and_pickles_have_classes_of_their_own():
    layer = genesis.nn.utils.parametrizations.weight_norm(genesis.nn.Linear(3, 2))
    x = genesis.tensor(WEIGHTS)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(genesis.nn.utils.parametrize.register_parametrization(
            genesis.nn.Linear(3, 2), "weight", genesis.nn.Tanh())))):
        again.load_state_dict(again.state_dict())
        before = again(x).tolist()
        genesis.nn.utils.parametrize.remove_parametrizations(again, "weight")
        assert again(x).tolist() == before and type(again) is genesis.nn.Linear
    assert layer(x).shape == (3, 2)


def test_compiled_calls_compute_the_weight_anew():
    layer = genesis.nn.utils.parametrizations.weight_norm(genesis.nn.Linear(3, 2))
    norm = genesis.nn.utils.parametrizations.spectral_norm(genesis.nn.Linear(2, 2))
    optimizer = genesis.optim.SGD(layer.parameters(), lr=0.1)

    @genesis.compile
    def step(x):
        optimizer.zero_grad()
        loss = norm(layer(x)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    other, apart = copy.deepcopy(layer), copy.deepcopy(norm)
    again = genesis.optim.SGD(other.parameters(), lr=0.1)
    x = genesis.tensor(WEIGHTS)
    for _ in range(4):
        again.zero_grad()
        loss = apart(other(x)).square().mean()
        loss.backward()
        again.step()
        assert abs(step(x).item() - loss.item()) < 1e-5
    assert step.entries


@pytest.mark.parametrize("shape", [(4, 4), (3, 5)])
def test_complex_matrices_become_unitary(shape):
    layer, new = genesis.nn.Linear(*shape, dtype=genesis.complex64), genesis.randn(*shape[::-1], dtype=genesis.complex64)
    genesis.nn.utils.parametrizations.orthogonal(layer)
    assert_close((layer.weight.mH @ layer.weight).detach(), np.eye(shape[0], dtype=np.complex64), scale=10)
    layer.weight = new
    q, r = np.linalg.qr(np.asarray(new))
    assert_close(layer.weight.detach(), q * (np.diag(r) / abs(np.diag(r))), scale=10)
    with pytest.raises(ValueError, match="reflections are for real matrices"):
        genesis.nn.utils.parametrizations.orthogonal(genesis.nn.Linear(2, 2, dtype=genesis.complex64), "weight", "householder")
