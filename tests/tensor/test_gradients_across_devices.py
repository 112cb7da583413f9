"""Gradients of programs whose tensors are on several devices."""

import random

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

ONE, TWO = genesis.device("cpu:1"), genesis.device("cpu:2")


def vector(*values, **options):
    return genesis.tensor([float(v) for v in values], **options)


def test_the_gradient_of_a_copy_is_accumulated_on_the_leaf():
    x = vector(1, 2, 3, requires_grad=True)
    y = x.to(ONE)
    assert not y.is_leaf and y.requires_grad and y.grad_fn.next_functions[0][0].variable is x
    for _ in range(2):
        (x.to(ONE) ** 2).sum().backward()
    assert x.grad.tolist() == [4, 8, 12] and x.grad.device == "cpu"


def test_a_copy_has_a_gradient_of_its_own():
    x = vector(1, 2, requires_grad=True)
    h = x * 3
    y = h.to(ONE)
    y.retain_grad()
    (y.sum() + (h * h).sum().to(ONE)).backward()
    assert y.grad.tolist() == [1, 1] and y.grad.device is ONE
    assert x.grad.tolist() == [3 + 18, 3 + 36]


def test_grad_finds_inputs_on_several_devices():
    x, w = vector(1, 2, requires_grad=True), vector(3, 4, device=ONE, requires_grad=True)
    y = x.to(ONE)
    z = (y * y * w).sum().to(TWO)
    gx, gw, gy = genesis.autograd.grad(z, [x, w, y])
    assert (gx.device, gw.device, gy.device) == ("cpu", ONE, ONE)
    assert gx.tolist() == gy.tolist() == [6, 16] and gw.tolist() == [1, 4]


def test_gradients_of_gradients_cross_devices():
    x = vector(1, 2, requires_grad=True)
    (g,) = genesis.autograd.grad((x.to(ONE) ** 3).sum().cpu(), x, create_graph=True)
    assert g.tolist() == [3, 12]
    (g.to(TWO) ** 2).sum().backward()
    assert x.grad.tolist() == [2 * 3 * 6, 2 * 12 * 12]


def test_jacobians_are_taken_on_the_device_of_their_point():
    slopes = genesis.autograd.functional.jacobian(lambda t: (t * t).cpu(), vector(1, 2, device=ONE))
    assert slopes.tolist() == [[2, 0], [0, 4]] and slopes.device is ONE


def test_a_later_trace_may_feed_an_earlier_one():
    """What is open on one device takes a value that began later on another: backward goes by the order of the ends."""
    x, w = vector(1, 2, requires_grad=True), vector(3, 4, device=ONE, requires_grad=True)
    begun = w * w
    h = (x * x).exp().log()
    y = begun * h.to(ONE)
    (y.sum().cpu() + h.sum()).backward()
    assert_close(x.grad, vector(2 * 9 + 2, 4 * 16 + 4), scale=4)
    assert_close(w.grad, vector(6 * 1, 8 * 4), scale=4)


def test_a_released_graph_is_released_on_every_device():
    x = vector(1, 2, requires_grad=True)
    loss = ((x * x).to(ONE) ** 2).sum().cpu()
    loss.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        loss.backward()


def test_no_grad_cuts_and_a_detached_copy_stands_apart():
    x = vector(1, requires_grad=True)
    with genesis.no_grad():
        assert not x.to(ONE).requires_grad
    assert not x.detach().to(ONE).requires_grad and not x.to(ONE).detach().cpu().requires_grad


def test_a_copy_of_pending_views_and_other_dtypes():
    x = genesis.arange(6, dtype=genesis.float64).reshape(2, 3).requires_grad_()
    y = x.T.to(ONE, genesis.float32)[1:]
    assert y.dtype is genesis.float32 and y.tolist() == [[1, 4], [2, 5]]
    y.sum().backward()
    assert x.grad.tolist() == [[0, 1, 1], [0, 1, 1]] and x.grad.dtype is genesis.float64


UNARY = {
    "tanh": lambda t: t.tanh(), "square": lambda t: t * t, "sigmoid": lambda t: t.sigmoid(), "sum": lambda t: t.sum(0, True),
}
BINARY = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "sub": lambda a, b: a - b}


@pytest.mark.parametrize("seed", range(15))
def test_programs_that_wander_have_torchs_gradients(seed):
    """A random program on random devices, some values looked at on the way, against torch on one."""
    draw = random.Random(seed)
    numbers = np.random.default_rng(seed).normal(size=(3, 4, 4))
    ours = [genesis.tensor(n, device=f"cpu:{draw.randrange(3)}", requires_grad=True) for n in numbers]
    theirs = [torch.tensor(n, requires_grad=True) for n in numbers]
    leaves = list(zip(ours, theirs, strict=True))
    for _ in range(14):
        device, i, j = f"cpu:{draw.randrange(3)}", draw.randrange(len(ours)), draw.randrange(len(ours))
        if draw.random() < 0.5:
            f = UNARY[draw.choice(sorted(UNARY))]
            ours.append(f(ours[i].to(device)))
            theirs.append(f(theirs[i]))
        else:
            f = BINARY[draw.choice(sorted(BINARY))]
            ours.append(f(ours[i].to(device), ours[j].to(device)))
            theirs.append(f(theirs[i], theirs[j]))
        if draw.random() < 0.2:
            assert_close(ours[-1].detach(), theirs[-1].detach())
    sum((o.tanh().sum().to(TWO) for o in ours[1:]), genesis.tensor(0.0, dtype=genesis.float64, device=TWO)).backward()
    sum(t.tanh().sum() for t in theirs[1:]).backward()
    for o, t in leaves:
        assert (o.grad is None) == (t.grad is None)
        if o.grad is not None:
            assert_close(o.grad, t.grad, scale=100)
            assert o.grad.device is o.device
