"""Times of the stages of programs."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple, Self

from genesis.debug.program import instruction
from genesis.execution.flush import FLUSH_HOOKS, flush_all
from genesis.execution.plan import Plan
from genesis.ir.graph import Node
from genesis.lower.stages import Product, Stage, parts
from genesis.tracing.trace import Trace

__all__ = ["StageTime", "Timing", "seconds_of", "timing"]


class StageTime(NamedTuple):
    """A stage of a program: its first call as text, its median seconds, bytes of what it reads and writes, flops of its
    matrix products."""

    text: str
    seconds: float
    nbytes: int
    flops: int

    def __str__(self) -> str:
        amount, unit = (self.flops, "GFlop/s") if self.flops else (self.nbytes, "GB/s")
        rate = amount / self.seconds * 1e-9 if self.seconds else 0.0
        return f"{self.seconds * 1e3:9.3f} ms {rate:7.1f} {unit:7}  {self.text}"


class Timing:
    """A context that notes what each stage takes whenever a program runs in it; what is pending is run first.

    Prints as the stages of each program, in order. On a GPU launches run one by one, so no stage takes less than a launch;
    the first time of a program that ran before is that of its last timed run.

    >>> import genesis
    >>> x = genesis.ones(64, 64)
    >>> with timing() as times:
    ...     for _ in range(3):
    ...         y = (x @ x).exp().sum().item()
    >>> [stage.text.split()[0] for stages in times.programs for stage in stages]
    ['product', 'kernel']
    """

    def __init__(self) -> None:
        self._runs: dict[int, tuple[Plan, list[list[float]]]] = {}

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
        return [_stage_times(plan, runs) for plan, runs in self._runs.values()]

    def __repr__(self) -> str:
        return "\n\n".join("\n".join(map(str, stages)) for stages in self.programs)

    def _on_flush(self, trace: Trace, plan: Plan | None) -> None:
        if plan is not None:
            self._runs.setdefault(id(plan), (plan, []))[1].append(seconds_of(plan))


def seconds_of(plan: Plan) -> list[float]:
    """What each stage took in the plan's latest run; a host call is not timed."""
    seconds = [0.0] * len(plan.lowered.schedule.stages)
    for segment in plan.segments:
        if segment.program is not None:
            for number, taken in zip(segment.stages, segment.program.seconds(), strict=True):
                seconds[number] += taken
    return seconds


def _stage_times(plan: Plan, runs: list[list[float]]) -> list[StageTime]:
    nodes, stages = plan.lowered.nodes, plan.lowered.schedule.stages
    return [
        StageTime(instruction(nodes, stage[0]), median(seconds), _nbytes(nodes, stage), _flops(nodes, stage))
        for stage, seconds in zip(stages, zip(*runs, strict=True), strict=True)
    ]


def _nbytes(nodes: list[Node], stage: Stage) -> int:
    return sum(nodes[value].nbytes for call in stage for value in (*call.reads, *call.writes))


def _flops(nodes: list[Node], stage: Stage) -> int:
    calls = [part for call in stage for part in parts(call)]
    return sum(call.flops for call in calls if isinstance(call, Product))


def timing() -> Timing:
    """The stages of the programs that run in a block, and how long each took: `with genesis.debug.timing() as times:`."""
    return Timing()
