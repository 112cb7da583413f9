"""Where the results of a replay lie: large ones over what nobody else holds, small ones in places that are kept for them."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

from genesis.capture.replay.program import ReplayProgram
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ops.layout import Layout
from genesis.runtime.devices import Device
from genesis.runtime.memory import Buffer
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array, Trace

__all__ = ["Places", "ReusedBuffers", "places_of"]

# References to what nobody else holds. To an array: the list that is given, zip's tuple, a local name, getrefcount's argument;
# to its memory, and to the buffer of that: the one whose it is, a local name, the argument.
_GIVEN, _MEMORY, _BUFFER = 4, 3, 3


class Place:
    """An output: what it is and how much memory it takes."""

    def __init__(
        self, trace: Trace | None, index: int, node: Node, size: int, device: Device, layout: Layout, dtype: DType
    ) -> None:
        self.node = node
        self.size = size
        self._handle = trace, index, node
        self._device = device
        self._laid = layout, dtype

    def array(self) -> Array:
        """A new array for it, in memory of its own."""
        return Array(*self._handle, Memory(Buffer(self.size, self._device), *self._laid))


def places_of(replay: ReplayProgram) -> list[Place]:
    """Those of a program's outputs, which lie apart."""
    spent = replay.spent_trace()
    places = []
    for index, (number, layout, dtype) in zip(replay.outputs, replay.layouts, strict=True):
        node = replay.nodes[index]
        trace = spent if node.differentiable else None
        places.append(Place(trace, index, node, replay.plan.sizes[number], replay.device, layout, dtype))
    return places


class Places:
    """An array for each of some small outputs, to be used again as long as nobody holds it.

    Attributes:
        arrays: one for each output.
        pointers: where they are.
        written: those that tensors are to hold from now on.
    """

    def __init__(self, places: Sequence[Place], written: Sequence[int]) -> None:
        self._places = places
        self._written = written
        self.arrays = [place.array() for place in places]
        self._note()

    def _note(self) -> None:
        memories: list[Any] = [array.memory for array in self.arrays]
        self.pointers = [memory.pointer for memory in memories]
        self.written = [self.arrays[k] for k in self._written]
        self._all = [*self.arrays, *memories, *[memory.buffer for memory in memories]]
        del memories
        self._alone = [*map(getrefcount, self._all)]

    def free(self) -> None:
        """Put new arrays in place of those that somebody holds, or whose memory somebody does."""
        held = [*map(getrefcount, self._all)]
        if held != self._alone:
            count = len(self.arrays)
            for k in {place % count for place, (now, alone) in enumerate(zip(held, self._alone, strict=True)) if now != alone}:
                self.arrays[k] = self._places[k].array()
            self._note()


class ReusedBuffers:
    """Outputs that may be written over what is there already: parameters, moments, gradients of a call before.

    `others` says for each how often its array is referred to, if nobody else holds it, besides the list that is given.
    """

    def __init__(self, places: Sequence[Place], others: Sequence[int]) -> None:
        self._places = places
        self._references = [other + _GIVEN for other in others]

    def kept(self, arrays: Sequence[Array | None]) -> list[Array]:
        """`arrays`, with new ones in place of those that are not whole buffers of their own which nobody else holds, and
        whose values no backward asks for.

        `arrays` has the array of each output's shape and dtype that is there; it may be pending, or None.
        """
        kept = []
        for array, references, place in zip(arrays, self._references, self._places, strict=True):
            if array is None or array.memory is None or getrefcount(array) != references:
                kept.append(place.array())
                continue
            memory = array.memory
            buffer = memory.buffer
            whole = buffer.nbytes == place.size and memory.strides is None and buffer._owner is None
            alone = getrefcount(memory) == _MEMORY and getrefcount(buffer) == _BUFFER and buffer.origin is None
            kept.append(array if whole and alone else place.array())
        return kept
