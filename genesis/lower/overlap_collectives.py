"""Overlap: a collective starts as soon as its operand is computed, and is awaited before its result is first read.

Before: stages in order, each collective a stage of its own. After: the same stages reordered: first what the first collective
needs, then what the second one needs in addition, and so on; the needs of a later collective that is ready come before one that
waits for another. Then stages that wait for no collective, and last the rest, each group in its old order. Collectives start in
program order, which is the same on all ranks.

A transient collective also waits for the readers of earlier ones' results, so that few results are in memory.

A stage that may fail is not moved, and nothing is in flight there: other ranks would wait for what is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from genesis.ir.graph import Node
from genesis.lower.stages import HostCall, Stage, may_fail, parts
from genesis.ops.registry import PRIMITIVES
from genesis.ops.transient import is_transient

AHEAD = 4  # collectives to look ahead for one whose operand can be computed meanwhile


def overlap_collectives(nodes: Sequence[Node], stages: list[Stage]) -> list[Stage]:
    """The stages, with collectives in flight while others compute."""
    if not any([_collective(nodes, stage) for stage in stages]):
        return stages
    result: list[Stage] = []
    run: list[Stage] = []
    checked: set[int] = set()
    for stage in stages:
        fails = _collective(nodes, stage) is None and any(map(may_fail, stage))
        done = {i for call in stage for part in parts(call) for i in getattr(part, "nodes", ())}
        checks = {i for i in done if PRIMITIVES[nodes[i].op].fault is not None}
        if fails and not (checks and checks <= checked):  # a checked index does not fail later
            result += [*_Overlap(nodes, run).stages(), stage]
            run = []
        else:
            run.append(stage)
        checked |= checks
    return [*result, *_Overlap(nodes, run).stages()]


def _collective(nodes: Sequence[Node], stage: Stage) -> HostCall | None:
    """The collective of a stage, if it is one."""
    [first, *_] = stage
    return first if isinstance(first, HostCall) and PRIMITIVES[nodes[first.node].op].kind == "collective" else None


class _Overlap:
    """The reordering of stages of which only collectives may fail."""

    def __init__(self, nodes: Sequence[Node], stages: Sequence[Stage]) -> None:
        self.nodes, self.stages_before = nodes, stages
        self.collectives = {number: call for number, stage in enumerate(stages) if (call := _collective(nodes, stage))}
        self.needs = _needs(stages)
        _wait_for_room(nodes, self.collectives, stages, self.needs)
        self.done: set[int] = set()
        self.under_way: dict[int, HostCall] = {}  # by result
        self.transient = {number for number, call in self.collectives.items() if is_transient(nodes[call.node])}
        self.older: list[int] = []  # in flight when the last transient one started

    def stages(self) -> Iterator[Stage]:
        """The stages in their new order. A collective awaited right after its start is one stage."""
        started: HostCall | None = None
        for stage in self._ordered():
            [call, *_] = stage
            if started is not None:
                is_alone = isinstance(call, HostCall) and call == started._replace(phase="wait")
                yield [started._replace(phase="" if is_alone else "start")]
                started = None
                if is_alone:
                    continue
            if isinstance(call, HostCall) and call.phase == "start":
                started = call
            else:
                yield stage

    def _ordered(self) -> Iterator[Stage]:
        order = [*self.collectives]
        for position, number in enumerate(order):
            if not self._is_ready(number):  # compute what a later one needs before this one waits
                ahead = next((later for later in order[position + 1 : position + 1 + AHEAD] if self._is_ready(later)), number)
                for need in sorted(self.needs[ahead]) if ahead != number else ():
                    yield from self._with_needs(need)
            yield from self._with_needs(number)
        waiting = {number for number, call in self.collectives.items() if call.node in self.under_way}
        for number in range(len(self.stages_before)):
            if not waiting.isdisjoint(self.needs[number]):
                waiting.add(number)
        for number in [*sorted({*range(len(self.stages_before))} - waiting), *sorted(waiting)]:
            yield from self._with_needs(number)
        yield from self._awaited(self.under_way)

    def _is_ready(self, last: int) -> bool:
        """Whether no stage that `last` needs waits for a collective."""
        wanted, found = [*self.needs[last]], set()
        while wanted:
            number = wanted.pop()
            if number in found:
                continue
            found.add(number)
            call = self.collectives.get(number)
            if call is not None and (number not in self.done or call.node in self.under_way):
                return False
            if number not in self.done:
                wanted += self.needs[number]
        return True

    def _with_needs(self, last: int) -> Iterator[Stage]:
        """Stage `last`, preceded by what it needs and is not emitted yet, in the old order."""
        wanted, found = [last], set()
        while wanted:
            number = wanted.pop()
            if number not in self.done and number not in found:
                found.add(number)
                wanted += self.needs[number]
        for number in sorted(found):
            stage = self.stages_before[number]
            read = dict.fromkeys([value for call in stage for value in call.reads if value in self.under_way])
            # Donations may follow the last wait only, so that comes before the first kernel of an optimizer.
            yield from self._awaited(self.under_way if read and self.done.issuperset(self.collectives) else read)
            if number in self.transient:  # computed early for its readers, so that gradients do not pile up
                yield from self._awaited([value for value in self.older if value in self.under_way])
                self.older = [value for value, call in self.under_way.items() if not is_transient(self.nodes[call.node])]
            if number in self.collectives:
                call = self.collectives[number]
                self.under_way[call.node] = call
                stage = [call._replace(phase="start")]
            yield stage
        self.done |= found

    def _awaited(self, values: Iterable[int]) -> Iterator[Stage]:
        for value in [*values]:
            yield [self.under_way.pop(value)._replace(phase="wait")]


def _needs(stages: Sequence[Stage]) -> list[set[int]]:
    """For each stage, the earlier stages that it depends on by a read or a write."""
    writers: dict[int, list[int]] = {}
    readers: dict[int, list[int]] = {}
    needs: list[set[int]] = []
    for number, stage in enumerate(stages):
        found: set[int] = set()
        for call in stage:
            for value in call.reads:
                found.update(writers.get(value, ()))
            for value in call.writes:
                found.update(writers.get(value, ()), readers.get(value, ()))
        for call in stage:
            for value in call.reads:
                readers.setdefault(value, []).append(number)
            for value in call.writes:
                writers.setdefault(value, []).append(number)
        found.discard(number)
        needs.append(found)
    return needs


def _wait_for_room(
    nodes: Sequence[Node], collectives: Mapping[int, HostCall], stages: Sequence[Stage], needs: Sequence[set[int]]
) -> None:
    """Make transient collectives depend on the readers of the last group but one: so two groups of results are in memory at
    once, one that is read and the next. A group is consecutive collectives up to the first reader of one of them.
    """
    readers: dict[int, set[int]] = {number: set() for number, call in collectives.items() if is_transient(nodes[call.node])}
    values = {collectives[number].node: number for number in readers}
    for number, stage in enumerate(stages):
        for value in {value for call in stage for value in call.reads} & values.keys():
            readers[values[value]].add(number)
    before, last = list[int](), list[int]()
    for number in readers:
        if any([reader < number for each in last for reader in readers[each]]):
            before, last = last, []
        last.append(number)
        needs[number].update([reader for each in before for reader in readers[each] if reader < number])
