"""Modules that pad, shuffle and unfold against torch's: values, gradients, reprs, and what is refused."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from tests.tolerances import assert_close

PADS = [f"{kind}Pad{axes}d" for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular") for axes in (1, 2, 3)]


def compared(build, shape):
    assert repr(build(nn)) == repr(build(torch.nn))
    found = []
    for library, m in ((genesis, nn), (torch, torch.nn)):
        x = library.tensor(np.random.default_rng(0).normal(size=shape), requires_grad=True)
        y = build(m)(x)
        (y * library.arange(y.numel(), dtype=library.float64).reshape(y.shape)).sum().backward()
        found.append([y, x.grad])
    assert_close(*found, scale=10)


@pytest.mark.parametrize("name", PADS)
def test_padding_is_torchs(name):
    axes, value = int(name[-2]), (0.5,) if name.startswith("Constant") else ()
    compared(lambda m: getattr(m, name)(2, *value), (2, 3, *(5, 4, 3)[:axes]))
    compared(lambda m: getattr(m, name)((1, 2, 0, 1, 2, 1)[: 2 * axes], *value), (2, 3, *(5, 4, 3)[:axes]))


@pytest.mark.parametrize(("build", "shape"), [
    (lambda m: m.PixelShuffle(2), (2, 8, 3, 4)), (lambda m: m.PixelUnshuffle(2), (2, 3, 4, 6)),
    (lambda m: m.ChannelShuffle(2), (2, 6, 3)), (lambda m: m.Unfold((2, 3), dilation=2, padding=1, stride=2), (1, 2, 6, 7)),
    (lambda m: m.Fold((5, 4), (2, 2), padding=1, stride=2), (1, 8, 9)),
])
def test_shuffles_and_windows_are_torchs(build, shape):
    compared(build, shape)


X = genesis.ones(1, 6, 3, 4)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: nn.PixelShuffle(2)(X), r"input has shape \(1, 6, 3, 4\); want \(.., c, h, w\) that 4, 1 and 1 divide"),
    (lambda: nn.PixelUnshuffle(2)(X), "that 1, 2 and 2 divide"),
    (lambda: nn.ChannelShuffle(4)(X), r"4 groups of shape \(1, 6, 3, 4\)"),
    (lambda: nn.ReflectionPad2d((1, 2)), r"ReflectionPad2d: padding is \(1, 2\); want an integer or 4 of them"),
])
def test_what_does_not_fit_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("value", [None, 0, 0.0, 1.0])
def test_a_mode_that_needs_no_value_takes_0_alone(value):
    shown = []
    for lib in (genesis, torch):
        try:
            shown.append(lib.nn.functional.pad(lib.tensor([[1.0, 2.0, 3.0]]), (1, 1), mode="reflect", value=value).tolist())
        except (RuntimeError, AssertionError):
            shown.append("refused")
    assert shown[0] == shown[1]


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate"])
@pytest.mark.parametrize("pads", [(3, -7), (-7, 3), (4, -6), (-1, 3), (3, -3), (-2, -4)], ids=str)
def test_paddings_that_cut_take_away_what_the_others_add_but_for_constants(mode, pads):
    found = []
    for library in (genesis, torch):
        x = library.arange(5.0, requires_grad=True)
        try:
            y = library.nn.functional.pad(x.reshape(1, 1, 5), pads, mode)
            (y * y).sum().backward()
            found.append((y.tolist(), x.grad.tolist()))
        except RuntimeError:
            found.append("refused")
    assert found[0] == found[1]
