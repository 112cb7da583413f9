"""Several Python threads at once: results are those of one."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

import genesis
from genesis.tracing import state

from .training import losses


@pytest.fixture(autouse=True)
def hasty() -> Iterator[None]:
    """Threads take turns a thousand times as often as they otherwise would."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


def in_threads(functions: list[Callable[[], Any]]) -> list[Any]:
    """What each function returns in a thread of its own."""
    results: list[Any] = [None] * len(functions)

    def work(number: int) -> None:
        results[number] = functions[number]()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "deadlock"
    return results


def test_threads_train_models_of_their_own():
    alone = [losses(seed) for seed in range(6)]
    for _ in range(3):
        assert in_threads([lambda seed=seed: losses(seed) for seed in range(6)]) == alone


def test_threads_read_one_pending_tensor():
    for _ in range(20):
        pending = genesis.arange(100) * 3 + 1
        parts = [pending * k for k in range(8)]
        read = in_threads([lambda part=part, whole=pending: (part + whole).sum().item() for part in parts])
        assert read == [14950 * (k + 1) for k in range(8)]


def test_a_backward_may_run_in_another_thread_than_its_forward():
    leaf = genesis.ones(3, requires_grad=True)
    loss = (leaf * leaf * 2).sum()
    in_threads([loss.backward])
    assert leaf.grad.tolist() == [4, 4, 4]


def test_the_gradient_switch_belongs_to_the_thread():
    leaf = genesis.ones(3, requires_grad=True)
    inside, outside = threading.Event(), threading.Event()

    def without() -> bool:
        with genesis.no_grad():
            inside.set()
            outside.wait(10)
            return (leaf * 2).requires_grad

    def with_gradients() -> bool:
        inside.wait(10)
        result = (leaf * 2).requires_grad
        outside.set()
        return result

    assert in_threads([without, with_gradients]) == [False, True]


def test_what_one_thread_wrote_down_keeps_its_value_when_another_shares_the_memory():
    shared = genesis.zeros(4) + 0
    shared.tolist()
    written, changed = threading.Event(), threading.Event()

    def reader() -> list[float]:
        later = shared + 5
        written.set()
        changed.wait(10)
        return later.tolist()

    def writer() -> None:
        written.wait(10)
        shared.numpy()[:] = 100
        changed.set()

    assert in_threads([reader, writer])[0] == [5, 5, 5, 5]


def test_results_of_one_compiled_function_stay_their_threads_own():
    """Replays that find memory for results in Python, where another thread may begin one that Python runs."""
    scaled = genesis.compile(lambda x, factor: x * factor + 1)
    x = genesis.ones(64, 64)
    for k in range(5):
        scaled(x, genesis.tensor(float(k)))

    def work(seed: int) -> list[tuple[float, float, float]]:
        random, kept, wrong = Random(seed), [], []
        for _ in range(2500):
            factor = random.randrange(1000)
            result = scaled(x, genesis.tensor(float(factor)))
            if random.random() < 0.5:
                kept.append((factor + 1, result))
            del result
            if len(kept) > 6:
                value, result = kept.pop(random.randrange(7))
                wrong += [found for found in [(value, *bounds(result))] if found != (value, value, value)]
        return wrong

    assert in_threads([lambda seed=seed: work(seed) for seed in range(4)]) == [[]] * 4
    assert scaled.entries[0].native.replays > 0


def bounds(x: genesis.Tensor) -> tuple[float, float]:
    values = x.numpy()
    return values.min(), values.max()


def test_threads_that_end_before_a_flush_leave_no_trace():
    for _ in range(50):
        in_threads([lambda: genesis.ones(3) + 1])
    gc.collect()
    in_threads([lambda: genesis.ones(3) + 1])
    assert len(state.begun) < 10
