"""Replays by instructions in a process that knows several devices: they are of one device's tensors, and go on."""

import random

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.runtime.instructions import are_possible

pytestmark = pytest.mark.skipif(not are_possible(), reason="another interpreter than CPython of 64 bits")
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def native_replays(compiled):
    return sum(entry.native.replays for entry in compiled.entries if entry.native)


def a_step():
    genesis.manual_seed(0)
    layer = nn.Linear(4, 3)
    optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, layer


def test_a_step_replays_after_other_devices_were_used():
    step, _ = a_step()
    compiled, x = genesis.compile(step), genesis.tensor(X)
    losses = [compiled(x).item() for _ in range(6)]
    before = native_replays(compiled)
    genesis.device("meta")
    losses += [compiled(x).item() for _ in range(2)]
    assert nn.Linear(4, 3, device="meta")(genesis.ones(2, 4, device="meta")).shape == (2, 3)
    genesis.ones(3, device="cpu:1").tolist()
    losses += [compiled(x).item() for _ in range(2)]
    assert native_replays(compiled) == before + 4
    step, _ = a_step()
    np.testing.assert_allclose(losses, [step(x).item() for _ in range(10)], rtol=1e-6)


def test_what_is_pending_on_another_device_comes_first():
    compiled, x = genesis.compile(lambda x: x * 2), genesis.tensor(X)
    for _ in range(6):
        compiled(x)
    pending = genesis.ones(3, device="cpu:1") * 5
    before = native_replays(compiled)
    np.testing.assert_array_equal(compiled(x).numpy(), 2 * X)
    assert native_replays(compiled) == before and pending._array.memory is not None


@pytest.mark.parametrize("seed", range(6))
def test_a_replay_takes_no_tensor_of_another_device(seed):
    """Arguments, parameters, momenta and the default move between devices; errors are the function's."""
    pick, places = random.Random(seed), ["cpu", "cpu:1", "meta"]

    def run(compile):
        pick.seed(seed)
        step, layer = a_step()
        called, told = genesis.compile(step) if compile else step, []
        losses = [called(genesis.tensor(X)).item() for _ in range(8)]
        for _ in range(60):
            x = genesis.tensor(X, device=pick.choice(places) if pick.random() < 0.1 else "cpu")
            moved = pick.choice([layer.weight, layer.bias])
            if pick.random() < 0.2 and not moved.is_meta:
                moved.data = moved.data.to(pick.choice(places))
            if pick.random() < 0.4:
                for parameter in layer.parameters():
                    lost = parameter.is_meta
                    parameter.data = genesis.ones_like(parameter, device="cpu") if lost else parameter.data.to("cpu")
            try:
                with genesis.device(pick.choice(places) if pick.random() < 0.1 else "cpu"):
                    loss = called(x)
                told.append(str(loss.device))
                losses += [] if loss.is_meta else [loss.item()]
            except (RuntimeError, NotImplementedError) as problem:
                told.append(str(problem))
        return told, losses, called

    (told, losses, compiled), (wanted, wanted_losses, _) = run(True), run(False)
    assert told == wanted and native_replays(compiled) > 0
    np.testing.assert_allclose(losses, wanted_losses, rtol=1e-4)
