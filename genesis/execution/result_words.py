"""A program's result buffers as words that instructions read, and two sets of them that replays use in turns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import add, attrgetter
from typing import Any

from genesis.execution.result_pool import ResultPool
from genesis.ops.layout import Layout
from genesis.runtime.completion import UNOBSERVED
from genesis.runtime.devices import Device
from genesis.runtime.instructions import Instructions, Register
from genesis.runtime.native import NativeProgram
from genesis.runtime.references import IN_LIST, reference_count
from genesis.tracing.trace import Array

RUNS = 2  # sets of result buffers, used in turns

_memory, _buffer = attrgetter("memory"), attrgetter("buffer")
_OWNED = id(None), 0  # an object that somebody owns, and the count that it would have alone


class ResultWords:
    """A run of a program, and the words by which instructions access its memory.

    Attributes:
        owned: {number, objects.., reference counts..} of its results, for SKIP_ALONE.
        addresses: the addresses of its buffers.
        results: the addresses of its results as Array objects, or as Memory objects if its pool has no handles; for a view of
            another result, an Array over that one's memory.
        run: the run.
        has_large: whether `renew` is due before each run.
        unread: for each small value that a tensor gets, {2, array, memory, counts..} as they are while the tensor and a
            register are its only owners.
        large: {number, objects.., reference counts..} of large results, just before the run, if they get no others.
    """

    def __init__(
        self, pool: ResultPool, device: Device, reused: Callable[[], Mapping[int, Array]],
        views: Sequence[tuple[int, int, Layout]] = (),
    ) -> None:
        self._pool, self._reused, self._views, self.has_large = pool, reused, views, pool.has_large
        self._laid: list[Array] = []
        self.run = run = pool.new_run(device)
        self.owned = array("Q", [1, *_OWNED, *bytes(2 * (self._pool.kept_count + 2 * len(views)))])
        self.addresses = array("Q", run.addresses)
        self.results = array("Q", bytes(8 * len(run.arrays)))
        self.unread = [array("Q", [2, id(None), id(None), 0, 0]) for _ in self._pool.selected]
        self.large = array("Q", [0, *bytes(6 * len(pool.passing))])
        self._expected: list[int] = []  # how many owners these get, less what counting adds

    def renew(self) -> None:
        """Allocate memory for large results, and replace memory that has another owner."""
        run, owned = self.run, self.owned
        _write(owned, (1, *_OWNED))  # in case this raises
        self.release()  # left by a call that failed
        self._pool.provide(run, [*map(reference_count, run.kept)], self._reused())
        _write(self.addresses, run.addresses)
        _write(self.results, map(id, run.arrays if self._pool.handles else run.memories))
        kept = [*run.kept]
        for value, root, layout in self._views:
            self._laid.append(_laid(run.arrays[value], run.arrays[root], layout))
            self.results[value] = id(self._laid[-1])
        if self._laid:
            kept = [*{id(one): one for one in (*kept, *self._laid, *map(_memory, self._laid))}.values()]
        counts = [count - IN_LIST for count in map(reference_count, kept)]
        _write(owned, (len(kept), *map(id, kept), *counts))
        if self.unread:
            count_of = dict(zip(map(id, kept), counts, strict=True))
            for words, value in zip(self.unread, self._pool.selected, strict=True):
                of_array, of_memory = id(run.arrays[value]), id(run.memories[value])
                _write(words, (2, of_array, of_memory, count_of[of_array] + 2, count_of[of_memory]))
        self._note_large()

    def expect(self, owners: Mapping[int, int]) -> None:
        """Note how many owners values get between `renew` and the run."""
        values = self._pool.passing
        self._expected = [*[owners.get(value, 0) - IN_LIST for value in values], *[-IN_LIST] * (2 * len(values))]

    def _note_large(self) -> None:
        """Note large results and their owners."""
        run, values = self.run, self._pool.passing
        objects: list[Any] = [*map(run.arrays.__getitem__, values), *map(run.memories.__getitem__, values)]
        objects += map(_buffer, objects[len(values) :])
        counts = map(add, map(reference_count, objects), self._expected)
        _write(self.large, (len(objects), *map(id, objects), *counts))

    def forget(self) -> None:
        """Have all memory replaced before the next run, as that of a failed run may be anybody's."""
        self.run.unowned = None
        _write(self.owned, (1, *_OWNED))

    def is_owned(self) -> bool:
        """Whether `renew` is due: memory has another owner, or none has been written down, as after an interrupt."""
        return self.owned[1] == _OWNED[0] or [*map(reference_count, self.run.kept)] != self.run.unowned

    def release(self) -> None:
        """Release large results, which their tensors own now."""
        self._laid.clear()
        self._pool.drop_passing(self.run)


def _write(words: array[int], values: Iterable[int]) -> None:
    """Write the first words."""
    found = array("Q", values)
    words[: len(found)] = found


def in_turns(code: Instructions, turn: array[int], sets: Sequence[Sequence[ResultWords]]) -> Iterator[int]:
    """Choose the buffers of the last call, which are in caches, if its results have no owner any more; else the others.

    Yields the number of each set, for the caller to emit what happens where that is chosen.
    """
    ends = []
    for k, last in enumerate(sets):
        other = code.emit("SKIP_HALF", word_address(turn), 1 - k, 0)
        for words in last:
            alone = None if words.has_large else code.emit("SKIP_ALONE", word_address(words.owned), 0, 0)
            code.emit("STORE", word_address(turn), 1 - k)
            if alone is not None:
                code.skip_from(alone)
        ends.append(code.emit("SKIP_IS", code.constant(None), None, 0))
        code.skip_from(other)
    for end in ends:
        code.skip_from(end)
    for k in range(len(sets)):
        other = code.emit("SKIP_HALF", word_address(turn), 1 - k, 0)
        yield k
        code.skip_from(other)


def fill_slots(
    code: Instructions, program: NativeProgram, inputs: Iterable[tuple[Register, int] | int], words: ResultWords,
    temporaries: Register | None,
) -> Iterator[tuple[int, str]]:
    """Fill a program's slots for inputs, results and temporaries; returns those for numbers, each with its kind.

    An input is an array and an offset in bytes, or the address of a word that holds its address.
    """
    slots = program.slots()
    code.emit("STORE", next(slots)[0], UNOBSERVED.address)
    for one in inputs:
        if isinstance(one, int):
            code.emit("COPY", next(slots)[0], one)
            continue
        array, offset = one
        memory = code.attribute(array, "memory")
        code.emit("ADDRESS", next(slots)[0], code.attribute(memory, "pointer"), offset)
        code.emit("MOVE", memory, code.constant(None))  # reference counts tell whether it may be overwritten
    for k in range(len(words.addresses)):
        code.emit("COPY", next(slots)[0], word_address(words.addresses, k))
    arena, _ = next(slots)
    if temporaries is None:
        code.emit("STORE", arena, 0)
    else:
        code.emit("ADDRESS", arena, temporaries)
    return slots


def _laid(view: Array, root: Array, layout: Layout) -> Array:
    """The array of a view, in the memory of its root."""
    assert root.memory is not None
    return Array(view.trace, view.index, view.node, root.memory.at(layout, view.node.dtype, root.node.dtype))


def word_address(words: array[int], index: int = 0) -> int:
    """The address of a word of an array."""
    return words.buffer_info()[0] + words.itemsize * index
