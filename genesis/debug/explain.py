"""What `genesis.compile` made of a function: its programs, what they read anew, and why a call was recorded again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.capture.compiled import Compiled
from genesis.capture.entry import Entry
from genesis.capture.recorder import Recorder
from genesis.capture.recording import record
from genesis.creation import ones
from genesis.debug.timing import StageTime, seconds_of, stage_times
from genesis.execute import FLUSH_HOOKS, flush_all
from genesis.plan import Plan
from genesis.trace import Trace

__all__ = ["Explanation", "Kernel", "explain"]

RUNS = 3


class Kernel(NamedTuple):
    """A stage of a program: what it took, and what it should take by its bytes and flops."""

    stage: StageTime
    estimate: float

    def __str__(self) -> str:
        return f"{self.estimate * 1e3:9.3f} ms estimated, {self.stage}"


class Explanation:
    """The outcome of `explain`. Prints as text.

    Attributes:
        programs: for each program its stages, a list of Kernel.
        splits: (file, line) where one program ends because the next could not go on in it.
        slots: (what it is, its shape or value) of what each call reads anew.
        guards: what else is compared at each call.
        refusals: why a call runs as it is, each with the user's line; empty if it is replayed.
        missed: what differed from the nearest entry when a call was last recorded anew; None if that was the first.
        entries, replays: how many recorded calls there are, and how often they were replayed.
    """

    def __init__(self, compiled: Compiled, recorder: Recorder, entry: Entry, programs: list[list[Kernel]]) -> None:
        self.name = getattr(compiled.function, "__name__", repr(compiled.function))
        self.programs = programs
        self.splits = [program.line for program in recorder.programs[:-1]]
        self.slots = entry.slots
        self.guards = list(dict.fromkeys(entry.labels))
        self.refusals = recorder.refusals
        self.missed = compiled.missed
        self.entries = len(compiled.entries)
        self.replays = sum(entry.replays for entry in compiled.entries)

    def __repr__(self) -> str:
        programs = f"{len(self.programs)} program{'s' * (len(self.programs) != 1)}"
        replayed = "runs as it is at each call" if self.refusals else "is replayed"
        lines = [f"{self.name}: {programs}; {replayed}"]
        lines += [f"    because {refusal}" for refusal in self.refusals]
        lines += [f"    split at {line[0]}:{line[1]}" for line in self.splits if line]
        if self.entries:
            lines += [f"entries: {self.entries}, replayed {self.replays} times"]
        if self.missed is not None:
            lines += [f"recorded anew because of {self.missed}"]
        lines += [f"slots: {len(self.slots)}", *[f"    {label}: {kind}" for label, kind in self.slots]]
        lines += [f"guards: {len(self.guards)}"]
        for number, kernels in enumerate(self.programs, 1):
            lines += [f"program {number}:", *[f"    {kernel}" for kernel in kernels]]
        return "\n".join(lines)


def explain(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Call `fn` to see what `genesis.compile` makes of it.

    What the call does to tensors, optimizers, schedulers and the random numbers is undone; what else it does (prints,
    counts) it does. `fn` may be compiled or not. Times are the medians of a few calls.

    >>> import genesis
    >>> explanation = explain(lambda x: (x * 2).sum(), genesis.ones(3))
    >>> len(explanation.programs), explanation.slots, explanation.refusals
    (1, [('argument 0', 'float32[3]')], [])
    """
    kind = type(fn)
    call = fn if isinstance(fn, Compiled) else getattr(fn, "__func__", None) or vars(kind).get("__call__")
    if isinstance(call, Compiled) and call is not fn:
        args = (getattr(fn, "__self__", fn), *args)
    compiled = call if isinstance(call, Compiled) else Compiled(fn, False, None, False)
    flush_all()
    runs: dict[int, tuple[Plan, list[list[float]]]] = {}

    def note(trace: Trace, plan: Plan | None) -> None:
        if isinstance(plan, Plan):
            runs.setdefault(id(plan), (plan, []))[1].append(seconds_of(plan))

    FLUSH_HOOKS.append(note)
    try:
        for _ in range(RUNS):
            _, recorder, _ = recording = record(compiled.function, args, kwargs)
            recorder.take_back()
            entry = recording.made
            recorder.release()
    finally:
        FLUSH_HOOKS.remove(note)
    plans = [program.prepared.plan for program in recorder.programs]
    programs = [[Kernel(stage, _estimate(stage)) for stage in stage_times(*runs[id(plan)])] for plan in plans]
    return Explanation(compiled, recorder, entry, programs)


def _estimate(stage: StageTime) -> float:
    """Seconds for as many bytes and flops, at the rates of a sum and of a product measured here."""
    bandwidth, rate, overhead = _rates()
    return overhead + max(stage.nbytes / bandwidth, stage.flops / rate)


@functools.cache
def _rates() -> tuple[float, float, float]:
    """Bytes and flops a second, of a sum of two large vectors and of a product of two matrices; a launch's seconds."""
    a, b, small = ones(1 << 22).clone(), ones(512, 512).clone(), ones(1).clone()
    flush_all()
    best: dict[int, StageTime] = {}

    def note(trace: Trace, plan: Plan | None) -> None:
        if isinstance(plan, Plan):
            for k, stage in enumerate(stage_times(plan, [seconds_of(plan)])):
                best[k] = min(best.get(k, stage), stage, key=lambda s: s.seconds)

    found = []
    FLUSH_HOOKS.append(note)
    try:
        for make in (lambda: a + a, lambda: b @ b, lambda: small + small):
            best.clear()
            for _ in range(RUNS):
                _held = make()
                flush_all()
            found.append(best[0])
    finally:
        FLUSH_HOOKS.remove(note)
    vector, matrix, nothing = found
    return vector.nbytes / vector.seconds, matrix.flops / matrix.seconds, nothing.seconds
