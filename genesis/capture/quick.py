"""The quick way of a replay, for programs whose results are small: all that is left of a call is its data.

Nothing is pending in between. Results lie in turn in one of two sets of places, where nobody holds any more what was there
before; the program runs; then one native call puts all of them where they belong. Whatever goes wrong before, nothing has
happened.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import chain
from operator import add, attrgetter
from typing import Any

from genesis.capture.outcome import Outcome, find
from genesis.capture.prepared import SMALL, Prepared
from genesis.runtime.counters import count
from genesis.runtime.memory import Buffer
from genesis.storage import note
from genesis.tensor import Tensor, hold_gradient
from genesis.tracing import Array, Memory

__all__ = ["FAULT", "Commit", "Quick"]

FAULT = object()  # an index was out of range; nothing has happened

_new = object.__new__
_pointer, _array, _version = attrgetter("memory.pointer"), attrgetter("_array"), attrgetter("_version")
_references = sys.getrefcount
_OWN = 4  # references to a memory of ours: its array, the places' two lists, getrefcount's argument


class Commit:
    """Whether what a call changes has been put in place: before that it can be taken back."""

    done = False


class _Places:
    """A place for each result: arrays, their memories and buffers, and how often each is referred to if nobody holds it."""

    def __init__(self, makers: Sequence[Callable[[], Array]]) -> None:
        self._makers = makers
        self.arrays: list[Array] = [make() for make in makers]
        self._note()

    def _note(self) -> None:
        self.pointers = [*map(_pointer, self.arrays)]
        self.memories: list[Any] = [array.memory for array in self.arrays]
        self._all = [*self.arrays, *self.memories, *[memory.buffer for memory in self.memories]]
        self._alone = [*map(_references, self._all)]

    def free(self) -> None:
        """Put new arrays in place of those that somebody holds, or whose memory somebody does."""
        held = [*map(_references, self._all)]
        if held != self._alone:
            count = len(self.arrays)
            for k in {place % count for place, (now, alone) in enumerate(zip(held, self._alone, strict=True)) if now != alone}:
                self.arrays[k] = self._makers[k]()
            self._note()


class Quick:
    """A program, the tensors that it writes over, and the gradients that it leaves."""

    def __init__(self, prepared: Prepared, writes: Sequence[Any], cleared: Sequence[Any], outcome: Outcome) -> None:
        plan = prepared.plan
        self._program = plan.segments[0].program
        self._order = plan.inputs if plan.inputs != [*range(len(prepared.positions))] else None
        self._arena = prepared.arena
        assert self._arena is not None
        self._last = self._arena.ptr
        self._outcome = outcome
        spent = prepared.spent_trace()

        def maker(index: int, k: int, layout: Any, dtype: Any) -> Callable[[], Array]:
            node = prepared.nodes[index]
            trace = spent if node.differentiable else None
            return lambda: Array(trace, index, node, Memory(Buffer(plan.sizes[k], spent.device), layout, dtype))

        # Outputs in the order of the plan's memories.
        order = sorted(range(len(prepared.outputs)), key=lambda i: prepared.layouts[i][0])
        makers = [maker(prepared.outputs[i], *prepared.layouts[i]) for i in order]
        self._places = _Places(makers), _Places(makers)
        place_of = {i: place for place, i in enumerate(order)}
        at = {index: place_of[i] for i, index in enumerate(prepared.outputs)}
        self._roots = [write.source for write in writes]
        self._written = [place_of[write.output] for write in writes]
        self._versions = [write.versions for write in writes]
        self._notes = [(write.notes, write.change) for write in writes]
        self._graded = [source for source, _ in outcome.gradients]
        self._gradients = [recipe for _, recipe in outcome.gradients]
        self._plain: list[int] | None = None  # where the gradients are, if they are nothing but new values
        if all(recipe is not None and recipe.is_plain for recipe in self._gradients):
            self._plain = [at[recipe.key[1]] for recipe in self._gradients]  # type: ignore[union-attr]
        self._wanted = [(key, at[key[1]]) for key in outcome.keys(self._plain is None)]
        self._bare = [source for source in cleared if source not in set(self._graded)]
        self._are_holders = False  # the graded, for good
        self._nothing = [None] * len(self._bare)
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
        others, places = self._places
        self._places = places, others
        places.free()
        if self._order is not None:
            arrays = [arrays[k] for k in self._order]
        if self._program.run([*map(_pointer, arrays), *places.pointers, self._last, *numbers]) is not None:  # type: ignore[union-attr]
            return FAULT
        results = places.arrays
        values = {key: results[k] for key, k in self._wanted}
        made: dict[int, Tensor] = {}
        roots, graded, tensors = self._held or self._tensors(leaves)
        before = [*map(_array, roots)]
        if self._plain is None:
            gradients = [recipe and self._outcome.tensor(recipe, values, leaves, made) for recipe in self._gradients]
        else:
            gradients = []
            for k in self._plain:
                gradient = _new(Tensor)
                gradient._array, gradient._requires_grad, gradient._keeps_derivation = results[k], False, True
                gradients.append(gradient)
        versions = map(add, map(_version, roots), self._versions)
        news = chain(map(results.__getitem__, self._written), versions, gradients, self._nothing, (True,))
        any(map(setattr, (*tensors, commit), self._names, news))  # in one breath: no interrupt comes between
        ours = others.arrays
        for array, k, (times, change) in zip(before, self._written, self._notes, strict=True):
            if ours[k] is not array or _references(array.memory) > _OWN:  # somebody may have kept it for a backward
                for _ in range(times):
                    note(array, change)
        if not self._are_holders:
            for tensor in graded:
                hold_gradient(tensor, tensor._grad)
            self._are_holders = self._held is not None
        count("flushes")
        count("plan_hits")
        return self._outcome.build(values, leaves, made)
