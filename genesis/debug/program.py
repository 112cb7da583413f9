"""The lowered program: its kernels, instruction list and graph; and recordings of programs that ran."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple, Self

from genesis.debug.graph import Provenance, RecordedGraph
from genesis.debug.summary import counted, graph_summary, shortened
from genesis.execution.flush import FLUSH_HOOKS, flush_all
from genesis.execution.plan import Plan, plan_for
from genesis.ir.annotations import Key
from genesis.ir.graph import Node
from genesis.lower.build import KernelCall
from genesis.lower.listing import listing
from genesis.lower.stages import Call, HostCall, Loop, Product, Stage, estimate, parts
from genesis.runtime.installation import readable
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tracing.state import current_trace
from genesis.tracing.trace import Trace


class KernelView(NamedTuple):
    """A kernel of a program: its loops with the user's lines, and the values it reads or writes in memory."""

    name: str
    source: str
    ops: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


class TimedCall(NamedTuple):
    """A kernel, product or host call: its stage's number, and its share of the stage's time by the cost model."""

    stage: int
    call: KernelCall | Product | HostCall
    share: float

    @property
    def nodes(self) -> tuple[int, ...]:
        """The values that it computes, without those that a kernel reads from memory."""
        if isinstance(self.call, KernelCall):
            return tuple(i for i in self.call.nodes if i in self.call.writes or i not in self.call.reads)
        return (self.call.node,)

    @property
    def kernel(self) -> str:
        """The name of its kernel; empty for a product or a host call."""
        return self.call.kernel.name if isinstance(self.call, KernelCall) else ""


class LoweredProgram:
    """A plan's program. Prints as its instruction list, a long one as a summary; `text(detail=True)` has all.

    Attributes:
        kernels: a KernelView per kernel, in the order they first run.
        instructions: a line of text per call of a stage.
        launches: a TimedCall for each kernel, product and host call, in order.
        sources: the functions that a GPU launches, as text, each once; empty on the CPU, whose kernels go directly to LLVM.
        refused: why no CUDA graph can contain the launches; empty if one can.
        arena_bytes: the memory of all temporaries.
        graph: the lowered nodes, a RecordedGraph.
        kernel_of: position in `graph` -> the kernel that computes it.
        origins: position in `graph` -> position in the trace.
    """

    def __init__(self, plan: Plan, written: Provenance) -> None:
        lowered = plan.lowered
        self.arena_bytes = lowered.schedule.arena_bytes
        self.origins = dict(enumerate(lowered.origins))
        outputs = [base for base, _ in lowered.outputs]
        self.graph = RecordedGraph(lowered.nodes, range(len(lowered.nodes)), outputs, written.of_origins(lowered.origins))
        self.kernel_of: dict[int, str] = {}
        stages = lowered.schedule.stages
        self.instructions = [instruction(plan, call) for stage in stages for call in stage]
        self.launches = [launch for number, stage in enumerate(stages) for launch in _launches(plan, number, stage)]
        calls: dict[str, list[KernelCall]] = {}
        for launch in self.launches:
            if isinstance(launch.call, KernelCall):
                calls.setdefault(launch.kernel, []).append(launch.call)
                self.kernel_of.update(dict.fromkeys(launch.nodes, launch.kernel))
        self.kernels = [self._kernel(name, same) for name, same in calls.items()]
        self.sources = list(dict.fromkeys(source for texts in sources_of(plan).values() for source in texts))
        self.refused = refused_by(plan)

    def text(self, detail: bool | None = None) -> str:
        """All instructions, or a summary; by default a summary if there are many."""
        whole = "\n".join([*self.instructions, f"arena: {self.arena_bytes} bytes"]).splitlines()
        kinds = Counter(text.split()[0] for text in self.instructions)
        names = {"product": "product", "kernel": "kernel", "loop": "loop", "host": "host call", "native": "native call"}
        calls = ", ".join(counted(count, names.get(kind, kind)) for kind, count in kinds.most_common())
        often = Counter(launch.kernel for launch in self.launches if launch.kernel).most_common(1)
        head = [f"{counted(len(self.instructions), 'instruction')}: {calls}; arena of {readable(self.arena_bytes)}"]
        codes = counted(len(self.kernels), "kernel")
        head += [f"{codes} of different code, {name} runs {counted(count, 'time')}" for name, count in often]
        graph = self.graph
        head += graph_summary(graph.nodes, graph.indices, graph.lines, graph.modules, graph.phases)
        return shortened(head, whole, detail)

    def __repr__(self) -> str:
        return self.text()

    def _kernel(self, name: str, calls: Sequence[KernelCall]) -> KernelView:
        nodes = self.graph.nodes
        first = calls[0]
        more = [f"# and {len(calls) - 1} more of the same structure"] if len(calls) > 1 else []
        reads = tuple(dict.fromkeys(_value(nodes, i) for call in calls for i in call.reads))
        writes = tuple(dict.fromkeys(_value(nodes, i) for call in calls for i in call.writes))
        source = "\n".join([listing(first, self.graph.note), *more])
        return KernelView(name, source, tuple(nodes[i].op for i in first.nodes), reads, writes)


def _launches(plan: Plan, number: int, stage: Stage) -> list[TimedCall]:
    calls = [part for call in stage for part in parts(call)]
    costs = [estimate(plan.lowered.nodes, [call], plan.lowered.target).seconds for call in calls]
    return [TimedCall(number, call, cost / sum(costs)) for call, cost in zip(calls, costs, strict=True)]


def instruction(plan: Plan, call: Call) -> str:
    """A call in one line: what runs, what it reads and writes; a line for each call of a loop or an epilogue."""
    nodes = plan.lowered.nodes
    if isinstance(call, Product) and call.epilogue:
        product, *followers = (instruction(plan, part) for part in parts(call))
        return "\n  ".join([f"{product}, and of each block of rows:", *followers])
    if isinstance(call, Loop):
        private = ", ".join(f"%{value}" for value in call.private)
        head = f"loop    {call.tiles} tiles of {call.tile}" + (f", {private} a tile at a time" if private else "") + ":"
        return "\n  ".join([head, *(instruction(plan, part) for part in call.calls)])
    if isinstance(call, KernelCall):
        head = f"kernel  {call.kernel.name} over {list(call.extents)}"
    elif isinstance(call, Product):
        head = f"product {nodes[call.a.value].dtype.name}"
    else:
        is_native = all(segment.host != call for segment in plan.segments)
        head = " ".join([call.phase or ("native " if is_native else "host   "), nodes[call.node].op])
    return f"{head}: {', '.join(_value(nodes, i) for i in call.reads)} -> {', '.join(_value(nodes, i) for i in call.writes)}"


def sources_of(plan: Plan) -> dict[int, list[str]]:
    """Stage -> the texts of the functions that a GPU launches for it, each once."""
    found: dict[int, dict[str, None]] = {}
    for segment in plan.segments:
        for stage, source in zip(segment.stages, segment.program.sources if segment.program else (), strict=False):
            found.setdefault(stage, {})[source] = None
    return {stage: [*texts] for stage, texts in found.items()}


def refused_by(plan: Plan) -> str:
    """Why no CUDA graph can contain a plan's launches; empty if one can."""
    return "; ".join(dict.fromkeys(s.program.refused for s in plan.segments if s.program and s.program.refused))


def _value(nodes: Sequence[Node], index: int) -> str:
    return f"%{index} {nodes[index].dtype.name}{list(nodes[index].shape)}"


def program(*tensors: Tensor) -> LoweredProgram:
    """The program that would compute `tensors` and everything else pending, lowered and compiled but not run.

    >>> x = genesis.tensor([1.0, 2.0])
    >>> lowered = genesis.debug.program(x * x + 1)
    >>> len(lowered.kernels), "mul" in lowered.kernels[0].ops
    (1, True)
    """
    trace = pending(tensors)
    return LoweredProgram(plan_for(trace), Provenance.of_trace(trace))


def pending(tensors: Sequence[Tensor]) -> Trace:
    """The trace that will compute `tensors`; this thread's open one if they are computed already."""
    traces = [a.trace for a in map(array_of, tensors) if a.memory is None and a.trace is not None]
    return traces[0] if traces else current_trace()


# ---- recordings ----
TIMED_RUNS = 100


def seconds_of(plan: Plan) -> list[float]:
    """Each stage's seconds in the plan's latest run; host calls are not timed."""
    seconds = [0.0] * len(plan.lowered.schedule.stages)
    for segment in plan.segments:
        if segment.program is not None:
            for number, taken in zip(segment.stages, segment.program.seconds(), strict=True):
                seconds[number] += taken
    return seconds


@dataclass(slots=True)
class Flushed:
    """A program that ran: the recorded graph, the lowered program, the number of runs, and each stage's time in the last
    ones."""

    graph: RecordedGraph
    program: LoweredProgram
    runs: int = 0
    timed: deque[list[float]] = field(default_factory=lambda: deque(maxlen=TIMED_RUNS))

    @property
    def seconds(self) -> list[float]:
        """The median seconds of each stage."""
        return [median(taken) for taken in zip(*self.timed, strict=True)]


class Recording:
    """A context that collects every flush inside it; earlier pending work is flushed first.

    Flushes that took one path through the trie count as one program.

    >>> with Recording() as recording:
    ...     for i in range(3):
    ...         value = (genesis.ones(2) * (i + 2)).tolist()
    >>> [flushed.runs for flushed in recording.programs]
    [3]
    """

    def __init__(self) -> None:
        self.programs: list[Flushed] = []
        self._by_path: dict[Key, Flushed] = {}

    def __enter__(self) -> Self:
        flush_all()
        FLUSH_HOOKS.append(self._on_flush)
        return self

    def __exit__(self, *exception: object) -> None:
        FLUSH_HOOKS.remove(self._on_flush)

    def _on_flush(self, trace: Trace, plan: Plan | None) -> None:
        if not isinstance(plan, Plan):  # nothing was computed
            return
        outputs = sorted({array.index for array in trace.run.handles})
        path = (trace.step, tuple(outputs))
        flushed = self._by_path.get(path)
        if flushed is None:
            flushed = Flushed(RecordedGraph.of_trace(trace, outputs), LoweredProgram(plan, Provenance.of_trace(trace)))
            self._by_path[path] = flushed
            self.programs.append(flushed)
        flushed.runs += 1
        flushed.timed.append(seconds_of(plan))
