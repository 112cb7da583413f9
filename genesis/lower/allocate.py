"""Memory planning: where each value of a schedule lies, and which inputs outputs may overwrite (donation).

Before: stages in order. After: outputs have buffers of their own; other values have a range of the arena from the first stage
that writes them to the last that touches them. A value private to a loop has one tile per worker, during the loop.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from genesis.ir.graph import Node
from genesis.ir.symbolic_sizes import Symbols
from genesis.ir.unguarded import symbols_of
from genesis.lower.build import KernelCall
from genesis.lower.kernel import Kernel, of_code
from genesis.lower.schedule import Location, Schedule
from genesis.lower.stages import Loop, Stage, may_fail, parts

ALIGNMENT = 64  # bytes: a cache line, and a vector of 512 bits


def allocate(
    nodes: Sequence[Node], stages: list[Stage], inputs: Sequence[int], outputs: Sequence[int], workers: int = 1
) -> Schedule:
    """The schedule of `stages`, for `workers` workers."""
    locations = {value: Location("input", k) for k, value in enumerate(inputs)}
    # Outputs are not in the arena: they outlive the run, and the next run overwrites the arena.
    owned = dict.fromkeys(value for value in outputs if value not in locations)
    locations |= {value: Location("output", k) for k, value in enumerate(owned)}
    last = {value: number for number, stage in enumerate(stages) for call in stage for value in (*call.reads, *call.writes)}
    dying: dict[int, list[int]] = {}
    for value, number in last.items():
        dying.setdefault(number, []).append(value)
    symbols = symbols_of(nodes)
    arena = Arena() if symbols is None else SymbolicArena(symbols)
    sums: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for call in stage:
            for value in call.writes:
                if value not in locations:
                    locations[value] = Location("arena", arena.take(max(nodes[value].nbytes, 1)))
            if isinstance(call, Loop):
                tiles = {v: (call.partials or workers) * call.tile_bytes(nodes[v].nbytes) for v in call.private}
                totals = {v: nbytes for v in call.sums if (nbytes := _sum_bytes(nodes[v], call.partials or 1))}
                # Tiles and sums are dead after the loop, but must not overlap within it.
                offsets = arena.lend((*tiles.values(), *totals.values()))
                locations |= {v: Location("arena", offset) for v, offset in zip(tiles, offsets, strict=False)}
                sums |= zip(totals, offsets[len(tiles) :], strict=True)
        # Freed after the whole stage, as its calls run in parallel.
        for value in dying.get(number, ()):
            location = locations.get(value)
            if location is not None and location.kind == "arena":
                arena.give(location.position, max(nodes[value].nbytes, 1))
    return Schedule(stages, locations, arena.nbytes(), sums)


def _sum_bytes(node: Node, partials: int) -> int:
    """The bytes of partial sums. A single one accumulates in the result, unless its dtype is narrower than the sums'."""
    if partials == 1 and node.dtype.compute is node.dtype:
        return 0
    return partials * -(-node.numel * node.dtype.compute.itemsize // ALIGNMENT) * ALIGNMENT


# A smaller arena is a faster first step: a MiB takes 0.46 ms to touch in small pages, 0.12 in large ones.
class Arena:
    """Best-fit allocation over sorted, merged free ranges: 5% above the peak of live bytes in a GPT step."""

    def __init__(self) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []  # (offset, bytes)

    def nbytes(self) -> int:
        """The bytes of all pieces."""
        return self.size

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
        """Offsets of disjoint pieces, which are free again at once."""
        lent = [(self.take(nbytes), nbytes) for nbytes in sizes]
        for offset, nbytes in lent:
            self.give(offset, nbytes)
        return [offset for offset, _ in lent]

    def give(self, offset: int, nbytes: int) -> None:
        nbytes = -(-nbytes // ALIGNMENT) * ALIGNMENT
        index = bisect.bisect(self.free, (offset, nbytes))
        if index < len(self.free) and self.free[index][0] == offset + nbytes:
            nbytes += self.free.pop(index)[1]
        if index and sum(self.free[index - 1]) == offset:
            index -= 1
            offset, before = self.free.pop(index)
            nbytes += before
        self.free.insert(index, (offset, nbytes))


class SymbolicArena(Arena):
    """An arena of pieces of symbolic sizes, which are allocated for each sizes anew."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def take(self, nbytes: int) -> Any:
        return self._symbols.effect("arena.take", nbytes)

    def give(self, offset: int, nbytes: int) -> None:
        self._symbols.effect("arena.give", offset, nbytes)

    def nbytes(self) -> Any:
        return self._symbols.effect("arena.nbytes")


# ---- donation: the only place that decides what overwrites what ----
def donations(nodes: Sequence[Node], schedule: Schedule, results: Collection[int] = ()) -> list[tuple[int, int]]:
    """(input, output) pairs, by number, that may share memory if the program is the input's only owner.

    Claim: with each pair in one buffer the schedule computes the same values, and a run that fails leaves all inputs intact.
    Proof, for an input v that kernel K of stage s reads and an output w that it writes:

    1. Nothing reads v after K: s is the last stage that reads v, K its only reader there, and v holds none of the `results`.
    2. Nothing has written w before K: s is the first stage that writes w, and calls of one stage write different values, or
       parts of one `cat`; of these one that reads as much as w has is the only one with elements.
    3. K itself reads each element of v before it writes that element of w, and not afterwards (`_in_step`). K is no product
       of factors, whose points may be computed twice, nor part of a loop, where one tile could be written before another reads.
    4. If the run fails, it fails in a stage before s (`last_failing_stage`), when K has not yet written.
    5. Each input is in one pair, and so is each output: the input is taken from the list, the output comes up once.
    """
    first = {v: n for n, stage in reversed([*enumerate(schedule.stages)]) for call in stage for v in call.writes}
    last = {v: n for n, stage in enumerate(schedule.stages) for call in stage for v in call.reads}
    locations, wanted = schedule.locations, frozenset(results)
    # 18 of the 25 buffers of an Adam step are donated.
    pairs: list[tuple[int, int]] = []
    begin = last_failing_stage(schedule.stages) + 1
    for number, stage in enumerate(schedule.stages[begin:], begin):
        read = Counter([v for call in stage for part in parts(call) for v in part.reads])
        for call in [part for whole in stage if not isinstance(whole, Loop) for part in parts(whole)]:
            if not isinstance(call, KernelCall):
                continue
            inputs = [v for v in call.reads if locations[v].kind == "input" and last[v] == number and read[v] == 1
                      and v not in wanted]
            outputs = [v for v in call.writes if locations[v].kind == "output" and first[v] == number]
            if inputs and outputs and call.kernel.factors is None:
                matched = _matched(nodes, call.kernel, inputs, outputs)
                pairs += [(locations[v].position, locations[w].position) for v, w in matched]
    return pairs


def last_failing_stage(stages: Sequence[Stage]) -> int:
    """The last stage that may fail; -1 if none may."""
    return max([number for number, stage in enumerate(stages) if any(map(may_fail, stage))], default=-1)


def _matched(nodes: Sequence[Node], kernel: Kernel, inputs: list[int], outputs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of an input and an output of equal size that a kernel accesses in step."""
    touching: dict[int, list[int]] = {}  # value -> the instructions that touch its memory
    for number, i in enumerate(kernel.instructions):
        if i.access is not None and kernel.words[i.access.pointer].kind == "pointer":
            touching.setdefault(kernel.words[i.access.pointer].value, []).append(number)
    for output in outputs:
        size, writing = nodes[output].nbytes, touching[output]
        found = next((v for v in inputs if nodes[v].nbytes == size and _in_step(kernel, touching[v], writing)), None)
        if found is not None:
            inputs.remove(found)
            yield found, output


def _in_step(kernel: Kernel, reading: Sequence[int], writing: Sequence[int]) -> bool:
    """Whether a kernel can write one value over another that it reads, given the instructions that touch each.

    All of them must have equal strides, and the kernel read before it writes.
    """
    words, instructions = kernel.words, kernel.instructions
    accesses = set()
    for i in [instructions[n] for n in (*reading, *writing)]:
        assert i.access is not None
        accesses.add((words[i.access.pointer].extra, kernel.strides(i.access), i.access.dtype.itemsize))
        if i.name not in ("load", "store"):
            return False
    return len(accesses) == 1 and _reads_first(kernel, tuple(reading), tuple(writing))


@of_code
def _reads_first(kernel: Kernel, reading: Sequence[int], writing: Sequence[int]) -> bool:
    """Whether a kernel reads each element before it writes it, and not afterwards, if `reading` and `writing` go in step.

    The stores must be in the last pass and depend on a load: then that pass reads each element before it overwrites it, and
    never reads it again.
    """
    instructions = kernel.instructions
    last = max([i.step for i in instructions if i.level == "full" or i.name == "store"])
    stores = [n for n in writing if instructions[n].name == "store"]
    if any([instructions[n].step < last or not _depends(kernel, n, set(reading)) for n in stores]):
        return False
    # What reaches a store through a reduction was loaded in an earlier pass, and may be loaded again after the store.
    targets = kernel.targets(last)
    for index in [targets.index(store) for store in stores if store in targets]:
        if not {*kernel.needed(targets[index + 1 :])}.difference(kernel.needed(targets[: index + 1])).isdisjoint(reading):
            return False
    # A row's value is loaded at each use, so no later store may be computed from it.
    rows = [n for n in reading if instructions[n].level != "full"]
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
