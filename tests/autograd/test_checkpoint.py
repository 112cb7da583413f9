"""genesis.utils.checkpoint: the same results and gradients, by a second call instead of kept values."""

import gc

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.utils.checkpoint import checkpoint


def both(function, *tensors, seed=3):
    """[(results, gradients)] of the function as it is and checkpointed."""
    found = []
    for run in (lambda *args: function(*args), lambda *args: checkpoint(function, *args)):
        genesis.manual_seed(seed)
        own = [t.detach().clone().requires_grad_() if t.is_floating_point() else t for t in tensors]
        result = run(*own)
        result.sum().backward()
        found.append([result.detach().numpy(), *[t.grad.numpy() for t in own if t.grad is not None]])
    return found


def test_results_and_gradients_are_those_of_the_function():
    x, w = genesis.randn(4, 3), genesis.randn(3, 2)
    for plain, checked in zip(*both(lambda x, w: (x @ w).tanh().softmax(1) * x[:, :1], x, w), strict=True):
        np.testing.assert_array_equal(plain, checked)


def test_the_second_call_draws_the_same_random_numbers():
    for plain, checked in zip(*both(lambda x: nn.functional.dropout(x * 2, 0.5), genesis.ones(64)), strict=True):
        np.testing.assert_array_equal(plain, checked)
    genesis.manual_seed(0)
    y = checkpoint(lambda x: nn.functional.dropout(x, 0.5), genesis.ones(8, requires_grad=True))
    state = genesis.get_rng_state()
    y.sum().backward()
    assert genesis.get_rng_state() == state


def test_the_second_call_is_cast_as_the_first():
    layer = nn.Linear(3, 3)
    seen = []

    def block(x):
        seen.append((layer(x).dtype, genesis.is_grad_enabled()))
        return layer(x)

    with genesis.autocast():
        y = checkpoint(block, genesis.ones(2, 3))
    y.float().sum().backward()
    assert seen == [(genesis.bfloat16, True)] * 2 and layer.weight.grad.dtype is genesis.float32


def test_gradients_reach_leaves_that_are_no_arguments():
    w = genesis.tensor([2.0, 3.0], requires_grad=True)
    y = checkpoint(lambda x: x * w, genesis.tensor([5.0, 7.0]))
    y.sum().backward()
    assert w.grad.tolist() == [5, 7]
    (g,) = genesis.autograd.grad(checkpoint(lambda x: x * w, genesis.tensor([1.0, 1.0])).sum(), w)
    assert g.tolist() == [1, 1] and w.grad.tolist() == [5, 7]


def test_numbers_keywords_and_several_results():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)

    def pair(x, factor, *, offset):
        return x * factor + offset, x > 1, x**2

    scaled, mask, squared = checkpoint(pair, x, 3.0, offset=1.0)
    assert (scaled.tolist(), mask.tolist(), squared.tolist()) == ([4, 7], [False, True], [1, 4])
    (scaled.sum() + squared.sum()).backward()
    assert x.grad.tolist() == [5, 7]


def test_second_derivatives():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    y = checkpoint(lambda x: x**3, x)
    (first,) = genesis.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = genesis.autograd.grad(first.sum(), x)
    assert first.tolist() == [3, 12] and second.tolist() == [6, 12]
    assert genesis.autograd.gradcheck(lambda x: checkpoint(genesis.tanh, x), x)


def test_checkpoints_nest_and_follow_each_other():
    x = genesis.tensor([0.5], dtype=genesis.float64, requires_grad=True)
    inner = lambda x: checkpoint(genesis.sin, x) * x  # noqa: E731
    y = checkpoint(inner, checkpoint(inner, x))
    z = (x.sin() * x).detach().item()
    y.sum().backward()
    slope = lambda v: np.cos(v) * v + np.sin(v)  # noqa: E731
    assert x.grad.item() == pytest.approx(slope(z) * slope(0.5))


def test_without_gradients_the_function_is_called_once():
    calls = []
    with genesis.no_grad():
        y = checkpoint(lambda x: calls.append(1) or x * 2, genesis.ones(2, requires_grad=True))
    assert y.tolist() == [2, 2] and calls == [1] and not y.requires_grad


def test_what_lies_between_is_not_kept_and_nothing_stays_behind():
    x, kept = genesis.ones(1 << 18, requires_grad=True), []
    x.sum().item()
    gc.collect()
    gc.disable()
    try:
        before = genesis.debug.memory().held
        for run in (lambda f, x: f(x), checkpoint):
            y = x
            for _ in range(4):
                y = run(lambda y: genesis.cumsum(y.exp(), 0).log().reshape(-1), y)
            y.detach().sum().item()
            kept.append(genesis.debug.memory().held)
            y.sum().backward()
            x.grad.sum().item()
            x.grad = None
            del y
            assert genesis.debug.memory().held <= before
    finally:
        gc.enable()
    assert kept[1] < kept[0]
