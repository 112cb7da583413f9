"""A backend's result: segments of launches with host calls between them, and the slots that each run fills in."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from genesis.lower.allocate import ALIGNMENT
from genesis.lower.schedule import Location, Schedule
from genesis.lower.stages import HostCall
from genesis.runtime.native import BlockWord, Completion, Fault, Slot


class DeviceProgram(Protocol):
    """Launches in order.

    `sources` are the texts of their functions, if they have any; `refused` is the reason why a GPU submits them one by one, if
    no graph could capture them.
    """

    @property
    def sources(self) -> Sequence[str]: ...

    @property
    def refused(self) -> str: ...

    def run(self, values: Sequence[int | float], completion: Completion = ...) -> Fault | None:
        """Run all with these slot values; the fault that a kernel reported, if any. `completion` becomes true at the end."""

    def seconds(self) -> list[float]:
        """The seconds of each launch in the latest run."""


class Segment(NamedTuple):
    """A program, and the number of the stage of each launch; or one host call."""

    program: DeviceProgram | None
    host: HostCall | None
    stages: tuple[int, ...] = ()


class SlotMap:
    """From a value to the argument word with its address: a slot that each run fills in, and an offset."""

    is_portable = False  # the program is to run in other processes, which have no addresses of this one

    def __init__(
        self, schedule: Schedule, arena_slot: int, output_slot: int, scalar_slot: int, streamed: Collection[int] = ()
    ) -> None:
        self.schedule = schedule
        self.arena_slot = arena_slot
        self.output_slot = output_slot
        self.scalar_slot = scalar_slot
        self.keep: list[object] = []  # memory that argument words point to: it lives as long as the program
        self.streamed = streamed
        self.workspace_bytes = 0
        self._made: dict[object, Any] = {}

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """What `make` makes, the same for all launches that name it by `key`."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def room(self, nbytes: int) -> BlockWord:
        """Memory of the program's own, zeros at first."""
        memory = array("q", [0]) * -(-nbytes // 8)
        self.keep.append(memory)
        return memory.buffer_info()[0]

    def table(self, values: np.ndarray) -> BlockWord:
        """Numbers that kernels read."""
        self.keep.append(values)
        return int(values.ctypes.data)

    def workspace(self, nbytes: int) -> Slot:
        """Memory behind the arena, for the length of a launch."""
        # One workspace for all launches: they run one after the other.
        return self._behind_arena(0, nbytes)

    def workspaces(self) -> Callable[[int, int], Slot]:
        """Parts of that workspace, one after the other: a function of a part's number and bytes, which finds the same again."""
        taken = 0

        @cache
        def part(number: int, nbytes: int) -> Slot:
            nonlocal taken
            start, taken = taken, taken + -(-nbytes // ALIGNMENT) * ALIGNMENT
            return self._behind_arena(start, nbytes)

        return part

    def _behind_arena(self, offset: int, nbytes: int) -> Slot:
        self.workspace_bytes = max(self.workspace_bytes, offset + nbytes)
        return Slot(self.arena_slot, self.schedule.arena_bytes + offset)

    def partial_sum(self, value: int, part: int, nbytes: int, offset: int = 0) -> Slot:
        """A partial sum of a value, from byte `offset` on. No two of them share a cache line."""
        return Slot(self.arena_slot, self.schedule.sums[value] + part * -(-nbytes // ALIGNMENT) * ALIGNMENT + offset)

    def address(self, value: int, offset: int = 0) -> Slot:
        found: Location = self.schedule.locations[value]
        if found.kind == "arena":
            return Slot(self.arena_slot, found.position + offset)
        return Slot(found.position + (self.output_slot if found.kind == "output" else 0), offset)
