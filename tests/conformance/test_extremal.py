"""Extremal numbers and empty shapes, of kernels and of the references, beside PyTorch's."""

import contextlib

import numpy as np
import pytest
import torch

import genesis
from genesis.nn import functional as F

INF, NAN = float("inf"), float("nan")


@pytest.fixture(params=["kernels", "references"], autouse=True)
def computed_by(request):
    with genesis.eager() if request.param == "references" else contextlib.nullcontext():
        yield


def agrees(name, *args, **kwargs):
    """The function at a path gives PyTorch's numbers for these lists of numbers."""
    def of(library):
        function = library
        for part in name.split("."):
            function = getattr(function, part)
        return function(*[library.tensor(a) if isinstance(a, list) else a for a in args], **kwargs).numpy()
    np.testing.assert_allclose(of(genesis), of(torch), 1e-5)


@pytest.mark.parametrize("name", ["sign", "sgn", "lgamma", "special.gammaln"])
def test_infinities_and_nan(name):
    agrees(name, [INF, -INF, NAN, 0.0, 2.5, -2.5, -3.0])


def test_the_slope_of_a_magnitude_is_0_at_nan():
    x = genesis.tensor([NAN, 1.0], requires_grad=True)
    x.abs().nansum().backward()
    assert x.grad.tolist() == [0, 1]


def test_a_bound_that_is_nan_makes_nan():
    for side in ("min", "max"):
        x, bound = genesis.tensor([1.0, 2.0, NAN, 4.0]), [0.0, NAN, 1.0, 5.0]
        want = torch.clamp(torch.tensor([1.0, 2.0, NAN, 4.0]), **{side: torch.tensor(bound)}).numpy()
        np.testing.assert_array_equal(genesis.clamp(x, **{side: genesis.tensor(bound)}).numpy(), want)


@pytest.mark.parametrize(("shape", "dim"), [((0,), 0), ((2, 0), 1), ((2, 0), (0, 1)), ((0, 3), 1)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_logsumexp_of_nothing(shape, dim, keepdim):
    found = genesis.logsumexp(genesis.ones(shape), dim, keepdim)
    assert found.tolist() == torch.logsumexp(torch.ones(shape), dim, keepdim).tolist()


@pytest.mark.parametrize(("input", "target"), [((5,), (1,)), ((5,), ()), ((1, 5), (1,))])
def test_a_loss_of_margins_has_the_target_s_shape(input, target):
    found = F.multi_margin_loss(genesis.ones(input), genesis.zeros(target, dtype=genesis.int64), reduction="none")
    assert found.shape == target
    np.testing.assert_allclose(found.numpy(), 0.8, 1e-6)
