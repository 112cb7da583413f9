"""What was measured: the runs of each program, stage by stage, and where a thread's time went."""

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
KINDS = {  # of spans -> what their own time, without that of spans within, is called
    "guards": "guards", "replay": "replaying", "record": "recording", "flush": "flushing", "plan": "planning",
    "compile": "compiling", "run": "launching", "host": "host calls",
}
KERNELS, TRACING = "kernels", "tracing"


class Run(NamedTuple):
    """A run of a program: the stages that it ran, in order, each with its time, and when each worker took part."""

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
        """The program's stages: what they compute, for whom."""
        return stages_of(self.plan, self.sites)

    @cached_property
    def sites(self) -> dict[int, Site]:
        """Where the nodes of the plan's lowered graph come from."""
        return sites_of(self.plan, self._trace)

    def seconds(self) -> list[float]:
        """What each stage took in all runs together."""
        total = [0.0] * len(self.plan.lowered.schedule.stages)
        for run in self.runs:
            for stage, (start, end) in run.stages:
                total[stage] += 1e-9 * (end - start)
        return total


class Measured:
    """What spans tell of some stretches of a thread's time.

    Attributes:
        windows: the stretches.
        thread: whose they are.
        spans: all that were noted, of all threads.
        programs: those that ran, in the order of their first runs.
    """

    def __init__(self, spans: Sequence[Span], windows: Sequence[Interval], thread: int) -> None:
        self.windows, self.thread = list(windows), thread
        self.spans = [span for span in spans if span.kind != "programs"]
        self.programs = _programs(spans)

    @property
    def wall(self) -> float:
        """Seconds of all windows together."""
        return 1e-9 * sum(end - start for start, end in self.windows)

    @cached_property
    def parts(self) -> dict[str, float]:
        """Seconds by what the thread did: kernels, host calls, and what Python did before and between, largest first."""
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
    """Each span of one thread, its time without that of spans within, and whether it is in no other."""
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
    """The programs whose runs are all there. A run that was interrupted, or of another device, is passed over."""
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
    """The run of a plan that these spans tell of, segment by segment; None where they do not fit it."""
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
    """Seconds and nanoseconds in turn, as nanoseconds."""
    return [1_000_000_000 * seconds + rest for seconds, rest in zip(*[iter(clock)] * 2, strict=True)]


def _running(launches: Launches) -> int:
    """Nanoseconds from the first launch of a run to the end of the last."""
    times = _times(launches.clock)
    return max(times[-1] - times[0], 0)
