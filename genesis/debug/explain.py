"""Explains a compiled function: its programs, inputs, guards, and why a call was rerecorded."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from genesis.capture.compiled import Compiled
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import Refusal
from genesis.capture.record.traced_call import record
from genesis.capture.replay.entry import Entry
from genesis.debug.costs import ProgramCost, timing
from genesis.debug.program import refused_by
from genesis.debug.summary import refusal_summary, shortened, time_summary
from genesis.ir.annotations import AnyFunction, Tree
from genesis.tensor.call_modes import REPLACING
from genesis.tracing.source_line import line_name

RUNS = 3


class MeasuredProgram(NamedTuple):
    """A program: the median seconds that each of its stages took, and what the cost model says of them."""

    seconds: list[float]
    cost: ProgramCost

    def __repr__(self) -> str:
        rows = [f"{taken * 1e6:10.1f} us took, estimated {stage}" for taken, stage in zip(
            self.seconds, self.cost.stages, strict=True)]
        return "\n".join([*rows, *self.cost.refusals, *self.cost.choices, *self.cost.splits])


class Explanation:
    """The result of `explain`. Prints as text, a long one as a summary; `text(detail=True)` has all.

    Attributes:
        programs: a MeasuredProgram for each, in order.
        ungraphed: for each, why no CUDA graph can contain its launches; empty if one can.
        splits: (file, line) where one program ends and another must begin.
        slots: (description, shape or value) of the inputs that each call reads again.
        guards: what else each call compares.
        refusals: why a call is not replayed, each with the user's line; empty if it is.
        reads: values that Python reads, which must be equal in a replay.
        by_python: why the latest entry is replayed by Python and not natively, if so.
        missed: what differed from the nearest entry when a call was last rerecorded; None if it was the first.
        records_rarely: whether most calls run as they are, as recordings were seldom replayed.
        entries, replays: how many recorded calls there are, and how often they were replayed.
    """

    def __init__(
        self, name: str, compiled: Compiled, recorder: Recorder, entry: Entry, programs: list[MeasuredProgram]
    ) -> None:
        self.name = name
        self.programs = programs
        self.ungraphed = [refused_by(program.plan) for program in recorder.programs]
        self.splits = [program.line for program in recorder.programs[:-1]]
        self.slots = entry.slots
        self.guards = list(dict.fromkeys(entry.labels))
        self.refusals = [*recorder.refusals]
        if REPLACING:
            reason = f"calls go elsewhere first, to {', '.join(sorted(REPLACING))}: nothing is replayed meanwhile"
            self.refusals.append(Refusal(reason, None))
        self.missed, self.records_rarely = compiled.missed, compiled.records_rarely
        self.reads = [read.label for read in entry.reads]
        self.by_python = compiled.entries[0].refusal if compiled.entries else None
        self.entries = len(compiled.entries)
        self.replays = sum(entry.replays for entry in compiled.entries)

    def text(self, detail: bool | None = None) -> str:
        """Everything, or a summary; by default a summary if it is long."""
        programs = f"{len(self.programs)} program{'s' * (len(self.programs) != 1)}"
        often = "most calls run as they are, as recordings were seldom replayed" if self.records_rarely else "is replayed"
        replayed = "runs as it is at each call" if self.refusals else often
        lines = [f"{self.name}: {programs}; {replayed}"]
        lines += [f"    because {refusal}" for refusal in self.refusals]
        lines += [f"    split at {line_name(line)}" for line in self.splits if line]
        lines += [f"    as long as the same is found: {label}" for label in self.reads]
        if self.entries:
            lines += [f"entries: {self.entries}, replayed {self.replays} times"]
        if self.by_python is not None:
            lines += [f"replayed by Python: {self.by_python}"]
        if self.missed is not None:
            lines += [f"recorded anew because of {self.missed}"]
        head = [line if len(line) < 200 else f"{line[:200]} .." for line in lines[:6]]
        head += [f"slots: {len(self.slots)}, guards: {len(self.guards)}"]
        head += time_summary([[stage.spent(taken) for stage, taken in zip(program.cost.stages, program.seconds, strict=True)]
                              for program in self.programs])
        head += refusal_summary([refusal for program in self.programs for refusal in program.cost.refusals])
        lines += [f"slots: {len(self.slots)}", *[f"    {label}: {kind}" for label, kind in self.slots]]
        lines += [f"guards: {len(self.guards)}"]
        for number, (program, why) in enumerate(zip(self.programs, self.ungraphed, strict=True), 1):
            lines += [f"program {number}:" + f" begun launch by launch: {why}" * bool(why)]
            lines += [f"    {line}" for line in repr(program).splitlines()]
        return shortened(head, lines, detail)

    def __repr__(self) -> str:
        return self.text()


def explain(fn: AnyFunction, *args: Tree, **kwargs: Tree) -> Explanation:
    """Call `fn` and explain how `genesis.compile` compiles it.

    Changes of tensors, optimizers, schedulers and random numbers are undone; other effects (prints, counts) are not. `fn`
    may be compiled or not. Times are the medians of a few calls.

    >>> explanation = explain(lambda x: (x * 2).sum(), genesis.ones(3))
    >>> len(explanation.programs), explanation.slots, explanation.refusals
    (1, [('argument 0', 'float32[3]')], [])
    """
    kind = type(fn)
    call = fn if isinstance(fn, Compiled) else getattr(fn, "__func__", None) or vars(kind).get("__call__")
    if isinstance(call, Compiled) and call is not fn:
        args = (getattr(fn, "__self__", fn), *args)
    compiled = call if isinstance(call, Compiled) else Compiled(fn, False, None, False)
    with timing() as times:
        for _ in range(RUNS):
            _, recorder, _ = recording = record(compiled.function, args, kwargs, undoable=True)
            recorder.take_back()
            entry = recording.made
            recorder.release()
    measured = [times.runs[id(program.plan)] for program in recorder.programs]
    programs = [MeasuredProgram([*map(median, zip(*runs, strict=True))], cost) for _, cost, runs in measured]
    named = compiled.function if isinstance(fn, Compiled) else fn
    return Explanation(getattr(named, "__name__", kind.__name__), compiled, recorder, entry, programs)
