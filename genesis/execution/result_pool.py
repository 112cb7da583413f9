"""Runs of plans, and the memory that they compute into.

A plan keeps its last runs, and they are taken in turn: small results lie again where nobody holds any more what was there
two runs ago, small temporaries where they lay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from sys import getrefcount
from typing import Any

from genesis.execution.plan import UNHELD, Owner, Plan
from genesis.execution.reference_mode import Interpretation
from genesis.runtime.devices import Device
from genesis.runtime.memory import Buffer
from genesis.runtime.native import Completion
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array, Trace

__all__ = ["Run", "begin"]

_RUNS = 2  # that a plan keeps: a result usually lives until the next one of its kind is there

_pointer, _address = attrgetter("memory.pointer"), attrgetter("buffer.ptr")


class Run:
    """A flush under way: the handles it computes, by which plan, into which memory, and whether it came to its end."""

    __slots__ = ("_kept", "arena", "completion", "device", "held", "memories", "plan")

    def __init__(self, plan: Plan | Interpretation | None, held: Sequence[Array], device: Device) -> None:
        self.plan = plan
        self.held = held
        self.device = device
        self.memories: list[Any] = []  # of the plan's values, None where there is none yet
        self.arena: Buffer | None = None
        self.completion = Completion()  # true once the program has come to its end
        self._kept: list[Any] = []  # the memories of small results, and then their buffers

    def provide(self, plan: Plan, taken: Mapping[int, Memory], trace: Trace) -> list[int | float]:
        """Find memory, some of it that of inputs: `taken`, by the buffer that it is to be. Returns the slots of programs."""
        memories, inputs = self.memories, trace.inputs
        references = [*map(getrefcount, self._kept)]
        if references == plan.unheld:
            self._make(plan.large, taken)
        else:
            for place, count in enumerate(references):
                if count != UNHELD:
                    memories[plan.small[place % len(plan.small)]] = None
            self._make(plan.owners, taken)
            self._kept = [memories[value] for value in plan.small]
            self._kept += [memory.buffer for memory in self._kept]
        for buffer in self._kept[len(plan.small) :]:
            buffer.origin = buffer._owner = None
        for value, (is_input, number, layout, dtype, start, strides) in plan.views:
            if is_input:
                memories[value] = inputs[number].memory.at(layout, dtype)  # type: ignore[union-attr]
            else:
                memories[value] = Memory.laid(memories[plan.owners[number].value].buffer, layout, start, strides)
        if self.arena is None and plan.arena_bytes:
            self.arena = Buffer(plan.arena_bytes, self.device)
        addresses = map(_address, map(memories.__getitem__, plan.first))
        return [
            *map(_pointer, map(inputs.__getitem__, plan.inputs)), *addresses, self.arena.ptr if self.arena else 0,
            *trace.scalars,
        ]

    def _make(self, owners: Sequence[Owner], taken: Mapping[int, Memory]) -> None:
        """Make memory for values that have none."""
        for number, value, size, layout, start, strides in owners:
            if self.memories[value] is None:
                memory = taken.get(number)
                if memory is None or memory.layout is not layout:
                    buffer = Buffer(size, self.device) if memory is None else memory.buffer
                    memory = Memory.laid(buffer, layout, start, strides)
                self.memories[value] = memory

    def end(self, plan: Plan) -> None:
        """Let go of what was computed, and be kept by the plan. The program must have come to its end."""
        self.held = ()
        for value in plan.passing:
            self.memories[value] = None
        if plan.arena_bytes > plan.kept_bytes:
            self.arena = None
        plan.idle.append(self)


def begin(plan: Plan | Interpretation | None, held: Sequence[Array], device: Device) -> Run:
    """A run of `plan` for these handles: the oldest that it keeps, or a new one."""
    if plan.__class__ is Plan and len(plan.idle) >= _RUNS:
        run: Run = plan.idle.pop(0)
        if run.device is device:
            run.completion.clear()
            run.held = held
            return run
    run = Run(plan, held, device)
    if plan is not None:
        run.memories = plan.memories if isinstance(plan, Interpretation) else [None] * len(plan.values)
    return run
