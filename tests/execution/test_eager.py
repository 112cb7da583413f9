"""Eager mode: every operation at once, by its reference, with everything else as otherwise."""

import gc

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.tracing.trace import Trace
from tests.tolerances import assert_close


def work(counts):
    """What compiled code did, of all that `genesis.debug.stats` counts."""
    return sum(counts[name] for name in ("kernels_compiled", "kernels_loaded", "plans_built", "plan_hits", "native_calls"))


def trained(optimizer):
    """The losses and parameters of three steps of a network with everything random in it."""
    genesis.manual_seed(5)
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.GroupNorm(1, 3), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.4),
        nn.Linear(12, 4),
    )
    x, labels = genesis.randn(6, 2, 4, 4), genesis.randint(0, 4, (6,))
    steps, losses = optimizer(model.parameters()), []
    for _ in range(3):
        steps.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
        losses.append(loss.item())
    return losses, [p.detach().numpy() for p in model.parameters()]


@pytest.mark.parametrize("optimizer", [
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.AdamW(p, lr=0.01, eps=1e-4),
], ids=["SGD", "AdamW"])
def test_training_is_as_otherwise_and_runs_no_kernel(optimizer):
    compiled = trained(optimizer)
    genesis.debug.reset_stats()
    with genesis.eager():
        eager = trained(optimizer)
    assert work(genesis.debug.stats()) == 0
    np.testing.assert_allclose(eager[0], compiled[0], rtol=1e-4)
    for ours, theirs in zip(eager[1], compiled[1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_a_line_is_computed_when_it_has_run():
    with genesis.eager():
        x = genesis.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        assert y._array.memory is not None
        y.sum().backward()
        assert x.grad._array.memory is not None
    assert (genesis.ones(2) * 3)._array.memory is None


def test_numbers_out_of_range_wrap_round_as_in_kernels():
    def steps():
        x = genesis.tensor([1, 2, 200], dtype=genesis.uint8)
        return (x * -1).tolist(), (x + 300).tolist(), x.clamp(-1, 9).dtype, genesis.full((2,), -1, dtype=genesis.uint8).tolist()

    with genesis.eager():
        found = steps()
    assert found == steps()
    assert found[0] == [255, 254, 56]


def test_random_numbers_continue_each_other():
    def drawn(first, second):
        genesis.manual_seed(3)
        with first():
            a = genesis.rand(5)
        with second():
            return [a.tolist(), genesis.rand(5).tolist(), nn.functional.dropout(genesis.ones(9), 0.5).tolist()]

    assert drawn(genesis.eager, genesis.no_grad) == drawn(genesis.no_grad, genesis.eager)


def test_an_index_out_of_range_raises_at_its_line_and_loses_nothing_else():
    with genesis.eager():
        x = genesis.arange(5)
        with pytest.raises(IndexError, match=r"index 7 is out of range for extent 5; want -5 to 4 \(at .*test_eager.py"):
            x[genesis.tensor([7])] += 1
        assert (x + 1).tolist() == [1, 2, 3, 4, 5]


def test_writes_show_in_views_and_in_memory_outside():
    with genesis.eager():
        array = np.zeros((2, 3), np.float32)
        x = genesis.from_numpy(array)
        row, column = x[1], x.t()[0]
        x += 1
        row *= 5
        column[0] = 9
    assert array.tolist() == [[9, 1, 1], [5, 5, 5]]
    assert (row.tolist(), column.tolist()) == ([5, 5, 5], [9, 5])


def test_a_value_changed_before_backward_is_refused():
    with genesis.eager():
        x = genesis.ones(2, requires_grad=True)
        y = x.exp()
        z = y * y
        y += 1
        with pytest.raises(RuntimeError, match="inplace operation"):
            z.sum().backward()


def test_backward_goes_from_one_mode_to_the_other():
    x = genesis.tensor([0.5, 2.0], dtype=genesis.float64, requires_grad=True)
    y = x * x
    with genesis.eager():
        z = (y * x).sum()
        (slope,) = genesis.autograd.grad(z, x, create_graph=True)
    slope.sum().backward()
    assert_close(slope.detach(), np.array([0.75, 12.0]), "3x^2")
    assert_close(x.grad, np.array([3.0, 12.0]), "6x")


def test_it_nests_decorates_and_ends_with_an_exception():
    @genesis.eager()
    def inner():
        return genesis.ones(2) + 1

    with pytest.raises(ValueError, match="own"), genesis.eager():
        with genesis.eager():
            pass
        assert (genesis.ones(2) + 1)._array.memory is not None
        raise ValueError("own")
    assert inner()._array.memory is not None
    assert (genesis.ones(2) + 1)._array.memory is None


def test_maps_over_examples_run_too():
    with genesis.eager():
        products = genesis.func.vmap(genesis.func.vmap(lambda x, y: x * y, (None, 0)), (0, None))
        rows = products(genesis.arange(2), genesis.arange(3))
    assert rows.tolist() == [[0, 0, 0], [0, 1, 2]]


def test_loops_hold_on_to_no_iteration_before_the_last():
    def living():
        gc.collect()
        return sum(type(thing) is Trace for thing in gc.get_objects())

    weight, state, counts = genesis.ones(3, requires_grad=True), genesis.zeros(3), []
    with genesis.eager():
        for _ in range(12):
            state = (0.9 * state.detach().requires_grad_() + 0.1 * weight).tanh()
            state.sum().backward()
            counts.append(living())
    assert counts[-1] == counts[4]
