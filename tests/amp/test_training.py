"""Training in mixed precision comes out near float32, and small gradients survive float16 under a scaler."""

import numpy as np
import pytest

import genesis
from genesis import nn


def train(autocast, scaler, steps=60):
    """The losses of a small network that fits a smooth function of two numbers."""
    genesis.manual_seed(0)
    x = genesis.rand(256, 2) * 4 - 2
    y = (x[:, :1] * 2).sin() * x[:, 1:].cos()
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = genesis.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with autocast:
            output = model(x)
            loss = nn.functional.mse_loss(output, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert all(p.dtype is genesis.float32 and p.grad.dtype is genesis.float32 for p in model.parameters())
    return losses, output.dtype


@pytest.mark.parametrize("low", [genesis.bfloat16, genesis.float16], ids=lambda d: d.name)
def test_losses_fall_as_those_of_float32(low):
    losses, dtype = train(genesis.autocast(low), genesis.amp.GradScaler(enabled=low is genesis.float16))
    exact, _ = train(genesis.autocast(enabled=False), genesis.amp.GradScaler(enabled=False))
    assert dtype is low
    assert losses[-1] < losses[0] / 4
    np.testing.assert_allclose(losses, exact, rtol=0.1, atol=0.02)


def test_every_step_after_the_first_runs_a_known_program():
    train(genesis.autocast(), genesis.amp.GradScaler(), steps=3)
    genesis.debug.reset_stats()
    train(genesis.autocast(), genesis.amp.GradScaler(), steps=10)
    assert genesis.debug.stats()["plans_built"] == 0


def test_small_gradients_survive_float16_under_a_scaler():
    def gradient(scaler):
        w = genesis.ones(4, 1, requires_grad=True)
        with genesis.autocast(genesis.float16):
            loss = (genesis.full((1, 4), 1e-4) @ w).sum() * 1e-5
        scaler.scale(loss).backward()
        return w.grad.double() / scaler.get_scale()

    assert gradient(genesis.amp.GradScaler(enabled=False)).tolist() == [[0.0]] * 4
    np.testing.assert_allclose(gradient(genesis.amp.GradScaler()).numpy(), 1e-9, rtol=1e-2)
