"""Flushing: from a trace to realized arrays, by a plan that is found where the trace ends or made there."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from genesis.codegen.cpu.program import Segment, assemble
from genesis.ir.dtypes import float64, int64
from genesis.ir.graph import Graph, Node
from genesis.lower import lower
from genesis.lower.legalize import base_of
from genesis.lower.schedule import donations
from genesis.ops.derive import NotDifferentiableError, derive
from genesis.ops.registry import PRIMITIVES, expand
from genesis.ops.view import Layout
from genesis.runtime.counters import count
from genesis.runtime.memory import Buffer
from genesis.runtime.native import Fault, Outcome
from genesis.runtime.plan_cache import plan_cache
from genesis.runtime.team import get_num_threads
from genesis.trace import LOCK, Array, Memory, Trace, thread_state

__all__ = ["FLUSH_HOOKS", "Plan", "flush", "plan_for", "realize"]

FLUSH_HOOKS: list[Callable[[Trace, Any], None]] = []  # called at the end of a flush, with the trace and its plan

_HELD = 3  # references to a handle that nobody holds: the trace's list, the loop variable, getrefcount's argument

# References to an input that dies with the flush: the trace's list, a local name, getrefcount's argument; and so on.
_DYING_ARRAY, _DYING_MEMORY, _DYING_BUFFER = 3, 3, 2


class Plan:
    """A lowered trace, ready to run: which inputs it takes, which values it gives, and the program between them."""

    __slots__ = ("arena_bytes", "donations", "inputs", "keeps", "lowered", "outputs", "saved", "segments", "sizes")

    def __init__(self, trace: Trace, outputs: tuple[int, ...], threads: int) -> None:
        inputs = [index for index, node in enumerate(trace.nodes) if node.op == "input"]
        roots = [index for index in outputs if trace.nodes[index].differentiable]
        self.keeps, dear = _read_by_backward(trace.nodes, roots, trace.released)
        saved = tuple(sorted(dear - set(outputs) - set(inputs)))
        kinds = [float64 if value.__class__ is float else int64 for value in trace.scalars]
        lowered = lower(trace.nodes, outputs, threads, kinds, saved)
        number = {index: k for k, index in enumerate(inputs)}
        locations = lowered.schedule.locations
        self.lowered = lowered
        self.saved = saved
        self.inputs = [number[lowered.origins[i]] for i in lowered.inputs]  # positions in trace.inputs
        self.outputs = [(locations[base], layout) for base, layout in lowered.outputs]
        values = {place.place: value for value, place in locations.items() if place.kind == "output"}
        self.sizes = [lowered.nodes[values[k]].nbytes for k in range(len(values))]
        self.donations = donations(lowered.nodes, lowered.schedule)
        self.arena_bytes = lowered.schedule.arena_bytes
        outputs_at = len(self.inputs)
        arena_at = outputs_at + len(self.sizes)
        scalars = "".join("d" if kind is float64 else "q" for kind in kinds)
        self.segments: list[Segment] = assemble(
            lowered.nodes, lowered.schedule, "Q" * (arena_at + 1) + scalars, arena_at, outputs_at, arena_at + 1, threads
        )
        count("plans_built")


def realize(array: Array) -> Memory:
    """The memory of `array`, computed now if it is pending.

    Raises RuntimeError if it was lost: it depended on an index that was out of range.
    """
    memory = array.memory
    if memory is None:
        trace = array.trace
        assert trace is not None
        flush(trace)
        memory = array.memory
        if memory is None:
            raise RuntimeError(f"this value was lost, for what it depends on failed: {trace.failure}") from trace.failure
    return memory


def plan_for(trace: Trace) -> Plan:
    """The plan that would run if `trace` were flushed now."""
    held = [array for array in trace.arrays if sys.getrefcount(array) > _HELD]
    return _plan(trace, held)


def _plan(trace: Trace, held: Sequence[Array]) -> Plan:
    threads = get_num_threads()
    outputs = tuple(dict.fromkeys([array.index for array in held]))
    key = (outputs, threads, len(trace.released))
    plans = trace.step.plans
    plan: Plan | None = plan_cache.get(plans, key)
    if plan is None:
        plan = Plan(trace, outputs, threads)
        plan_cache.put(plans, key, plan, len(plan.lowered.nodes))
    else:
        count("plan_hits")
    return plan


class Run:
    """A flush under way: the handles it computes, by which plan, into which memory, and whether it came to its end."""

    __slots__ = ("buffers", "held", "outcome", "plan")

    def __init__(self, plan: Plan | None, held: Sequence[Array]) -> None:
        self.plan = plan
        self.held = held
        self.buffers: list[Buffer] = []
        self.outcome: Any = Outcome()  # true once the program has come to its end


def flush(trace: Trace) -> None:
    """Compute every pending value of `trace` that somebody holds.

    Raises IndexError, naming the user's line, if a kernel met an index out of range: what depends on it is lost,
    tensors that were to hold such values hold what they held before, and all else is computed. After any other
    exception (an interrupt, no memory) nothing is lost: the trace takes no more calls, and whoever needs one of its
    values takes the flush up again.
    """
    with LOCK:
        if trace.done:
            return
        trace.closed = True
        failure = None
        while trace.run is None or not trace.run.outcome:
            trace.run = None
            held = [array for array in trace.arrays if sys.getrefcount(array) > _HELD and array.index not in trace.lost]
            trace.run = run = Run(_plan(trace, held) if held else None, held)
            if fault := _execute(run, trace):
                failure = _lose(run, trace, fault)
            else:
                run.outcome = True
        for hook in FLUSH_HOOKS:  # before the trace lets go of its nodes
            hook(trace, trace.run.plan)
        _finish(trace, trace.run)
        if failure is not None:
            raise failure


def _execute(run: Run, trace: Trace) -> Fault | None:
    """Run the plan on the trace's inputs and scalars; returns the fault that stopped it, if one did.

    Inputs are overwritten in the last segment alone, if at all: until that one has noted its end all can be run again.
    """
    plan, inputs = run.plan, trace.inputs
    if plan is None:
        return None
    trace.known.clear()
    if not plan.keeps:
        trace.input_at.clear()
    run.buffers = _buffers(plan, trace)
    arena = Buffer(plan.arena_bytes)
    slots: list[int | float] = [inputs[k].memory.pointer for k in plan.inputs]  # type: ignore[union-attr]
    slots += [buffer.ptr for buffer in run.buffers]
    slots.append(arena.ptr)
    slots += trace.scalars
    for segment in plan.segments:
        if segment.program is None:
            _call_host(plan, segment, slots)
        elif fault := segment.program.run(slots, run.outcome if segment is plan.segments[-1] else Outcome()):
            return fault
    return None


def _finish(trace: Trace, run: Run) -> None:
    """Give the handles their memory, keep what backward may still read, and let go of the rest.

    It may be interrupted and begun again until it says that all is done.
    """
    plan, keeps = run.plan, False
    if plan is not None:
        keeps = plan.keeps
        memories = _memories(plan, trace.inputs, run.buffers)
        by_position = dict(zip([*dict.fromkeys([a.index for a in run.held]), *plan.saved], memories, strict=True))
        for array in run.held:
            array.memory = by_position[array.index]
            if not array.node.differentiable:
                array.trace = None
        if keeps:
            trace.saved.update(trace.input_at)
            for index in plan.saved:
                trace.saved[index] = Array(None, -1, trace.nodes[index], by_position[index])
            for array in run.held:
                if array.node.differentiable and array.index not in trace.input_at:
                    trace.saved[array.index] = Array(None, -1, array.node, array.memory)
    trace.done = True
    count("flushes")
    if not keeps:
        trace.spent = True
        trace.input_at.clear()
        trace.retained.clear()
    trace.run = None
    if thread_state.trace is trace:
        thread_state.trace = None
    for held in (trace.arrays, trace.inputs, trace.known, trace.written):
        held.clear()  # type: ignore[attr-defined]


def _buffers(plan: Plan, trace: Trace) -> list[Buffer]:
    """Memory for the outputs: that of an input that nobody else holds where the plan allows, else new."""
    taken: dict[int, Buffer] = {}
    written = Counter([id(array) for _, array in trace.written])
    for k, output in plan.donations:
        array = trace.inputs[plan.inputs[k]]
        memory: Any = array.memory
        if (
            sys.getrefcount(array) == _DYING_ARRAY + written[id(array)] and sys.getrefcount(memory) == _DYING_MEMORY
            and sys.getrefcount(memory.buffer) == _DYING_BUFFER and not memory.buffer.shared
            and memory.buffer.nbytes == plan.sizes[output] and memory.layout.offset == 0
        ):
            taken[output] = memory.buffer
    return [taken[k] if k in taken else Buffer(size) for k, size in enumerate(plan.sizes)]


def _memories(plan: Plan, inputs: Sequence[Array], buffers: Sequence[Buffer]) -> list[Memory]:
    """Where the outputs lie: in buffers of their own, or, for views of inputs, in the inputs'."""
    nodes, memories = plan.lowered.nodes, []
    for (place, layout), (base, _) in zip(plan.outputs, plan.lowered.outputs, strict=True):
        if place.kind == "input":
            within = inputs[plan.inputs[place.place]].memory
            assert within is not None
            moved = layout._replace(offset=layout.offset + within.layout.offset)
            memories.append(Memory(within.buffer, moved, nodes[base].dtype))
        else:
            memories.append(Memory(buffers[place.place], layout, nodes[base].dtype))
    return memories


def _lose(run: Run, trace: Trace, fault: Fault) -> IndexError:
    """Give up the values that depend on the one that failed, and undo the writes that were to store them."""
    assert run.plan is not None
    trace.failure = error = _index_error(run.plan, trace, fault)
    trace.lost = lost = {run.plan.lowered.origins[fault.site]} | trace.lost
    for index, node in enumerate(trace.nodes):
        if not lost.isdisjoint(node.inputs):
            lost.add(index)
    for tensor, before in reversed(trace.written):
        if tensor._array.trace is trace and tensor._array.index in lost:
            tensor._array = before
            tensor._version += 1
    trace.run = None
    return error


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


def _read_by_backward(
    nodes: Sequence[Node], roots: Sequence[int], released: Collection[int]
) -> tuple[bool, set[int]]:
    """Whether a later backward may come from `roots`, and what to keep for it: of what its rules read, whatever is dear
    to compute again. Elementwise values and views are recomputed from contractions, reductions and loads.

    A root whose backward has been run, and the graph released, needs nothing.
    """
    graph = Graph(list(nodes), grad_enabled=False)
    first = len(nodes)
    wanted: set[int] = set()
    keeps = False
    for together in [roots] if not released else [[root] for root in roots]:
        seeds = {root: expand(graph.constant(1, nodes[root].dtype), nodes[root].shape) for root in together}
        try:
            ends, readers = derive(nodes, seeds, graph, graph.value)
        except NotDifferentiableError:
            keeps = True
            wanted.update(together)
            continue
        if together and readers.isdisjoint(released):
            keeps = True
            wanted.update(value.index for value in ends.values())
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
    return keeps, dear
