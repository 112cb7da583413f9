"""An interrupt, wherever it comes in a replay, leaves a step taken or not taken, and the next calls go on from there."""

import sys

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.capture.replay import settling
from genesis.execution.flush import FLUSH_HOOKS
from genesis.nn import functional as F
from genesis.tracing.state import thread_state
from tests.robustness.interrupts import CONTEXTS, interrupt, moments_of

X, Y = genesis.ones(4, 3), genesis.zeros(4, 2)


def compiled_step(width):
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, width), nn.Dropout(0.5), nn.Linear(width, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @genesis.compile
    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(model(X), Y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step()
    return step, model, optimizer


def tensors(model, optimizer):
    return [t for p in model.parameters() for t in (p, *(v for v in optimizer.state[p].values() if not isinstance(v, int)))]


def values(model, optimizer):
    return [t.detach().numpy().copy() for t in tensors(model, optimizer)]


@pytest.mark.parametrize("as_a_trace", [False, True], ids=["at once", "as a trace"])
@pytest.mark.parametrize("width", [4, 9000], ids=["small", "large"])
def test_an_interrupted_replay_is_a_step_or_none(width, as_a_trace, monkeypatch):
    monkeypatch.setattr(settling, "LONGEST", -1 if as_a_trace else 1e9)  # what takes long is a trace
    step, model, optimizer = compiled_step(width)
    before, random = values(model, optimizer), genesis.get_rng_state()

    def restore():
        for tensor, value in zip(tensors(model, optimizer), before, strict=True):
            tensor.detach().copy_(genesis.tensor(value))
        for p in model.parameters():
            optimizer.state[p]["step"] = 3
        genesis.set_rng_state(random)
        genesis.synchronize()  # nothing is pending that an interrupt would take back

    step()
    after = values(model, optimizer)
    moments = moments_of(step)
    assert moments > 30
    for moment in range(1, moments + 1, 31 if width > 4 else 19 if as_a_trace else 7):
        restore()
        where = interrupt(step, moment)
        found = values(model, optimizer)
        taken = [np.array_equal(a, b) for a, b in zip(found, after, strict=True)]
        untouched = [np.array_equal(a, b) for a, b in zip(found, before, strict=True)]
        assert all(taken) or all(untouched), f"interrupted at {where}"
        counts = {optimizer.state[p]["step"] for p in model.parameters()}
        assert counts == {4 if all(taken) else 3}, f"interrupted at {where}"
        assert np.isfinite(step().item())
    assert len(step.entries) == 1


def test_an_interrupted_recording_leaves_no_mode_behind():
    weight, hooks, profile = genesis.ones(3, requires_grad=True), [*FLUSH_HOOKS], sys.getprofile()

    def record():
        @genesis.compile
        def step(x):
            weight.grad = None
            (weight * x).sum().backward()
            with genesis.enable_grad():
                return weight.grad * 2

        return step(X[0]).tolist()

    record()
    moments = moments_of(record, CONTEXTS)
    assert moments > 10
    for moment in range(1, moments + 1):
        where = interrupt(record, moment, CONTEXTS)
        assert (thread_state.recorder, sys.getprofile(), FLUSH_HOOKS) == (None, profile, hooks), where
        assert record() == [2, 2, 2], where
