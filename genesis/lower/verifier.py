"""The verifier proves that each launch of a finished program finds the values it reads in memory.

It takes the result of lowering (nodes, launches, locations, donations) and runs the launches in order over a model of memory,
which maps each range of bytes to the value last written there. It shares no code with the passes that plan programs. It assumes
that every donation happens: without some of them memory overlaps less. It proves:

1. Each access lies within its value, and each value within its memory.
2. A launch reads a value, or a stretch of a concatenation, only when all of it has been written and nothing has overwritten it.
3. Each element of a value is written once, except where a copy is written into (`put`, `scatter`) and where terms accumulate.
4. Calls that run in parallel, and tiles of a loop or of an epilogue, touch nothing that another one writes; calls may write
   parts of one concatenation.
5. A kernel that overwrites what it reads does so in step: it reads an element before it writes it, and never again.
6. Nothing can fail once an input may have been overwritten.
7. In the end all results are complete, and lie neither in the arena nor in the memory of an input or of another result; values
   saved for backward may share the memory of an input or a result.
8. Reductions and products cover as many elements as there are to reduce.

It does not prove that a kernel reads the right elements of a value, nor that it computes the right function of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from genesis.ir.graph import Node
from genesis.lower import Lowered
from genesis.lower.build import KernelCall
from genesis.lower.footprint import (
    Footprint, Tiles, covers, each_once, footprints, goes_in_step, has_all_terms, keeps_to_tiles, stays_in_tiles,
    writes_each_part, writes_parts,
)
from genesis.lower.stages import Call, HostCall, Loop, Product, Stage, parts
from genesis.ops.registry import PRIMITIVES

LINE = 64  # bytes: two partial sums share no cache line


class MemoryPlanError(AssertionError):
    """A program would not compute what its graph says; names the launch, the value and the bytes."""


class Span(NamedTuple):
    """Bytes of an input, an output, or the arena."""

    memory: tuple[str, int]
    low: int
    high: int

    def overlaps(self, other: Span) -> bool:
        return self.memory == other.memory and self.low < other.high and other.low < self.high

    def __str__(self) -> str:
        kind, number = self.memory
        return f"bytes {self.low} to {self.high} of {'the arena' if kind == 'arena' else f'{kind} {number}'}"


def verify(lowered: Lowered, saved: int = 0) -> None:
    """Raise MemoryPlanError unless all of the above holds; the last `saved` results are only for backward."""
    program = _Program(lowered)
    for number, stage in enumerate(lowered.schedule.stages):
        program.run(number, stage)
    program.check_results(saved)


class _Program:
    """A program being run: the contents of memory."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered, self.nodes, self.schedule = lowered, lowered.nodes, lowered.schedule
        self.workers = 1 if lowered.target.sequential_tiles else lowered.target.threads
        self.launch = "before the first launch"
        self.spans: dict[int, Span] = {}
        self.holds: dict[tuple[str, int], dict[int, Span]] = {}  # memory -> the values in it
        self.lost: dict[int, str] = {}  # value -> what has been written over it
        self.written: dict[int, list[Footprint]] = {}
        self.overwritten: int | None = None  # the first input that may have been overwritten
        calls = [call for stage in self.schedule.stages for call in stage]
        self.tiled = {value: call for call in calls if isinstance(call, Loop) for value in call.private}
        self.inside = {id(call): [(part, footprints(self.nodes, part)) for part in parts(call)] for call in calls}
        self.to_come: Counter[int] = Counter()  # value -> how many calls have yet to write to it
        for found in [found for inside in self.inside.values() for _, found in inside]:
            self.to_come.update({each.value for each in found if each.writes})
        self._locate_values()

    def fail(self, value: int, problem: str) -> MemoryPlanError:
        node = self.nodes[value]
        where = f", {self.spans[value]}," if value in self.spans else ""
        return MemoryPlanError(f"{self.launch}: %{value} = {node.op}(), {node.dtype.name}{list(node.shape)}{where} {problem}")

    # ---- locations ----
    def _locate_values(self) -> None:
        """The span of each value, with every donation taken."""
        donors = {output: k for k, output in self.lowered.donations}
        for value, (kind, position) in self.schedule.locations.items():
            node = self.nodes[value]
            size = node.dtype.itemsize
            if (kind == "input") is not (node.op == "input"):
                raise self.fail(value, f"is to lie in {kind} {position}")
            if kind == "input":
                low, high = self._whole(value).range
                self.spans[value] = Span((kind, position), low * size, high * size)
            elif kind == "output":
                memory = ("input", donors[position]) if position in donors else (kind, position)
                self.spans[value] = Span(memory, 0, node.nbytes)
            else:
                loop = self.tiled.get(value)
                nbytes = node.nbytes if loop is None else (loop.partials or self.workers) * loop.tile_bytes(node.nbytes)
                self.spans[value] = self._in_arena(value, position, nbytes)
        for value in self.lowered.inputs:
            self.holds.setdefault(self.spans[value].memory, {})[value] = self.spans[value]
        inputs = {self.schedule.locations[value].position: value for value in self.lowered.inputs}
        for value, (kind, position) in self.schedule.locations.items():
            if kind == "output" and position in donors:
                donor = inputs[donors[position]]
                dense = each_once([self._whole(donor)], self.nodes[donor].numel)
                if len(donors) < len(self.lowered.donations) or not dense or self.spans[donor] != self.spans[value]:
                    raise self.fail(value, f"does not fill input %{donor}, {self.spans[donor]}")

    def _in_arena(self, value: int, offset: int, nbytes: int) -> Span:
        if offset < 0 or offset + nbytes > self.schedule.arena_bytes or offset % self.nodes[value].dtype.itemsize:
            raise self.fail(value, f"takes {nbytes} bytes from {offset} on of an arena of {self.schedule.arena_bytes}")
        return Span(("arena", 0), offset, offset + nbytes)

    def _whole(self, value: int) -> Footprint:
        """All elements of a value, in its layout."""
        node = self.nodes[value]
        strides = node.attrs.get("strides") if node.op == "input" else None
        axes = ((node.numel, 1),) if strides is None else tuple(zip(node.shape, strides, strict=True))
        return Footprint(value, False, 0, (), axes)

    # ---- launches ----
    def run(self, number: int, stage: Stage) -> None:
        """Run a stage, whose calls run in parallel."""
        beside: dict[tuple[str, int], list[tuple[Span, bool, int]]] = {}  # by their memory: a step writes to hundreds
        for call in stage:
            self.launch = f"stage {number}, {_name(self.nodes, call)}"
            if self.overwritten is not None and _may_fail(self.nodes, call):
                raise self.fail(self.overwritten, "may have been written over, and this call may fail")
            inside = self.inside[id(call)]
            self._check_beside([each for _, touched in inside for each in touched], beside)
            scratch = self._scratch_of(call)
            if len(inside) > 1 or isinstance(call, Loop):
                self._check_tiles(call, scratch)
            for part, touched in inside:
                self._run_part(part, touched, isinstance(call, Loop))
            for span, value in scratch:
                self._displace(span, value)
        donor = [value for value in self.lowered.inputs if any(
            wrote and span == self.spans[value] for span, wrote, _ in beside.get(self.spans[value].memory, ()))]
        self.overwritten = donor[0] if donor else self.overwritten

    def _check_beside(self, touched: Sequence[Footprint], beside: dict[tuple[str, int], list[tuple[Span, bool, int]]]) -> None:
        """Nothing that one call of a stage writes is touched by another; `beside` takes what this call touches."""
        missing = [each.value for each in touched if each.value not in self.spans]
        if missing:
            raise self.fail(missing[0], "has no location in memory")
        own = [(self.spans[value], writes, value) for value, writes in {(each.value, each.writes) for each in touched}]
        for span, writes, value in own:
            joins = writes and self.nodes[value].op == "cat"  # its parts do not overlap, or some element is written twice
            if any((writes or wrote) and span.overlaps(other) and not (joins and wrote and value == there)
                   for other, wrote, there in beside.get(span.memory, ())):
                raise self.fail(value, "is touched by a call beside this one, and one of them writes there")
        for span, writes, value in own:
            beside.setdefault(span.memory, []).append((span, writes, value))

    def _run_part(self, part: Call, touched: Sequence[Footprint], in_loop: bool) -> None:
        """One call: it finds what it reads; what it writes is there from now on."""
        for each in touched:
            low, high = each.range
            first, end = self._whole(each.value).range
            if low < high and not each.anywhere and not first <= low < high <= end:
                raise self.fail(each.value, f"has elements {first} to {end}, and {low} to {high} are touched")
            if not each.writes:
                self._check_there(each)
        if not has_all_terms(self.nodes, part):
            raise self.fail(next(each.value for each in touched if each.writes), "is not reduced over all terms")
        for write in [each for each in touched if each.writes]:
            for read in [each for each in touched if not each.writes]:
                apart = read.value == write.value and not read.anywhere and (
                    read.range[1] <= write.range[0] or write.range[1] <= read.range[0])  # stretches of a concatenation
                if self.spans[read.value].overlaps(self.spans[write.value]) and not apart and (
                        in_loop or not self._is_in_step(part, read, write)):
                    raise self.fail(read.value, f"is read when %{write.value} may have been written over it")
        for value in dict.fromkeys([each.value for each in touched if each.writes]):
            self._write(value, [each for each in touched if each.writes and each.value == value])

    def _is_in_step(self, part: Call, read: Footprint, write: Footprint) -> bool:
        """Whether a call goes through what it reads and what it writes there in step."""
        if not isinstance(part, KernelCall):
            return False
        size, wide = (self.nodes[each.value].dtype.itemsize for each in (read, write))
        start, target = (self.spans[each.value].low + each.offset * wide for each in (read, write))
        steps = [part.kernel.strides(part.kernel.instructions[each.instruction].access) for each in (read, write)]  # type: ignore[arg-type]
        alike = all(a == b for extent, a, b in zip(part.extents, *steps, strict=True) if extent > 1)
        return size == wide and start == target and alike and goes_in_step(part.kernel, read, write)

    def _check_there(self, read: Footprint) -> None:
        value = read.value
        if value in self.lost:
            raise self.fail(value, f"is read after {self.lost[value]}")
        joins = self.nodes[value].op == "cat" and not read.anywhere
        if self.to_come.get(value) and not (joins and covers(self.written.get(value, ()), read)):
            raise self.fail(value, f"is read, and {self.to_come[value]} calls have yet to write to it")
        if value not in self.holds.get(self.spans[value].memory, ()):
            raise self.fail(value, "is read, and nothing has written it")

    def _write(self, value: int, writes: Sequence[Footprint]) -> None:
        """`value` is in memory from now on; what was there is lost."""
        if self.nodes[value].op == "input":
            raise self.fail(value, "is written to, and is an input")
        if value in self.lost:
            raise self.fail(value, f"is written to after {self.lost[value]}")
        self._displace(self.spans[value], value)
        self.holds.setdefault(self.spans[value].memory, {})[value] = self.spans[value]
        self.written.setdefault(value, []).extend(writes)
        self.to_come[value] -= 1
        if not self.to_come[value]:
            node, made = self.nodes[value], self.written[value]
            if "rest" in node.attrs:
                is_whole = writes_each_part(self.nodes, value, made)
            elif PRIMITIVES[node.op].kind in ("put", "scatter"):
                is_whole = writes_parts(self.nodes, value, made)
            else:
                if node.op == "matmul":  # terms accumulate into one result
                    made = [each._replace(outer=tuple([(e, s) for e, s in each.outer if s or not e])) for each in made]
                is_whole = each_once(made, node.numel)
            if not is_whole:
                raise self.fail(value, "is not written as it is defined: each element once, or all and then its parts in order")

    def _displace(self, span: Span, value: int) -> None:
        """Values that overlap `span` are lost."""
        here = self.holds.get(span.memory, {})
        for other in [other for other, own in here.items() if own.overlaps(span) and other != value]:
            del here[other]
            self.lost[other] = f"{self.launch} has written to {span} for %{value}"

    # ---- tiles ----
    def _scratch_of(self, call: Call) -> list[tuple[Span, int]]:
        """Memory of a loop's own: tiles of its private values, and its partial sums."""
        if not isinstance(call, Loop):
            return []
        scratch = [(self.spans[value], value) for value in call.private]
        for value in call.sums:
            if value in self.schedule.sums:
                node = self.nodes[value]
                each = -(-node.numel * node.dtype.compute.itemsize // LINE) * LINE
                scratch.append((self._in_arena(value, self.schedule.sums[value], max(call.partials, 1) * each), value))
            elif call.partials > 1:
                raise self.fail(value, "is added up in several parts, which have no memory of their own")
        return scratch

    def _check_tiles(self, call: Call, scratch: Sequence[tuple[Span, int]]) -> None:
        """Tiles run in any order and in parallel: what one part writes and another touches must belong to one tile."""
        inside = [(part, each) for part, touched in self.inside[id(call)] for each in touched]
        for number, (span, value) in enumerate(scratch):
            others = [self.spans[each.value] for _, each in inside if each.value != value or self.spans[value] != span]
            others += [other for other, _ in scratch[:number]]
            if any(span.overlaps(other) for other in others):
                raise self.fail(value, f"has tiles in {span}, which this loop uses for something else")
        tiles = _tiles(call)
        if len(tiles.first) == 2 and isinstance(call, Loop):  # a single tile: the parts run one after the other
            return
        for part, write in [(part, each) for part, each in inside if each.writes]:
            shared = [each for other, each in inside if (other is not part or not each.writes) and
                      self.spans[each.value].overlaps(self.spans[write.value])]
            if not shared and write.value not in self.tiled:
                continue
            if isinstance(part, Product) and part.summed:
                raise self.fail(write.value, "is a sum over all tiles, and another part of the loop touches it")
            for each in (write, *shared):
                size = self.nodes[each.value].numel
                if stays_in_tiles(each, size, tiles):
                    continue
                if {one.value for one in shared} - {write.value} or not keeps_to_tiles([write], shared, size, tiles):
                    raise self.fail(each.value, "is touched in one tile and written in another")
                break

    # ---- results ----
    def check_results(self, saved: int) -> None:
        self.launch = "after the last launch"
        values = [value for value, _ in self.lowered.outputs]
        for number, (value, (shape, strides, offset)) in enumerate(self.lowered.outputs):
            kind, own = self.schedule.locations[value].kind, number < len(values) - saved
            if kind == "arena" or (own and (kind == "input" or value in values[:number])):
                raise self.fail(value, f"is a result, and lies {'where another one does' if kind == 'output' else 'there'}")
            self._check_there(self._whole(value))
            low, high = Footprint(value, False, offset, (), tuple(zip(shape, strides, strict=True))).range
            if low < high and not self._whole(value).range[0] <= low < high <= self._whole(value).range[1]:
                raise self.fail(value, f"has no elements {low} to {high}, which a result is to be")


def _tiles(call: Call) -> Tiles:
    """The tiles of a loop or of a product with an epilogue."""
    if isinstance(call, Product):  # blocks of rows, of any height
        points, first = call.extents[0], np.arange(call.extents[0] + 1)
    else:
        assert isinstance(call, Loop)
        points, first = call.points, np.array([*[first for first, _ in call.spans()], call.points])
    return Tiles(points, np.repeat(np.arange(len(first) - 1), np.diff(first)), first)


def _may_fail(nodes: Sequence[Node], call: Call) -> bool:
    return any(
        part.fails or not PRIMITIVES[nodes[part.node].op].native if isinstance(part, HostCall) else
        isinstance(part, KernelCall) and any(word.kind == "fault" for word in part.kernel.words) for part in parts(call))


def _name(nodes: Sequence[Node], call: Call) -> str:
    """A call, as listings name it."""
    if isinstance(call, KernelCall):
        return f"kernel {call.kernel.name} over {list(call.extents)} for %{call.writes[-1]}"
    if isinstance(call, Loop):
        return f"loop of {len(call.calls)} calls"
    return f"{'host' if isinstance(call, HostCall) else 'product'} %{call.node} = {nodes[call.node].op}()"
