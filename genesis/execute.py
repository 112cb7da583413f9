"""Flushing: from a trace to realized arrays, by a plan that is found where the trace ends or made there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.ops.derive import NotDifferentiableError, derive
from genesis.codegen.cpu.program import Segment, assemble
from genesis.ir.dtypes import float64, int64
from genesis.ir.graph import Graph, Node
from genesis.lower import Lowered, lower
from genesis.lower.legalize import base_of
from genesis.ops.registry import PRIMITIVES, expand
from genesis.ops.view import Layout
from genesis.runtime.counters import count
from genesis.runtime.memory import Buffer
from genesis.runtime.native import Fault
from genesis.runtime.team import get_num_threads
from genesis.trace import LOCK, Array, Memory, Trace

__all__ = ["FLUSH_HOOKS", "Plan", "flush", "plan_for", "realize"]

FLUSH_HOOKS: list[Callable[[Trace, Any], None]] = []  # called at the end of a flush, with the trace and its plan

_HELD = 3  # references to a handle that nobody holds: the trace's list, the loop variable, getrefcount's argument
_PLANS_PER_STEP = 16


class Plan:
    """A lowered trace, ready to run: which inputs it takes, which values it gives, and the program between them."""

    __slots__ = ("arena_bytes", "inputs", "lowered", "outputs", "saved", "segments", "sizes")

    def __init__(self, trace: Trace, outputs: tuple[int, ...], saved: tuple[int, ...], threads: int) -> None:
        kinds = [float64 if value.__class__ is float else int64 for value in trace.scalars]
        lowered = lower(trace.nodes, outputs + saved, threads, kinds)
        number = {index: k for k, index in enumerate(sorted(trace.input_at))}
        locations = lowered.schedule.locations
        self.lowered = lowered
        self.saved = saved
        self.inputs = [number[lowered.origins[i]] for i in lowered.inputs]  # positions in trace.inputs
        self.outputs = [(locations[base], layout) for base, layout in lowered.outputs]
        values = {place.place: value for value, place in locations.items() if place.kind == "output"}
        self.sizes = [lowered.nodes[values[k]].nbytes for k in range(len(values))]
        self.arena_bytes = lowered.schedule.arena_bytes
        outputs_at = len(self.inputs)
        arena_at = outputs_at + len(self.sizes)
        scalars = "".join("d" if kind is float64 else "q" for kind in kinds)
        self.segments: list[Segment] = assemble(
            lowered.nodes, lowered.schedule, "Q" * (arena_at + 1) + scalars, arena_at, outputs_at, arena_at + 1, threads
        )
        count("plans_built")


def realize(array: Array) -> Memory:
    """The memory of `array`, computed now if it is pending."""
    if array.memory is None:
        with LOCK:
            if array.memory is None:
                assert array.trace is not None
                flush(array.trace)
    assert array.memory is not None
    return array.memory


def plan_for(trace: Trace) -> Plan:
    """The plan that would run if `trace` were flushed now."""
    held = [array for array in trace.arrays if sys.getrefcount(array) > _HELD]
    return _plan(trace, held)


def _plan(trace: Trace, held: Sequence[Array]) -> Plan:
    threads = get_num_threads()
    outputs = tuple(dict.fromkeys([array.index for array in held]))
    key = (outputs, threads)
    plans = trace.step.plans
    plan = plans.get(key)
    if plan is None:
        roots = [index for index in outputs if trace.nodes[index].differentiable]
        saved = _read_by_backward(trace.nodes, roots) - set(outputs) - set(trace.input_at)
        if len(plans) >= _PLANS_PER_STEP:
            del plans[next(iter(plans))]
        plan = plans[key] = Plan(trace, outputs, tuple(sorted(saved)), threads)
    else:
        count("plan_hits")
    return plan


def flush(trace: Trace) -> None:
    """Compute every pending value of `trace` that somebody holds.

    Raises IndexError, naming the user's line, if a kernel met an index out of range.
    """
    with LOCK:
        if trace.closed:
            return
        held = [array for array in trace.arrays if array.memory is None and sys.getrefcount(array) > _HELD]
        plan = None
        if held:
            plan = _plan(trace, held)
            memories = _run(plan, trace)
            for array, memory in zip(_in_order(held), memories, strict=False):
                for handle in array:
                    handle.memory = memory
            for index, memory in zip(plan.saved, memories[len(memories) - len(plan.saved):], strict=True):
                trace.saved[index] = Array(trace, index, trace.nodes[index], memory)
        for hook in list(FLUSH_HOOKS):
            hook(trace, plan)
        _close(trace, held)


def _in_order(held: Sequence[Array]) -> list[list[Array]]:
    """Handles by the value they stand for."""
    handles: dict[int, list[Array]] = {}
    for array in held:
        handles.setdefault(array.index, []).append(array)
    return list(handles.values())


def _close(trace: Trace, held: Sequence[Array]) -> None:
    """End the trace; what backward may still read stays with it, the rest is let go."""
    trace.closed = True
    count("flushes")
    differentiable = False
    for array in held:
        if array.node.differentiable:
            differentiable = True
        else:
            array.trace = None
    trace.arrays.clear()
    trace.known.clear()
    trace.inputs.clear()
    if differentiable:
        trace.saved.update(trace.input_at)
        for array in held:
            if array.node.differentiable and not array.trace.nodes[array.index].op == "input":  # type: ignore[union-attr]
                trace.saved[array.index] = Array(None, -1, array.node, array.memory)
    else:
        trace.saved.clear()
        trace.input_at.clear()
        trace.variables.clear()
        trace.nodes = []


def _run(plan: Plan, trace: Trace) -> list[Memory]:
    """Run a plan on a trace's inputs and scalars; returns the memory of its outputs."""
    buffers = [Buffer(size) for size in plan.sizes]
    arena = Buffer(plan.arena_bytes)
    inputs = trace.inputs
    slots: list[int | float] = [inputs[k].memory.pointer for k in plan.inputs]  # type: ignore[union-attr]
    slots += [buffer.ptr for buffer in buffers]
    slots.append(arena.ptr)
    slots += trace.scalars
    for segment in plan.segments:
        if segment.program is not None:
            fault = segment.program.run(slots)
            if fault is not None:
                _close(trace, [])
                raise _index_error(plan, trace, fault)
        else:
            _call_host(plan, segment, slots)
    outputs = []
    for place, layout in plan.outputs:
        if place.kind == "input":
            held = inputs[plan.inputs[place.place]].memory
            assert held is not None
            at = held.layout if layout.shape == held.layout.shape and layout.offset == 0 and not held.layout.is_contiguous \
                else layout._replace(offset=layout.offset + held.layout.offset)
            outputs.append((held.buffer, at))
        else:
            outputs.append((buffers[place.place], layout))
    nodes, lowered = plan.lowered.nodes, plan.lowered.outputs
    return [Memory(buffer, at, nodes[base].dtype) for (buffer, at), (base, _) in zip(outputs, lowered, strict=True)]


def _call_host(plan: Plan, segment: Segment, slots: Sequence[Any]) -> None:
    """Compute a host operation by its NumPy reference."""
    call = segment.host
    assert call is not None
    lowered = plan.lowered
    outputs_at = len(plan.inputs)

    def array_at(value: int, layout: Layout) -> np.ndarray:
        place = lowered.schedule.locations[value]
        node = lowered.nodes[value]
        first = {"input": place.place, "output": outputs_at + place.place, "arena": outputs_at + len(plan.sizes)}
        address = slots[first[place.kind]] + (place.place if place.kind == "arena" else 0)
        return _over(address, node, layout)

    node = lowered.nodes[call.node]
    operands = [array_at(base, layout) for base, layout in call.operands]
    target = array_at(call.node, Layout(node.shape, _row_major(node), 0))
    reference = PRIMITIVES[node.op].reference
    assert reference is not None
    with np.errstate(all="ignore"):
        target[...] = reference(node, *operands)


def _row_major(node: Node) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(node.shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class _Address:
    """Memory at an address, in NumPy's array interface."""

    def __init__(self, address: int, node: Node, layout: Layout) -> None:
        size = node.dtype.itemsize
        kind = node.dtype.numpy.str if node.dtype.numpy.kind != "V" else f"<V{size}"
        self.__array_interface__ = {
            "data": (address + layout.offset * size, False), "shape": layout.shape, "typestr": kind,
            "strides": tuple(s * size for s in layout.strides), "version": 3,
        }


def _over(address: int, node: Node, layout: Layout) -> np.ndarray:
    array = np.asarray(_Address(address, node, layout))
    return array if array.dtype == node.dtype.numpy else array.view(node.dtype.numpy)


def _index_error(plan: Plan, trace: Trace, fault: Fault) -> IndexError:
    node = plan.lowered.nodes[fault.site]
    line = trace.line_of(plan.lowered.origins[fault.site])
    where = f" (at {line[0]}:{line[1]})" if line else ""
    lowest = -fault.extent if node.attrs["wrap"] else 0
    return IndexError(
        f"{node.attrs['name']}: index {fault.value} is out of range for extent {fault.extent}; "
        f"want {lowest} to {fault.extent - 1}{where}"
    )


def _read_by_backward(nodes: Sequence[Node], roots: Sequence[int]) -> set[int]:
    """What must be kept for a later backward from `roots`: of what its rules read, whatever is dear to compute again.

    Elementwise values and views are recomputed in the backward kernels from contractions, reductions and loads.
    """
    if not roots:
        return set()
    graph = Graph(list(nodes), grad_enabled=False)
    first = len(nodes)
    seeds = {r: expand(graph.constant(1, nodes[r].dtype), nodes[r].shape) for r in roots}
    try:
        ends, _ = derive(nodes, seeds, graph, graph.value)
        wanted = {value.index for value in ends.values()}
    except NotDifferentiableError:
        wanted = set(roots)
    dear: set[int] = set()
    for index in range(len(graph) - 1, -1, -1):
        if index not in wanted:
            continue
        node = graph.nodes[index]
        kind = PRIMITIVES[node.op].kind
        if index < first and kind not in ("elementwise", "view", "source"):
            dear.add(base_of(graph.nodes, index))
        else:
            wanted.update(node.inputs)
    return dear


