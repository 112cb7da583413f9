"""A record of flushed programs, each distinct one once."""

from __future__ import annotations

from typing import Self

from genesis.debug.graph import RecordedGraph
from genesis.debug.program import LoweredProgram, lines_of
from genesis.execution.flush import FLUSH_HOOKS, flush_all
from genesis.execution.plan import Plan
from genesis.ir.annotations import Key
from genesis.tracing.trace import Trace

__all__ = ["Flushed", "Recording"]


class Flushed:
    """A program that ran: the graph as it was recorded, what it was lowered to, and how many times it ran."""

    __slots__ = ("graph", "program", "runs")

    def __init__(self, graph: RecordedGraph, program: LoweredProgram) -> None:
        self.graph = graph
        self.program = program
        self.runs = 1


class Recording:
    """A context that collects every flush inside it; what is pending before it is flushed first.

    Flushes that took one path through the trie count as one program.

    >>> import genesis
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
        if not isinstance(plan, Plan):  # nothing was asked for, or no program ran
            return
        outputs = sorted({array.index for array in trace.run.handles})
        path = (trace.step, tuple(outputs))
        flushed = self._by_path.get(path)
        if flushed is not None:
            flushed.runs += 1
            return
        flushed = self._by_path[path] = Flushed(
            RecordedGraph.of_trace(trace, outputs), LoweredProgram(plan, lines_of(trace))
        )
        self.programs.append(flushed)
