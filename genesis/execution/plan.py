"""Plans: lowered traces, made once and found again where a repeated trace ends."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from genesis.execution.host_call import BoundCall
from genesis.execution.result_pool import SMALL, Output, ResultBuffer, ResultPool
from genesis.ir.annotations import Key
from genesis.ir.dtypes import DType, float64, int64
from genesis.ir.graph import Node
from genesis.ops.layout import Layout
from genesis.ops.registry import PRIMITIVES
from genesis.ops.transient import is_transient
from genesis.runtime.counters import count, counts
from genesis.runtime.deferred import deferred
from genesis.runtime.determinism import planned_threads
from genesis.runtime.devices import Device
from genesis.runtime.groups import GROUPS
from genesis.runtime.number_of_threads import get_num_threads
from genesis.runtime.plan_cache import plan_cache
from genesis.runtime.references import kept_long, made_to_last, owned_elsewhere
from genesis.runtime.timeline import timeline
from genesis.runtime.uninterrupted import uninterrupted
from genesis.tracing.recording_hooks import unwatched
from genesis.tracing.trace import Array, Trace

if TYPE_CHECKING:
    from genesis.codegen.backend import backend_of
    from genesis.codegen.segment import Segment
    from genesis.execution.plan_template import Program, program_of
    from genesis.execution.saved_values import inputs_under, read_by_backward
    from genesis.execution.verified_program import verified
    from genesis.lower import Lowered
    from genesis.lower.schedule import Location
    from genesis.lower.stored import read_or_lower, store
else:  # the compiler is loaded with the first plan
    backend_of = deferred("genesis.codegen.backend", "backend_of")
    inputs_under = deferred("genesis.execution.saved_values", "inputs_under")
    read_by_backward = deferred("genesis.execution.saved_values", "read_by_backward")
    program_of = deferred("genesis.execution.plan_template", "program_of")
    verified = deferred("genesis.execution.verified_program", "verified")
    read_or_lower = deferred("genesis.lower.stored", "read_or_lower")
    store = deferred("genesis.lower.stored", "store")

STORED_AFTER = 16  # flushes, before a plan that a process makes late is stored: a part of a program may run several times in it

_index = attrgetter("index")


class Plan:
    """A lowered trace: its inputs, its outputs and its program; once it is `finished`, ready to run."""

    __slots__ = (
        "_lowered", "arena_bytes", "asked", "collective_bytes", "collectives", "donations", "first", "flushes", "host_calls",
        "inputs", "keeps", "native", "number_of", "outputs", "pool", "read_collectives", "reads", "saved", "saved_inputs",
        "segments", "sizes", "values", "views",
    )

    def __init__(self, trace: Trace, nodes: Sequence[Node], outputs: tuple[int, ...], threads: int) -> None:
        inputs = [index for index, node in enumerate(nodes) if node.op == "input"]
        roots = [index for index in outputs if nodes[index].differentiable]
        alive, expensive = read_by_backward(nodes, roots, trace.released)
        self.keeps, self.saved_inputs = bool(alive), inputs_under(nodes, alive)
        saved = tuple(sorted(expensive - set(outputs) - set(inputs)))
        kinds = [float64 if value.__class__ is float else int64 for value in trace.scalars]
        backend = backend_of(trace.device)
        awaited = [i for i in transient_collectives(trace) if i not in trace.lost and i not in outputs and i not in saved]
        target = backend.target(threads, planned_threads(), trace.device)
        self.asked: tuple[Any, ...] = nodes, outputs, target, kinds, saved, awaited  # until it is stored
        lowered = read_or_lower(*self.asked)
        number = {index: k for k, index in enumerate(inputs)}
        locations = lowered.schedule.locations
        self._lowered: Lowered | None = lowered
        self.collectives = [node for node in lowered.nodes if PRIMITIVES[node.op].kind == "collective"] if GROUPS else []
        self.saved = saved
        self.collective_bytes = sum([lowered.nodes[i].nbytes for node in self.collectives for i in node.inputs])
        self.read_collectives = expensive.intersection(collectives_of(trace)) if GROUPS else ()  # read by backward; not rerun
        self.values = (*outputs, *saved)
        self.number_of = {index: k for k, index in enumerate(self.values)}
        self.host_calls: dict[int, BoundCall] = {}
        self.reads = [lowered.origins[i] for i in lowered.inputs]  # positions of inputs
        self.inputs = [number[i] for i in self.reads]  # their numbers among the trace's inputs
        self.donations = [(self.inputs[k], output) for k, output in lowered.donations]
        self.outputs = [self._output(locations[base], layout, lowered.nodes[base].dtype) for base, layout in lowered.outputs]
        values = {where.position: value for value, where in locations.items() if where.kind == "output"}
        self.sizes = [lowered.nodes[values[k]].nbytes for k in range(len(values))]
        outputs_at = len(self.inputs)
        arena_at = outputs_at + len(self.sizes)
        scalars = "".join("d" if kind is float64 else "q" for kind in kinds)
        slot_format = "Q" * (arena_at + 1) + scalars
        self.segments, self.arena_bytes = backend.assemble(
            lowered.nodes, lowered.schedule, slot_format, arena_at, outputs_at, arena_at + 1, threads, trace.device
        )

    @property
    def lowered(self) -> Lowered:
        """The lowered trace; one that was filled in is lowered when this is asked for."""
        if self._lowered is None:
            self._lowered = read_or_lower(*self.asked)
        return self._lowered

    def finished(self, device: Device) -> Plan:
        """The plan, verified if programs are, with a pool of results."""
        self.flushes = 0
        self.native: Any = None  # the flush by instructions, once there have been several
        self.pool = self._lay_out(SMALL if device.memory.is_host else -1)
        self.segments = verified(lambda: self.lowered, len(self.saved), self.segments, self.arena_bytes, device)
        count("plans_built")
        return self

    def filled(self, nodes: Sequence[Node], segments: list[Segment], *sizes: Any) -> Plan:
        """A plan of symbolic sizes with those of its nodes, programs, outputs, buffers and arena filled in."""
        plan = copy(self)
        plan.asked, plan._lowered, plan.segments, plan.host_calls = (nodes, *self.asked[1:]), None, segments, {}
        plan.outputs, plan.sizes, plan.arena_bytes = sizes
        return plan

    def forget_graph(self) -> None:
        """Keep only what `filled` reads."""
        self._lowered, self.asked = None, ((), *self.asked[1:])

    def _output(self, found: Location, layout: Layout, dtype: DType) -> Output:
        is_input = found.kind == "input"
        number = self.inputs[found.position] if is_input else found.position
        return Output(is_input, number, layout, dtype, layout.offset * dtype.itemsize,
                      None if layout.is_contiguous else layout.strides)

    def _lay_out(self, kept_bytes: int) -> ResultPool:
        """Lay out the outputs: those that own a buffer, and those inside another's buffer or an input."""
        first = {output.number: value for value, output in reversed([*enumerate(self.outputs)]) if not output.is_input}
        self.first = [first[k] for k in range(len(self.sizes))]
        self.views = [(value, output) for value, output in enumerate(self.outputs) if first.get(output.number) != value]
        outputs = [self.outputs[value] for value in self.first]
        return ResultPool([
            ResultBuffer(k, value, size, output.layout, output.start, output.strides)
            for k, (value, size, output) in enumerate(zip(self.first, self.sizes, outputs, strict=True))
        ], len(self.values), self.donations, kept_bytes)


def held_arrays(trace: Trace) -> list[Array]:
    """The handles on pending values that a flush must compute: live ones, and collectives, for which other processes wait. A
    plan also runs transient collectives, whose results it keeps to itself.
    """
    handles = owned_elsewhere(trace.arrays)
    if GROUPS and (awaited := {*collectives_of(trace)}):
        transient = () if trace.eager else transient_collectives(trace)
        held = {*map(_index, handles)}
        wanted = awaited.difference(transient) or (transient[:1] if not held else ())
        handles += trace.handles(sorted({*wanted} - held))
    return [array for array in handles if array.index not in trace.lost] if trace.lost else handles


def collectives_of(trace: Trace) -> Sequence[int]:
    """The positions of a trace's collectives, in the order in which they run."""
    found = trace.step.collectives
    if found is None:
        found = [index for index, node in enumerate(trace.nodes) if PRIMITIVES[node.op].kind == "collective"]
        trace.step.collectives = found
    return found


def transient_collectives(trace: Trace) -> Sequence[int]:
    """The positions of collectives whose results are not kept."""
    return [index for index in collectives_of(trace) if is_transient(trace.nodes[index])] if GROUPS else ()


def plan_for(trace: Trace) -> Plan:
    """The plan that would run if `trace` were flushed now."""
    return find_plan(trace, held_arrays(trace))


def find_plan(trace: Trace, handles: Sequence[Array]) -> Plan:
    """The plan that computes `handles` at the end of the trace: the one that ran there before, or a new one."""
    key = key_of(trace, (*map(_index, handles),))
    plan: Plan | None = trace.step.plans.get(key)
    if plan is None:
        if trace.is_interrupting:  # handlers that interrupt handlers lowering the same trace would never end
            return uninterrupted(new_plan, trace, key)
        # The first one loads the compiler, which moves garbage to where no short collection finds it.
        program, plan = _filled_in(trace, key) if plan_cache.entries else (None, None)
        if plan is not None:
            kept_long(partial(_held, trace))
            return plan
        with made_to_last(partial(_held, trace)):
            return new_plan(trace, key, program)
    if plan is not plan_cache.latest:
        plan_cache.note(trace.step.plans, key, plan)
    if plan.asked and plan.flushes >= STORED_AFTER and not trace.is_interrupting:
        lowered, asked, plan.asked = plan.lowered, plan.asked, ()
        store(lowered, *asked)
    counts["plan_hits"] += 1
    return plan


def _held(trace: Trace) -> int:
    return trace.device.memory.usage().held


def key_of(trace: Trace, outputs: tuple[int, ...]) -> Key:
    # Devices that share memory share plans.
    return outputs, get_num_threads(), planned_threads(), trace.device.memory, trace.released, trace.lost


@unwatched
def _filled_in(trace: Trace, key: Key) -> tuple[Program | None, Plan | None]:
    """The trace as programs of other sizes are compared with it, and the plan by one of their templates."""
    program = program_of(trace, key)
    plan = None if program is None else program.filled()
    return program, None if plan is None else _kept(trace, key, plan)


@unwatched
def new_plan(trace: Trace, key: Key, program: Program | None = None) -> Plan:
    """A new plan at the end of the trace, where `find_plan` will find it."""
    began = timeline.start()
    outputs, threads, *_ = cast(tuple[Any, ...], key)
    outputs = tuple(dict.fromkeys(outputs))

    def plan(nodes: Sequence[Node]) -> Plan:
        return Plan(trace, nodes, outputs, threads)

    made = _kept(trace, key, plan(trace.nodes) if program is None else program.planned(plan))
    timeline.note("plan", began)
    return made


def _kept(trace: Trace, key: Key, plan: Plan) -> Plan:
    plan_cache.put(trace.step.plans, key, plan.finished(trace.device), len(trace.nodes))
    return plan
