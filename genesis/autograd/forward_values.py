"""The forward values that backward over a trace reads, in the open trace.

A flushed trace is copied: values saved by its flush are read from memory, and the rest is recomputed from these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from genesis.autograd.derivation import node_name
from genesis.execution.failure import lost
from genesis.execution.flush import flush
from genesis.execution.plan import transient_collectives
from genesis.execution.realize import readable
from genesis.ir.annotations import Key
from genesis.ir.graph import Graph, Node, Value
from genesis.ops.registry import PRIMITIVES, Operation, expand
from genesis.ops.transient import CHEAP, FORWARDED, gathered_alone, is_transient, read_inputs
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tracing.backward_state import CopiedTrace
from genesis.tracing.families import Form
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.source_line import resolve_line
from genesis.tracing.state import recorded, thread_state
from genesis.tracing.trace import LOCK, Array, Change, Trace
from genesis.tracing.trie import TrieNode

_SHARING = {"custom", "detach", "variable"}  # their results share the storage of their first input
_version_of = attrgetter("memory.buffer.version")  # of a realized array


class ReleasedError(RuntimeError):
    """A backward reached values freed by an earlier one."""

    def __init__(self) -> None:
        super().__init__("backward: an earlier backward released this graph; give that one retain_graph=True to run it again")


GOES_ON = "backward goes on in a program that ran before"


class ChangedError(RuntimeError):
    """A value needed by backward was changed in place."""


class ForwardValues(NamedTuple):
    """The forward values of a trace, as backward reads them in the open trace.

    Attributes:
        position: the position in the open trace of the value at a position; raises ReleasedError if it was freed.
        key: the part that the values have in a step's key.
        shape_only, regathered: as in `CopiedTrace`.
    """

    position: Callable[[int], int]
    key: tuple[TrieNode, int, Key] | None
    shape_only: Collection[int]
    regathered: Collection[int]


def forward_values(source: Trace, last: int, trace: Trace, create_graph: bool) -> ForwardValues:
    """The values of `source` up to position `last`, in the open `trace`."""
    if source is trace:
        gathered = gathered_alone(source.nodes) if not create_graph and transient_collectives(source) else ()
        return ForwardValues(int, None, (), gathered)
    refuse(GOES_ON)
    flush(source)  # if another thread has it open, or its flush was interrupted
    if last in source.lost:
        raise lost(source)
    if source.backward.graph_freed:
        raise ReleasedError
    copied: CopiedTrace | None = trace.backward.copies.get((source, create_graph))
    if copied is None or copied.last < last:
        before = {} if copied is None else copied.origins
        copied = _copied(source, trace, last, create_graph)
        copied = trace.backward_state().copies[source, create_graph] = copied._replace(origins=before | copied.origins)
    positions = copied.positions

    def position(index: int) -> int:
        if index not in positions:
            raise ReleasedError
        return positions[index]

    return ForwardValues(position, (source.step, copied.start, copied.entered), copied.shape_only, copied.regathered)


def _copied(source: Trace, trace: Trace, last: int, create_graph: bool) -> CopiedTrace:
    """Enter the source's saved values into the open trace, and copy the nodes that follow from these.

    Copies that nobody reads are dropped in lowering.
    """
    start = len(trace.nodes)
    known = {
        index: trace.enter_array(_linked(source, index, array) if create_graph else array)
        for index, array in sorted(source.backward.saved.items())
    }
    for index, node in enumerate(source.nodes):
        if node.op == "scalar":
            known[index] = trace.enter_scalar(source.scalars[node.attrs["slot"]], node.dtype)
    entered = tuple(known.items())

    def build(graph: Graph, key: Key, nodes: Sequence[Node] = source.nodes) -> CopiedTrace:
        copied = CopiedTrace(last, start, entered, dict(known), {}, set(), set())
        for index, node in enumerate(nodes[: last + 1]):
            needs = read_inputs(node) if is_transient(node) else node.inputs
            if index not in copied.positions and node.op != "input" and all([i in copied.positions for i in needs]):
                copied.positions[index] = here = _copy(node, index, needs, copied, graph, create_graph)
                if create_graph and node.differentiable:
                    copied.origins[here] = index
        return copied

    key, family = ("copy", source.step, last, entered, create_graph), source.step.family
    form = None if family is None else Form(("copy", family, *key[2:]), [], (source.nodes,))
    copied: CopiedTrace = trace.record(key, build, form=form).result
    for index, tensor in source.variables.items():
        if index in copied.positions:
            trace.variables[copied.positions[index]] = tensor
    return copied


def _copy(node: Node, index: int, needs: Sequence[int], copied: CopiedTrace, graph: Graph, create_graph: bool) -> int:
    """Copy the node at `index`, which reads `needs`, into `graph`; returns its position there."""
    positions, shape_only, regathered = copied.positions, copied.shape_only, copied.regathered
    kind = PRIMITIVES[node.op].kind
    if not shape_only.isdisjoint(needs):
        shape_only.add(index)
        if kind in CHEAP and not create_graph and all([i in regathered or i not in shape_only for i in read_inputs(node)]):
            regathered.add(index)
    if kind == "collective" or is_transient(node):  # it ran; what is read of it was saved
        if is_transient(node) and index not in shape_only and not create_graph:
            regathered.add(index)
        shape_only.add(index)
        return expand(graph.constant(0, node.dtype), node.shape).index
    if node.op == "custom":  # only in the source can it be derived, and if its value is read at all, it was saved
        value = graph.value(positions[node.inputs[0]])
        return graph.add("detach", (value,), node.shape, node.dtype, differentiable=False).index
    graph.nodes.append(node.renumbered(tuple([positions[i] for i in node.inputs])))
    return len(graph) - 1


def _linked(source: Trace, index: int, saved: Array) -> Array:
    """A saved value from which a second derivation finds its way back into `source`."""
    if saved.trace is not None or not saved.node.differentiable:
        return saved
    return Array(source, index, saved.node, saved.memory)


def saved_at(source: Trace, index: int) -> Tensor:
    """The tensor of the value at `index` of `source`, as backward reads it."""
    with LOCK:
        def read(trace: Trace) -> Array:
            values = forward_values(source, index, trace, thread_state.grad_enabled)
            if index in values.regathered:
                return trace.handle(trace.record(("gathered again", values.key, index), lambda graph, key: Regathered(
                    source.nodes, values.regathered, graph, values.position).value(index).index).result)
            if index in values.shape_only:
                raise ReleasedError
            return trace.handle(values.position(index))

        array = recorded(source.device, read)
        return tensor_of(array, array.node.differentiable)


def position_of(trace: Trace, array: Array) -> int:
    """A cotangent's position in the open trace."""
    return trace.enter_array(array if array.trace is trace else readable(array))


# ---- changed in place ----
# Arrays are immutable, so the gradient could be computed, but at values that the program can no longer see. As in PyTorch, the
# program must be explicit: clone() before, or write through `.data`.


def check_versions(source: Trace, reads: Mapping[int, Sequence[int]]) -> None:
    """Raise ChangedError if a rule (position -> the positions that it reads) reads what was written over since."""
    changed = source.changed
    if not (changed or source.done) and [*map(_version_of, source.inputs)] == [*source.versions.values()]:
        return
    for index, version in source.versions.items():
        array = source.input_at.get(index) or source.backward.saved.get(index)
        if array is not None and (memory := array.memory) is not None and memory.buffer.version != version:
            changed = {**changed, index: memory.buffer.change}
    if not changed:
        return
    for reader, indices in reads.items():
        for stored in (value for index in indices for value in _sharing_storage(source, index, reader)):
            change = changed.get(stored)
            # `x.mul_(w)` itself reads the x before the write.
            is_own = change is not None and change.trace() is source and reader >= change.call[0]
            if stored in changed and not is_own:
                raise ChangedError(_message(source, reader, change))


def _sharing_storage(source: Trace, index: int, reader: int) -> Iterator[int]:
    """A value, and those in whose storage `reader` finds it."""
    yield index
    while source.nodes[index].op in _SHARING or (source.nodes[index].op == "view" and _is_seen_through(source, index, reader)):
        index = source.nodes[index].inputs[0]
        yield index


def _is_seen_through(source: Trace, view: int, reader: int) -> bool:
    """Whether `reader` reads a view's input: not if the view is the result of another call, one that copies, as `flip` does."""
    call = source.call_at(view)
    if call is None or not isinstance(operation := call[-1][0], Operation):
        return True
    return operation.is_view or call is source.call_at(reader)


def _message(source: Trace, reader: int, change: Change | None) -> str:
    line = resolve_line(*change.call[1:3]) if change else None
    by = f", {change.call[-1][0].name}{_where('{}:{}'.format(*line) if line else '')}" if change else ""
    return (
        f"backward: {node_name(source, reader)}{_where(source.location_of(reader))} needs a value that has been modified by an "
        f"inplace operation{by}; clone() the tensor before it is changed"
    )


def _where(line: str) -> str:
    return f" (at {line})" if line else ""


# ---- transient collectives, whose results are not saved: backward reads a second one on the same operand ----
class Regathered:
    """The values of a source's nodes in a graph: those in `regathered` by second collectives, others at `position_of`.

    They are recorded just before the first rule that needs them. All ranks derive the same way, so they agree on the order.
    """

    def __init__(
        self, nodes: Sequence[Node], regathered: Collection[int], graph: Graph, position_of: Callable[[int], int]
    ) -> None:
        self._nodes, self._regathered, self._graph, self._position_of = nodes, regathered, graph, position_of
        self._made: dict[int, int] = {}

    def value(self, index: int) -> Value:
        """The value at a position."""
        for each in sorted(self._under(index)):
            node = self._nodes[each]
            inputs = tuple([self._at(i) for i in read_inputs(node)])
            if node.op in FORWARDED and not is_transient(node):
                [self._made[each]] = inputs
                continue
            self._made[each] = len(self._graph)
            op = "all_gather" if is_transient(node) else node.op
            self._graph.nodes.append(Node(op, inputs, node.attrs, node.shape, node.dtype))
        return self._graph.value(self._at(index))

    def _at(self, index: int) -> int:
        return self._made[index] if index in self._made else self._position_of(index)

    def _under(self, index: int) -> set[int]:
        """The positions still missing for a position."""
        found, pending = set[int](), [index]
        while pending:
            at = pending.pop()
            if at in self._regathered and at not in self._made and at not in found:
                found.add(at)
                if not is_transient(self._nodes[at]):
                    pending += read_inputs(self._nodes[at])
        return found


def operands_of(nodes: Sequence[Node], regathered: Collection[int], index: int) -> list[int]:
    """The positions to read for `index`: itself, or the operands of the collectives that it depends on."""
    found, pending, seen = list[int](), [index], set[int]()
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        if at in regathered:
            pending += read_inputs(nodes[at])
        else:
            found.append(at)
    return found


def rules_read(
    regathered: Collection[int], derived: Callable[[Graph, Callable[[int], Value]], Any], graph: Graph,
    position_of: Callable[[int], int],
) -> set[int]:
    """Those of `regathered` that rules read, found by deriving in a copy of the graph."""
    trial = Graph([*graph.nodes], grad_enabled=False)
    *_, reads = derived(trial, lambda index: trial.value(position_of(index)))
    return {index for seen in reads.values() for index in seen if index in regathered}
