"""The measurements: each program's runs, stage by stage, and a thread's time by activity."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from genesis.execution.plan import Plan
from genesis.profiler.sites import Site, StageInfo, sites_of, stages_of
from genesis.runtime.timeline import Launches, Span
from genesis.tracing.trace import Trace

Interval = tuple[int, int]  # nanoseconds
KINDS = {  # kind of span -> name of its own time, without nested spans
    "guards": "guards", "replay": "replaying", "record": "recording", "flush": "flushing", "plan": "planning",
    "compile": "compiling", "run": "launching", "host": "host calls",
}
KERNELS, TRACING = "kernels", "tracing"


class Run(NamedTuple):
    """A run of a program: its stages in order with their times, and each worker's intervals."""

    stages: list[tuple[int, Interval]]
    workers: list[list[Interval]]


class ProgramRuns:
    """The runs of one program."""

    def __init__(self, plan: Plan, trace: Trace) -> None:
        self.plan = plan
        self.runs: list[Run] = []
        self._trace = trace

    @cached_property
    def stages(self) -> list[StageInfo]:
        """The program's stages, with the sites that they compute for."""
        return stages_of(self.plan, self.sites)

    @cached_property
    def sites(self) -> dict[int, Site]:
        """The sites of the plan's lowered graph's nodes."""
        return sites_of(self.plan, self._trace)

    def seconds(self) -> list[float]:
        """Each stage's total seconds over all runs."""
        total = [0.0] * len(self.plan.lowered.schedule.stages)
        for run in self.runs:
            for stage, (start, end) in run.stages:
                total[stage] += 1e-9 * (end - start)
        return total


class Measured:
    """The spans within some windows of a thread's time.

    Attributes:
        windows: the windows.
        thread: the thread.
        spans: all recorded spans, of all threads.
        programs: those that ran, in the order of their first runs.
    """

    def __init__(self, spans: Sequence[Span], windows: Sequence[Interval], thread: int) -> None:
        self.windows, self.thread = list(windows), thread
        self.spans = [span for span in spans if span.kind != "programs"]
        self.programs = _programs(spans)

    @property
    def wall(self) -> float:
        """The total seconds of the windows."""
        return 1e-9 * sum(end - start for start, end in self.windows)

    @cached_property
    def parts(self) -> dict[str, float]:
        """Seconds by activity of the thread: kernels, host calls, and Python before and between them, largest first."""
        own: dict[str, int] = defaultdict(int)
        for start, end in self.windows:
            inside = [span for span in self.spans if span.thread == self.thread and start <= span.start and span.end <= end]
            covered = 0
            for span, alone, is_outermost in _own_times(inside):
                running = _running(span.what) if isinstance(span.what, Launches) else 0
                own[KINDS[span.kind]] += max(alone - running, 0)
                own[KERNELS] += running
                covered += (span.end - span.start) * is_outermost
            own[TRACING] += end - start - covered
        return {name: 1e-9 * taken for name, taken in sorted(own.items(), key=lambda item: -item[1]) if taken}


def _own_times(spans: Sequence[Span]) -> Iterator[tuple[Span, int, bool]]:
    """Each span of one thread, its time without nested spans, and whether it is outermost."""
    spans = sorted((span for span in spans if span.kind in KINDS), key=lambda span: (span.start, -span.end))
    inner = [0] * len(spans)
    open_: list[int] = []
    outermost = [True] * len(spans)
    for number, span in enumerate(spans):
        while open_ and spans[open_[-1]].end <= span.start:
            open_.pop()
        if open_:
            inner[open_[-1]] += span.end - span.start
            outermost[number] = False
        open_.append(number)
    for span, within, is_outermost in zip(spans, inner, outermost, strict=True):
        yield span, span.end - span.start - within, is_outermost


def _programs(spans: Sequence[Span]) -> list[ProgramRuns]:
    """The programs with complete runs. Interrupted runs, and those of another device, are skipped."""
    found: dict[int, ProgramRuns] = {}
    waiting: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        if span.kind in ("run", "host"):
            waiting[span.thread].append(span)
        elif span.kind == "programs":
            ran = waiting.pop(span.thread, [])
            plan, trace = span.what
            if isinstance(plan, Plan) and trace is not None:
                found.setdefault(id(plan), ProgramRuns(plan, trace))
            if isinstance(plan, Plan) and (run := _run(plan, ran)) is not None:
                found[id(plan)].runs.append(run)
    return [program for program in found.values() if program.runs]


def _run(plan: Plan, spans: Sequence[Span]) -> Run | None:
    """The run of a plan from its spans, segment by segment; None if they do not match."""
    if len(spans) != len(plan.segments):
        return None
    stages: list[tuple[int, Interval]] = []
    workers: list[list[Interval]] = []
    host = {id(stage[0]): number for number, stage in enumerate(plan.lowered.schedule.stages)}
    for segment, span in zip(plan.segments, spans, strict=True):
        if segment.host is not None:
            stages.append((host[id(segment.host)], (span.start, span.end)))
            continue
        launches: Launches = span.what
        times = _times(launches.clock)
        if len(times) != len(segment.stages) + 1:
            return None
        for number, start, end in zip(segment.stages, times, times[1:], strict=False):
            if stages and stages[-1][0] == number:
                stages[-1] = number, (stages[-1][1][0], end)
            else:
                stages.append((number, (start, end)))
        for index, log in enumerate(launches.workers):
            noted = _times(log)
            workers += [[] for _ in range(index + 1 - len(workers))]
            workers[index] += zip(noted[::2], noted[1::2], strict=True)
    return Run(stages, workers)


def _times(clock: array[int]) -> list[int]:
    """Alternating seconds and nanoseconds, as nanoseconds."""
    return [1_000_000_000 * seconds + rest for seconds, rest in zip(*[iter(clock)] * 2, strict=True)]


def _running(launches: Launches) -> int:
    """Nanoseconds from the first launch of a run to the end of the last."""
    times = _times(launches.clock)
    return max(times[-1] - times[0], 0)
