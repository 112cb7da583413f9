"""Program costs: the cost model's estimates per stage and fusions it rejected; measured times; memory."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple, Self

from genesis.debug.graph import Line, Provenance
from genesis.debug.program import instruction, pending, seconds_of, sources_of
from genesis.debug.summary import Spent, refusal_summary, shortened, time_summary
from genesis.execution.flush import FLUSH_HOOKS, flush_all
from genesis.execution.plan import Plan, plan_for
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.group import FULL
from genesis.lower.stages import Call, Estimate, Product, estimate, parts
from genesis.runtime.devices import DeviceLike, device_of
from genesis.runtime.installation import readable
from genesis.runtime.memory import DeviceMemory
from genesis.tensor.handle import Tensor
from genesis.tracing.trace import Trace


class StageCost(NamedTuple):
    """A stage of a program: its first call as text, the operations it fuses, the user's lines, its Estimate, the texts of the
    functions that a GPU launches for it, and the paths of the modules that recorded it."""

    text: str
    ops: tuple[str, ...]
    lines: tuple[Line, ...]
    estimate: Estimate
    sources: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    def __str__(self) -> str:
        nbytes, flops, seconds = self.estimate
        return f"{seconds * 1e6:10.1f} us {nbytes / 1e6:9.3f} MB {flops / 1e6:10.3f} MFlop  {self.text}"

    def spent(self, seconds: float | None = None) -> Spent:
        """The stage with its measured seconds, or with the estimate."""
        return Spent(self.text, self.lines, self.modules, self.estimate, self.estimate.seconds if seconds is None else seconds)


class ProgramCost(NamedTuple):
    """The stages of a program with their estimates; as text, the fusions it rejected, the values it keeps or recomputes, and
    the host operations between its parts (on a GPU each part is a graph). A long one prints as a summary.
    """

    stages: list[StageCost]
    refusals: list[str]
    choices: list[str]
    splits: list[str]

    @property
    def seconds(self) -> float:
        """The total estimate."""
        return sum(stage.estimate.seconds for stage in self.stages)

    def text(self, detail: bool | None = None) -> str:
        """All stages and decisions, or a summary; by default a summary if there are many."""
        whole = "\n".join([*map(str, self.stages), *self.refusals, *self.choices, *self.splits]).splitlines()
        head = time_summary([[stage.spent() for stage in self.stages]], measured=False)
        return shortened([*head, *refusal_summary(self.refusals), *self.splits[:2]], whole, detail)

    def __repr__(self) -> str:
        return self.text() or "nothing is pending"


def kernels(*tensors: Tensor) -> ProgramCost:
    """The cost of computing `tensors` and everything else pending: bytes, flops and estimated seconds of each
    stage, the fusions that were rejected and why, and which values are kept for later kernels. Nothing is computed.

    For a GPU, `stages[k].sources` are the functions that it launches; its estimates use round numbers for GPUs of its kind.

    >>> x = genesis.ones(100, 100)
    >>> x.sum().item()
    10000.0
    >>> cost = genesis.debug.kernels((x * 2).exp().sum(0))
    >>> cost.stages[0].ops, cost.stages[0].estimate.nbytes
    (('scalar', 'mul', 'exp', 'sum'), 40400)
    """
    trace = pending(tensors)
    return cost_of(plan_for(trace), Provenance.of_trace(trace))


def cost_of(plan: Plan, written: Provenance) -> ProgramCost:
    """The stages and decisions of a plan; `written` is the provenance of its trace."""
    lowered = plan.lowered
    nodes = lowered.nodes
    lines_of, modules, _ = written.of_origins(lowered.origins)

    def name(index: int) -> str:
        where = f" (line {lines_of[index][1]})" if index in lines_of else ""
        return f"%{index} {nodes[index].op}{where}"

    stages, sources = [], sources_of(plan)
    for number, stage in enumerate(lowered.schedule.stages):
        involved = dict.fromkeys(index for call in stage for index in _nodes_of(call))
        text = instruction(plan, stage[0]) + (f", and {len(stage) - 1} more" if len(stage) > 1 else "")
        ops = tuple(nodes[i].op for i in _nodes_of(stage[0]) if nodes[i].op != "input")
        used = tuple(dict.fromkeys(lines_of[i] for i in involved if i in lines_of))
        within = tuple(dict.fromkeys(modules[i] for i in involved if modules.get(i)))
        stages.append(StageCost(
            text, ops, used, estimate(nodes, stage, lowered.target), tuple(sources.get(number, ())), within))
    decided = lowered.decisions
    refusals = [f"{name(r.node)} is not in the kernel of {name(r.beside)}: {r.reason}" for r in decided.refusals]
    choices = [
        f"{name(c.node)} is {'kept in memory for other kernels' if c.kept else 'computed again in other kernels'}: "
        f"{c.cost} operations an element" for c in decided.choices
    ]
    splits = [f"{name(segment.host.node)} is computed by the host: what is before it and after it are programs of their own"
              for segment in plan.segments if segment.host is not None]
    return ProgramCost(stages, refusals, choices, splits)


def _nodes_of(call: Call) -> Sequence[int]:
    return [index for part in parts(call) for index in (part.nodes if isinstance(part, KernelCall) else [part.node])]


# ---- measured times ----
class StageTime(NamedTuple):
    """A stage of a program: its first call as text, its median seconds, bytes of what it reads and writes, flops of its
    matrix products and of sums of products that kernels compute, as of a convolution's windows."""

    text: str
    seconds: float
    nbytes: int
    flops: int

    def __str__(self) -> str:
        amount, unit = (self.flops, "GFlop/s") if self.flops else (self.nbytes, "GB/s")
        rate = amount / self.seconds * 1e-9 if self.seconds else 0.0
        return f"{self.seconds * 1e3:9.3f} ms {rate:7.1f} {unit:7}  {self.text}"


class Timing:
    """A context that measures each stage of the programs that run in it; pending work runs first.

    Prints as the stages of each program, in order, or as a summary if there are many; `text(detail=True)` has all. On a GPU,
    kernels are launched one by one, so no stage takes less than a launch;
    the first time of a program that ran before is that of its last timed run.

    >>> x = genesis.ones(64, 64)
    >>> with timing() as times:
    ...     for _ in range(3):
    ...         y = (x @ x).exp().sum().item()
    >>> [stage.text.split()[0] for stages in times.programs for stage in stages]
    ['product', 'kernel']
    """

    def __init__(self) -> None:
        self.runs: dict[int, tuple[Plan, ProgramCost, list[list[float]]]] = {}  # by the plan's id: each run's stages

    def __enter__(self) -> Self:
        flush_all()
        FLUSH_HOOKS.append(self._on_flush)
        return self

    def __exit__(self, *exception: object) -> None:
        flush_all()
        FLUSH_HOOKS.remove(self._on_flush)

    @property
    def programs(self) -> list[list[StageTime]]:
        """The stages of each program that ran, in the order of their first runs."""
        return [_stage_times(plan, runs) for plan, _, runs in self.runs.values()]

    def text(self, detail: bool | None = None) -> str:
        """All stages, or where the time goes; by default a summary if there are many."""
        whole = "\n\n".join("\n".join(map(str, stages)) for stages in self.programs).splitlines()
        spent = [[stage.spent(median(seconds)) for stage, seconds in zip(cost.stages, zip(*runs, strict=True), strict=True)]
                 for _, cost, runs in self.runs.values()]
        return shortened(time_summary(spent), whole, detail)

    def __repr__(self) -> str:
        return self.text()

    def _on_flush(self, trace: Trace, plan: Plan | None) -> None:
        if not isinstance(plan, Plan):
            return
        if id(plan) not in self.runs:
            self.runs[id(plan)] = plan, cost_of(plan, Provenance.of_trace(trace)), []
        self.runs[id(plan)][2].append(seconds_of(plan))


def _stage_times(plan: Plan, runs: list[list[float]]) -> list[StageTime]:
    nodes, stages = plan.lowered.nodes, plan.lowered.schedule.stages
    found = []
    for stage, seconds in zip(stages, zip(*runs, strict=True), strict=True):
        nbytes = sum(nodes[value].nbytes for call in stage for value in (*call.reads, *call.writes))
        flops = sum(_flops_of(part) for call in stage for part in parts(call))
        found.append(StageTime(instruction(plan, stage[0]), median(seconds), nbytes, flops))
    return found


def _flops_of(part: Call) -> int:
    """Two per multiplication of a matrix product or of a kernel's sums of products."""
    if isinstance(part, Product):
        return part.flops
    if not isinstance(part, KernelCall):
        return 0
    sources = [part.kernel.instructions[i.args[0]] for i in part.kernel.instructions if i.name == "sum"]
    return 2 * numel(part.extents) * sum(source.name == "mul" and source.level == FULL for source in sources)


def timing() -> Timing:
    """The stages of the programs that run in a block, and how long each took: `with genesis.debug.timing() as times:`."""
    return Timing()


# ---- memory ----
class MemoryUse:
    """Bytes in buffers (`held`), the most there were (`peak`), and bytes kept for the next ones (`idle`).

    As a context, `peak` is that of the block. Pending work runs at both ends, so that it counts where it was written. Blocks
    may be nested.
    """

    __slots__ = ("_before", "_memory", "held", "idle", "peak")

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self.held, self.peak, self.idle = memory.usage()
        self._before = self.peak

    def __enter__(self) -> Self:
        flush_all()
        self._before = self._memory.usage().peak
        self._memory.reset_peak()
        self.held, self.peak, self.idle = self._memory.usage()
        return self

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        if kind is None:
            flush_all()
        self.held, self.peak, self.idle = self._memory.usage()
        self._memory.reset_peak(max(self._before, self.peak))

    def __repr__(self) -> str:
        return f"held {readable(self.held)}, peak {readable(self.peak)}, idle {readable(self.idle)}"


def memory(reset: bool = False, device: DeviceLike = None) -> MemoryUse:
    """The memory that tensors use now, and the peak since the start or, as a context, within a block.

    With `reset`, the peak restarts afterwards. `device` defaults to that of new tensors; all CPU devices share their memory.
    Allocated blocks count in full: up to a quarter more than the elements need.

    >>> x = genesis.ones(1024, 1024)
    >>> with memory() as used:
    ...     total = (x + x.T).exp().sum().item()
    >>> used.peak - used.held < x.nbytes  # in one kernel: no sum, no exponential is ever in memory
    True
    """
    lender: DeviceMemory = device_of(device).memory
    found = MemoryUse(lender)
    if reset:
        lender.reset_peak()
    return found
