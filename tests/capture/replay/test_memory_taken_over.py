"""Compiled calls take no more memory than uncompiled ones, and take none over that somebody can see."""

import gc

import numpy as np
import pytest

import genesis
from genesis import nn, optim
from genesis.capture.record.recorder import Recorder
from genesis.execution.result_pool import REPLAYED_SMALL as SMALL
from genesis.nn import functional as F
from genesis.runtime.memory import memory_stats, reset_peak


def trainer(wrap, before=0):
    """A network whose weights are large enough to be given away, its optimizer, and a call that takes a step.

    `before`: so many steps are taken uncompiled, which leave gradients.
    """
    genesis.manual_seed(3)
    model = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    x, y = genesis.tensor(np.ones((2, 4, 64), "f")).unbind()
    for tensor in (x, y):
        tensor.numpy()

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(before):
        step(x, y)
    wrapped = wrap(step)
    return model, optimizer, lambda: wrapped(x, y)


def as_it_is(function):
    return function


def state_of(model, optimizer):
    held = [t for p in model.parameters() for t in (p, p.grad, optimizer.state[p]["exp_avg"], optimizer.state[p]["exp_avg_sq"])]
    return [t.detach().numpy().copy() for t in held]


def test_memory_is_taken_over_as_in_uncompiled_steps():
    model, optimizer, step = trainer(genesis.compile)

    def places():
        weights = [layer.weight for layer in (model[0], model[2])]
        return {t._array.memory.buffer.ptr for w in weights for t in (w, optimizer.state[w]["exp_avg"])}

    where = places()
    for _ in range(3):
        step()
        assert where == places()


@pytest.mark.parametrize("before", [0, 2])
def test_neither_the_recorded_nor_a_replayed_call_holds_more_than_an_uncompiled_one(before):
    def held(wrap):
        _, _, step = trainer(wrap, before)
        start, found = memory_stats().held, []
        for _ in range(3):
            reset_peak()
            step()
            found += [memory_stats().peak - start, memory_stats().held - start]
        return found

    gc.collect()
    gc.disable()  # what is let go of is let go of at once
    try:
        for compiled, usual in zip(held(genesis.compile), held(as_it_is), strict=True):
            assert compiled <= usual + SMALL
    finally:
        gc.enable()


ALIASES = {
    "data": lambda p, o: p.data,
    "detached": lambda p, o: p.detach(),
    "view": lambda p, o: p.detach().reshape(-1)[1:],
    "part of the data": lambda p, o: p.data[0],
    "array": lambda p, o: p.detach().numpy(),
    "copy": lambda p, o: p.detach().clone(),
    "parameter": lambda p, o: nn.Parameter(p.detach()),
    "gradient": lambda p, o: p.grad,
    "part of the gradient": lambda p, o: None if p.grad is None else p.grad[0],
    "array of the gradient": lambda p, o: None if p.grad is None else p.grad.numpy(),
    "moment": lambda p, o: o.state[p]["exp_avg"].detach(),
    "array of the moment": lambda p, o: o.state[p]["exp_avg"].numpy(),
    "state": lambda p, o: o.state_dict()["state"].get(0, {}).get("exp_avg"),  # none before the first step
    "pending": lambda p, o: p.detach() * 1.0,
    "pending of the gradient": lambda p, o: None if p.grad is None else p.grad * 2.0,
}


@pytest.mark.parametrize("name", ALIASES)
def test_what_somebody_kept_of_a_tensor_is_what_uncompiled_code_gives(name):
    def run(wrap):
        model, optimizer, step = trainer(wrap)
        seen, kept = [], []
        for _ in range(4):
            kept.append([ALIASES[name](p, optimizer) for p in model.parameters()])
            step()
            for alias in [alias for aliases in kept for alias in aliases if alias is not None]:
                seen.append(np.array(alias.detach().numpy() if isinstance(alias, genesis.Tensor) else alias))
        return [*seen, *state_of(model, optimizer)]

    for compiled, usual in zip(run(genesis.compile), run(as_it_is), strict=True):
        np.testing.assert_array_equal(compiled, usual)


def test_a_view_made_after_memory_was_given_away_is_not_taken_for_what_was_there():
    def run(wrap):
        weight = genesis.zeros(20_000)
        weight.numpy()
        optimizer_like = genesis.full((20_000,), 0.5)

        @wrap
        def twice(x):
            weight.mul_(0.5).add_(x)
            first = weight.detach()[:3].tolist()  # looks, and so ends a program
            weight.add_(optimizer_like)
            return genesis.tensor(first) + weight.detach()[:3]

        return [twice(genesis.ones(20_000)).tolist() for _ in range(4)]

    assert run(genesis.compile) == run(as_it_is)


def test_an_interrupt_while_memory_is_given_away_loses_nothing(monkeypatch):
    model, optimizer, step = trainer(genesis.compile)
    usual_model, usual_optimizer, usual = trainer(as_it_is)
    gave_away = Recorder.gave_away

    def interrupting(self, array):
        gave_away(self, array)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Recorder, "gave_away", interrupting)
        step()
    for a, b in zip(model.parameters(), usual_model.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    step(), usual()
    for a, b in zip(state_of(model, optimizer), state_of(usual_model, usual_optimizer), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_call_that_fails_while_it_is_recorded_leaves_no_data_behind():
    weight = nn.Parameter(genesis.ones(50_000))
    total = weight.sum().item()

    @genesis.compile
    def fails(x):
        weight.data.mul_(2.0)
        assert weight.data.sum().item() == 2 * total
        weight.data.mul_(0.5)
        raise ValueError("as it may")

    gc.collect()
    gc.disable()
    try:
        held = memory_stats().held
        for _ in range(3):
            with pytest.raises(ValueError, match="as it may"):
                fails(genesis.ones(3))
        assert memory_stats().held <= held + SMALL
    finally:
        gc.enable()


def test_memory_that_somebody_else_holds_is_not_taken_over():
    model, _, step = trainer(genesis.compile)
    step()
    kept = [(p.detach() * 1, p.detach().clone()) for p in model.parameters()]
    tied = [nn.Parameter(p.detach()) for p in model.parameters()]
    step()
    step()
    assert [p.tolist() for p in tied] == [p.tolist() for p in model.parameters()]
    assert all(bool((a == b).all()) for a, b in kept)


def test_an_array_of_numpy_sees_what_is_written_over_unread():
    def run(wrap):
        buffer = genesis.zeros(4)

        @wrap
        def store(x):
            buffer.copy_(x)
            return x * 2

        store(genesis.ones(4)), store(genesis.full((4,), 3.0))
        array, seen = buffer.numpy(), []
        for value in (5.0, 7.0):
            store(genesis.full((4,), value))
            seen.append(array.tolist())
        return seen

    assert run(genesis.compile) == run(as_it_is) == [[5.0] * 4, [7.0] * 4]


def test_small_results_that_are_written_in_place_outside_begin_anew():
    """A buffer's version is compared with what it was; the places of results are used again whatever it is."""
    def run(wrap):
        @wrap
        def double(x):
            return x * 2

        seen = []
        for step in range(6):
            y = double(genesis.full((3,), float(step))).mul_(3.0)
            leaf = genesis.ones(3, requires_grad=True)
            (leaf * y).sum().backward()
            seen.append((y.tolist(), leaf.grad.tolist()))
        return seen

    assert run(genesis.compile) == run(as_it_is)
