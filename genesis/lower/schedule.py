"""The last passes: kernels in order, side by side where they do not depend on each other, and memory for each value.

The result names storage and words, no addresses: a backend turns it into a program.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.lower.axis_groups import PLAIN, AxisGroups, grouped_layout
from genesis.lower.build import KernelCall
from genesis.lower.group import Partition
from genesis.lower.index_map import Unmappable
from genesis.lower.kernel import Kernel
from genesis.lower.legalize import base_of, collapsed_batch, layout_of, result_layout
from genesis.lower.repeats import Repeats
from genesis.lower.stages import Call, HostCall, Loop, Product, Stage, parts
from genesis.ops.layout import Layout

__all__ = ["ALIGNMENT", "Location", "Schedule", "allocate", "donations", "last_failing_stage", "order"]

ALIGNMENT = 64


class Location(NamedTuple):
    """Where a value lies: the k-th input or output, or a byte offset in the arena."""

    kind: str
    place: int


class Schedule(NamedTuple):
    """Stages in order, the place of every value in memory, the arena's size in bytes, and, for what loops add up, where in
    the arena each worker has its own sum, one after the other."""

    stages: list[Stage]
    locations: dict[int, Location]
    arena_bytes: int
    sums: dict[int, int]


def order(nodes: Sequence[Node], partition: Partition) -> tuple[list[Stage], set[int]]:
    """The calls of all groups, in order; neighbours that run the same code on different data become one stage.

    Returns the stages, and the values that a group cannot read where they are: these must be set apart first.
    """
    stages: list[Stage] = []
    repeats = Repeats(nodes, partition)
    refused: set[int] = set()
    read: set[int] = set()  # by the last stage
    written: set[int] = set()
    for group in partition.groups:
        calls: Sequence[KernelCall | Product | HostCall]
        if group.kind == "contract":
            calls = [_product(nodes, i) for i in group.members]
        elif group.kind == "host":
            calls = [HostCall(i, tuple(_operand(nodes, j) for j in nodes[i].inputs)) for i in group.members]
        else:
            try:
                calls = repeats.calls(group)
            except Unmappable as refusal:
                refused.add(refusal.index)
                continue
        for call in calls:
            independent = written.isdisjoint((*call.reads, *call.writes)) and read.isdisjoint(call.writes)
            if stages and independent and _alike(stages[-1][0], call):
                stages[-1].append(call)  # type: ignore[arg-type]
            else:
                stages.append([call])  # type: ignore[arg-type]
                read, written = set(), set()
            read.update(call.reads)
            written.update(call.writes)
    return stages, refused


def _alike(first: Call, call: Call) -> bool:
    """Whether two calls are of one kernel, and one launch can run both."""
    kernels = isinstance(call, KernelCall) and isinstance(first, KernelCall)
    return kernels and call.kernel.text == first.kernel.text  # type: ignore[union-attr]


def _operand(nodes: Sequence[Node], index: int) -> tuple[int, Layout]:
    layout = layout_of(nodes, index)
    assert layout is not None, "legalize gives operands a layout"
    return base_of(nodes, index), layout


def _product(nodes: Sequence[Node], index: int) -> Product:
    left, right = nodes[index].inputs
    (a_layout, a_groups), (b_layout, b_groups) = (_matrix(nodes, i) for i in (left, right))
    extents, strides = collapsed_batch([a_layout, b_layout, result_layout(nodes[index], nodes[left].shape)])
    first, second, third = (tuple(s) for s in strides)
    (m, k), n = nodes[left].shape[-2:], nodes[right].shape[-1]
    a, b = (base_of(nodes, i) for i in (left, right))
    only, axis_groups = nodes[index].attrs.get("only", ""), (a_groups, b_groups)
    return Product(index, a, b, a_layout, b_layout, tuple(extents), (first, second, third), (m, n, k), n, only, axis_groups)


def _matrix(nodes: Sequence[Node], index: int) -> tuple[Layout, AxisGroups]:
    layout = layout_of(nodes, index)
    found = (layout, PLAIN) if layout is not None else grouped_layout(nodes, index)
    assert found is not None, "legalize gives operands a layout"
    return found


def allocate(
    nodes: Sequence[Node], stages: list[Stage], inputs: Sequence[int], outputs: Sequence[int], workers: int = 1
) -> Schedule:
    """Give every value that is written a place: outputs memory of their own, the others a piece of the arena.

    A piece is free again after the last stage that touches it. What is private to a loop has a tile for each worker.
    """
    locations = {value: Location("input", k) for k, value in enumerate(inputs)}
    owned = dict.fromkeys(value for value in outputs if value not in locations)
    locations |= {value: Location("output", k) for k, value in enumerate(owned)}
    last: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for call in stage:
            for value in (*call.reads, *call.writes):
                last[value] = number
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
            tiles = {v: workers * call.tile_bytes(nodes[v].nbytes) for v in call.private} if isinstance(call, Loop) else {}
            for value, nbytes in tiles.items():
                locations[value] = Location("arena", arena.take(nbytes))
            totals = {v: nbytes for v in getattr(call, "sums", ()) if (nbytes := _sum_bytes(nodes[v], workers))}
            sums |= {value: arena.take(nbytes) for value, nbytes in totals.items()}
            for value, nbytes in tiles.items():
                arena.give(locations[value].place, nbytes)
            for value, nbytes in totals.items():
                arena.give(sums[value], nbytes)
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


def donations(nodes: Sequence[Node], schedule: Schedule) -> list[tuple[int, int]]:
    """(input, output) pairs that may share memory: one kernel reads the input last and writes the output, each element
    at the place where it read it; no kernel wrote of the output before; and no kernel from there on can fail, so a failed
    run has destroyed nothing.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, stage in enumerate(schedule.stages):
        for call in stage:
            for value in call.writes:
                first.setdefault(value, number)
            last.update(dict.fromkeys(call.reads, number))
    checked = last_failing_stage(nodes, schedule.stages)
    pairs: list[tuple[int, int]] = []
    for number, stage in enumerate(schedule.stages[checked + 1 :], checked + 1):
        read = Counter([v for call in stage for part in parts(call) for v in part.reads])
        calls = [part for whole in stage if not isinstance(whole, Loop) for part in parts(whole)]
        for call in [call for call in calls if isinstance(call, KernelCall)]:
            given = [v for v in call.reads if schedule.locations[v].kind == "input" and last[v] == number and read[v] == 1]
            if not given or call.kernel.factors is not None:
                continue
            touching = _touching(call.kernel)
            for output in call.writes:
                if schedule.locations[output].kind != "output" or first[output] < number:
                    continue
                for value in given:
                    if nodes[value].nbytes == nodes[output].nbytes and _in_step(
                        call.kernel, touching[value], touching[output]
                    ):
                        pairs.append((schedule.locations[value].place, schedule.locations[output].place))
                        given.remove(value)
                        break
    return pairs


def last_failing_stage(nodes: Sequence[Node], stages: Sequence[Stage]) -> int:
    """The last stage that may fail, because an index is out of range or Python raises; -1 if none may."""
    return max([number for number, stage in enumerate(stages) for call in stage if isinstance(call, HostCall) or any(
        nodes[i].op == "check_index" for i in getattr(call, "nodes", ()))], default=-1)


def _touching(kernel: Kernel) -> dict[int, list[int]]:
    """The instructions that touch the memory of each value."""
    found: dict[int, list[int]] = {}
    for number, i in enumerate(kernel.instructions):
        if i.access is not None and kernel.words[i.access.pointer].kind == "pointer":
            found.setdefault(kernel.words[i.access.pointer].value, []).append(number)
    return found


def _in_step(kernel: Kernel, reading: Sequence[int], writing: Sequence[int]) -> bool:
    """Whether a kernel could write a value over another that it reads, given what touches each: each element is read, in the
    last pass, before it is written in its place, and read no more.
    """
    words, instructions = kernel.words, kernel.instructions
    places = set()
    for i in [instructions[n] for n in (*reading, *writing)]:
        assert i.access is not None
        places.add((words[i.access.pointer].extra, kernel.strides(i.access), i.access.dtype.itemsize))
        if i.name not in ("load", "store"):
            return False
    last = max([i.step for i in instructions if i.level == "full" or i.name == "store"])
    stores = [n for n in writing if instructions[n].name == "store"]
    if len(places) != 1 or any([instructions[n].step < last or not _depends(kernel, n, set(reading)) for n in stores]):
        return False
    rows = [n for n in reading if instructions[n].level != "full"]  # what is loaded for a whole row is loaded where it is used
    return not rows or not any([
        later.name == "store" and _depends(kernel, n, {r for r in rows if r < store})
        for store in stores for n, later in enumerate(instructions) if n > store])


def _depends(kernel: Kernel, number: int, sources: set[int]) -> bool:
    """Whether an instruction's value is computed from any of `sources`."""
    stack = [number]
    while stack:
        n = stack.pop()
        if n in sources:
            return True
        stack.extend(kernel.instructions[n].args)
    return False


class _Arena:
    """Offsets by best fit over the free pieces, which are kept sorted and merged."""

    def __init__(self) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []  # (offset, bytes)

    def take(self, nbytes: int) -> int:
        nbytes = -(-nbytes // ALIGNMENT) * ALIGNMENT
        best = min(((size, offset) for offset, size in self.free if size >= nbytes), default=None)
        if best is None:
            if self.free and sum(self.free[-1]) == self.size:
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


