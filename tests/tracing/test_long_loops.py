"""Loops that read nothing are flushed where they repeat, so that their rounds are one program."""

import numpy as np

import genesis
from genesis import nn
from genesis.tracing.state import current_trace


def counts():
    found = genesis.debug.stats()
    return found["plans_built"], found["flushes"]


def rounds(network, count):
    x = genesis.ones(2, 4)
    for number in range(count):
        x = x + 0.01 * network(x) - 0.001 * number
    return x


def test_a_long_loop_without_gradients_repeats_few_programs():
    network = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    (a, b), (c, d) = ([np.asarray(p.detach(), np.float64) for p in layer.parameters()] for layer in (network[0], network[2]))
    want = np.ones((2, 4))
    for number in range(600):
        want = want + 0.01 * (np.tanh(want @ a.T + b) @ c.T + d) - 0.001 * number
    plans, flushes = counts()
    with genesis.no_grad():
        found = rounds(network, 600)
        assert len(current_trace().nodes) < 2000
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-4)
    built, flushed = np.subtract(counts(), (plans, flushes))
    assert built <= 4 < flushed


def test_a_loop_with_gradients_stays_whole():
    w = genesis.full((3,), 0.5, requires_grad=True)
    x, before = genesis.ones(3), counts()[1]
    for _ in range(600):
        x = x * w + 1
    assert counts()[1] == before and len(current_trace().nodes) > 1000
    x.sum().backward()
    powers = 0.5 ** np.arange(601)
    want = sum(n * 0.5 ** (n - 1) for n in range(1, 600)) + 600 * powers[599]
    np.testing.assert_allclose(w.grad.numpy(), want, rtol=1e-4)


def test_a_recorded_loop_is_one_program():
    step = genesis.compile(lambda x: [x := genesis.sin(x) + 0.1 for _ in range(700)][-1])
    with genesis.no_grad():
        found = [step(genesis.ones(2)).tolist() for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert "1 program; is replayed" in str(genesis.debug.explain(step, genesis.ones(2)))


def test_a_loop_over_large_values_is_no_long_one(monkeypatch):
    monkeypatch.setattr("genesis.tracing.trace.LOOP_LIMIT", 1)  # what 1,000 nodes weigh: any value of the loop is large
    network = nn.Linear(4, 4)
    genesis.synchronize()
    before = counts()[1]
    with genesis.no_grad():
        found = rounds(network, 60)
    assert counts()[1] == before and len(current_trace().nodes) > 400
    assert found.isfinite().all()
