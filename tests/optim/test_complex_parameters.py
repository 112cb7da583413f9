"""Optimizers of complex parameters beside torch's: each part is moved as a real number of its own."""

import numpy as np
import pytest
import torch

import genesis
from tests.optim.test_against_torch import ROUNDED, SETTINGS

STEPS = 4


def parameters(dtype):
    """The same first values, of complex and of real numbers, in genesis and torch."""
    random = np.random.default_rng(0)
    values = [(random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype) for shape in [(3, 4), (5,), ()]]
    values.append(values[0].real.copy())
    ours = [genesis.tensor(v, requires_grad=True) for v in values]
    return ours, [torch.tensor(v, requires_grad=True) for v in values]


def loss(params, number):
    """Something with a gradient that changes from step to step, and from part to part."""
    return sum(((p - number * 0.1) * (1 + 0.5j) - 0.3j).abs().square().sum() * (i + 1) for i, p in enumerate(params))


def descend(optimizer, params, compiled=False):
    def step(number):
        optimizer.zero_grad()
        loss(params, number).backward()
        optimizer.step()

    step = genesis.compile(step) if compiled else step
    for number in range(STEPS):
        step(float(number))


def assert_same(ours, theirs, name, dtype):
    tolerance = 2e-5 if name in ROUNDED or dtype == "complex64" else 1e-11
    for x, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), t.detach().numpy(), rtol=tolerance, atol=tolerance / 10)


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_a_complex_parameter_is_moved_as_its_parts(name, settings):
    ours, theirs = parameters("complex128")
    optimizer, reference = getattr(genesis.optim, name)(ours, **settings), getattr(torch.optim, name)(theirs, **settings)
    descend(optimizer, ours)
    descend(reference, theirs)
    assert_same(ours, theirs, name, "complex128")
    resumed = getattr(genesis.optim, name)([genesis.tensor(t.detach().numpy(), requires_grad=True) for t in theirs])
    resumed.load_state_dict(reference.state_dict())
    descend(resumed, resumed.param_groups[0]["params"])
    descend(reference, theirs)
    assert_same(resumed.param_groups[0]["params"], theirs, name, "complex128")


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Rprop"])
def test_a_compiled_step_moves_complex64(name):
    ours, theirs = parameters("complex64")
    descend(getattr(genesis.optim, name)(ours, lr=0.05), ours, compiled=True)
    descend(getattr(torch.optim, name)(theirs, lr=0.05), theirs)
    assert_same(ours, theirs, name, "complex64")


@pytest.mark.parametrize("settings", [{"lr": 0.1, "max_iter": 8}, {"line_search_fn": "strong_wolfe"}], ids=str)
def test_newtons_method_sees_both_parts(settings):
    found = []
    for library, params in zip((genesis, torch), parameters("complex128"), strict=True):
        optimizer = library.optim.LBFGS(params, **settings)

        def closure(optimizer=optimizer, params=params):
            optimizer.zero_grad()
            value = loss(params, 1)
            value.backward()
            return value

        for _ in range(3):
            optimizer.step(closure)
        found.append(params)
    assert_same(*found, "LBFGS", "complex128")


@pytest.mark.parametrize("norm_type", [0, 1.0, 2.0, 3.0, -1.0, float("inf"), -float("inf")])
def test_complex_gradients_are_clipped_by_their_moduli(norm_type):
    ours, theirs = parameters("complex128")
    loss(ours, 1).backward()
    loss(theirs, 1).backward()
    total = genesis.nn.utils.clip_grad_norm_(ours, 0.5, norm_type)
    wanted = torch.nn.utils.clip_grad_norm_(theirs, 0.5, norm_type)
    assert total.item() == pytest.approx(wanted.item(), rel=1e-9)
    assert_same([p.grad for p in ours], [t.grad for t in theirs], "clip", "complex128")
