"""Where values lie in a run's memory, as slots: what is known before there are addresses."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from genesis.lower.allocate import ALIGNMENT
from genesis.lower.schedule import Location, Schedule
from genesis.runtime.native import Slot

__all__ = ["Places"]


class Places:
    """Words for values' addresses."""

    def __init__(
        self, schedule: Schedule, arena_slot: int, output_slot: int, scalar_slot: int, streamed: Collection[int] = ()
    ) -> None:
        self.schedule = schedule
        self.arena_slot = arena_slot
        self.output_slot = output_slot
        self.scalar_slot = scalar_slot
        self.keep: list[Any] = []
        self.streamed = streamed
        self.workspace_bytes = 0

    def workspace(self, nbytes: int) -> Slot:
        """Memory behind the arena, for the length of a launch."""
        self.workspace_bytes = max(self.workspace_bytes, nbytes)
        return Slot(self.arena_slot, self.schedule.arena_bytes)

    def sum_of(self, value: int, worker: int, nbytes: int, offset: int = 0) -> Slot:
        """Where a worker adds up its part of a value, or what lies `offset` bytes behind."""
        return Slot(self.arena_slot, self.schedule.sums[value] + worker * -(-nbytes // ALIGNMENT) * ALIGNMENT + offset)

    def address(self, value: int, offset: int = 0) -> Slot:
        place: Location = self.schedule.locations[value]
        if place.kind == "arena":
            return Slot(self.arena_slot, place.place + offset)
        return Slot(place.place + (self.output_slot if place.kind == "output" else 0), offset)
