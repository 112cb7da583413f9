"""A step that fails leaves what was there before it as it was, whatever failed and wherever; the next step is right.

What Python itself raises in the middle of a step (a hook, a custom Function) leaves what it leaves in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import genesis
from genesis.capture.replay import settling
from genesis.codegen.cpu import program
from genesis.execution import flush as flushing
from genesis.execution.result_pool import ResultPool
from genesis.runtime.native import NativeProgram
from genesis.tracing.trie import fresh_roots

from .job import BAD, GOOD, SIZES, Job, same


def raising(error: BaseException) -> Callable[..., Any]:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise error

    return raises


CAUSES: dict[str, tuple[object, str, BaseException]] = {
    "no memory": (ResultPool, "provide", MemoryError("none left")),
    "an interrupt before the program runs": (ResultPool, "provide", KeyboardInterrupt()),
    "an interrupt as the program begins": (NativeProgram, "run", KeyboardInterrupt()),
    "an interrupt while it is planned": (flushing, "find_plan", KeyboardInterrupt()),
    "a graph that is not lowered": (flushing, "find_plan", RuntimeError("refused")),
    "a kernel that does not compile": (program, "get_or_compile", RuntimeError("the compiler refuses")),
    "an interrupt while it is compiled": (program, "get_or_compile", KeyboardInterrupt()),
    "a handler that raises": (NativeProgram, "run", TimeoutError("from a handler")),
}
FORMS = ("as it is", "recorded", "replayed", "replayed as a trace")


def prepared(size: str, form: str) -> tuple[Job, Job, Callable[[Any], Any]]:
    """A job, one that nothing happens to, and the first one's step."""
    job, other = Job(genesis, SIZES[size]), Job(genesis, SIZES[size])
    step = job.step if form == "as it is" else genesis.compile(job.step)
    if form.startswith("replayed"):
        for _ in range(3):
            step(genesis.tensor(GOOD)), other.step(genesis.tensor(GOOD))
        assert step.entries, step.refusals
    return job, other, step


@pytest.fixture
def hooks() -> Iterator[list[Callable[..., None]]]:
    """Hooks of flushes: with them, replays are flushes."""
    before = [*flushing.FLUSH_HOOKS]
    yield flushing.FLUSH_HOOKS
    flushing.FLUSH_HOOKS[:] = before


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cause", CAUSES)
def test_a_step_that_cannot_run_has_not_happened(cause, form, size, monkeypatch, hooks):
    where, name, error = CAUSES[cause]
    job, other, step = prepared(size, form)
    if form.startswith("replayed") and name in ("find_plan", "get_or_compile"):
        pytest.skip("a replay plans nothing")
    if name == "get_or_compile":
        fresh_roots()  # and with them, plans
    index = genesis.tensor(GOOD)
    kept = (job.table * job.table).sum()
    assert kept.item() > 0
    before, versions = job.values(), job.versions()
    with monkeypatch.context() as changed:
        changed.setattr(where, name, raising(error))
        if form == "replayed as a trace":
            hooks += [print]
        with pytest.raises(type(error)):
            step(index).item()
    hooks[:] = [hook for hook in hooks if hook is not print]
    same(job.values(), before)
    assert job.versions() == versions
    (derived,) = genesis.autograd.grad(kept, job.table)  # nothing that it reads has changed
    np.testing.assert_allclose(derived.numpy(), 2 * before["table"], rtol=1e-6)
    for _ in range(3):
        assert step(index).item() == pytest.approx(other.step(index).item(), rel=1e-5)
        same(job.values(), other.values())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_an_interrupt_after_the_program_leaves_a_step_that_was_taken(form, size, monkeypatch, hooks):
    job, other, step = prepared(size, form)
    run = NativeProgram.run

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        run(*args, **kwargs)
        raise KeyboardInterrupt

    index = genesis.tensor(GOOD)
    same(job.values(), other.values())
    with monkeypatch.context() as changed:
        changed.setattr(NativeProgram, "run", interrupted)
        if form == "replayed as a trace":
            hooks += [print]
        with pytest.raises(KeyboardInterrupt):
            step(index).item()
    hooks[:] = [hook for hook in hooks if hook is not print]
    other.step(index)
    if form == "as it is":  # PyTorch's: the optimizer's step has been taken, and what comes after it has not
        with genesis.no_grad():
            job.late_average.mul_(0.5).add_(job.table.detach())
    same(job.values(), other.values())
    for _ in range(2):
        assert step(index).item() == pytest.approx(other.step(index).item(), rel=1e-5)
        same(job.values(), other.values())


@pytest.mark.parametrize("form", FORMS[:2])
def test_a_step_whose_flush_hook_raises_has_been_taken(form, hooks):
    job, other, step = prepared("small", form)
    index = genesis.tensor(GOOD)
    same(job.values(), other.values())
    hook = raising(KeyError("from a hook"))
    hooks += [hook]
    with pytest.raises(KeyError, match="from a hook"):
        step(index).item()
    hooks.remove(hook)
    other.step(index)
    if form == "as it is":
        with genesis.no_grad():
            job.late_average.mul_(0.5).add_(job.table.detach())
    same(job.values(), other.values())
    for _ in range(2):
        assert step(index).item() == pytest.approx(other.step(index).item(), rel=1e-5)
        same(job.values(), other.values())


# ---- what Python raises ----


def custom(library: Any, place: str) -> Callable[[Any], Any]:
    """A custom Function that raises."""

    class Through(library.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if place == "forward":
                raise KeyError("from Python")
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            raise KeyError("from Python")

    return Through.apply


def hook_of_a_result(job: Job) -> Any:
    job.through = lambda x: (x.register_hook(raising(KeyError("from Python"))), x)[1]
    return None


def function(place: str) -> Callable[[Job], Any]:
    def put(job: Job) -> None:
        job.through = custom(job.library, place)

    return put


def after_forward(job: Job) -> None:
    job.watch = raising(KeyError("from Python"))


_raise = raising(KeyError("from Python"))
PLACES: dict[str, Callable[[Job], Any]] = {
    "a hook of a parameter": lambda job: job.table.register_hook(_raise),
    "a hook of a result": hook_of_a_result,
    "a hook after a gradient is there": lambda job: job.table.register_post_accumulate_grad_hook(_raise),
    "a hook of a module": lambda job: job.squash.register_forward_hook(_raise),
    "a hook before a module": lambda job: job.squash.register_forward_pre_hook(_raise),
    "a hook of a module's backward": lambda job: job.squash.register_full_backward_hook(_raise),
    "a hook before a step": lambda job: job.optimizer.register_step_pre_hook(_raise),
    "a hook behind a step": lambda job: job.optimizer.register_step_post_hook(_raise),
    "a function's forward": function("forward"),
    "a function's backward": function("backward"),
    "between forward and backward": after_forward,
}


def failed(library: Any, form: str, place: str, size: str) -> tuple[dict[str, np.ndarray], ...]:
    """The values after a step that fails, and after two more."""
    job = Job(library, SIZES[size])
    step = genesis.compile(job.step) if library is genesis and form != "as it is" else job.step
    if form.startswith("replayed"):
        for _ in range(3):
            step(library.tensor(GOOD))
        job.optimizer.zero_grad()
    handle = PLACES[place](job) if place in PLACES else None
    with pytest.raises(KeyError if place in PLACES else IndexError):
        step(library.tensor(GOOD if place in PLACES else BAD)).item()
    if handle is not None:
        handle.remove()
    job.through = job.watch = lambda x: x
    after = job.values()
    job.optimizer.zero_grad()
    for _ in range(2):
        step(library.tensor(GOOD))
    return after, job.values()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", [*PLACES, "an index out of range"])
def test_a_step_that_python_ends_leaves_what_pytorch_leaves(place, form, monkeypatch):
    monkeypatch.setattr(settling, "LONGEST", -1 if form == "replayed as a trace" else settling.LONGEST)
    found, expected = failed(genesis, form, place, "small"), failed(torch, form, place, "small")
    if "backward" in place or "result" in place:  # here no gradient is accumulated until all are there
        names = [name for name in (found[0].keys() | expected[0].keys()) if name.startswith("the gradient")]
        before = Job(genesis, SIZES["small"]).values()
        same({name: found[0].pop(name) for name in names if name in found[0]},
             {name: before[name] for name in names if name in before and not form.startswith("replayed")})
        for name in names:
            expected[0].pop(name, None)
    same(found[0], expected[0])
    same(found[1], expected[1])
