"""Pruning, older norms of weights, fused normalization and clipping, beside torch's."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import genesis
from genesis.nn.utils import prune
from tests.conformance.converting import converted

BOTH = [genesis, torch]
each = pytest.mark.parametrize("library", BOTH, ids=["genesis", "torch"])
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def layers(make=lambda nn: nn.Linear(4, 3)):
    torch.manual_seed(1)
    theirs, ours = make(torch.nn), make(genesis.nn)
    ours.load_state_dict(converted(dict(theirs.state_dict())))
    return ours, theirs


def same(ours, theirs, x=X, tolerance=1e-5):
    have, want = ours(genesis.tensor(x)), theirs(torch.tensor(x))
    np.testing.assert_allclose(have.detach().numpy(), want.detach().numpy(), rtol=tolerance, atol=tolerance)
    have.square().sum().backward()
    want.square().sum().backward()
    mine, named = dict(ours.named_parameters()), dict(theirs.named_parameters())
    assert [*mine] == [*named]
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    for name, parameter in mine.items():
        np.testing.assert_allclose(parameter.grad.numpy(), named[name].grad.numpy(), rtol=1e-3, atol=tolerance * 10)
        parameter.grad = named[name].grad = None


METHODS = {
    "identity": lambda p, layer, lib: p.identity(layer, "weight"),
    "l1": lambda p, layer, lib: p.l1_unstructured(layer, "weight", 0.4),
    "l1 twice": lambda p, layer, lib: p.l1_unstructured(p.l1_unstructured(layer, "weight", 3), "weight", 0.5),
    "scores": lambda p, layer, lib: p.l1_unstructured(layer, "weight", 5, lib.arange(12.0).reshape(3, 4)),
    "parts": lambda p, layer, lib: p.ln_structured(layer, "weight", 1, n=2, dim=0),
    "largest": lambda p, layer, lib: p.ln_structured(layer, "weight", 0.5, n=float("inf"), dim=-1),
    "parts after elements": lambda p, layer, lib: p.ln_structured(
        p.ln_structured(p.l1_unstructured(layer, "weight", 4), "weight", 1, 1, 0), "weight", 1, 2, 0),
    "mask": lambda p, layer, lib: p.custom_from_mask(
        p.l1_unstructured(layer, "weight", 2), "weight", lib.tensor([[0, 1, 1, 1]] * 3)),
    "bias": lambda p, layer, lib: p.l1_unstructured(layer, "bias", 2),
}


@pytest.mark.parametrize("method", METHODS)
def test_masks_results_and_gradients(method):
    ours, theirs = layers()
    name = "bias" if method == "bias" else "weight"
    for library, layer in zip(BOTH, (ours, theirs), strict=True):
        assert METHODS[method](library.nn.utils.prune, layer, library) is layer
        assert library.nn.utils.prune.is_pruned(library.nn.Sequential(layer))
    assert getattr(ours, f"{name}_mask").tolist() == getattr(theirs, f"{name}_mask").tolist()
    same(ours, theirs)
    parameter = getattr(ours, f"{name}_orig")
    for library, layer in zip(BOTH, (ours, theirs), strict=True):
        library.nn.utils.prune.remove(layer, name)
        assert not library.nn.utils.prune.is_pruned(layer)
    assert getattr(ours, name) is parameter
    same(ours, theirs)


def test_several_parameters_as_one():
    pair = layers(lambda nn: nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)))
    for library, net in zip(BOTH, pair, strict=True):
        p = library.nn.utils.prune
        where = [(net[0], "weight"), (net[2], "weight")]
        p.l1_unstructured(net[2], "weight", 1)
        p.global_unstructured(where, p.L1Unstructured, amount=0.5)
        with pytest.raises(TypeError):
            p.global_unstructured(where, p.RandomStructured, amount=1)
    for place in (0, 2):
        assert pair[0][place].weight_mask.tolist() == pair[1][place].weight_mask.tolist()
    same(*pair)


@each
def test_random_masks_have_as_many_zeros(library):
    p = library.nn.utils.prune
    assert p.random_unstructured(library.nn.Linear(4, 3), "weight", 5).weight_mask.sum().item() == 7
    mask = p.random_structured(library.nn.Linear(4, 3), "weight", 0.5, dim=1).weight_mask
    assert mask.sum().item() == 6 and mask.sum(0).tolist().count(3) == 2


@each
def test_what_cannot_be_pruned_is_refused(library):
    p, layer = library.nn.utils.prune, library.nn.Linear(4, 3)
    for amount, error in [("half", TypeError), (-1, ValueError), (1.5, ValueError), (99, ValueError)]:
        with pytest.raises(error):
            p.l1_unstructured(layer, "weight", amount)
    with pytest.raises(ValueError):
        p.ln_structured(layer, "bias", 1, 2, 0)
    with pytest.raises(IndexError):
        p.ln_structured(layer, "weight", 1, 2, 2)
    with pytest.raises(ValueError):
        p.remove(layer, "weight")
    assert sorted(layer.state_dict()) == ["bias", "weight"] and not p.is_pruned(layer)


def test_copies_and_pickles_stay_pruned():
    layer = prune.l1_unstructured(genesis.nn.Linear(4, 3), "weight", 6)
    with genesis.no_grad():  # else the masked weight is a result, which is not copied
        layer(genesis.ones(1, 4))
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        with genesis.no_grad():
            again.weight_orig.fill_(1.0)
        assert again(genesis.ones(1, 4)).shape == (1, 3) and again.weight.sum().item() == 6
        assert not prune.is_pruned(prune.remove(again, "weight")) and prune.is_pruned(layer)


# ---- older norms of weights ----
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    ours, theirs = layers()
    for library, layer in zip(BOTH, (ours, theirs), strict=True):
        library.nn.utils.weight_norm(layer, dim=dim)
        with pytest.raises(RuntimeError):
            library.nn.utils.weight_norm(layer)
    same(ours, theirs)
    for library, layer in zip(BOTH, (ours, theirs), strict=True):
        library.nn.utils.remove_weight_norm(layer)
        with pytest.raises(ValueError):
            library.nn.utils.remove_weight_norm(layer)
    same(ours, theirs)


@pytest.mark.parametrize("make, shape", [
    (lambda nn: nn.Linear(4, 3), (2, 4)), (lambda nn: nn.Conv1d(2, 3, 2), (2, 2, 4)),
    (lambda nn: nn.ConvTranspose1d(2, 3, 2), (2, 2, 4)),
])
def test_spectral_norm(make, shape):
    ours, theirs = layers(make)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for library, layer in zip(BOTH, (ours, theirs), strict=True):
        library.nn.utils.spectral_norm(layer, n_power_iterations=2)
    ours.load_state_dict(converted(dict(theirs.state_dict())))
    same(ours, theirs, x, 1e-4)
    same(ours.eval(), theirs.eval(), x, 1e-4)
    theirs.load_state_dict({name: torch.tensor(value.numpy()) for name, value in ours.state_dict().items()})
    for library, layer in zip(BOTH, (ours, theirs), strict=True):
        library.nn.utils.remove_spectral_norm(layer)
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), rtol=1e-4, atol=1e-5)


# ---- fused layers ----
@pytest.mark.parametrize("make, transpose, shape", [
    (lambda nn: (nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)), False, (2, 2, 4, 4)),
    (lambda nn: (nn.ConvTranspose1d(2, 3, 2, bias=False), nn.BatchNorm1d(3, affine=False)), True, (2, 2, 4)),
    (lambda nn: (nn.Linear(4, 3), nn.BatchNorm1d(3)), None, (2, 4)),
])
def test_a_normalization_goes_into_the_layer_before_it(make, transpose, shape):
    x, fused = np.random.default_rng(0).normal(size=shape).astype(np.float32), []
    pair = layers(lambda nn: nn.Sequential(*make(nn)))
    for library, net in zip(BOTH, pair, strict=True):
        net(library.tensor(x))
        utils = library.nn.utils
        with pytest.raises(AssertionError):
            utils.fuse_conv_bn_eval(*net)
        net.eval()
        made = utils.fuse_linear_bn_eval(*net) if transpose is None else utils.fuse_conv_bn_eval(*net, transpose=transpose)
        np.testing.assert_allclose(
            made(library.tensor(x)).detach().numpy(), net(library.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5)
        fused.append(made)
    assert repr(fused[0]) == repr(fused[1])
    for (name, a), (other, b) in zip(fused[0].named_parameters(), fused[1].named_parameters(), strict=True):
        assert name == other and a.requires_grad == b.requires_grad
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)


# ---- clipping ----
@each
def test_norms_of_gradients(library):
    utils, x = library.nn.utils, library.zeros(2, requires_grad=True)
    x.grad = library.tensor([3.0, 4.0])
    assert utils.get_total_norm([x.grad, x.grad], norm_type=1.0).item() == 14
    assert utils.get_total_norm([]).item() == 0
    utils.clip_grads_with_norm_([x], 2.5, library.tensor(5.0))
    np.testing.assert_allclose(x.grad.numpy(), [1.5, 2.0], rtol=1e-5)
    assert abs(utils.clip_grad_norm_(x, 9.0, error_if_nonfinite=True, foreach=False).item() - 2.5) < 1e-5
    x.grad = library.tensor([float("inf"), 1.0])
    with pytest.raises(RuntimeError, match="error_if_nonfinite"):
        utils.clip_grad_norm_(x, 1.0, error_if_nonfinite=True)
    assert x.grad.tolist() == [float("inf"), 1.0]
