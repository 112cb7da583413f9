"""Ctrl-C at any moment: the process stays usable, no value is wrong, nothing is lost."""

from __future__ import annotations

import gc
import random
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.autograd.after_backward import innermost_backward
from genesis.runtime.private_directory import PrivateDirectory
from genesis.tracing.thread import thread_state
from genesis.tracing.trie import fresh_roots
from genesis.utils.checkpoint import checkpoint

from .interrupts import CONTEXTS, interrupt, moments_of
from .training import model


@pytest.fixture(autouse=True)
def nothing_is_swallowed(monkeypatch) -> Iterator[None]:
    """An interrupt that comes within a destructor is lost; none may, but for those that meet Hypothesis' own callback."""
    swallowed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", swallowed.append)
    yield
    assert not [s for s in swallowed if not str(getattr(s.object, "__module__", "")).startswith("hypothesis")]


def moments_to_try(function: Callable[[], Any], most: int) -> list[int]:
    """Moments all through a call, different ones from place to place."""
    count = moments_of(function)
    return sorted(random.Random(0).sample(range(1, count + 1), min(most, count)))


def test_an_interrupted_evaluation_can_be_taken_up_again():
    x = genesis.tensor(np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3))
    made: list[genesis.Tensor] = []

    def evaluate() -> float:
        made.append((x * 2.5 + 3.5).relu())
        made.append((made[0] @ made[0].T).sum() / 7.5)
        return made[1].item()

    expected = evaluate()
    for moment in moments_to_try(lambda: [made.clear(), evaluate()], 150):
        made.clear()
        beside = x * 1.5
        interrupt(evaluate, moment)
        if len(made) > 1:
            assert made[1].item() == pytest.approx(expected), moment
        assert beside.tolist() == (x.numpy() * np.float32(1.5)).tolist(), moment
        made.clear()
        assert evaluate() == pytest.approx(expected), moment


@pytest.mark.parametrize("make", [
    lambda parameters: genesis.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: genesis.optim.Adam(parameters, lr=0.1),
])
def test_an_interrupted_step_is_taken_whole_or_not_at_all(make):
    made, inputs, targets = model(0)
    optimizer = make(made.parameters())

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(made(inputs) * 2.5, targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    def values() -> list[np.ndarray]:
        return [tensor.detach().numpy().copy() for tensor in tensors]

    def restore() -> None:
        with genesis.no_grad():
            for tensor, value in zip(tensors, before, strict=True):
                tensor.copy_(genesis.tensor(value))
        for state in optimizer.state.values():
            state["step"] = 1
        values()

    step()
    slots = [slot for state in optimizer.state.values() for slot in state.values() if isinstance(slot, genesis.Tensor)]
    tensors = [*made.parameters(), *slots]
    before = values()
    loss, after = step(), values()
    for moment in moments_to_try(step, 75):
        restore()
        where = interrupt(step, moment)
        (age,) = {state["step"] for state in optimizer.state.values()}
        for now, then in zip(values(), after if age == 2 else before, strict=True):
            assert np.allclose(now, then, atol=1e-5), where
        restore()
        assert step() == pytest.approx(loss, abs=1e-5), where
        assert all(np.allclose(now, new, atol=1e-5) for now, new in zip(values(), after, strict=True)), where


def test_an_interrupt_as_modes_change_leaves_those_of_before():
    weight = genesis.tensor(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3), requires_grad=True)

    def layer(x):
        return nn.functional.dropout(x @ weight, 0.5)

    @genesis.autocast()
    def forward(x):
        return checkpoint(layer, x, use_reentrant=False)

    def step() -> list[list[float]]:
        genesis.manual_seed(0)
        weight.grad = None
        forward(weight * 2).sum().backward()
        genesis.optim.SGD([weight], lr=0.0).step()
        return weight.grad.tolist()

    expected = step()
    moments = moments_of(step, CONTEXTS)
    assert moments > 10
    for moment in range(1, moments + 1):
        where = interrupt(step, moment, CONTEXTS)
        assert (genesis.is_grad_enabled(), genesis.is_autocast_enabled()) == (True, False), where
        assert (thread_state.undivided, thread_state.scope) == (False, None), where
        with pytest.raises(RuntimeError, match="no backward is running"):
            innermost_backward()
        assert step() == expected, where


@pytest.fixture
def alarms() -> Iterator[Callable[[float], None]]:
    """Interrupts this thread after so many seconds, as the keyboard would."""
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)  # type: ignore[misc]
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler)


def test_signals_at_random_times_change_no_value(alarms):
    """Shapes change all the time, so plans are built, and now and then the paths are forgotten."""
    choose = random.Random(0)
    weights = genesis.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), requires_grad=True)
    interrupted = 0
    for number in range(1500):
        if number % 100 == 0:
            fresh_roots()
        rows = choose.randrange(1, 6)
        x = np.linspace(0, 1, rows * 3, dtype=np.float32).reshape(rows, 3)
        outputs = []
        try:
            alarms(choose.uniform(1e-5, 2e-3))
            for _ in range(10):
                outputs = [(genesis.from_numpy(x) @ weights * 0.5 + 1.5).tanh()]
                outputs.append(genesis.autograd.grad((outputs[0] ** 2).sum(), weights, retain_graph=True)[0])
                outputs[0].tolist(), outputs[1].tolist()
            alarms(0)
        except KeyboardInterrupt:
            interrupted += 1
        y = np.tanh(x @ weights.detach().numpy() * np.float32(0.5) + np.float32(1.5))
        if outputs:
            assert np.allclose(outputs[0].detach().numpy(), y, atol=1e-6)
        if len(outputs) > 1:
            assert np.allclose(outputs[1].numpy(), x.T @ (2 * y * (1 - y * y) * np.float32(0.5)), atol=1e-5)
    assert interrupted > 100


def test_nothing_that_steps_of_new_sizes_make_calls_python_as_it_dies():
    """Neither finalizers nor callbacks of weak references in Python: what a signal handler raises within is lost."""
    weights = genesis.ones(3, 4, requires_grad=True)
    found = set()

    def look(gradients: object) -> None:
        for thing in gc.get_objects():
            kind = type(thing)
            if kind.__module__.startswith("genesis.") and kind is not PrivateDirectory:  # which dies with the process
                found.update((kind, reference.__callback__) for reference in weakref.getweakrefs(thing)
                             if isinstance(reference.__callback__, FunctionType))
                found.update([(kind, "__del__")] if isinstance(getattr(kind, "__del__", None), FunctionType) else [])

    for rows in range(2, 9):
        outputs = (genesis.ones(rows, 3) @ weights).tanh()
        handle = genesis.autograd.graph.register_multi_grad_hook([weights, outputs], look if rows == 8 else len)
        loss = (outputs * genesis.rand_like(outputs.T).T)[: rows // 2].sum()
        loss.backward()
        handle.remove()
        zeros = genesis.zeros(64, 3)
        zeros[rows : rows + 2] = 1.5
        assert zeros.sum().item() == 9
    assert weights.grad is not None and not found


@pytest.mark.parametrize("change", [lambda x: x.t_(), lambda x: x.resize_(3, 3)])
def test_an_interrupted_change_of_shape_leaves_a_tensor_and_its_views_together(change):
    def change_one() -> None:
        x = shared[0] = genesis.arange(6.0).reshape(2, 3).clone()
        shared[1:] = x[0], x.detach()
        change(x)

    within = "become_view", "hand_over_storage", "root_of", "tensor_of", "share_storage", "count_write"
    shared = [None, None, None]
    moments = moments_of(change_one, within)
    assert moments > 10
    for moment in range(1, moments + 1):
        where = interrupt(change_one, moment, within)
        if shared[2] is not None:
            x, row, whole = shared
            assert sorted(x.flatten().tolist())[-6:] == list(range(6)), where
            x.add_(1)
            assert (row.tolist(), whole.tolist()) == ([1, 2, 3], [[1, 2, 3], [4, 5, 6]]), where
        shared = [None, None, None]
