"""Layers that few programs use (adaptive softmax, fractional pooling, bases of recurrent layers), beside torch's."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from tests.conformance.converting import converted

BOTH = [genesis, torch]
each = pytest.mark.parametrize("library", BOTH, ids=["genesis", "torch"])
RANDOM = np.random.default_rng(0)


def pair(make):
    theirs, ours = make(torch.nn), make(genesis.nn)
    ours.load_state_dict(converted(dict(theirs.state_dict())))
    return ours, theirs


@pytest.mark.parametrize("targets", [[0, 3, 7, 19, 1, 8], [0, 1, 2, 0, 1, 2], [11, 12, 19, 15, 11, 12]])
@pytest.mark.parametrize("bias", [True, False])
def test_adaptive_softmax(targets, bias):
    ours, theirs = pair(lambda lib: lib.AdaptiveLogSoftmaxWithLoss(16, 20, [3, 10], div_value=2.0, head_bias=bias))
    assert repr(ours) == repr(theirs)
    x = RANDOM.normal(size=(6, 16)).astype(np.float32)
    (output, loss), (want, wanted) = (
        layer(lib.tensor(x), lib.tensor(targets)) for lib, layer in zip(BOTH, (ours, theirs), strict=True))
    np.testing.assert_allclose(output.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    loss.backward()
    wanted.backward()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-5)
    assert ours.predict(genesis.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
    np.testing.assert_allclose(
        ours.log_prob(genesis.tensor(x)).exp().sum(1).detach().numpy(), np.ones(6), rtol=1e-5)
    one = ours(genesis.tensor(x[0]), genesis.tensor(targets[0]))
    assert one.output.shape == () and abs(one.output.item() - output[0].item()) < 1e-5


@each
def test_adaptive_softmax_refuses(library):
    for cutoffs in ([], [5, 3], [0, 3], [20], [3, 3], [2.5]):
        with pytest.raises(ValueError):
            library.nn.AdaptiveLogSoftmaxWithLoss(4, 20, cutoffs)
    layer = library.nn.AdaptiveLogSoftmaxWithLoss(4, 20, [3])
    for shape, target in [((2, 4), [0]), ((2, 4), [[0, 1]]), ((2, 4), [0, 20]), ((4,), [0])]:
        with pytest.raises(RuntimeError):
            layer(library.ones(shape), library.tensor(target))


@pytest.mark.parametrize("shape, size, settings", [
    ((2, 3, 9, 7), 2, {"output_size": (4, 3)}), ((2, 3, 16, 13), (2, 3), {"output_ratio": (0.4, 0.3)}),
    ((3, 9, 7), 3, {"output_size": (1, 2)}), ((2, 3, 9, 7, 8), 2, {"output_size": (4, 3, 5)}),
    ((3, 8, 8, 8), (2, 3, 2), {"output_ratio": 0.5}),
])
def test_fractional_pooling(shape, size, settings):
    axes = len(shape) - 1 if len(shape) == 3 or settings == {"output_ratio": 0.5} else len(shape) - 2
    lead = shape[:2] if len(shape) == axes + 2 else (1, shape[0])
    x, samples, found = RANDOM.normal(size=shape), RANDOM.uniform(size=(*lead, axes)), []
    if isinstance(settings.get("output_ratio"), float):
        settings = {"output_ratio": (0.5,) * axes}  # a single number is for both libraries' layers, this for functions too
    for lib in BOTH:
        leaf = lib.tensor(x, requires_grad=True)
        layer = getattr(lib.nn, f"FractionalMaxPool{axes}d")(
            size, **settings, return_indices=True, _random_samples=lib.tensor(samples))
        y, at = layer(leaf)
        y.square().sum().backward()
        found.append((y.detach().numpy(), at.numpy(), leaf.grad.numpy(), repr(layer)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_samples_for_several_examples_serve_one():
    x, samples = RANDOM.normal(size=(3, 6, 6, 6)), RANDOM.uniform(size=(2, 3, 3))
    have, want = (lib.nn.FractionalMaxPool3d(2, output_size=3, _random_samples=lib.tensor(samples))(lib.tensor(x)).numpy()
                  for lib in BOTH)
    np.testing.assert_array_equal(have, want)


@each
def test_fractional_pooling_refuses(library):
    for settings in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": (0.5, 1.5)}):
        with pytest.raises(ValueError):
            library.nn.FractionalMaxPool2d(2, **settings)
    with pytest.raises((ValueError, RuntimeError)):
        library.nn.functional.fractional_max_pool2d(library.ones(1, 1, 4, 4), 3, output_size=4)


@pytest.mark.parametrize("make, shape", [
    (lambda lib: lib.CrossMapLRN2d(3, alpha=0.5), (2, 2, 3, 3)), (lambda lib: lib.SyncBatchNorm(3), (2, 3, 4)),
    (lambda lib: lib.SyncBatchNorm.convert_sync_batchnorm(lib.Sequential(lib.Conv1d(3, 3, 1), lib.BatchNorm1d(3))), (2, 3, 4)),
])
def test_older_names(make, shape):
    ours, theirs = pair(make)
    assert repr(ours) == repr(theirs)
    x = RANDOM.normal(size=shape).astype(np.float32)
    if "Sync" in repr(ours):  # torch's wants a GPU while training
        ours(genesis.tensor(x))
        ours.eval(), theirs.eval()
        theirs.load_state_dict({name: torch.tensor(value.numpy()) for name, value in ours.state_dict().items()})
    np.testing.assert_allclose(
        ours(genesis.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_torchs_local_response_norm_across_maps_forgets_to_leave_channels_behind():
    x = RANDOM.normal(size=(1, 6, 2, 2)).astype(np.float32)
    older, current = (kind(3, alpha=0.5)(torch.tensor(x)).numpy()
                      for kind in (torch.nn.CrossMapLRN2d, torch.nn.LocalResponseNorm))
    assert abs(older - current).max() > 1e-4  # torch's own two disagree from the third channel on
    np.testing.assert_allclose(nn.CrossMapLRN2d(3, alpha=0.5)(genesis.tensor(x)).numpy(), current, rtol=1e-4)


def test_containers_and_losses_of_images():
    assert repr(nn.Container(first=nn.ReLU())) == "Container(\n  (first): ReLU()\n)"
    x, target = RANDOM.normal(size=(2, 3, 2, 2)).astype(np.float32), RANDOM.integers(3, size=(2, 2, 2))
    want = torch.nn.NLLLoss()(torch.tensor(x), torch.tensor(target)).item()
    assert abs(nn.NLLLoss2d()(genesis.tensor(x), genesis.tensor(target)).item() - want) < 1e-6


@pytest.mark.parametrize("mode", ["RNN_TANH", "RNN_RELU", "LSTM", "GRU"])
def test_the_base_of_recurrent_layers(mode):
    ours, theirs = pair(lambda lib: lib.RNNBase(mode, 3, 4, num_layers=2, bidirectional=True))
    assert repr(ours) == repr(theirs)
    assert [[tuple(w.shape) for w in own] for own in ours.all_weights] == [
        [tuple(w.shape) for w in own] for own in theirs.all_weights]
    for library in BOTH:
        with pytest.raises(ValueError):
            library.nn.RNNBase("NO_MODE", 3, 4)
    assert tuple(nn.RNNCellBase(3, 4, False, 2).weight_hh.shape) == (8, 4)


@pytest.mark.parametrize("make", [lambda lib: lib.LayerNorm(3), lambda lib: lib.GroupNorm(1, 3), lambda lib: lib.RMSNorm(3)])
def test_parameters_begin_anew(make):
    for library in BOTH:
        layer = make(library.nn)
        before = {name: value.tolist() for name, value in layer.state_dict().items()}
        with library.no_grad():
            for parameter in layer.parameters():
                parameter.add_(1)
        layer.reset_parameters()
        assert {name: value.tolist() for name, value in layer.state_dict().items()} == before


def test_slopes_in_place():
    x = genesis.tensor([1.0, -2.0])
    assert genesis.nn.functional.rrelu_(x, 0.25, 0.75) is x and x.tolist() == [1.0, -1.0]


@pytest.mark.parametrize(("name", "shape", "settings"), [
    ("max_pool1d", (2, 3, 17), {"kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2}),
    ("max_pool2d", (2, 3, 9, 11), {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1}),
    ("max_pool3d", (2, 2, 6, 7, 8), {"kernel_size": (2, 3, 2), "stride": 2, "padding": (0, 1, 1)}),
])
def test_places_of_the_greatest_elements_of_windows_are_torchs(name, shape, settings):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    have, want = (getattr(m.nn.functional, name)(m.tensor(x), return_indices=True, **settings)[1] for m in (genesis, torch))
    np.testing.assert_array_equal(have.numpy(), want.numpy())
