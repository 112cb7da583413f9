"""The measurements: each program's runs, stage by stage, a thread's time by activity, and whose time a stage's is."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from genesis.debug.program import instruction
from genesis.execution.plan import Plan
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.stages import Product, Stage, estimate, parts
from genesis.ops.registry import PRIMITIVES, Operation
from genesis.runtime.timeline import Launches, Span
from genesis.tracing.scopes import ScopeNames
from genesis.tracing.trace import ENTERED, Trace

Line = tuple[str, int]


class Site(NamedTuple):
    """The origin of a value: the user's line, the module's path, the called operation, and whether it is part of a gradient.
    A gradient has the line and module of its value."""

    line: Line | None
    module: str
    operation: str
    is_gradient: bool


class Share(NamedTuple):
    """A site's share of a stage: a fraction of its time and bytes, and floating-point operations."""

    site: Site
    fraction: float
    flops: float


class StageInfo(NamedTuple):
    """A stage of a plan: its first call as text, its kernel, bytes to and from memory, operations, the model's seconds, and
    the sites' shares."""

    text: str
    kernel: str
    nbytes: int
    flops: int
    estimate: float
    shares: list[Share]


UNKNOWN = Site(None, "", "", False)


def stages_of(plan: Plan, sites: Mapping[int, Site]) -> list[StageInfo]:
    """The stages of a plan, given its nodes' sites."""
    lowered = plan.lowered
    found = []
    for stage in lowered.schedule.stages:
        nbytes, flops, seconds = estimate(lowered.nodes, stage, lowered.target)
        text = instruction(plan, stage[0]).replace("\n", " ") + (f", and {len(stage) - 1} more" if len(stage) > 1 else "")
        found.append(StageInfo(text, _kernel_name(lowered.nodes, stage), nbytes, flops, seconds, _shares(plan, stage, sites)))
    return found


def sites_of(plan: Plan, trace: Trace) -> dict[int, Site]:
    """Node of a plan's lowered graph -> its site, from the plan's trace."""
    names, known = ScopeNames(), {}
    for index, origin in enumerate(plan.lowered.origins):
        if not 0 <= origin < len(trace.nodes):
            continue
        source, position = trace.derived_from(origin)
        call = source.call_at(position)
        operation = trace.nodes[origin].op if call is None else _operation(call[-1][0], source.nodes[position])
        line = None if trace.nodes[origin].op in ENTERED else source.line_of(position)
        known[index] = Site(line, names.path(trace.scope_of(origin)), operation, trace.nodes[origin].origin >= 0)
    return known


def _operation(called: object, node: Node) -> str:
    return called.name if isinstance(called, Operation) else node.op


def _kernel_name(nodes: Sequence[Node], stage: Stage) -> str:
    """A short name: equal for stages that run the same code on the same extents."""
    names = []
    for part in parts(stage[0]):
        if isinstance(part, Product):
            batch = f"{numel(part.batch)} x " * bool(part.batch)
            names.append(f"product {batch}{' x '.join(map(str, part.extents))} {nodes[part.node].dtype.name}")
        else:
            names.append(part.kernel.name if isinstance(part, KernelCall) else nodes[part.node].op)
    return names[0] + (f" + {len(names) - 1}" if len(names) > 1 else "")


def _shares(plan: Plan, stage: Stage, sites: Mapping[int, Site]) -> list[Share]:
    """Splits a stage's time: over its parts by the cost model, over a kernel's nodes by their operations."""
    nodes, target = plan.lowered.nodes, plan.lowered.target
    weights: dict[Site, list[float]] = {}
    for call in stage:
        for part in parts(call):
            _, flops, seconds = estimate(nodes, [part], target)
            members = part.nodes if isinstance(part, KernelCall) else (part.node,)
            costs = {i: _cost(nodes, i) for i in members} if len(members) > 1 else dict.fromkeys(members, 1.0)
            whole = sum(costs.values()) or 1.0
            for index, cost in costs.items():
                entry = weights.setdefault(sites.get(index, UNKNOWN), [0.0, 0.0])
                entry[0] += seconds * cost / whole
                entry[1] += flops * cost / whole
    total = sum(seconds for seconds, _ in weights.values()) or 1.0
    return [Share(site, seconds / total, flops) for site, (seconds, flops) in weights.items() if seconds]


def _cost(nodes: Sequence[Node], index: int) -> float:
    """The operations of a kernel's node, plus one per element that it outputs."""
    node = nodes[index]
    primitive = PRIMITIVES.get(node.op)
    if primitive is None or primitive.kind in ("view", "source"):
        return 0.0
    elements = max([node.numel, *[nodes[i].numel for i in node.inputs if primitive.kind == "reduce"]])
    return float(elements * (primitive.cost + 1))


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
