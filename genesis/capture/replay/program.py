"""Programs made ready to run again: a trace put down as a whole, and the short way through its flush."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from genesis.execution.failure import lose, lose_all
from genesis.execution.flush import FLUSH_HOOKS, flush, taken_over
from genesis.execution.plan import Plan
from genesis.execution.result_pool import Run
from genesis.ops.indexing import out_of_range
from genesis.runtime.counters import count
from genesis.runtime.memory import Buffer
from genesis.runtime.native import UnfinishedError
from genesis.tracing.backward_state import FREED
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array, Trace
from genesis.tracing.trie import Step

__all__ = ["SMALL", "ReplayProgram"]

SMALL = 64 << 10  # bytes: smaller results have two places, taken in turn as long as nobody holds what is there

# References to a memory that nobody holds: the list of places, getrefcount's argument. To its buffer: the memory, too.
_UNHELD = 2


class ReplayProgram:
    """A program that ran, without its data.

    Attributes:
        plan: what ran.
        device: where.
        outputs: the positions of the values that were computed.
        positions: those of the inputs.
        layouts: for each output its number among the plan's, its layout and its dtype.
        donations: the inputs whose memory large outputs may take over.
        arena: the memory of temporaries, if it is small.
        is_short: whether it is one native call whose outputs lie apart and are not read by any backward.
    """

    def __init__(self, trace: Trace, plan: Plan, outputs: Sequence[int], positions: Sequence[int]) -> None:
        self.plan = plan
        self.outputs = list(outputs)
        self.positions = list(positions)
        self.nodes = trace.nodes
        self._step: Step = trace.step
        self._lines = trace.lines
        self._released = frozenset(trace.released)
        self.device = trace.device
        self.is_short = (
            not plan.keeps and len(plan.segments) == 1 and plan.segments[0].host is None
            and not any(output.is_input for output in plan.outputs)
            and len({output.number for output in plan.outputs}) == len(plan.outputs)
        )
        self.layouts = [(output.number, output.layout, output.dtype) for output in plan.outputs]
        self._small: dict[int, list[Memory]] = {k: [] for k, size in enumerate(plan.sizes) if size <= SMALL}
        self.donations = [pair for pair in plan.donations if pair[1] not in self._small]
        self.arena = Buffer(plan.arena_bytes, self.device) if plan.arena_bytes <= SMALL else None

    def spent_trace(self) -> Trace:
        """The trace of results whose derivation has been walked."""
        trace, _ = self.put_down([], [])
        trace.end()
        trace.free_graph()
        trace.arrays.clear()
        return trace

    def put_down(self, inputs: list[Array], numbers: list[float]) -> tuple[Trace, list[Array]]:
        """A trace that has come to where the recorded one ended, with these data, and handles on its outputs."""
        trace = Trace(self.device)
        trace.step, trace.nodes, trace.lines, trace.scalars, trace.inputs = (
            self._step, self.nodes, self._lines, numbers, inputs)
        trace.released = set(self._released)
        if self.plan.keeps:
            trace.input_at = dict(zip(self.positions, inputs, strict=True))
            trace.versions = {i: a.memory.buffer.version for i, a in trace.input_at.items()}  # type: ignore[union-attr]
        nodes = self.nodes
        handles = [Array(trace, index, nodes[index]) for index in self.outputs]
        trace.arrays += handles
        return trace, handles

    def flush(self, trace: Trace, handles: list[Array]) -> None:
        """`flush(trace)`. The caller holds the lock.

        The short way finds no plan, and small results their places; whoever interrupts it leaves what `flush` takes up again.
        """
        if not self.is_short or FLUSH_HOOKS:
            return flush(trace)
        plan = self.plan
        trace.closed = True
        run = Run(plan, handles, self.device)
        taken = taken_over(self.donations, plan, trace) if self.donations else {}
        memories: list[Memory] = [None] * len(plan.sizes)  # type: ignore[list-item]
        for k, layout, dtype in self.layouts:
            places = self._small.get(k)
            if places is None:
                buffer = taken[k].buffer if k in taken else Buffer(plan.sizes[k], self.device)
                memories[k] = Memory(buffer, layout, dtype)
                continue
            for memory in places:
                if sys.getrefcount(memory) == _UNHELD + 1 and sys.getrefcount(memory.buffer) == _UNHELD:
                    memory.buffer.version, memory.buffer.origin, memory.buffer.change = 0, None, None
                    break
            else:
                memory = Memory(Buffer(plan.sizes[k], self.device), layout, dtype)
                if len(places) == 2:
                    places.pop(0)
                places.append(memory)
            memories[k] = memory
        places = memory = buffer = None  # type: ignore[assignment]  # they count as holders
        run.memories = [memories[k] for k, _, _ in self.layouts]
        arena = self.arena or Buffer(plan.arena_bytes, self.device)
        slots: list[Any] = [trace.inputs[k].memory.pointer for k in plan.inputs]  # type: ignore[union-attr]
        slots += [memory.buffer.ptr for memory in memories]
        slots.append(arena.ptr)
        slots += trace.scalars
        trace.run = run
        try:
            fault = plan.segments[0].program.run(slots, run.completion)  # type: ignore[union-attr]
        except UnfinishedError as problem:
            if not taken:
                raise RuntimeError(str(problem)) from problem
            failure = lose_all(trace, plan, problem)
            flush(trace)
            raise failure from problem
        if fault is not None:
            lowered = plan.lowered
            reason = out_of_range(lowered.nodes[fault.site], fault.value, fault.extent)
            failure = lose(trace, lowered.origins[fault.site], IndexError(reason))
            flush(trace)  # what does not depend on it
            raise failure
        for array, (k, _, _) in zip(handles, self.layouts, strict=True):
            array.memory = memories[k]
            if not array.node.differentiable:
                array.trace = None
        trace.end()
        count("flushes")
        count("plan_hits")
        trace.backward, trace.run = FREED, None
        for held in (trace.arrays, trace.inputs, trace.written):
            held.clear()  # type: ignore[attr-defined]
