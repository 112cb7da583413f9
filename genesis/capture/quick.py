"""The quick way of a replay, for programs whose results are small: all that is left of a call is its data.

Nothing is pending in between. Results lie where those before the last ones lay, if nobody holds these any more; the
program runs; then one call of native code puts all of them in place. Whatever goes wrong before, nothing has happened.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from genesis.capture.outcome import Outcome, find
from genesis.capture.prepared import Prepared
from genesis.runtime.counters import count
from genesis.runtime.memory import Buffer
from genesis.storage import note
from genesis.tensor import Tensor, hold_gradient
from genesis.trace import Array, Memory

__all__ = ["FAULT", "Quick"]

FAULT = object()  # an index was out of range; nothing has happened

# References to an array that nobody holds: the list of places, the loop's name, getrefcount's argument. To its memory and to
# that one's buffer: the holder, the argument.
_ARRAY, _WITHIN = 3, 2
_pointer = attrgetter("memory.pointer")


class Quick:
    """A program, the tensors that it writes over, and the gradients that it leaves."""

    def __init__(self, prepared: Prepared, writes: Sequence[Any], cleared: Sequence[Any], outcome: Outcome) -> None:
        plan = prepared.plan
        self._program = plan.segments[0].program
        self._order = plan.inputs if plan.inputs != [*range(len(prepared.positions))] else None
        self._arena = prepared.arena
        self._outcome = outcome
        spent = prepared.spent_trace()
        nodes = prepared.nodes
        self._makers: list[Callable[[], Array]] = []
        for index, (k, layout, dtype) in zip(prepared.outputs, prepared.layouts, strict=True):
            def make(index: int = index, size: int = plan.sizes[k], layout: Any = layout, dtype: Any = dtype) -> Array:
                node = nodes[index]
                memory = Memory(Buffer(size, spent.device), layout, dtype)
                return Array(spent if node.differentiable else None, index, node, memory)
            self._makers.append(make)
        self._slot_of = [k for k, _, _ in prepared.layouts]
        self._places: list[list[Array]] = [[] for _ in self._makers]
        at = {index: place for place, index in enumerate(prepared.outputs)}
        graded = {source for source, _ in outcome.gradients}
        self._writes = writes
        self._bare = [source for source in cleared if source not in graded]
        self._graded = [source for source, _ in outcome.gradients]
        self._recipes = [recipe for _, recipe in outcome.gradients]
        self._names = ["_array"] * len(writes) + ["_version"] * len(writes) + ["_grad"] * (len(graded) + len(self._bare))
        self._needed = [((0, index), place) for index, place in at.items()]

    @staticmethod
    def fits(prepared: Prepared) -> bool:
        """Whether a program's results are all small, or new memory that no input could have given."""
        return prepared.is_short and not prepared.donations and prepared.arena is not None

    def replay(self, arrays: list[Array], numbers: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """Run on these inputs and numbers; returns what the call returns, or FAULT."""
        results = []
        refcount = sys.getrefcount
        for places, make in zip(self._places, self._makers, strict=True):
            for array in places:
                if (
                    refcount(array) == _ARRAY and refcount(array.memory) == _WITHIN
                    and refcount(array.memory.buffer) == _WITHIN  # type: ignore[union-attr]
                ):
                    buffer = array.memory.buffer  # type: ignore[union-attr]
                    buffer.version, buffer.origin, buffer.change = 0, None, None
                    break
            else:
                array = make()
                if len(places) == 2:
                    del places[0]
                places.append(array)
            results.append(array)
        slots = [*map(_pointer, arrays)] if self._order is None else [_pointer(arrays[k]) for k in self._order]
        pointers = [0] * len(results)
        for k, array in zip(self._slot_of, results, strict=True):
            pointers[k] = array.memory.pointer  # type: ignore[union-attr]
        slots += pointers
        slots.append(self._arena.ptr)  # type: ignore[union-attr]
        slots += numbers
        if self._program.run(slots) is not None:  # type: ignore[union-attr]
            return FAULT
        values = {key: results[place] for key, place in self._needed}
        made: dict[int, Tensor] = {}
        roots = [find(write.source, leaves) for write in self._writes]
        graded = [find(source, leaves) for source in self._graded]
        gradients = [None if recipe is None else self._outcome.tensor(recipe, values, leaves, made) for recipe in self._recipes]
        before = [root._array for root in roots]
        objects = [*roots, *roots, *graded, *[find(source, leaves) for source in self._bare]]
        news = [
            *[results[write.output] for write in self._writes],
            *[root._version + write.versions for root, write in zip(roots, self._writes, strict=True)],
            *gradients, *[None] * len(self._bare),
        ]
        any(map(setattr, objects, self._names, news))  # in one breath: no interrupt comes between
        for array, write in zip(before, self._writes, strict=True):
            for _ in range(write.notes):
                note(array, write.change)
        for tensor in graded:
            if not tensor._is_holder:
                hold_gradient(tensor, tensor._grad)
        count("flushes")
        count("plan_hits")
        return self._outcome.build(values, leaves, made)

