"""Calls on 16-bit tensors are no further from float64 than torch's: numbers keep their digits, and sums are rounded once."""

import numpy as np
import pytest
import torch

import genesis

pytestmark = pytest.mark.usefixtures("by_references")

CALLS = {
    "mul": lambda lib, x, y, z: x * -4.775,
    "rmul": lambda lib, x, y, z: 0.3337 * x,
    "mul of a 0-d tensor": lambda lib, x, y, z: x * lib.tensor(0.3337, dtype=lib.float32),
    "div": lambda lib, x, y, z: x / 3.3337,
    "rdiv": lambda lib, x, y, z: 3.3337 / z,
    "floor_divide": lambda lib, x, y, z: lib.floor_divide(x, 0.3337),
    "add": lambda lib, x, y, z: lib.add(x, y, alpha=0.3337),
    "sub": lambda lib, x, y, z: lib.sub(x, y, alpha=0.3337),
    "leaky_relu": lambda lib, x, y, z: lib.nn.functional.leaky_relu(x, 0.3337),
    "softshrink": lambda lib, x, y, z: lib.nn.functional.softshrink(x, 0.3337),
    "threshold": lambda lib, x, y, z: lib.nn.functional.threshold(x, 0.3337, 0.4449),
    "linear": lambda lib, x, y, z: lib.nn.functional.linear(x.view(40, 25), y.view(40, 25), z[:40]),
    "addmm": lambda lib, x, y, z: lib.addmm(z[:625].view(25, 25), x.view(25, 40), y.view(40, 25), alpha=0.3337, beta=1.777),
    "addmv": lambda lib, x, y, z: lib.addmv(z[:25], x.view(25, 40), y[:40], alpha=0.3337),
    "baddbmm": lambda lib, x, y, z: lib.baddbmm(
        z[:625].view(1, 25, 25), x.view(1, 25, 40), y.view(1, 40, 25), alpha=0.3337),
    "addbmm": lambda lib, x, y, z: lib.addbmm(z[:100].view(10, 10), x.view(2, 10, 50), y.view(2, 50, 10)),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", CALLS)
def test_errors_are_not_greater_than_torchs(name, dtype):
    rng = np.random.default_rng(0)
    values = [rng.normal(size=1000), rng.normal(size=1000), rng.random(1000) + 0.5]
    given = [torch.tensor(v).to(getattr(torch, dtype)) for v in values]
    exact = CALLS[name](torch, *[g.double() for g in given]).numpy()
    theirs = CALLS[name](torch, *given).double().numpy()
    result = CALLS[name](genesis, *[genesis.tensor(g.double().numpy()).to(getattr(genesis, dtype)) for g in given])
    assert result.dtype is getattr(genesis, dtype)
    ours = result.double().numpy()
    error, other = (np.sqrt(np.mean((found - exact) ** 2)) for found in (ours, theirs))
    assert error <= other * 1.01


def test_gradients_of_numbers_keep_their_digits():
    gradients = []
    for lib in (genesis, torch):
        x = lib.linspace(-2, 2, 64).to(lib.bfloat16).requires_grad_()
        (x * 0.3337 / 1.7771).sum().backward()
        gradients.append(x.grad.float().numpy())
    np.testing.assert_array_equal(*gradients)
