"""The recorded graph, as text, dot or a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeVar

from genesis.debug.summary import graph_summary, shortened
from genesis.ir.graph import Node, format_nodes
from genesis.lower.rewriting import live_nodes
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tracing.scopes import ScopeNames
from genesis.tracing.source_line import line_name
from genesis.tracing.state import current_trace
from genesis.tracing.trace import ENTERED, Trace

T = TypeVar("T")
Line = tuple[str, int]  # file, line


class Provenance(NamedTuple):
    """Position -> the user's line, the path of the module ("" outside of all) and the phase that recorded the value there.

    Nodes that backward adds are "backward"; those before the last one are "forward", those after it "update". Without a
    backward there are no phases.
    """

    lines: Mapping[int, Line]
    modules: Mapping[int, str]
    phases: Mapping[int, str]

    @classmethod
    def of_trace(cls, trace: Trace, indices: Iterable[int] | None = None) -> Provenance:
        """The provenance of some positions, or of all."""
        names = ScopeNames()
        chosen = range(len(trace.nodes)) if indices is None else [*indices]
        lines = {i: line for i in chosen if (line := trace.line_of(i)) is not None}
        for i in reversed(chosen):  # constants and views entered for a call precede it: they get the line of their first reader
            for j in trace.nodes[i].inputs:
                if trace.nodes[j].op in ENTERED and i in lines and j in lines:
                    lines[j] = lines[i]
        derived = [i for i in chosen if (call := trace.call_at(i)) is not None and call[-1][0] == "derive"]
        phases = {i: "forward" if i <= derived[-1] else "update" for i in chosen} if derived else {}
        return cls(lines, {i: names.path(trace.scope_of(i)) for i in chosen}, phases | dict.fromkeys(derived, "backward"))

    def of_origins(self, origins: Sequence[int]) -> Provenance:
        """The provenance of a lowered graph's nodes, which originate from these positions."""
        def moved(found: Mapping[int, T]) -> dict[int, T]:
            return {i: found[origin] for i, origin in enumerate(origins) if origin in found}

        return Provenance(moved(self.lines), moved(self.modules), moved(self.phases))


class RecordedGraph:
    """Nodes of a trace, with the user's lines. Prints as text, one node a line; a long one as a summary, `text(detail=True)`
    has all.

    Attributes:
        nodes: the trace's nodes.
        indices: the positions of those shown, in order.
        outputs: the positions whose values are wanted.
        lines: position -> (file, line) of the user's code that recorded it.
        modules: position -> the path of the module (and the `named_scope`s) that recorded it, "" outside of all; a
            gradient's is that of the value whose gradient rule it belongs to.
        phases: position -> "forward", "backward" or "update", if there is a backward among what was recorded.
    """

    def __init__(
        self, nodes: Sequence[Node], indices: Sequence[int], outputs: Sequence[int], written: Provenance | None = None
    ) -> None:
        self.nodes = nodes
        self.indices = list(indices)
        self.outputs = frozenset(outputs)
        self.lines, self.modules, self.phases = written or Provenance({}, {}, {})

    @classmethod
    def of_trace(cls, trace: Trace, outputs: Sequence[int] | None = None) -> RecordedGraph:
        """The part of the graph that `outputs` depend on; everything if None."""
        nodes = list(trace.nodes)
        every = range(len(nodes))
        indices = [*every] if outputs is None else [*compress(every, live_nodes(nodes, outputs))]
        return cls(nodes, indices, outputs or (), Provenance.of_trace(trace, indices))

    def __len__(self) -> int:
        return len(self.indices)

    def note(self, index: int) -> str:
        """`file:line` (`Cell In[7]:line` in a notebook) of the user's code that recorded the node."""
        if index not in self.lines:
            return ""
        return line_name(self.lines[index], short=True)

    def text(self, detail: bool | None = None) -> str:
        """All nodes, or a summary; by default a summary if there are many.

        >>> x = genesis.ones(2)
        >>> for _ in range(50):
        ...     x = x * x
        >>> print(genesis.debug.graph(x).text(detail=False).splitlines()[0])
        52 values: 50 computed, 1 view, 1 constant, 0 inputs of 0 B
        """
        returned = [f"return {', '.join(f'%{i}' for i in sorted(self.outputs))}"] if self.outputs else []
        whole = [*format_nodes(self.nodes, self.indices, self.note).splitlines(), *returned]
        head = graph_summary(self.nodes, self.indices, self.lines, self.modules, self.phases)
        return shortened([*head, *[line if len(line) < 100 else f"{line[:100]} .." for line in returned]], whole, detail)

    def __repr__(self) -> str:
        return self.text() or "nothing is pending"

    def to_networkx(self) -> Any:
        """A networkx.DiGraph: an edge from each input to its consumer; nodes carry op, shape, dtype, attrs and line.

        >>> x = genesis.ones(2) + genesis.arange(2)
        >>> sorted(genesis.debug.graph(x).to_networkx().nodes(data="op"))[-1][1]
        'add'
        """
        import networkx  # imported here: it takes 0.2 s

        result = networkx.DiGraph()
        for i in self.indices:
            node = self.nodes[i]
            result.add_node(i, op=node.op, shape=node.shape, dtype=node.dtype.name, attrs=dict(node.attrs),
                            line=self.lines.get(i), output=i in self.outputs)
            for position, j in enumerate(node.inputs):
                result.add_edge(j, i, position=position)
        return result

    def to_dot(self, kernel_of: Mapping[int, str] | None = None) -> str:
        """The graph in Graphviz's language, the nodes of each kernel in a frame."""
        rows = ["digraph genesis {", '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica];']
        for i in self.indices:
            node = self.nodes[i]
            parts = [node.attrs.get("label", node.op), f"{node.dtype.name}{list(node.shape)}", self.note(i)]
            label = "\\n".join(part.replace('"', '\\"') for part in parts if part)
            rows.append(f'  n{i} [label="{label}"{", penwidth=2" if i in self.outputs else ""}];')
        rows += [f"  n{source} -> n{i};" for i in self.indices for source in self.nodes[i].inputs]
        kernel_of = kernel_of or {}
        for number, name in enumerate(dict.fromkeys(kernel_of.values())):
            members = " ".join(f"n{i};" for i in self.indices if kernel_of.get(i) == name)
            rows.append(f'  subgraph cluster_{number} {{ label="{name}"; color=gray; {members} }}')
        return "\n".join([*rows, "}"])


def graph(*tensors: Tensor) -> RecordedGraph:
    """The pending graph of `tensors`; without tensors, all that this thread has recorded.

    A tensor that has been computed already adds nothing.

    >>> x = genesis.full((2,), 3.0)
    >>> text = str(genesis.debug.graph(x * x))
    >>> "mul(" in text and "float32[2]" in text
    True
    """
    if not tensors:
        return RecordedGraph.of_trace(current_trace())
    arrays = [array_of(tensor) for tensor in tensors]
    pending = [a for a in arrays if a.memory is None]
    if not pending:
        return RecordedGraph((), (), ())
    traces = {a.trace for a in pending}
    if len(traces) > 1:
        raise ValueError("graph: the tensors are pending in different threads; ask for each thread's alone")
    trace = traces.pop()
    assert trace is not None
    return RecordedGraph.of_trace(trace, sorted({a.index for a in pending}))
