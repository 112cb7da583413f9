"""float16 and bfloat16 are storage: definitions of several steps compute in float32 and round their result once."""

import numpy as np
import pytest
import torch

import genesis
from genesis.nn import functional as F
from tests.tolerances import assert_close, to_numpy, to_torch

LOW = pytest.mark.parametrize("low", [genesis.float16, genesis.bfloat16], ids=lambda d: d.name)
ROWS = np.random.default_rng(0).normal(size=(4, 1000)) * 3 + 300  # whose sums, squares and square sums leave float16
CALLS = {
    "mean": lambda f, x: x.mean(), "var": lambda f, x: x.var(), "std": lambda f, x: x.std(),
    "layer_norm": lambda f, x: f.layer_norm(x, (1000,)), "rms_norm": lambda f, x: f.rms_norm(x, (1000,)),
    "softmax": lambda f, x: f.softmax(x, 1), "log_softmax": lambda f, x: f.log_softmax(x, 1),
    "logsumexp": lambda f, x: x.logsumexp(1), "l1_loss": lambda f, x: f.l1_loss(x, x * 0),
    "gelu": lambda f, x: f.gelu(x - 300), "silu": lambda f, x: f.silu(x - 300),
}


@LOW
@pytest.mark.parametrize("name", CALLS)
def test_values_are_torchs_where_intermediate_values_leave_float16(name, low):
    array = ROWS.astype(low.numpy)
    got = CALLS[name](F, genesis.tensor(array))
    assert_close(got, CALLS[name](torch.nn.functional, to_torch(array)), name)
    assert np.isfinite(to_numpy(got).astype(np.float32)).all()


@LOW
def test_a_loss_over_many_rows_neither_overflows_nor_loses_its_count(low):
    logits = np.tile([-5.0, 5, 5], (70_000, 1))
    ours, theirs = genesis.tensor(logits, dtype=low), to_torch(logits.astype(low.numpy))
    for name in ("cross_entropy", "nll_loss"):
        got = getattr(F, name)(ours, genesis.zeros(70_000, dtype=genesis.int64))
        want = getattr(torch.nn.functional, name)(theirs.float(), torch.zeros(70_000, dtype=torch.int64))
        assert got.dtype is low
        np.testing.assert_allclose(got.item(), want.item(), rtol=1e-2)


@LOW
def test_gradients_come_in_the_dtype_of_what_they_are_of(low):
    x = genesis.tensor(ROWS, dtype=low, requires_grad=True)
    weight = genesis.ones(1000, dtype=low, requires_grad=True)
    F.layer_norm(x, (1000,), weight).mean().backward()
    assert x.grad.dtype is weight.grad.dtype is low


@LOW
def test_clipping_measures_gradients_in_float32(low):
    x = genesis.zeros(100, dtype=low, requires_grad=True)
    (x * 300).sum().backward()
    assert genesis.nn.utils.clip_grad_norm_([x], 1.0).item() == 3000
    np.testing.assert_allclose(to_numpy(x.grad).astype(np.float32), 0.1, rtol=1e-2)


@LOW
@pytest.mark.parametrize("optimizer", [
    lambda library, w: library.optim.Adam([w], lr=1e-3), lambda library, w: library.optim.AdamW([w], lr=1e-3),
    lambda library, w: library.optim.SGD([w], lr=1e-2, momentum=0.9, weight_decay=1e-3),
], ids=["adam", "adamw", "sgd"])
def test_a_first_step_is_that_of_float32_rounded_once(optimizer, low):
    start, slope = ROWS[:, :100] / 300, np.linspace(-2, 2, 400).reshape(4, 100)
    start, slope = start.astype(low.numpy), slope.astype(low.numpy)
    w = genesis.tensor(start, requires_grad=True)
    w.grad = genesis.tensor(slope)
    optimizer(genesis, w).step()
    v = to_torch(start.astype(np.float32), requires_grad=True)
    v.grad = to_torch(slope.astype(np.float32))
    optimizer(torch, v).step()
    assert w.dtype is low
    assert np.mean(to_numpy(w) != to_numpy(v).astype(low.numpy)) <= 0.01  # but for what lies between two numbers
