"""The quick way of a replay, for programs whose results are small: all that is left of a call is its data.

Nothing is pending in between. Results lie in turn in one of two sets of places, where nobody holds any more what was there
before; the program runs; then one native call puts all of them where they belong. Whatever goes wrong before, nothing has
happened.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from genesis.capture.outcome import Outcome, find
from genesis.capture.prepared import SMALL, Prepared
from genesis.runtime.counters import count
from genesis.runtime.memory import Buffer
from genesis.storage import note
from genesis.tensor import Tensor, hold_gradient
from genesis.trace import Array, Memory

__all__ = ["FAULT", "Commit", "Quick"]

FAULT = object()  # an index was out of range; nothing has happened

_new = object.__new__
_pointer, _version = attrgetter("memory.pointer"), attrgetter("version")
_references = sys.getrefcount
_OWN = 3  # references to a memory of ours: its array, the places' list, getrefcount's argument


class Commit:
    """Whether what a call changes has been put in place: before that it can be taken back."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False


class _Places:
    """A place for each result: arrays, their memories and buffers, and how often each is referred to if nobody holds it."""

    def __init__(self, makers: Sequence[Callable[[], Array]]) -> None:
        self._makers = makers
        self.arrays: list[Array] = [make() for make in makers]
        self._note()

    def _note(self) -> None:
        self.pointers = [*map(_pointer, self.arrays)]
        self._memories: list[Any] = [array.memory for array in self.arrays]
        self._buffers: list[Any] = [memory.buffer for memory in self._memories]
        self._alone = self._held()

    def _held(self) -> tuple[list[int], list[int], list[int]]:
        return [*map(_references, self.arrays)], [*map(_references, self._memories)], [*map(_references, self._buffers)]

    def free(self) -> None:
        """Put new arrays in place of those that somebody holds, or whose memory somebody does."""
        held = self._held()
        if held != self._alone:
            for k, now in enumerate(zip(*held, strict=True)):
                if now != (self._alone[0][k], self._alone[1][k], self._alone[2][k]):
                    self.arrays[k] = self._makers[k]()
            self._note()
        if any(map(_version, self._buffers)):
            for buffer in self._buffers:
                buffer.version = 0


class Quick:
    """A program, the tensors that it writes over, and the gradients that it leaves."""

    def __init__(self, prepared: Prepared, writes: Sequence[Any], cleared: Sequence[Any], outcome: Outcome) -> None:
        plan = prepared.plan
        self._program = plan.segments[0].program
        self._order = plan.inputs if plan.inputs != [*range(len(prepared.positions))] else None
        self._arena = prepared.arena
        self._outcome = outcome
        spent = prepared.spent_trace()

        def maker(index: int, k: int, layout: Any, dtype: Any) -> Callable[[], Array]:
            node = prepared.nodes[index]
            trace = spent if node.differentiable else None
            return lambda: Array(trace, index, node, Memory(Buffer(plan.sizes[k], spent.device), layout, dtype))

        # Outputs in the order of the plan's memories.
        order = sorted(range(len(prepared.outputs)), key=lambda i: prepared.layouts[i][0])
        makers = [maker(prepared.outputs[i], *prepared.layouts[i]) for i in order]
        self._places = [_Places(makers), _Places(makers)]
        place_of = {i: place for place, i in enumerate(order)}
        at = {index: place_of[i] for i, index in enumerate(prepared.outputs)}
        self._keys = [((0, index), at[index]) for index in prepared.outputs]
        self._roots = [write.source for write in writes]
        self._written = [place_of[write.output] for write in writes]
        self._versions = [write.versions for write in writes]
        self._notes = [(write.notes, write.change) for write in writes]
        self._graded = [source for source, _ in outcome.gradients]
        self._gradients: list[Any] = [recipe and (at[recipe.value[-1]] if recipe.is_plain else None, recipe)
                                      for _, recipe in outcome.gradients]
        self._bare = [source for source in cleared if source not in set(self._graded)]
        self._names = [
            *["_array"] * len(writes), *["_version"] * len(writes), *["_grad"] * (len(self._graded) + len(self._bare)), "done"]
        self._held = self._tensors(()) if all(
            source[0] == "held" for source in (*self._roots, *self._graded, *self._bare)) else None

    @staticmethod
    def fits(prepared: Prepared) -> bool:
        """Whether a program has small results and temporaries, and nothing else to be seen to."""
        return prepared.is_short and not prepared.donations and prepared.arena is not None and all(
            size <= SMALL for size in prepared.plan.sizes)

    def _tensors(self, leaves: Sequence[Any]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """What is written over, whose gradient is new, and both with those that lose theirs, in the order of `_names`."""
        roots = [find(source, leaves) for source in self._roots]
        graded = [find(source, leaves) for source in self._graded]
        return roots, graded, [*roots, *roots, *graded, *[find(source, leaves) for source in self._bare]]

    def replay(self, arrays: list[Array], numbers: Sequence[Any], leaves: Sequence[Any], commit: Commit) -> Any:
        """Run on these inputs and numbers; returns what the call returns, or FAULT."""
        places = self._places[0]
        self._places.reverse()
        places.free()
        slots = [*map(_pointer, arrays if self._order is None else [arrays[k] for k in self._order])]
        slots += places.pointers
        slots.append(self._arena.ptr)  # type: ignore[union-attr]
        slots += numbers
        if self._program.run(slots) is not None:  # type: ignore[union-attr]
            return FAULT
        results = places.arrays
        values = {key: results[place] for key, place in self._keys}
        made: dict[int, Tensor] = {}
        roots, graded, tensors = self._held or self._tensors(leaves)
        before = [root._array for root in roots]
        news: list[Any] = [results[k] for k in self._written]
        news += [root._version + rise for root, rise in zip(roots, self._versions, strict=True)]
        for told in self._gradients:
            if told is None:
                news.append(None)
                continue
            k, recipe = told
            if k is None:
                gradient = self._outcome.tensor(recipe, values, leaves, made)
            else:
                gradient = made[id(recipe)] = _new(Tensor)
                gradient._array, gradient._requires_grad, gradient._keeps_derivation = results[k], False, True
            news.append(gradient)
        news += [None] * len(self._bare)
        news.append(True)
        any(map(setattr, [*tensors, commit], self._names, news))  # in one breath: no interrupt comes between
        others = self._places[0].arrays
        for array, k, (times, change) in zip(before, self._written, self._notes, strict=True):
            if others[k] is not array or _references(array.memory) > _OWN:  # somebody may have kept it for a backward
                for _ in range(times):
                    note(array, change)
        for tensor in graded:
            if not tensor._is_holder:
                hold_gradient(tensor, tensor._grad)
        count("flushes")
        count("plan_hits")
        return self._outcome.build(values, leaves, made)
