"""Fast replay of a call that is a single program of the host's.

Nothing is pending in between. Results lie where nobody holds any more what was there before (see `places`); the program
runs, and in the same breath all of them come where they belong. Whatever goes wrong before, nothing has happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from sys import getrefcount
from typing import Any, NamedTuple

from genesis.capture.guards.tensor_guards import unlike
from genesis.capture.record.records import InputSource
from genesis.capture.record.results import Results, find
from genesis.capture.replay.program import SMALL, ReplayProgram
from genesis.capture.replay.reused_buffers import Places, ReusedBuffers, places_of
from genesis.runtime.counters import counts
from genesis.runtime.scratch import scratch
from genesis.tensor.handle import Tensor, hold_gradient
from genesis.tensor.in_place import note
from genesis.tracing.trace import Array

__all__ = ["FAULT", "Commit", "SingleProgramReplay"]

FAULT = object()  # an index was out of range; nothing has happened

_new = object.__new__
_memory = attrgetter("memory")

# References to what a tensor holds that got a small result, if nobody else does. To the array: the tensor, three lists of its
# places, the list of all that is there, getrefcount's argument; to its memory: the array, a list of the places', the argument.
_ARRAY, _MEMORY = 6, 3
_DONOR, _REGAINED = 2, 0  # besides the list that is given: the tensor, the list of inputs; nobody


class Commit:
    """Whether what a call changes has been put in place: before that it can be taken back."""

    done = False


class _Tensors(NamedTuple):
    """What a call changes, and in which order: arrays, versions, gradients, that it is done."""

    roots: list[Tensor]  # that are written over
    graded: list[Tensor]  # whose gradient is new, or lost
    replaced: list[Tensor]  # of which the new one may lie where the old one lay
    moving: list[Tensor]  # the roots that get another array
    changing: tuple[Any, ...]
    names: tuple[str, ...]
    restored: tuple[Any, ...]  # after a fault
    restored_names: tuple[str, ...]


class SingleProgramReplay(Commit):
    """A program, the tensors that it writes over, and the gradients that it leaves.

    Its results are told apart by where they lie. Those that have a home are written there: over what a tensor holds, if the
    program can do so, or where a gradient lay that is replaced. Other small ones lie in one of two sets of places, in turn;
    so do all if none is large. Other large ones are given fresh memory.
    """

    def __init__(
        self, replay: ReplayProgram, inputs: Sequence[InputSource], writes: Sequence[Any], cleared: Sequence[Any],
        left: Results,
    ) -> None:
        plan, outputs = replay.plan, {index: k for k, index in enumerate(replay.outputs)}
        self._program: Any = plan.segments[0].program
        self._inputs = plan.inputs if plan.inputs != [*range(len(replay.positions))] else None
        self._arena_bytes = plan.arena_bytes
        self._can_fail = any(node.op == "check_index" for node in plan.lowered.nodes)
        self._results = left
        self._recipes = [recipe for _, recipe in left.gradients]
        plain = [recipe for recipe in self._recipes if recipe is not None and recipe.is_plain]
        all_plain = len(plain) == len(self._recipes)
        graded = [source for source, _ in left.gradients]
        replaced = {outputs[recipe.key[1]]: source for recipe, source in zip(plain, graded, strict=True)
                    if source in cleared} if all_plain else {}

        donors = {number: plan.inputs[k] for k, number in plan.donations}
        given = {number: inputs[k].source for number, k in donors.items()}
        small, fresh, over, regained = _partition(replay, given, writes, replaced)
        results = [*small, *fresh, *over, *regained]
        at = {k: place for place, k in enumerate(results)}
        order = sorted(range(len(results)), key=lambda place: replay.layouts[results[place]][0])
        self._in_order = itemgetter(*order) if order != [*range(len(order))] else None

        places = places_of(replay)
        writes = sorted(writes, key=lambda write: at[write.output])
        self._written = [at[write.output] for write in writes]
        self._small = sum(place < len(small) for place in self._written)
        self._moving = sum(place < len(small) + len(fresh) for place in self._written)
        of_small = [places[k] for k in small], self._written[: self._small]
        self._places = Places(*of_small), Places(*of_small)
        self._fresh = [places[k] for k in fresh]
        self._homes = ReusedBuffers(
            [places[k] for k in (*over, *regained)], [*[_DONOR] * len(over), *[_REGAINED] * len(regained)])
        self._donors = [donors[replay.layouts[k][0]] for k in over]
        self._nodes = [places[k].node for k in regained]
        self._versions = [write.versions for write in writes]
        self._notes = [(write.notes, write.change) for write in writes]
        self._plain = [at[outputs[recipe.key[1]]] for recipe in plain] if all_plain else None
        self._wanted = [(key, at[outputs[key[1]]]) for key in left.keys(not all_plain)]
        bare = [source for source in cleared if source not in graded]
        self._nothing = [None] * len(bare)
        self._gone = [source in cleared for source in (*graded, *bare)]
        self._sources = [write.source for write in writes], graded, bare, [replaced[k] for k in regained]
        self._held = self._tensors(()) if all(
            source[0] == "tensor" for sources in self._sources for source in sources) else None
        self._are_holders = False  # the graded, for good

    @staticmethod
    def fits(replay: ReplayProgram) -> bool:
        """Whether a program is one native call of the host's."""
        return replay.is_short and replay.device.memory.is_host

    def _tensors(self, leaves: Sequence[Any]) -> _Tensors:
        """The tensors that the program changes in a call with these leaves."""
        roots, graded, bare, replaced = [[find(source, leaves) for source in sources] for sources in self._sources]
        return self._changed(roots, [*graded, *bare], replaced, self._moving)

    def _changed(self, roots: list[Tensor], graded: list[Tensor], replaced: list[Tensor], count: int) -> _Tensors:
        moving = roots[:count]
        arrays, versions, gradients = ["_array"] * count, ["_version"] * len(roots), ["_grad"] * len(graded)
        return _Tensors(
            roots, graded, replaced, moving, (*moving, *roots, *graded, self), (*arrays, *versions, *gradients, "done"),
            (*moving, *graded, self), (*arrays, *gradients, "done"))

    def replay(self, arrays: list[Array], numbers: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """Run on these inputs and numbers; returns what the call returns, or FAULT."""
        roots, graded, replaced, moving, changing, names, restored, restored_names = self._held or self._tensors(leaves)
        others, places = self._places
        self._places = places, others
        places.free()
        results, moved = places.arrays, places.written
        if self._fresh or self._donors or self._nodes:
            there = [*[arrays[k] for k in self._donors], *self._let_go(replaced)]
            home = self._homes.kept(there)
            results = [*results, *[place.array() for place in self._fresh], *home]
            if home != there:  # some get another array than they have
                _, _, _, moving, changing, names, restored, restored_names = self._changed(roots, graded, replaced, len(roots))
            moved = [results[k] for k in self._written[: len(moving)]]
        temporary = scratch.buffer(self._arena_bytes)
        slots = [*self._pointers(arrays, results), temporary.ptr, *numbers]
        arrays.clear()
        before = [root._array for root in moving]
        self._note(before, moved, others)
        values = {key: results[k] for key, k in self._wanted}
        made: dict[int, Tensor] = {}
        versions = [root._version + times for root, times in zip(roots, self._versions, strict=True)]
        news = *moved, *versions, *self._made(results, values, leaves, made), *self._nothing, True
        undo = map(setattr, restored, restored_names, (*before, *self._lost(graded), False)) if self._can_fail else ()
        result = self._results.build(values, leaves, made) if self._results.is_new else None
        if self._program.run(slots, before=map(setattr, changing, names, news), undo=undo) is not None:
            return FAULT
        if not self._are_holders:
            for tensor in graded:
                hold_gradient(tensor, tensor._grad)
            self._are_holders = self._held is not None
        counts["flushes"] += 1
        counts["plan_hits"] += 1
        return result if self._results.is_new else self._results.build(values, leaves, made)

    def _let_go(self, replaced: Sequence[Tensor]) -> list[Array | None]:
        """What the gradients of these tensors hold, which they lose: arrays that the new ones may lie over."""
        held = [tensor._grad for tensor in replaced]
        any(map(setattr, replaced, repeat("_grad"), repeat(None)))
        return [
            None if gradient is None or (gradient._array.node is not node and unlike(gradient._array.node, node))
            else gradient._array for gradient, node in zip(held, self._nodes, strict=True)]

    def _pointers(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[int]:
        """Where the program's inputs and outputs lie."""
        if self._inputs is not None:
            inputs = [inputs[k] for k in self._inputs]
        outputs: Sequence[int] = [array.memory.pointer for array in results]
        if self._in_order is not None:
            outputs = self._in_order(outputs)
        return [*[array.memory.pointer for array in inputs], *outputs]

    def _made(self, results: Sequence[Array], values: Any, leaves: Sequence[Any], made: Any) -> list[Tensor | None]:
        """The new gradients."""
        if self._plain is None:
            return [None if recipe is None else self._results.tensor(recipe, values, leaves, made) for recipe in self._recipes]
        gradients: list[Tensor | None] = []
        for k in self._plain:
            gradient = _new(Tensor)
            gradient._array, gradient._requires_grad, gradient._keeps_derivation = results[k], False, True
            gradients.append(gradient)
        return gradients

    def _lost(self, graded: Sequence[Tensor]) -> list[Tensor | None]:
        """The gradients that are there if the program fails: the call loses some before."""
        return [None if gone else tensor._grad for tensor, gone in zip(graded, self._gone, strict=True)]

    def _note(self, before: Sequence[Array], moved: Sequence[Array], others: Places) -> None:
        """What is about to be written over may be what a backward is still to read, if somebody kept it."""
        few, ours = self._small, others.written
        alone = before[:few] == ours and sum(map(getrefcount, ours)) == _ARRAY * few and (
            sum(map(getrefcount, map(_memory, ours))) == _MEMORY * few)
        for k in range(few if alone else 0, len(before)):
            array, (times, change) = before[k], self._notes[k]
            if array is not moved[k]:
                for _ in range(times):
                    note(array, change)


def _partition(
    replay: ReplayProgram, given: Mapping[int, Any], writes: Sequence[Any], replaced: Mapping[int, Any]
) -> tuple[list[int], list[int], list[int], list[int]]:
    """The outputs that are small, fresh, over what a tensor holds, and regained from a gradient.

    `given` has the source of the input that each of the plan's outputs may be written over, `replaced` the outputs that are
    gradients in the place of others.
    """
    plan, nodes = replay.plan, replay.nodes
    writers: dict[int, list[Any]] = {}
    for write in writes:
        writers.setdefault(write.output, []).append(write.source)
    has_large = max(plan.sizes, default=0) > SMALL
    small: list[int] = []
    fresh: list[int] = []
    over: list[int] = []
    regained: list[int] = []
    for k, (number, layout, _) in enumerate(replay.layouts):
        is_whole = layout.is_contiguous and layout.offset == 0 and not nodes[replay.outputs[k]].differentiable
        if has_large and is_whole and number in given and writers.get(k) == [given[number]]:
            over.append(k)
        elif has_large and is_whole and k in replaced and k not in writers:
            regained.append(k)
        else:
            (small if plan.sizes[number] <= SMALL else fresh).append(k)
    return small, fresh, over, regained
