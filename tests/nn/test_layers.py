"""Layers and losses against torch's: values and the gradients of inputs and parameters."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn

TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-6}, "float64": {"rtol": 1e-12, "atol": 1e-13}}

LAYERS = {
    "linear": (lambda m: m.Linear(6, 4), (5, 6)),
    "linear without bias, batched": (lambda m: m.Linear(6, 4, bias=False), (2, 3, 6)),
    "relu": (lambda m: m.ReLU(), (3, 4)),
    "gelu": (lambda m: m.GELU(), (3, 4)),
    "gelu by tanh": (lambda m: m.GELU(approximate="tanh"), (3, 4)),
    "silu": (lambda m: m.SiLU(), (3, 4)),
    "tanh": (lambda m: m.Tanh(), (3, 4)),
    "sigmoid": (lambda m: m.Sigmoid(), (3, 4)),
    "softmax": (lambda m: m.Softmax(dim=1), (3, 4)),
    "layer norm": (lambda m: m.LayerNorm(6), (5, 6)),
    "layer norm over two axes": (lambda m: m.LayerNorm((3, 4), eps=1e-3), (2, 3, 4)),
    "layer norm without parameters": (lambda m: m.LayerNorm(6, elementwise_affine=False), (5, 6)),
    "rms norm": (lambda m: m.RMSNorm(6, eps=1e-6), (5, 6)),
    "batch norm": (lambda m: m.BatchNorm1d(6), (5, 6)),
    "batch norm over a length": (lambda m: m.BatchNorm1d(3, eps=1e-3), (5, 3, 4)),
    "batch norm of images": (lambda m: m.BatchNorm2d(3, affine=False), (2, 3, 4, 2)),
    "batch norm without statistics": (lambda m: m.BatchNorm2d(3, track_running_stats=False).eval(), (2, 3, 4, 2)),
    "batch norm, evaluated": (lambda m: m.BatchNorm2d(3).eval(), (2, 3, 4, 2)),
    "group norm": (lambda m: m.GroupNorm(2, 6), (5, 6, 3)),
    "instance norm": (lambda m: m.InstanceNorm2d(3), (2, 3, 4, 5)),
    "instance norm with all": (lambda m: m.InstanceNorm1d(3, affine=True, track_running_stats=True), (2, 3, 4)),
    "conv 1d": (lambda m: m.Conv1d(4, 6, 3, padding=1, groups=2), (2, 4, 7)),
    "conv 2d": (lambda m: m.Conv2d(3, 4, 3, padding=1), (2, 3, 6, 5)),
    "conv 2d with strides": (lambda m: m.Conv2d(3, 4, (3, 2), stride=(2, 3), dilation=(1, 2), bias=False), (2, 3, 7, 8)),
    "conv 2d, depthwise": (lambda m: m.Conv2d(4, 8, 3, padding="same", groups=4), (1, 4, 5, 5)),
    "conv 2d of one image": (lambda m: m.Conv2d(2, 3, 1), (2, 4, 4)),
    "conv 2d, reflecting": (lambda m: m.Conv2d(2, 3, 3, padding=(2, 1), padding_mode="reflect"), (2, 2, 4, 4)),
    "conv 2d, circular": (lambda m: m.Conv2d(2, 3, (3, 4), padding="same", padding_mode="circular"), (2, 2, 4, 4)),
    "conv 3d": (lambda m: m.Conv3d(1, 2, 2), (2, 1, 3, 3, 3)),
    "transposed conv 1d": (lambda m: m.ConvTranspose1d(4, 6, 3, stride=2, groups=2), (2, 4, 5)),
    "transposed conv 2d": (lambda m: m.ConvTranspose2d(3, 2, 3, 2, 1, 1), (2, 3, 4, 3)),
    "transposed conv 2d with dilation": (lambda m: m.ConvTranspose2d(3, 2, (2, 3), dilation=2, bias=False), (2, 3, 4, 3)),
    "max pool": (lambda m: m.MaxPool2d(2), (2, 3, 6, 4)),
    "max pool with overlap": (lambda m: m.MaxPool2d(3, 2, 1, ceil_mode=True), (2, 3, 6, 7)),
    "average pool": (lambda m: m.AvgPool2d(2), (2, 3, 6, 5)),
    "average pool with overlap": (lambda m: m.AvgPool2d(3, 2, 1, True, False), (2, 3, 6, 7)),
    "average pool of lengths": (lambda m: m.AvgPool1d(3, 2), (2, 3, 8)),
    "norm pool": (lambda m: m.LPPool2d(2, 2), (2, 3, 4, 4)),
    "adaptive average pool": (lambda m: m.AdaptiveAvgPool2d((3, None)), (2, 3, 7, 4)),
    "adaptive max pool": (lambda m: m.AdaptiveMaxPool2d(2), (2, 3, 4, 5)),
    "small network of images": (
        lambda m: m.Sequential(m.Conv2d(3, 4, 3, padding=1), m.BatchNorm2d(4), m.ReLU(), m.MaxPool2d(2), m.Conv2d(4, 5, 3),
                               m.ReLU(), m.AdaptiveAvgPool2d(1), m.Flatten(), m.Linear(5, 2)), (2, 3, 8, 8)),
    "flatten": (lambda m: m.Flatten(), (2, 3, 4)),
    "network": (lambda m: m.Sequential(m.Linear(6, 8), m.Tanh(), m.LayerNorm(8), m.Linear(8, 2)), (5, 6)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_torchs(name, dtype):
    build, shape = LAYERS[name]
    ours, theirs = build(nn).to(getattr(genesis, dtype)), build(torch.nn).to(getattr(torch, dtype))
    random = np.random.default_rng(0)
    state = {k: random.normal(size=tuple(v.shape)) for k, v in theirs.state_dict().items()}
    state = {k: np.abs(v) if "running" in k or "num" in k else v for k, v in state.items()}
    theirs.load_state_dict({k: torch.tensor(v) for k, v in state.items()})
    ours.load_state_dict(state)
    data = random.normal(size=shape).astype(dtype)
    x, t = genesis.tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
    y, s = ours(x), theirs(t)
    toward = random.normal(size=y.shape).astype(dtype)
    (y * genesis.tensor(toward)).sum().backward()
    (s * torch.tensor(toward)).sum().backward()
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(y.detach().numpy(), s.detach().numpy(), **tolerance)
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), **tolerance)
    assert repr(ours) == repr(theirs)
    for (_, b), c in zip(ours.named_buffers(), theirs.buffers(), strict=True):
        np.testing.assert_allclose(b.numpy(), c.numpy(), **tolerance)
    for (_, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=tolerance["rtol"], atol=10 * tolerance["atol"])


LOSSES = {
    "cross entropy": lambda m: m.CrossEntropyLoss(),
    "cross entropy, summed": lambda m: m.CrossEntropyLoss(reduction="sum"),
    "cross entropy per row": lambda m: m.CrossEntropyLoss(reduction="none"),
    "cross entropy, ignoring": lambda m: m.CrossEntropyLoss(ignore_index=2),
    "cross entropy, smoothed": lambda m: m.CrossEntropyLoss(label_smoothing=0.1),
}


@pytest.mark.parametrize("name", LOSSES)
def test_cross_entropy_is_torchs(name):
    random = np.random.default_rng(1)
    scores, target = random.normal(size=(6, 4)), np.array([0, 1, 2, 3, 2, 1])
    x, t = genesis.tensor(scores, requires_grad=True), torch.tensor(scores, requires_grad=True)
    ours, theirs = LOSSES[name](nn)(x, genesis.tensor(target)), LOSSES[name](torch.nn)(t, torch.tensor(target))
    ours.sum().backward()
    theirs.sum().backward()
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), **TOLERANCE["float64"])
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), **TOLERANCE["float64"])


def test_cross_entropy_weighs_classes_as_torch_does():
    random = np.random.default_rng(1)
    scores, target, weight = random.normal(size=(6, 4)), np.array([0, 1, 2, 3, 2, 1]), random.uniform(size=4)
    ours = nn.CrossEntropyLoss(weight=genesis.tensor(weight))(genesis.tensor(scores), genesis.tensor(target))
    theirs = torch.nn.CrossEntropyLoss(weight=torch.tensor(weight))(torch.tensor(scores), torch.tensor(target))
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)


@pytest.mark.parametrize("name", ["MSELoss", "L1Loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_distances_are_torchs(name, reduction):
    a, b = np.random.default_rng(2).normal(size=(2, 3, 4))
    ours = getattr(nn, name)(reduction=reduction)(genesis.tensor(a), genesis.tensor(b))
    theirs = getattr(torch.nn, name)(reduction=reduction)(torch.tensor(a), torch.tensor(b))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), **TOLERANCE["float64"])


def test_embedding_picks_rows_and_adds_their_gradients():
    layer = nn.Embedding(5, 2)
    layer(genesis.tensor([[1, 3], [1, 1]])).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [0, 6, 0, 2, 0]


def test_dropout_scales_what_it_keeps():
    genesis.manual_seed(0)
    x = genesis.ones(10_000, requires_grad=True)
    y = nn.functional.dropout(x, 0.25)
    assert np.unique(y.detach().numpy()).tolist() == pytest.approx([0, 4 / 3]) and abs(y.mean().item() - 1) < 0.03
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
    with pytest.raises(ValueError, match=r"p is a probability, got 1\.5"):
        nn.functional.dropout(x, 1.5)


def test_two_dropouts_differ():
    x = genesis.ones(1000)
    assert nn.functional.dropout(x).tolist() != nn.functional.dropout(x).tolist()


def test_linear_starts_in_torchs_range():
    genesis.manual_seed(0)
    layer = nn.Linear(16, 2000)
    for values in (layer.weight, layer.bias):
        sizes = np.abs(values.detach().numpy())
        assert 0.245 < sizes.max() <= 0.25 and abs(sizes.mean() - 0.125) < 0.01


@pytest.mark.parametrize("name", ["kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"])
def test_init_has_torchs_spread(name):
    genesis.manual_seed(0)
    ours = getattr(nn.init, name)(genesis.empty(300, 200)).numpy()
    theirs = getattr(torch.nn.init, name)(torch.empty(300, 200)).numpy()
    assert ours.std() == pytest.approx(theirs.std(), rel=0.02) and abs(ours.mean()) < 0.01


def test_clip_grad_norm_is_torchs():
    random = np.random.default_rng(3)
    grads = [random.normal(size=(3, 4)), random.normal(size=5)]
    for norm_type in (2.0, 1.0, float("inf")):
        for bound in (0.5, 100.0):
            ours = [genesis.tensor(np.zeros_like(g), requires_grad=True) for g in grads]
            theirs = [torch.tensor(np.zeros_like(g), requires_grad=True) for g in grads]
            for x, t, g in zip(ours, theirs, grads, strict=True):
                x.grad, t.grad = genesis.tensor(g), torch.tensor(g)
            total = nn.utils.clip_grad_norm_(ours, bound, norm_type)
            wanted = torch.nn.utils.clip_grad_norm_(theirs, bound, norm_type)
            assert total.item() == pytest.approx(wanted.item(), rel=1e-12)
            for x, t in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-12)


def test_clip_grad_value_stays_lazy():
    x = genesis.tensor([0.0, 0.0], requires_grad=True)
    (x * genesis.tensor([5.0, -0.5])).sum().backward()
    nn.utils.clip_grad_value_(x, 2.0)
    assert x.grad._array.memory is None
    assert x.grad.tolist() == [2.0, -0.5]
