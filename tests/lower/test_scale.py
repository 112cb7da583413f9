"""Graphs of any length and width: no recursion, and work that grows as they do."""

import sys
from collections import Counter

import genesis
from genesis.execution.plan import plan_for
from genesis.tensor.dispatch import array_of


def test_a_chain_of_100_000_operations_runs_and_has_a_gradient():
    x = genesis.ones(2, dtype=genesis.float64, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = (y + 0.25) * 0.75
    total = y.sum()
    total.backward()
    assert max(x.grad.tolist()) < 1e-300 and abs(total.item() - 1.5) < 1e-12


def test_2000_independent_outputs_are_two_stages():
    x = genesis.tensor([1.0, 1.0, 1.0], requires_grad=True)  # else a loop is flushed where it repeats
    held = [x + (k + 0.5) for k in range(2000)]
    assert len(plan_for(array_of(held[0]).trace).lowered.schedule.stages) == 2  # full kernels, and the rest
    assert [y[0].item() for y in held[::500]] == [1.5, 501.5, 1001.5, 1501.5]


def calls_to_lower(count):
    """How many functions are called to lower `count` blocks of unlike operations, kernels known."""
    x = genesis.ones(17, 33, requires_grad=True)  # else a loop is flushed where it repeats
    for _ in range(count):
        x = genesis.softmax(x * 1.5, 1) + x.T.reshape(17, 33) - x.mean(0, True)
    trace = array_of(x).trace
    plan_for(trace)
    trace.step.plans.clear()
    events = Counter()
    sys.setprofile(lambda frame, event, argument: events.update([event]))
    try:
        plan_for(trace)
    finally:
        sys.setprofile(None)
    trace.closed = True
    return events["call"] + events["c_call"]


def test_lowering_takes_calls_in_proportion_to_the_graph():
    short, long = calls_to_lower(20), calls_to_lower(160)
    assert 4 * short < long < 1.1 * 8 * short
