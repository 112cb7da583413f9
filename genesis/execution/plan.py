"""Plans: lowered traces, made once and found again where a trace ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from sys import getrefcount
from typing import Any, NamedTuple

from genesis.codegen.backend import backend_of
from genesis.execution.saved_values import read_by_backward
from genesis.ir.dtypes import DType, float64, int64
from genesis.ir.shapes import Shape
from genesis.lower.schedule import Location
from genesis.lower.stored import read_or_lower
from genesis.ops.layout import Layout
from genesis.runtime.collector import collector_paused
from genesis.runtime.counters import count, counts
from genesis.runtime.plan_cache import plan_cache
from genesis.runtime.team import get_num_threads
from genesis.tracing.memory import Place
from genesis.tracing.trace import Array, Trace

__all__ = ["UNHELD", "Owner", "Plan", "find_plan", "held_arrays", "plan_for"]

_SMALL = 16 << 10  # bytes: the host's memory of results and temporaries up to this size stays with the plan that ran

# References to a kept memory that nobody holds: a run's two lists, getrefcount's argument. To its buffer: the memory, a list,
# the argument.
UNHELD = 3

_is_held = (3).__lt__  # references to a handle that nobody holds: the trace's list, compress', getrefcount's argument
_index = attrgetter("index")


class Owner(NamedTuple):
    """The first value in buffer `number`, of `size` bytes; the rest as in `Place`."""

    number: int
    value: int
    size: int
    layout: Layout
    start: int
    strides: Shape | None


class Plan:
    """A lowered trace, ready to run: which inputs it takes, which values it gives, and the program between them."""

    __slots__ = (
        "arena_bytes", "donations", "first", "idle", "inputs", "keeps", "kept_bytes", "large", "lowered", "outputs", "owners",
        "passing", "saved", "segments", "sizes", "small", "unheld", "values", "views",
    )

    def __init__(self, trace: Trace, outputs: tuple[int, ...], threads: int) -> None:
        inputs = [index for index, node in enumerate(trace.nodes) if node.op == "input"]
        roots = [index for index in outputs if trace.nodes[index].differentiable]
        self.keeps, dear = read_by_backward(trace.nodes, roots, trace.released)
        saved = tuple(sorted(dear - set(outputs) - set(inputs)))
        kinds = [float64 if value.__class__ is float else int64 for value in trace.scalars]
        backend = backend_of(trace.device)
        lowered = read_or_lower(trace.nodes, outputs, backend.target(threads, trace.device), kinds, saved)
        number = {index: k for k, index in enumerate(inputs)}
        locations = lowered.schedule.locations
        self.lowered = lowered
        self.saved = saved
        self.values = (*outputs, *saved)
        self.inputs = [number[lowered.origins[i]] for i in lowered.inputs]  # positions in trace.inputs
        self.outputs = [self._place(locations[base], layout, lowered.nodes[base].dtype) for base, layout in lowered.outputs]
        values = {place.place: value for value, place in locations.items() if place.kind == "output"}
        self.sizes = [lowered.nodes[values[k]].nbytes for k in range(len(values))]
        # A GPU's pool gives the same memory again at once, and graphs of launches want it where it was the last time.
        self.kept_bytes = _SMALL if trace.device.memory.is_host else -1
        self.donations = [(self.inputs[k], output) for k, output in lowered.donations if self.sizes[output] > self.kept_bytes]
        self._lay_out()
        self.idle: list[Any] = []  # runs that came to their end
        outputs_at = len(self.inputs)
        arena_at = outputs_at + len(self.sizes)
        scalars = "".join("d" if kind is float64 else "q" for kind in kinds)
        slot_format = "Q" * (arena_at + 1) + scalars
        self.segments, self.arena_bytes = backend.assemble(
            lowered.nodes, lowered.schedule, slot_format, arena_at, outputs_at, arena_at + 1, threads, trace.device
        )
        count("plans_built")

    def _place(self, found: Location, layout: Layout, dtype: DType) -> Place:
        is_input = found.kind == "input"
        number = self.inputs[found.place] if is_input else found.place
        return Place(is_input, number, layout, dtype, layout.offset * dtype.itemsize,
                     None if layout.is_contiguous else layout.strides)

    def _lay_out(self) -> None:
        """Which values have a buffer to themselves, or are the first in it, and which lie in others' or in inputs."""
        first = {place.number: value for value, place in reversed([*enumerate(self.outputs)]) if not place.is_input}
        self.first = [first[k] for k in range(len(self.sizes))]
        places = [self.outputs[value] for value in self.first]
        self.owners = [Owner(k, value, size, place.layout, place.start, place.strides)
                       for k, (value, size, place) in enumerate(zip(self.first, self.sizes, places, strict=True))]
        self.large = [owner for owner in self.owners if owner.size > self.kept_bytes]
        self.small = [owner.value for owner in self.owners if owner.size <= self.kept_bytes]
        self.unheld = [UNHELD] * 2 * len(self.small)
        self.views = [(value, place) for value, place in enumerate(self.outputs) if first.get(place.number) != value]
        self.passing = [*[owner.value for owner in self.large], *[value for value, _ in self.views]]


def held_arrays(trace: Trace) -> list[Array]:
    """The handles on pending values that somebody holds: those that a flush has to compute."""
    held = [*compress(trace.arrays, map(_is_held, map(getrefcount, trace.arrays)))]
    return [array for array in held if array.index not in trace.lost] if trace.lost else held


def plan_for(trace: Trace) -> Plan:
    """The plan that would run if `trace` were flushed now."""
    return find_plan(trace, held_arrays(trace))


def find_plan(trace: Trace, held: Sequence[Array]) -> Plan:
    """The plan that computes `held` where the trace ends: the one that ran there last time, or a new one."""
    threads = get_num_threads()
    outputs = tuple(dict.fromkeys(map(_index, held)))
    key = (outputs, threads, trace.device.memory, len(trace.released))  # devices that share memory share plans
    plans = trace.step.plans
    plan: Plan | None = plan_cache.get(plans, key)
    if plan is None:
        with collector_paused():
            plan = Plan(trace, outputs, threads)
        plan_cache.put(plans, key, plan, len(plan.lowered.nodes))
    else:
        counts["plan_hits"] += 1
    return plan
