"""Loops over time: the launches of one step, which is lowered as any graph, are repeated with addresses that move on.

A step reads the carried values where the step before has stored them, among the states. Other values of a step lie behind the
arena. So neither the plan nor its kernels depend on the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from genesis.codegen.cpu.target import target
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower import VERIFY, Lowered, lower
from genesis.lower.stages import HostCall, Stage
from genesis.lower.verifier import verify
from genesis.ops.loop_body import Body, body_of
from genesis.runtime.determinism import planned_threads
from genesis.runtime.native import Addresses, Launch, MovingSlot, Repeat, Slot

_Place = Slot | MovingSlot  # of a value in the first step
LaunchesOf = Callable[[Sequence[Node], Stage, SlotMap, Addresses, int], "Sequence[Launch] | None"]


def programs_of(node: Node, threads: int) -> tuple[Lowered, Lowered]:
    """The program that copies the initial carried values among the states, and that of a step."""
    return _programs(body_of(node), threads, planned_threads(), VERIFY[0])


@lru_cache(64)
def _programs(body: Body, threads: int, planned: int, verified: bool) -> tuple[Lowered, Lowered]:
    carries, machine = range(body.constants, body.first_sequence), target(threads, planned)
    copies = lower([body.nodes[i] for i in carries], range(len(carries)), machine)
    step = lower(body.nodes, [*body.following, *body.stacked], machine)
    for program in (copies, step) if verified else ():
        verify(program)
    return copies, step


def launches(
    nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int, launches_of: LaunchesOf
) -> list[Launch]:
    """The launches of a loop; `launches_of` gives those of a stage."""
    node, reverse = nodes[call.node], nodes[call.node].attrs["reverse"]
    body, size, steps = body_of(node), node.dtype.itemsize, nodes[node.inputs[-1]].shape[0]
    count, first = len(body.following), body.first_sequence
    operands = [slots.address(base, layout.offset * nodes[base].dtype.itemsize) for base, layout in call.operands]

    def rows(start: Slot, nbytes: int, skipped: int = 0) -> MovingSlot:
        """Rows of so many bytes, without those `skipped` before the loop's."""
        at = skipped + steps - 1 if reverse else skipped
        return MovingSlot(start.number, start.offset + at * nbytes, -nbytes if reverse else nbytes)

    places = [(slots.address(call.node, offset * size), numel(shape[1:]) * size) for offset, shape in body.places(steps)]
    states, stacks = places[:count], places[count:]
    sequences = [rows(start, each.nbytes) for start, each in zip(operands[first:], body.nodes[first:], strict=False)]
    given = [*operands[: body.constants], *[rows(*state, int(reverse)) for state in states], *sequences]
    results = [rows(*state, int(not reverse)) for state in states] + [rows(*stack) for stack in stacks]
    initial = [Slot(start.number, start.offset + (steps * nbytes if reverse else 0)) for start, nbytes in states]
    copies, step = programs_of(node, threads)

    def launched(program: Lowered, inputs: Sequence[_Place], outputs: Sequence[_Place]) -> list[Any]:
        own, found = _StepSlots(slots, program, inputs, outputs), list[Any]()
        for stage in program.schedule.stages:
            made = launches_of(program.nodes, stage, own, addresses, threads)
            assert made is not None, "a step makes no calls into Python"
            found += made
        return found

    return [*launched(copies, operands[body.constants : first], initial), Repeat(launched(step, given, results), steps)]


class _StepSlots(SlotMap):
    """The slots of a step within its program."""

    def __init__(self, outer: SlotMap, program: Lowered, inputs: Sequence[_Place], outputs: Sequence[_Place]) -> None:
        super().__init__(program.schedule, outer.arena_slot, outer.output_slot, outer.scalar_slot)
        self._outer, self.is_portable, self.once = outer, outer.is_portable, outer.once  # type: ignore[method-assign]
        self.room, self.table, self.made_table = outer.room, outer.table, outer.made_table  # type: ignore[method-assign]
        self._places = {"input": [inputs[program.origins[i]] for i in program.inputs], "output": outputs}
        outer._behind_arena(0, program.schedule.arena_bytes)

    def address(self, value: int, offset: int = 0) -> Any:
        kind, position = self.schedule.locations[value]
        if kind == "arena":
            return self._in_arena(position + offset)
        place = self._places[kind][position]
        return place._replace(offset=place.offset + offset)

    def _in_arena(self, offset: int) -> Slot:
        return self._outer._behind_arena(offset, 0)

    def _behind_arena(self, offset: int, nbytes: int) -> Slot:
        return self._outer._behind_arena(self.schedule.arena_bytes + offset, nbytes)
