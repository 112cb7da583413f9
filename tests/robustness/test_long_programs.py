"""Ctrl-C, and handlers that look at values, in the middle of a program that takes long.

Each launch of a program is followed here by one that sends a signal, and every moment between two is one for handlers.
"""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import genesis
from genesis.capture.replay import settling
from genesis.codegen.cpu import program
from genesis.codegen.segment import Segment
from genesis.execution import flush as flushing
from genesis.execution import result_pool
from genesis.runtime import executor_ir, native
from genesis.runtime.native import Block, NativeLaunch, NativeProgram
from genesis.tracing.trie import fresh_roots
from tests.runtime.kernels import kernel

from .job import GOOD, SIZES, Job, same

FORMS = ("as it is", "recorded", "replayed")
MOMENTS = 8  # of a step that are tried, at most


class Signals:
    """What the signals do: nothing, but for a chosen one."""

    def __init__(self) -> None:
        self.count = self.chosen = 0
        self.action: Callable[[], object] = raising

    def handle(self, *_: object) -> None:
        self.count += 1
        if self.count == self.chosen:
            self.action()

    def at(self, moment: int, action: Callable[[], object]) -> None:
        self.count, self.chosen, self.action = 0, moment, action


def raising() -> None:
    raise KeyboardInterrupt


@pytest.fixture
def signals(monkeypatch) -> Iterator[Signals]:
    def interrupting(launches: Sequence[NativeLaunch], *rest: Any, **names: Any) -> NativeProgram:
        sends = NativeLaunch(kernel("signal"), [Block((0, int(signal.SIGUSR1)), 1)])
        return NativeProgram([one for launch in launches for one in (launch, sends)], *rest, **names)

    def segment(made: Any, host: Any, stages: Sequence[int] = ()) -> Segment:
        return Segment(made, host, tuple([stage for stage in stages for _ in range(2)]))

    monkeypatch.setattr(program, "NativeProgram", interrupting)
    monkeypatch.setattr(program, "Segment", segment)
    monkeypatch.setattr(executor_ir, "PATIENCE", 0)
    monkeypatch.setattr(executor_ir, "SHARE", 0)
    monkeypatch.setattr(settling, "LONGEST", -1)  # all calls take long
    monkeypatch.setattr(result_pool, "REPLAYED_TOGETHER", 0)  # and write their results over each other
    native._native_run.cache_clear()
    fresh_roots()
    made = Signals()
    before = signal.signal(signal.SIGUSR1, made.handle)
    yield made
    signal.signal(signal.SIGUSR1, before)
    native._native_run.cache_clear()
    fresh_roots()


def prepared(size: str, form: str, signals: Signals) -> tuple[Job, Job, Callable[[], Any], list[int]]:
    """A job, one that nothing happens to, the first one's step, and moments in it."""
    job, other = Job(genesis, SIZES[size]), Job(genesis, SIZES[size])
    index = genesis.tensor(GOOD)
    compiled = genesis.compile(job.step)

    def step() -> Any:
        return (job.step if form == "as it is" else compiled if form == "replayed" else genesis.compile(job.step))(index).item()

    for _ in range(4):
        step(), other.step(index)
        same(job.values(), other.values())
        signals.count = 0
    step()
    last = signals.count
    other.step(index)
    same(job.values(), other.values())
    assert last > 4
    return job, other, step, sorted(random.Random(0).sample(range(1, last + 1), min(MOMENTS, last)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_an_interrupt_ends_a_program_at_the_next_launch_and_nothing_is_half_done(size, form, signals):
    job, other, step, moments = prepared(size, form, signals)
    seen = []
    for moment in moments:
        before, versions, age = job.values(), job.versions(), job.optimizer.state[job.table]["step"]
        signals.at(moment, raising)
        with pytest.raises(KeyboardInterrupt):
            step()
        assert signals.count == moment
        signals.at(0, raising)
        taken = job.optimizer.state[job.table]["step"] > age
        if not taken:
            same(job.values(), before)
            assert job.versions() == versions
            step()
        elif form == "as it is" and job.versions()[-1] == versions[-1]:  # as it would be in PyTorch
            with genesis.no_grad():
                job.late_average.mul_(0.5).add_(job.table.detach())
        seen.append(taken)
        other.step(genesis.tensor(GOOD))
        same(job.values(), other.values())
    assert seen == sorted(seen) and not seen[0]
    assert seen[-1] or size == "small"  # which is written over nowhere


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_a_handler_that_looks_at_values_in_a_program_changes_nothing(size, form, signals):
    job, other, step, moments = prepared(size, form, signals)
    before = job.values()
    for moment in moments:
        looked: list[Any] = []
        signals.at(moment, lambda looked=looked: looked.append(job.values()))  # type: ignore[misc]
        step()
        signals.at(0, raising)
        other.step(genesis.tensor(GOOD))
        same(job.values(), other.values())
        (found,) = looked
        after = job.values()
        for name, value in found.items():
            same({name: value}, {name: before[name] if abs(value - before[name]).max() < 1e-6 else after[name]})
        before = after


class Chain:
    """Large tensors that are written over one after the other, each by what is in the one before."""

    def __init__(self) -> None:
        self.first = genesis.ones(900, 8)
        self.tensors = [genesis.arange(20000 + 80 * k).reshape(-1, 4 + 4 * (k % 2)) / 20000.0 for k in range(5)]

    def step(self, scale: genesis.Tensor) -> genesis.Tensor:
        with genesis.no_grad():
            total = (self.first @ self.first.T).mean() / 9.0 * scale
            for tensor in self.tensors:
                tensor.mul_(0.75).add_(total)
                total = (tensor @ genesis.ones(tensor.shape[1], 8)).mean() / 9.0
        return total

    def values(self) -> dict[str, Any]:
        return {f"tensor {k}": tensor.numpy().copy() for k, tensor in enumerate(self.tensors)}


def chains(form: str, signals: Signals) -> tuple[Chain, Chain, Callable[[], float], int]:
    """A chain, one that nothing happens to, the first one's step, and how many moments that has."""
    chain, other, start = Chain(), Chain(), genesis.tensor(0.5)
    compiled = genesis.compile(chain.step)

    def step() -> float:
        return (chain.step if form == "as it is" else compiled)(start).item()

    for _ in range(4):
        signals.count = 0
        step()
        last = signals.count
        other.step(start)
        same(chain.values(), other.values())
    gc.freeze()  # tests collect again and again, and what is there by now is no garbage of theirs
    return chain, other, step, last


@pytest.mark.parametrize("form", ["as it is", "replayed"])
@pytest.mark.parametrize("then", ["looked at", "interrupted again", "the next step"])
def test_a_half_done_step_is_done_when_somebody_needs_it(form, then, signals, monkeypatch):
    monkeypatch.setattr(settling, "LONGEST", 0.0)  # by instructions no moment would come between two programs
    chain, other, step, last = chains(form, signals)
    seen, left, moments = [], [], range(1, last, 2)
    for moment in moments:
        before, version = chain.values(), chain.tensors[0]._version
        signals.at(moment, raising)
        with pytest.raises(KeyboardInterrupt):
            step()
        gc.collect()  # the interrupt's traceback: what it holds is not written over by the next step
        assert signals.count == moment
        taken = chain.tensors[0]._version > version
        seen.append(taken)
        signals.at(0, raising)
        products = (genesis.ones(300, 300) @ genesis.ones(300, 300)).sum(1).exp().sum()  # other temporaries
        assert products.item() > 0
        if taken and then == "interrupted again":
            signals.at(1, raising)
            with pytest.raises(KeyboardInterrupt):
                chain.tensors[-1].tolist()
        signals.at(0, raising)
        if taken:
            other.step(genesis.tensor(0.5))
        if then == "the next step":
            assert step() == pytest.approx(other.step(genesis.tensor(0.5)).item(), rel=1e-5)
        else:
            assert chain.tensors[2].tolist() is not None
            left.append(signals.count)
            same(chain.values(), other.values() if taken else before)
        same(chain.values(), other.values())
    assert seen == sorted(seen) and not seen[0] and seen[-1]
    if then == "looked at":  # what had not run before runs then, and nothing else
        assert [count for count, taken in zip(left, seen, strict=True) if taken] == [
            last - moment for moment, taken in zip(moments, seen, strict=True) if taken]


@pytest.mark.parametrize("form", ["as it is", "replayed"])
def test_a_handler_in_the_middle_reads_what_the_step_will_leave(form, signals, monkeypatch):
    monkeypatch.setattr(settling, "LONGEST", 0.0)  # by instructions no moment would come between two programs
    chain, other, step, last = chains(form, signals)
    for moment in range(1, last):
        looked: list[dict[str, Any]] = []
        signals.at(moment, lambda looked=looked: looked.append(chain.values()))  # type: ignore[misc]
        step()
        signals.at(0, raising)
        other.step(genesis.tensor(0.5))
        same(chain.values(), other.values())
        (values,) = looked
        same(values, other.values())


@pytest.mark.parametrize("compiled", [False, True])
def test_an_interrupt_from_the_keyboard_does_not_wait_for_a_long_program(compiled, monkeypatch):
    monkeypatch.setattr(executor_ir, "PATIENCE", 5_000_000)
    native._native_run.cache_clear()
    fresh_roots()
    weight, x = genesis.eye(500) * 0.5, genesis.ones(800, 500)

    def step(x: genesis.Tensor) -> genesis.Tensor:
        for _ in range(20):
            x = (x @ weight) * 2.0
        return x.sum()

    run = genesis.compile(step) if compiled else step
    for _ in range(2):
        assert run(x).item() == 400_000
    seen: list[tuple[int, int]] = []
    is_half_done = flushing.has_overwritten

    def noting(run: Any) -> bool:
        if run is not None and run.completion.launches:
            seen.append((run.completion.launches, len(run.plan.segments[-1].stages)))
        return is_half_done(run)

    monkeypatch.setattr(flushing, "has_overwritten", noting)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while not seen:  # it may come before the program has begun
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(KeyboardInterrupt):
                run(x).item()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        native._native_run.cache_clear()
    (done, all_of_them), *_ = seen
    assert 0 < done < all_of_them
    assert run(x).item() == 400_000
