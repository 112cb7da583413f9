"""Recorded programs, ready to run again: a trace put down as a whole, and the pool that its results come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.execution.plan import Plan
from genesis.execution.result_pool import Run
from genesis.execution.verified_program import VERIFY, verify_inputs
from genesis.runtime.counters import count
from genesis.tracing.trace import Array, Change, Trace, calls_alone
from genesis.tracing.trie import Step


class ReplayProgram:
    """A program that ran, without its data.

    Attributes:
        plan: what ran.
        device: where.
        nodes: those of its trace.
        outputs: the positions of the values that were computed.
        positions: those of the inputs.
        lines: the calls of its trace.
        is_single: whether it is one native call of the host's, whose results lie apart, for no backward to come.
        pool: where its results lie; as arrays, too, if `is_single`.
    """

    def __init__(self, trace: Trace, plan: Plan, outputs: Sequence[int], positions: Sequence[int]) -> None:
        self.plan = plan
        self.device = trace.device
        self.nodes = [*trace.nodes]  # a call whose first argument flushes a trace may enter its other arguments there
        self.outputs = list(outputs)
        self.positions = list(positions)
        self._step: Step = trace.step
        self.lines = trace.lines
        self._reference = trace.reference
        self._changed: Mapping[int, Change | None] = trace.changed
        self._released = frozenset(trace.released)  # the plan was made for this: what a backward has freed is not saved
        self.is_single = (
            self.device.memory.is_host and not (plan.keeps or plan.views) and len(plan.segments) == 1
            and plan.segments[0].host is None
        )
        handles = []
        if self.is_single:
            spent = self._spent_trace()
            nodes = [self.nodes[index] for index in self.outputs]
            handles = [(spent if node.differentiable else None, index, node)
                       for index, node in zip(self.outputs, nodes, strict=True)]
        self.pool = plan.pool.for_replays(handles)

    def seal(self) -> None:
        """The call is over: it is not the call that writes over what it computed from here on."""
        self._changed = dict(self._changed)

    def _spent_trace(self) -> Trace:
        """The trace of results whose derivation has been walked."""
        trace, _ = self.put_down([], [])
        trace.end()
        trace.free_graph()
        trace.arrays.clear()
        return trace

    def without_data(self) -> Trace:
        """The calls alone: see `Trace.without_data`."""
        return calls_alone(self.device, self.nodes, self.lines)

    def put_down(self, inputs: list[Array], numbers: list[float]) -> tuple[Trace, list[Array]]:
        """A trace that has come to where the recorded one ended, with these data, and handles on its outputs."""
        if VERIFY[0]:
            verify_inputs([self.nodes[index] for index in self.positions], inputs)
        trace = Trace(self.device)
        trace.step, trace.nodes, trace.lines, trace.scalars, trace.inputs = (
            self._step, self.nodes, self.lines, numbers, inputs)
        trace.released = set(self._released)
        # What backward may read is kept with the versions that it must still have then.
        if self.plan.keeps:
            trace.input_at = dict(zip(self.positions, inputs, strict=True))
            trace.versions = {i: a.memory.buffer.version for i, a in trace.input_at.items()}  # type: ignore[union-attr]
            trace.changed = {
                index: change._replace(trace=trace.reference) if change and change.trace is self._reference else change
                for index, change in self._changed.items()
            }
        nodes = self.nodes
        handles = [Array(trace, index, nodes[index]) for index in self.outputs]
        trace.arrays += handles
        return trace, handles

    def begin(self, handles: Sequence[Array]) -> Run:
        """A run for the flush of a trace that was put down: no plan is to be found for it."""
        count("plan_hits")
        return self.pool.begin(self.plan, handles, self.device)
