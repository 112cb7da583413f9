"""Convolutions with kernels of 3 x 3 as products of transformed tiles: the same numbers, and where they are taken."""

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view

import genesis
from genesis.codegen.cpu.emit import emit_kernel
from genesis.codegen.cpu.tiling import multiplies_pairs, width_of
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.lower.stages import Loop, Product, parts
from genesis.lower.winograd_windows import LEAST_CHANNELS as C
from genesis.nn import functional as F
from genesis.tracing.state import current_trace


def reference(x, w, margin, gradient):
    """The convolution and both gradients, in float64."""
    x, w, gradient = (a.astype(np.float64) for a in (x, w, gradient))
    padded = np.pad(x, ((0, 0), (0, 0), (margin, margin), (margin, margin)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    y = np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)
    by_weight = np.einsum("nchwij,nohw->ocij", windows, gradient, optimize=True)
    wide = sliding_window_view(np.pad(gradient, ((0, 0), (0, 0), (2, 2), (2, 2))), (3, 3), axis=(2, 3))
    by_input = np.einsum("nohwij,ocij->nchw", wide, w[:, :, ::-1, ::-1], optimize=True)
    inside = slice(margin, -margin or None)
    return y, by_input[:, :, inside, inside], by_weight


def computed(x, w, margin, gradient):
    x, w = (genesis.tensor(a, requires_grad=True) for a in (x, w))
    y = F.conv2d(x, w, padding=margin)
    y.backward(genesis.tensor(gradient))
    return y.detach().numpy(), x.grad.numpy(), w.grad.numpy()


@pytest.mark.parametrize(("images", "inside", "out", "height", "width", "margin"), [
    (12, C, C + 2, 4, 6, 1), (1, C + 1, C, 18, 20, 0), (64, C, C, 2, 2, 1), (2, C, C, 32, 32, 1), (36, C, C, 8, 8, 1),
    (3, C, C + 2, 24, 28, 1), (1, C + 1, C, 30, 42, 0), (6, C, C + 2, 16, 16, 1),
    (12, C, C + 2, 5, 7, 1), (9, C + 1, C, 7, 8, 1), (3, C + 1, C, 11, 8, 0), (1, C, C, 29, 27, 1)])
def test_numbers_are_those_of_sums(images, inside, out, height, width, margin):
    random = np.random.default_rng(images)
    x = random.normal(size=(images, inside, height, width)).astype(np.float32)
    w = (random.normal(size=(out, inside, 3, 3)) / inside**0.5).astype(np.float32)
    gradient = random.normal(size=(images, out, height + 2 * margin - 2, width + 2 * margin - 2)).astype(np.float32)
    for got, wanted in zip(computed(x, w, margin, gradient), reference(x, w, margin, gradient), strict=True):
        assert np.abs(got - wanted).max() < 2e-6 * np.abs(wanted).max()


@pytest.mark.parametrize(("images", "side"), [(16, 4), (9, 8), (2, 24)])
def test_small_integers_stay_exact(images, side):
    random = np.random.default_rng(0)
    x, w, gradient = (random.integers(-4, 5, size=shape).astype(np.float32) for shape in (
        (images, C, side, side), (C, C, 3, 3), (images, C, side, side)))
    for got, wanted in zip(computed(x, w, 1, gradient), reference(x, w, 1, gradient), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_of_16_bits_are_rounded_once(dtype):
    random = np.random.default_rng(0)
    x, w, gradient = (random.integers(-2, 3, size=shape) for shape in ((16, C, 8, 8), (C, C, 3, 3), (16, C, 8, 8)))
    given = [genesis.tensor(a, dtype=getattr(genesis, dtype)) for a in (x, w, gradient)]
    inputs = [a.requires_grad_() for a in given[:2]]
    y = F.conv2d(*inputs, padding=1)
    assert multiplications(y) == y.numel() * C * (144 if dtype == "bfloat16" and multiplies_pairs() else 46) // 16
    y.backward(given[2])
    for got, wanted in zip((y.detach(), *(a.grad for a in inputs)), reference(x, w, 1, gradient), strict=True):
        rounded = torch.tensor(wanted).to(getattr(torch, dtype)).float().numpy()
        np.testing.assert_array_equal(got.float().numpy(), rounded)


@pytest.mark.parametrize(("images", "inside", "out", "taps", "depth", "height", "width"), [
    (2, C, C + 2, 3, 5, 8, 12), (1, C + 1, C, 2, 6, 10, 16), (3, C, C, 1, 4, 8, 8)])
def test_volumes_are_those_of_torch(images, inside, out, taps, depth, height, width):
    random = np.random.default_rng(taps)
    x = random.normal(size=(images, inside, depth, height, width)).astype(np.float32)
    w = (random.normal(size=(out, inside, taps, 3, 3)) / inside**0.5).astype(np.float32)
    found = []
    for library in (genesis, torch):
        values = [library.tensor(a, requires_grad=True) for a in (x, w)]
        y = library.nn.functional.conv3d(*values, padding=(taps // 2, 1, 1))
        if library is genesis:
            assert multiplications(y) == images * 16 * out * taps * inside * y.shape[2] * height * width // 4
        (y * y).sum().backward()
        found.append((y.detach().numpy(), *(value.grad.numpy() for value in values)))
    for got, wanted in zip(*found, strict=True):
        assert np.abs(got - wanted).max() < 5e-6 * np.abs(wanted).max()


def multiplications(y):
    """Those of the products of the program that computes `y`."""
    stages = plan_for(current_trace()).lowered.schedule.stages
    calls = [call for stage in stages for call in stage]
    return sum(part.flops for call in calls for part in (getattr(call, "calls", None) or [call]) if hasattr(part, "flops")) // 2


@pytest.mark.parametrize(("images", "side", "groups"), [(16, 32, 32), (64, 8, 8), (16, 12, 4), (16, 16, 8)])
def test_transformed_tiles_stay_in_cache_group_by_group(images, side, groups):
    y = F.conv2d(genesis.ones(images, C, side, side), genesis.ones(C, C, 3, 3), padding=1)
    calls = [call for stage in plan_for(current_trace()).lowered.schedule.stages for call in stage]
    [loop] = [call for call in calls if isinstance(call, Loop) and call.private]
    assert loop.points == groups and len(loop.private) >= 2
    assert y[0, 0, 1, 1].item() == 9 * C


def test_gradients_by_weights_are_added_up_group_by_group():
    x, w = genesis.ones(16, C, 32, 32), genesis.ones(C, C, 3, 3, requires_grad=True)
    F.conv2d(x, w, padding=1).sum().backward()
    stages = plan_for(current_trace()).lowered.schedule.stages
    products = [part for stage in stages for call in stage for part in parts(call) if isinstance(part, Product)]
    assert [(part.batch, part.results) for part in products if part.summed] == [((32, 46), 46)]
    assert w.grad[0, 0, 1, 1].item() == 16 * 32 * 32


@pytest.mark.parametrize("side", [16, 32])
def test_transforms_of_tiles_load_and_store_vectors(side):
    x, w = (genesis.ones(*shape, requires_grad=True) for shape in ((16 * 1024 // side**2, C, side, side), (C, C, 3, 3)))
    F.conv2d(x, w, padding=1).square().sum().backward()
    stages = plan_for(current_trace()).lowered.schedule.stages
    loops = [call for stage in stages for call in stage if isinstance(call, Loop) and call.private]
    kernels = [part.kernel for loop in loops for part in loop.calls if isinstance(part, KernelCall)]
    assert len(loops) >= 2 and len(kernels) >= 7
    assert not any(way in emit_kernel(k, width_of(k)) for k in kernels for way in ("gathered", "masked.scatter"))


def test_backward_transforms_its_own_tiles():
    x, w = (genesis.ones(*shape, requires_grad=True) for shape in ((16, C, 32, 32), (C, C, 3, 3)))
    narrow = F.conv2d(genesis.ones(16, 64, 4, 4), genesis.ones(64, 64, 1, 1))  # images that `join_batches` joins
    (F.conv2d(x, w, padding=1).square().sum() + narrow.sum()).backward()
    lowered = plan_for(current_trace()).lowered
    calls = [call for stage in lowered.schedule.stages for call in stage]
    written = [value for call in calls for value in call.writes if value not in getattr(call, "private", ())]
    assert max(lowered.nodes[value].numel for value in written) < 2 * x.numel()  # tiles have four times as many


@pytest.mark.parametrize(("images", "inside", "side", "options", "share"), [
    (16, C, 4, {"padding": 1}, 4 / 9), (16, C, 5, {"padding": 1}, 4 / 9 * 36 / 25), (64, C, 3, {"padding": 1}, 1),
    (15, C, 4, {"padding": 1}, 1), (16, C - 1, 4, {"padding": 1}, 1),
    (16, C, 4, {"padding": 2, "dilation": 2}, 1), (1, C, 24, {"padding": 1}, 46 / 144), (6, C, 8, {"padding": 1}, 46 / 144),
    (4, C, 16, {"padding": 1}, 46 / 144),
    (1, C, 27, {"padding": 1}, 46 / 144 * (28 / 27) ** 2), (1, C, 26, {"padding": 1}, 4 / 9)])
def test_where_it_is_taken(images, inside, side, options, share):
    x, w = genesis.ones(images, inside, side, side), genesis.ones(C, inside, 3, 3)
    y = F.conv2d(x, w, **options)
    assert multiplications(y) == round(y.numel() * inside * 9 * share)
