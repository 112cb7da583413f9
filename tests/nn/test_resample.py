"""Resampling against torch's: modules, float32, what is repeated, infinite neighbours, and what is refused."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.nn import functional as F
from tests.tolerances import assert_close

IMAGES = np.random.default_rng(0).normal(size=(2, 3, 7, 5))


@pytest.mark.parametrize("build", [
    lambda m: m.Upsample(scale_factor=2), lambda m: m.Upsample((9, 4), mode="bilinear"),
    lambda m: m.Upsample(scale_factor=(2, 1.5), mode="bilinear", align_corners=True),
    lambda m: m.UpsamplingNearest2d(size=11), lambda m: m.UpsamplingBilinear2d(scale_factor=3),
])
def test_modules_and_their_gradients_are_torchs(build):
    assert repr(build(nn)) == repr(build(torch.nn))
    for dtype in ("float32", "float64"):
        found = []
        for library, m in ((genesis, nn), (torch, torch.nn)):
            x = library.tensor(IMAGES.astype(dtype), requires_grad=True)
            y = build(m)(x)
            (y * y).sum().backward()
            found.append([y, x.grad])
        assert_close(*found, scale=10)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize(("extent", "count"), [(3, 100), (5, 7), (64, 48), (100, 3), (7, 14), (33, 64)])
def test_the_nearest_are_torchs(mode, extent, count):
    x = np.arange(extent, dtype=np.float32).reshape(1, 1, extent)
    for settings in ({"size": count}, {"scale_factor": count / extent}):
        ours = F.interpolate(genesis.tensor(x), mode=mode, **settings)
        assert_close(ours, torch.nn.functional.interpolate(torch.tensor(x), mode=mode, **settings), f"{extent} {settings}")


def test_a_whole_factor_repeats_by_a_view():
    x = genesis.tensor(IMAGES, requires_grad=True)
    with genesis.debug.Recording() as recording:
        F.interpolate(x, scale_factor=2).square().sum().backward()
        x.grad.tolist()
    operations = {node.op for flushed in recording.programs for node in flushed.graph.nodes}
    assert "view" in operations and operations.isdisjoint({"gather", "scatter"})


def test_what_lies_elsewhere_does_not_matter():
    x = IMAGES.copy()
    x[0, 0, 0, 0], x[1, 0, 3, 3] = np.inf, np.nan
    for mode in ("bilinear", "bicubic", "nearest"):
        ours = F.interpolate(genesis.tensor(x), (10, 11), mode=mode)
        assert_close(ours, torch.nn.functional.interpolate(torch.tensor(x), (10, 11), mode=mode), mode, scale=10)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("settings", [
    {"size": (5, 4)}, {"size": (20, 31)}, {"size": (7, 40), "align_corners": True}, {"scale_factor": 0.4},
    {"scale_factor": (0.37, 1.9)}, {"scale_factor": 0.4, "recompute_scale_factor": True},
])
def test_antialias_averages_what_lies_between(mode, settings):
    """Results and gradients in float64; images of uint8 are one off at most where PyTorch's weights have 15 bits."""
    image = np.random.default_rng(0).uniform(0, 255, (2, 3, 13, 17))
    x, t = genesis.tensor(image, requires_grad=True), torch.tensor(image, requires_grad=True)
    found = F.interpolate(x, mode=mode, antialias=True, **settings)
    want = torch.nn.functional.interpolate(t, mode=mode, antialias=True, **settings)
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), 1e-10)
    found.square().sum().backward()
    want.square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), 1e-9, 1e-9)
    pixels = image.astype(np.uint8)
    found = F.interpolate(genesis.tensor(pixels), mode=mode, antialias=True, **settings).numpy().astype(int)
    want = torch.nn.functional.interpolate(torch.tensor(pixels), mode=mode, antialias=True, **settings).numpy().astype(int)
    off = np.abs(found - want)
    assert off.max() <= 1 and off.mean() < 0.05


X = genesis.ones(1, 2, 4, 4)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: F.interpolate(X), "size is None and scale_factor None; want one of them"),
    (lambda: F.interpolate(X, 2, 2.0), "size is 2 and scale_factor 2.0; want one"),
    (lambda: F.interpolate(X, (2, 2, 2)), r"\(2, 2, 2\) for shape \(1, 2, 4, 4\); want a number above 0 for each of 2 axes"),
    (lambda: F.interpolate(X, 2, mode="linear"), "mode 'linear' for shape .* want one of nearest, nearest-exact, bilinear"),
    (lambda: F.interpolate(X, 2, align_corners=True), "align_corners has no meaning in mode 'nearest'; want None"),
    (lambda: F.interpolate(X, 2, mode="nearest", antialias=True), "antialias has no meaning in mode 'nearest'"),
    (lambda: F.interpolate(X.long(), 2, mode="bilinear"), "wants floating numbers, got int64; convert with .float"),
    (lambda: F.interpolate(X, scale_factor=0.1), "want an element at least along each axis"),
])
def test_what_does_not_fit_is_refused(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()
