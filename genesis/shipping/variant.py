"""A graph at fixed sizes, ready to run."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.execution.flush import flush
from genesis.execution.plan import Plan, key_of, new_plan
from genesis.ir.graph import Node
from genesis.runtime.devices import CPU
from genesis.tracing.families import Step
from genesis.tracing.trace import Array, Trace
from genesis.tracing.trie import TrieNode


class Variant:
    """The nodes and the numbers of a program at one choice of sizes; `values` are the positions that a run computes."""

    def __init__(self, nodes: list[Node], numbers: list[float], values: Sequence[int]) -> None:
        self.nodes = nodes
        self.numbers = numbers
        self.values = sorted({*values})
        self._inputs = [index for index, node in enumerate(nodes) if node.op == "input"]
        self._step = TrieNode(Step((), None))  # owns its plans

    def _trace(self, inputs: list[Array]) -> Trace:
        trace = Trace(CPU)
        trace.step, trace.nodes, trace.scalars = self._step, self.nodes, self.numbers
        trace.input_at = dict(zip(self._inputs, inputs, strict=False))
        return trace

    def run(self, inputs: list[Array]) -> dict[int, Array]:
        """The values by position, computed from inputs in the order of their nodes."""
        trace = self._trace(inputs)
        handles = trace.handles(self.values)
        flush(trace)
        return dict(zip(self.values, handles, strict=True))

    def plan(self) -> Plan:
        """Make the plan."""
        trace = self._trace([])
        return new_plan(trace, key_of(trace, tuple(self.values)))
