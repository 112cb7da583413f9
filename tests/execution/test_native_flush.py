"""Flushes by instructions: a plan that has run often is flushed without Python, with the same values and the same effects."""

import gc
import signal
import threading
import weakref

import numpy as np
import pytest
import torch

import genesis
from genesis.execution.flush import FLUSH_HOOKS, OFTEN, flush
from genesis.runtime.counters import replayed
from genesis.runtime.devices import CPU
from genesis.runtime.instructions import MISSED
from genesis.runtime.plan_cache import REPLAY, PlanCache
from genesis.tracing.state import thread_state
from tests.tolerances import assert_close


def often(look, times=OFTEN + 4):
    """Look many times; returns how many of the looks were flushes by instructions."""
    before = replayed[0]
    for _ in range(times):
        look()
    return replayed[0] - before


def test_new_inputs_and_numbers_are_read_by_each_flush():
    numbers = np.random.default_rng(0)
    before = replayed[0]
    for step in range(OFTEN + 4):
        x, factor = numbers.random(5, np.float32), float(step) + 0.5
        found = (genesis.tensor(x) * factor + step).numpy()
        assert np.allclose(found, x * np.float32(factor) + step, rtol=1e-6)
    assert replayed[0] > before


def test_results_that_somebody_keeps_are_not_computed_into():
    x, kept, seen = genesis.arange(6.0), [], []
    for step in range(2 * OFTEN):
        y = x * 1.75 - step
        seen.append(y.numpy())
        kept.append(y)
        expected = np.arange(6, dtype=np.float32) * 1.75
        assert all(np.array_equal(one, expected - k) for k, one in enumerate(seen))
    assert all(y.tolist() == one.tolist() for y, one in zip(kept, seen, strict=True))


def test_all_that_is_held_is_computed_and_what_is_held_may_vary():
    x, kept = genesis.arange(4.0), []

    def look(holds):
        y = x + 2.25
        z = y * 3.5
        if holds:
            kept[:] = [y]
        del y
        return z.tolist()

    for step in range(4 * OFTEN):
        holds = step % 3 == 1
        assert look(holds) == [7.875 + 3.5 * k for k in range(4)]
        if holds:
            assert kept.pop().tolist() == [2.25 + k for k in range(4)]


def test_plans_that_alternate_at_one_place_are_both_flushed_by_instructions():
    x, kept = genesis.arange(4.0), []

    def look(step):
        y = x - 0.75
        z = y * 2.5
        kept[:] = [y] * (step % 2)
        del y
        assert z.tolist() == [2.5 * (k - 0.75) for k in range(4)]

    for step in range(4 * OFTEN):
        look(step)
    before = replayed[0]
    for step in range(20):
        look(step)
    assert replayed[0] - before == 20


def test_a_failing_index_is_refused_and_no_other_values_are_lost():
    x, wrong, right = genesis.arange(5.0), genesis.tensor([7]), genesis.tensor([3])
    assert often(lambda: genesis.take(x, right).tolist()) > 0
    with pytest.raises(IndexError, match="7"):
        genesis.take(x, wrong).tolist()
    assert genesis.take(x, right).tolist() == [3]


def test_tensors_written_in_place_have_their_values():
    x, expected = genesis.zeros(3), 0
    for step in range(2 * OFTEN):
        x += 1.25
        x *= 2
        expected = (expected + 1.25) * 2 % 64
        x %= 64
        assert x.tolist() == [expected] * 3, step


def test_hooks_see_each_flush():
    x, seen = genesis.ones(3), []
    assert often(lambda: (x + 4.75).tolist()) > 0
    FLUSH_HOOKS.append(lambda trace, plan: seen.append(trace.nodes[-1].op))
    try:
        assert often(lambda: (x + 4.75).tolist()) == 0
    finally:
        FLUSH_HOOKS.pop()
    assert len(seen) == OFTEN + 4


def test_the_number_of_threads_chooses_another_plan():
    x, threads = genesis.ones(3), genesis.get_num_threads()
    assert often(lambda: (x + 5.75).tolist()) > 0
    try:
        genesis.set_num_threads(threads + 1)
        assert often(lambda: (x + 5.75).tolist(), OFTEN) == 0
    finally:
        genesis.set_num_threads(threads)
    assert often(lambda: (x + 5.75).tolist(), 2) > 0


def test_settings_that_return_find_the_instructions_again():
    x = genesis.ones(3)
    assert often(lambda: (x + 7.75).tolist()) > 0
    genesis.use_deterministic_algorithms(True)
    try:
        assert often(lambda: (x + 7.75).tolist(), 2) == 0
    finally:
        genesis.use_deterministic_algorithms(False)
    assert often(lambda: (x + 7.75).tolist(), 2) > 0


def test_what_a_flush_drops_dies_when_it_has_ended():
    """A finalizer that computes, of the last owner of an input, finds the values of the flush that drops it."""
    class Owner(genesis.Tensor):
        pass

    found = []

    def look():
        x = genesis.ones(3).as_subclass(Owner)
        weakref.finalize(x, lambda: found.append((genesis.ones(3) * 6.5).tolist()))
        y = x + 6.25
        del x
        return y.tolist()

    for _ in range(2 * OFTEN):
        assert look() == [7.25] * 3
    gc.collect()
    assert found == [[6.5] * 3] * (2 * OFTEN)


def test_a_flush_leaves_no_trace_behind():
    x, traces = genesis.ones(3), []

    def look():
        y = x + 8.25
        traces.append(weakref.ref(y._array.trace))
        y.tolist()

    gc.disable()
    try:
        assert often(look) > 0
        assert [trace() for trace in traces] == [None] * len(traces)
    finally:
        gc.enable()


def test_threads_have_their_own_values():
    failures = []

    def work(number):
        x = genesis.full((16,), float(number))
        for step in range(200):
            if (x * 1.125 + step).tolist() != [number * 1.125 + step] * 16:
                failures.append((number, step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_handlers_that_compute_the_same_disturb_nothing():
    x, wrong = genesis.arange(4.0), []

    def look(start):
        return ((x + start) * 9.5).tolist()

    def handler(*_):
        wrong.extend([one for one in (look(100.0), look(200.0)) if one[0] not in (950.0, 1900.0)])

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        wrong.extend([step for step in range(1500) if look(float(step)) != [(k + step) * 9.5 for k in range(4)]])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not wrong


def test_a_plan_that_the_cache_drops_is_flushed_by_no_instructions():
    cache, plans = PlanCache(size_limit=5), {REPLAY: "replay"}
    cache.put(plans, "a", "A", size=3)
    cache.put({}, "b", "B", size=3)
    assert plans == {}


def test_an_argument_that_ends_the_trace_is_followed_by_others():
    def program(x, y):
        return x.reshape(2) / (genesis.sin(genesis.sin(y)) ** 2 + 1)

    for _ in range(50):
        shared = genesis.from_numpy(np.ones(2, np.float32)).detach().requires_grad_()
        compiled, y = genesis.compile(program), genesis.tensor(2.0)
        assert compiled(shared, y).tolist() == program(shared, y).tolist()
        assert genesis.stack([shared.reshape(2), genesis.ones(2), genesis.zeros(2)]).sum().item() == 4


def _step(lib, w, x, retain_graph=False):
    w.grad = None
    loss = lib.sin(w * x).sum()
    loss.backward(retain_graph=retain_graph)
    return loss


def test_flushes_after_backward_have_torchs_gradients():
    w, theirs = genesis.arange(5.0).requires_grad_(), torch.arange(5.0).requires_grad_()
    before = replayed[0]
    for step in range(2 * OFTEN):
        x = np.random.default_rng(step).random(5, np.float32)
        loss, expected = _step(genesis, w, genesis.tensor(x)), _step(torch, theirs, torch.tensor(x))
        assert_close(loss, expected)
        assert_close(w.grad, theirs.grad)
        with genesis.no_grad():
            w -= 0.1 * w.grad
        with torch.no_grad():
            theirs -= 0.1 * theirs.grad
        assert_close(w, theirs)
    assert replayed[0] - before > OFTEN


def test_what_backward_released_is_part_of_a_flush():
    w, x = genesis.arange(5.0).requires_grad_(), genesis.full((5,), 0.5)
    for step in range(3 * OFTEN):
        retains = step % 3 == 1
        loss = _step(genesis, w, x, retains)
        once = w.grad.tolist()
        if retains:
            loss.backward()
            assert_close(w.grad, 2 * np.array(once, np.float32))
        else:
            with pytest.raises(RuntimeError, match="retain_graph"):
                loss.backward()


def test_hooks_run_and_views_as_leaves_die_after_flushes_by_instructions():
    w, x = genesis.arange(5.0).requires_grad_(), genesis.full((5,), 0.5)
    expected = 0.5 * np.cos(np.arange(5) * 0.5)
    for _ in range(OFTEN + 8):
        _step(genesis, w, x)
        assert_close(w.grad, expected.astype(np.float32))
    handle, seen = w.register_hook(lambda grad: seen.append(grad.tolist()) or grad * 2), []
    _step(genesis, w, x)
    assert_close(w.grad, (2 * expected).astype(np.float32))
    assert len(seen) == 1
    handle.remove()
    views = []
    for _ in range(OFTEN):
        leaf = w.detach().view(5).requires_grad_()
        views.append(weakref.ref(leaf))
        _step(genesis, leaf, x)
        assert_close(leaf.grad, expected.astype(np.float32))
    del leaf
    gc.collect()
    assert [view() for view in views] == [None] * OFTEN


def test_handlers_that_derive_the_same_disturb_nothing():
    w, x, wrong, running = genesis.arange(4.0).requires_grad_(), genesis.full((4,), 0.25), [], []

    def handler(*_):
        if len(running) == 20:  # each takes longer than the timer where other programs run: Python's stack is short
            return
        running.append(1)
        other = genesis.full((4,), 2.0).requires_grad_()
        _step(genesis, other, x)
        wrong.extend([g for g in other.grad.tolist() if abs(g - 0.25 * np.cos(0.5)) > 1e-6])
        running.pop()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        for _ in range(400):
            _step(genesis, w, x)
            wrong.extend([g for k, g in enumerate(w.grad.tolist()) if abs(g - 0.25 * np.cos(0.25 * k)) > 1e-6])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not wrong


def _looked_at(lib, w, x):
    h = lib.tanh(w * x)
    loss = (h * h + w).sum()
    return h, loss, loss.item()


def test_values_looked_at_before_backward_have_torchs_gradients():
    w, theirs = genesis.arange(5.0).requires_grad_(), torch.arange(5.0).requires_grad_()
    before = replayed[0]
    for step in range(2 * OFTEN):
        x = np.random.default_rng(step).random(5, np.float32)
        h, loss, _ = _looked_at(genesis, w, genesis.tensor(x))
        expected, other, _ = _looked_at(torch, theirs, torch.tensor(x))
        assert_close(h, expected)
        assert_close(loss, other)
        w.grad = theirs.grad = None
        loss.backward(retain_graph=step % 2 == 1)
        other.backward()
        assert_close(w.grad, theirs.grad)
        if step % 2:
            loss.backward()
            assert_close(w.grad, 2 * theirs.grad)
    assert replayed[0] - before > OFTEN // 2


def test_backward_over_a_program_that_ran_is_flushed_by_instructions():
    w, theirs, x = genesis.arange(5.0).requires_grad_(), torch.arange(5.0).requires_grad_(), np.full(5, 0.5, np.float32)
    _looked_at(torch, theirs, torch.tensor(x))[1].backward()

    def look():
        w.grad = None
        _looked_at(genesis, w, genesis.tensor(x))[1].backward()
        assert_close(w.grad, theirs.grad)

    often(look)
    assert often(look, 8) == 16


def test_many_flushed_graphs_live_at_once():
    w, theirs = genesis.arange(5.0).requires_grad_(), torch.arange(5.0).requires_grad_()
    for _ in range(4):
        w.grad = theirs.grad = None
        mine, others = [], []
        for step in range(OFTEN // 2):
            x = np.random.default_rng(step).random(5, np.float32)
            mine.append(_looked_at(genesis, w, genesis.tensor(x))[1])
            others.append(_looked_at(torch, theirs, torch.tensor(x))[1])
        genesis.stack(mine).sum().backward()
        torch.stack(others).sum().backward()
        assert_close(w.grad, theirs.grad)


def test_what_backward_will_read_is_watched_after_flushes_by_instructions():
    w = genesis.arange(5.0).requires_grad_()
    for step in range(2 * OFTEN):
        x = genesis.full((5,), 0.5)
        factor = x.exp()
        loss = (w * factor).sum()
        loss.item()
        if step % 3 == 0:
            factor.add_(1.0)
        elif step % 3 == 1:
            x.add_(1.0)
        if step % 3 == 0:
            with pytest.raises(RuntimeError, match="inplace operation"):
                loss.backward()
        else:
            loss.backward()


def test_finalizers_that_compute_while_a_flush_makes_what_it_keeps():
    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            found.append((genesis.full((5,), 2.0).requires_grad_() * 3.0).sum().item())
            genesis.synchronize()

    w, x, found, limits = genesis.arange(5.0).requires_grad_(), genesis.full((5,), 0.5), [], gc.get_threshold()
    expected = _looked_at(torch, torch.arange(5.0), torch.full((5,), 0.5))[2]
    gc.set_threshold(3, 2, 2)
    try:
        for _ in range(4 * OFTEN):
            Garbage()
            assert abs(_looked_at(genesis, w, x)[2] - expected) < 1e-4
    finally:
        gc.set_threshold(*limits)
    assert found and found == [30.0] * len(found)


def test_a_handler_that_flushes_what_is_about_to_be_flushed():
    w = genesis.ones(3, requires_grad=True)
    y = (w * 2.0).sum()
    trace = thread_state.traces[CPU.name]

    def handler(trace):  # as one between the question whether a trace is done and its flush
        del trace.step.plans[REPLAY]
        flush(trace)
        return MISSED

    trace.step.plans[REPLAY] = (handler,)
    assert y.item() == 6
    y.backward()
    assert w.grad.tolist() == [2.0] * 3
