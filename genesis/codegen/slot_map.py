"""The slots of values: their addresses in a run, before there are addresses."""

from __future__ import annotations

from collections.abc import Collection

from genesis.lower.allocate import ALIGNMENT
from genesis.lower.schedule import Location, Schedule
from genesis.runtime.native import Slot

__all__ = ["SlotMap"]


class SlotMap:
    """From a value to the argument word with its address: a slot that each run fills in, and an offset."""

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

    def workspace(self, nbytes: int) -> Slot:
        """Memory behind the arena, for the length of a launch."""
        # One workspace for all launches: they run one after the other.
        self.workspace_bytes = max(self.workspace_bytes, nbytes)
        return Slot(self.arena_slot, self.schedule.arena_bytes)

    def partial_sum(self, value: int, worker: int, nbytes: int, offset: int = 0) -> Slot:
        """A worker's partial sum of a value, from byte `offset` on. Workers' sums share no cache line."""
        return Slot(self.arena_slot, self.schedule.sums[value] + worker * -(-nbytes // ALIGNMENT) * ALIGNMENT + offset)

    def address(self, value: int, offset: int = 0) -> Slot:
        found: Location = self.schedule.locations[value]
        if found.kind == "arena":
            return Slot(self.arena_slot, found.place + offset)
        return Slot(found.place + (self.output_slot if found.kind == "output" else 0), offset)
