"""The programs of a recorded call, ready to run again: how to recreate the trace, and the pool of the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.capture.record.records import InputSource, Source, Write
from genesis.execution.flush import Task
from genesis.execution.plan import Plan
from genesis.execution.verified_program import VERIFY, verify_inputs
from genesis.runtime.counters import count
from genesis.tensor.handle import Tensor
from genesis.tracing.trace import Array, Change, Trace, calls_alone
from genesis.tracing.trie import TrieNode


class Program:
    """A program that ran, without its data.

    Attributes:
        plan: the plan that ran.
        device: the device that it ran on.
        line: the user's line that read a value, so that it ran.
        nodes: the nodes of its trace.
        outputs: the positions of the computed values.
        positions, inputs: the positions of the inputs, and their sources.
        numbers, slots: its numbers, and the sources of those that change, by their indices.
        variables: the sources of backward's leaves, by their positions.
        written: the tensors that it overwrites, with the positions of their new values, until the call ends.
        writes: the same as each replay finds them.
        lines: the calls of its trace.
        is_single: whether it is one native call on the host, with results in separate buffers and no backward to follow.
        pool: the pool of its results; as arrays, too, if `is_single`.
    """

    def __init__(
        self, trace: Trace, plan: Plan, outputs: Sequence[int], line: tuple[str, int] | None, inputs: list[InputSource],
        slots: list[tuple[int, Source]], variables: list[tuple[int, Source]], written: list[tuple[Tensor, int]],
    ) -> None:
        self.plan = plan
        self.device = trace.device
        self.line = line
        self.inputs, self.slots, self.variables, self.written = inputs, slots, variables, written
        self.numbers = list(trace.scalars)
        self.writes: list[Write] = []
        self.nodes = [*trace.nodes]  # a copy: a call whose first argument flushes a trace may enter its other arguments there
        self.outputs = list(outputs)
        self.positions = [*trace.input_at]
        self._step: TrieNode = trace.step
        self.lines = trace.lines
        self._reference = trace.reference
        self._changed: Mapping[int, Change | None] = trace.changed
        self._released = trace.released  # the plan depends on it: what a backward has freed is not saved
        self.is_single = (
            self.device.memory.is_host and not (plan.keeps or plan.views) and len(plan.segments) == 1
            and plan.segments[0].host is None
        )
        handles = []
        if self.is_single:
            freed = self._freed_trace()
            nodes = [self.nodes[index] for index in self.outputs]
            handles = [(freed if node.differentiable else None, index, node)
                       for index, node in zip(self.outputs, nodes, strict=True)]
        self.pool = plan.pool.for_replays(handles)

    def seal(self, writes: list[Write]) -> None:
        """The call is over: it does not overwrite its results from here on, and made these writes."""
        self._changed, self.writes = dict(self._changed), writes
        self.written.clear()

    def _freed_trace(self) -> Trace:
        """The trace of results that backward has walked already."""
        trace, _ = self.put_down([], [])
        trace.end(keeps=False)
        return trace

    def without_data(self) -> Trace:
        """The trace without data: see `Trace.without_data`."""
        return calls_alone(self.device, self.nodes, self.lines)

    def put_down(self, inputs: list[Array], numbers: list[float]) -> tuple[Trace, list[Array]]:
        """A trace in the final state of the recorded one, with these inputs and numbers, and handles on its outputs."""
        if VERIFY[0]:
            verify_inputs([self.nodes[index] for index in self.positions], inputs)
        trace = Trace(self.device)
        trace.step, trace.nodes, trace.lines, trace.scalars = self._step, self.nodes, self.lines, numbers
        trace.input_at = dict(zip(self.positions, inputs, strict=False))
        trace.released = self._released
        # Values that backward may read are kept with the versions that they must still have.
        if self.plan.keeps:
            trace.versions = {i: a.memory.buffer.version for i, a in trace.input_at.items()}  # type: ignore[union-attr]
            trace.changed = {
                index: change._replace(trace=trace.reference) if change and change.trace is self._reference else change
                for index, change in self._changed.items()
            }
        nodes = self.nodes
        handles = [Array(trace, index, nodes[index]) for index in self.outputs]
        trace.arrays += handles
        return trace, handles

    def task(self, handles: Sequence[Array], is_whole: bool = True) -> Task:
        """The task of the flush of a recreated trace."""
        count("plan_hits")
        return Task(self.plan, self.pool, handles, is_whole)
