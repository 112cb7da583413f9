"""The result of a backend: segments of launches with host calls between them, and the slots that each run fills."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from genesis.ir.symbolic_sizes import Symbols
from genesis.ir.unguarded import maximum
from genesis.lower.allocate import ALIGNMENT
from genesis.lower.schedule import Location, Schedule
from genesis.lower.stages import HostCall
from genesis.runtime.completion import Completion, Fault
from genesis.runtime.native import BlockWord, Slot


class DeviceProgram(Protocol):
    """Launches in order.

    `sources` are the texts of their functions, if any; `refused` is the reason why a GPU submits them one by one, if no graph
    could capture them.
    """

    @property
    def sources(self) -> Sequence[str]: ...

    @property
    def refused(self) -> str: ...

    def run(self, values: Sequence[int | float], completion: Completion = ...) -> Fault | None:
        """Run all launches with these slot values; returns the fault that a kernel reported, if any. `completion` is set at the
        end."""

    def seconds(self) -> list[float]:
        """The seconds of each launch in the latest run."""


class Segment(NamedTuple):
    """A program, and the number of the stage of each launch; or one host call."""

    program: DeviceProgram | None
    host: HostCall | None
    stages: tuple[int, ...] = ()


class OwnedMemory:
    """Memory that argument words point to, kept alive with the program."""

    def __init__(self) -> None:
        self.keep: list[object] = []

    def room(self, nbytes: int) -> BlockWord:
        """Memory owned by the program, zeroed."""
        memory = array("q", [0]) * -(-nbytes // 8)
        self.keep.append(memory)
        return memory.buffer_info()[0]

    def table(self, values: np.ndarray) -> BlockWord:
        """A constant table that kernels read."""
        self.keep.append(values)
        return int(values.ctypes.data)

    def made_table(self, make: Callable[[Any], np.ndarray], argument: Any) -> BlockWord:
        """The table that a function makes."""
        return self.table(make(argument))


class SlotMap(OwnedMemory):
    """Maps a value to the argument word of its address: a slot that each run fills, and an offset."""

    is_portable = False  # whether the program runs in other processes, so addresses of this one are invalid

    def __init__(
        self, schedule: Schedule, arena_slot: int, output_slot: int, scalar_slot: int, streamed: Collection[int] = ()
    ) -> None:
        super().__init__()
        self.schedule = schedule
        self.arena_slot = arena_slot
        self.output_slot = output_slot
        self.scalar_slot = scalar_slot
        self.streamed = streamed
        self.workspace_bytes = 0
        self._made: dict[object, Any] = {}

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """The result of `make`, shared by all launches with this `key`."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def workspace(self, nbytes: int) -> Slot:
        """Memory after the arena, for the duration of a launch."""
        # Launches run one after the other, so they share one workspace.
        return self._behind_arena(0, nbytes)

    def workspaces(self) -> Callable[[int, int], Slot]:
        """Consecutive parts of that workspace: a function of a part's number and bytes, which returns a known part again."""
        taken = 0

        @cache
        def part(number: int, nbytes: int) -> Slot:
            nonlocal taken
            start, taken = taken, taken + -(-nbytes // ALIGNMENT) * ALIGNMENT
            return self._behind_arena(start, nbytes)

        return part

    def _behind_arena(self, offset: int, nbytes: int) -> Slot:
        self.workspace_bytes = maximum(self.workspace_bytes, offset + nbytes)
        return self._in_arena(self.schedule.arena_bytes + offset)

    def _in_arena(self, offset: int) -> Slot:
        return Slot(self.arena_slot, offset)

    def partial_sum(self, value: int, part: int, nbytes: int, offset: int = 0) -> Slot:
        """A partial sum of a value, from byte `offset` on. No two of them share a cache line."""
        return self._in_arena(self.schedule.sums[value] + part * -(-nbytes // ALIGNMENT) * ALIGNMENT + offset)

    def address(self, value: int, offset: int = 0) -> Any:
        found: Location = self.schedule.locations[value]
        if found.kind == "arena":
            return self._in_arena(found.position + offset)
        return Slot(found.position + (self.output_slot if found.kind == "output" else 0), offset)


class SymbolicSlots(SlotMap):
    """The slots of a program of symbolic sizes, each filling of which owns memory of its own."""

    def __init__(self, symbols: Symbols, *of_program: Any) -> None:
        super().__init__(*of_program)
        self._symbols = symbols

    def room(self, nbytes: int) -> Any:
        return self._symbols.effect("memory.room", nbytes)

    def made_table(self, make: Callable[[Any], np.ndarray], argument: Any) -> Any:
        return self._symbols.effect("memory.made_table", make, argument)
