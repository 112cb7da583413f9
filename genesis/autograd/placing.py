"""Where the open trace has the values of the trace that backward walks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.execution.flush import flush, realize
from genesis.ir.graph import Graph
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tracing.state import current_trace, thread_state
from genesis.tracing.trace import LOCK, Array, Trace

__all__ = ["ReleasedError", "placing", "position_of", "saved_at"]


class ReleasedError(RuntimeError):
    """A backward came to what an earlier one released."""

    def __init__(self) -> None:
        super().__init__("backward: an earlier backward released this graph; give that one retain_graph=True to run it again")


def saved_at(source: Trace, index: int) -> Tensor:
    """The tensor of the value at `index` of `source`, as backward reads it."""
    with LOCK:
        trace = current_trace(source.device)
        place, _ = placing(source, index, trace, thread_state.grad_enabled)
        array = trace.handle(place(index))
        return tensor_of(array, array.node.differentiable)


def placing(source: Trace, last: int, trace: Trace, create_graph: bool) -> tuple[Callable[[int], int], Any]:
    """Where the open trace has the source's values up to `last`, and what stands for that in a step's key.

    What a flushed source saved is read from memory, and what backward needs besides is computed from it anew.
    """
    if source is trace:
        return int, None
    if thread_state.recorder is not None:
        thread_state.recorder.refuse("backward goes on in a program that ran before")
    flush(source)  # if another thread has it open, or its flush was interrupted
    if source.backward.graph_freed:
        raise ReleasedError
    reach, start, copies = trace.backward.copies.get((source, create_graph), (-1, 0, {}))
    if reach < last:
        start = len(trace.nodes)
        copies = _copied(source, trace, last, create_graph)
        trace.backward_state().copies[source, create_graph] = last, start, copies

    def place(index: int) -> int:
        if index not in copies:
            raise ReleasedError
        return copies[index]

    return place, (source.step, start)


def _copied(source: Trace, trace: Trace, last: int, create_graph: bool) -> dict[int, int]:
    """The source's values up to `last` in the open trace: what was saved, and copies of the nodes that follow from it.

    Copies that nobody reads are dropped in lowering.
    """
    known = {
        index: trace.enter_array(_linked(source, index, array) if create_graph else array)
        for index, array in sorted(source.backward.saved.items())
    }
    for index, node in enumerate(source.nodes):
        if node.op == "scalar":
            known[index] = trace.enter_scalar(source.scalars[node.attrs["slot"]], node.dtype)
    key = ("copy", source.step, last, tuple(known.items()))

    def build(graph: Graph) -> Any:
        placed = {index: graph.value(position) for index, position in known.items()}
        for index in range(last + 1):
            node = source.nodes[index]
            if index in placed or node.op == "input" or any(i not in placed for i in node.inputs):
                continue
            if node.op == "custom":  # if its value is read at all, it was saved: only in the source can it be derived
                raw = placed[node.inputs[0]]
                placed[index] = graph.add("detach", (raw,), node.shape, node.dtype, differentiable=False)
                continue
            graph.nodes.append(node.renumbered(tuple(placed[i].index for i in node.inputs)))
            placed[index] = graph.value(len(graph) - 1)
        return {index: value.index for index, value in placed.items()}

    copies: dict[int, int] = trace.record(key, build).result
    for index, tensor in source.variables.items():
        if index in copies:
            trace.variables[copies[index]] = tensor
    return copies


def position_of(trace: Trace, array: Array) -> int:
    """Where the open trace has a cotangent."""
    if array.trace is not trace:
        realize(array)
    return trace.enter_array(array)


def _linked(source: Trace, index: int, saved: Array) -> Array:
    """A saved value from which a second derivation finds its way back into `source`."""
    if saved.trace is not None or not saved.node.differentiable:
        return saved
    return Array(source, index, saved.node, saved.memory)


