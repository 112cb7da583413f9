"""Memory planning: a place for every value that a schedule writes.

Before: stages in order. After: outputs have memory of their own, other values a piece of the arena from the stage that
writes them first to the last that touches them. What is private to a loop has a tile for each worker, during the loop.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from genesis.ir.graph import Node
from genesis.lower.schedule import Location, Schedule
from genesis.lower.stages import Loop, Stage

ALIGNMENT = 64  # bytes: a cache line, and a vector of 512 bits


def allocate(
    nodes: Sequence[Node], stages: list[Stage], inputs: Sequence[int], outputs: Sequence[int], workers: int = 1
) -> Schedule:
    """The schedule of `stages`, for so many workers."""
    locations = {value: Location("input", k) for k, value in enumerate(inputs)}
    owned = dict.fromkeys(value for value in outputs if value not in locations)
    locations |= {value: Location("output", k) for k, value in enumerate(owned)}
    last = {value: number for number, stage in enumerate(stages) for call in stage for value in (*call.reads, *call.writes)}
    dying: dict[int, list[int]] = {}
    for value, number in last.items():
        dying.setdefault(number, []).append(value)
    arena = _Arena()
    sums: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for call in stage:
            for value in call.writes:
                if value not in locations:
                    locations[value] = Location("arena", arena.take(max(nodes[value].nbytes, 1)))
            if isinstance(call, Loop):
                tiles = {v: workers * call.tile_bytes(nodes[v].nbytes) for v in call.private}
                totals = {v: nbytes for v in call.sums if (nbytes := _sum_bytes(nodes[v], workers))}
                # Tiles and sums are dead after the loop, but must not overlap within it.
                offsets = arena.lend((*tiles.values(), *totals.values()))
                locations |= {v: Location("arena", offset) for v, offset in zip(tiles, offsets, strict=False)}
                sums |= zip(totals, offsets[len(tiles) :], strict=True)
        for value in dying.get(number, ()):
            place = locations.get(value)
            if place is not None and place.kind == "arena":
                arena.give(place.place, max(nodes[value].nbytes, 1))
    return Schedule(stages, locations, arena.size, sums)


def _sum_bytes(node: Node, workers: int) -> int:
    """The bytes of a sum of its own for each worker; a single one adds up in place, unless that is narrower than its sums."""
    if workers == 1 and node.dtype.compute is node.dtype:
        return 0
    return workers * -(-node.numel * node.dtype.compute.itemsize // ALIGNMENT) * ALIGNMENT


class _Arena:
    """Offsets by best fit over the free pieces, which are kept sorted and merged: 5% above what lives at once in a GPT step."""

    def __init__(self) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []  # (offset, bytes)

    def take(self, nbytes: int) -> int:
        nbytes = -(-nbytes // ALIGNMENT) * ALIGNMENT
        best = min(((size, offset) for offset, size in self.free if size >= nbytes), default=None)
        if best is None:
            if self.free and sum(self.free[-1]) == self.size:  # a free piece at the end grows
                offset, size = self.free.pop()
                self.size = offset + nbytes
                return offset
            offset, self.size = self.size, self.size + nbytes
            return offset
        size, offset = best
        self.free.remove((offset, size))
        if size > nbytes:
            bisect.insort(self.free, (offset + nbytes, size - nbytes))
        return offset

    def lend(self, sizes: Iterable[int]) -> list[int]:
        """Offsets of pieces that do not overlap and are free again at once."""
        lent = [(self.take(nbytes), nbytes) for nbytes in sizes]
        for offset, nbytes in lent:
            self.give(offset, nbytes)
        return [offset for offset, _ in lent]

    def give(self, offset: int, nbytes: int) -> None:
        nbytes = -(-nbytes // ALIGNMENT) * ALIGNMENT
        at = bisect.bisect(self.free, (offset, nbytes))
        if at < len(self.free) and self.free[at][0] == offset + nbytes:
            nbytes += self.free.pop(at)[1]
        if at and sum(self.free[at - 1]) == offset:
            offset, before = self.free.pop(at - 1)
            nbytes += before
            at -= 1
        self.free.insert(at, (offset, nbytes))
