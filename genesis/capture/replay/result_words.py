"""A program's result buffers as words that instructions read."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import attrgetter

from genesis.capture.record.results import Recipe
from genesis.capture.replay.host_program import HostProgram
from genesis.ops.layout import Layout
from genesis.runtime.references import IN_LIST, reference_count
from genesis.tracing.trace import Array

_memory = attrgetter("memory")


class ResultWords:
    """A run of a program, and the words by which instructions access its memory.

    Attributes:
        owned: {number, objects.., reference counts..} of its results, for SKIP_ALONE.
        addresses: the addresses of its buffers.
        arrays: the addresses of its results as Array objects; for a view of another result, an Array over that one's memory.
        run: the run.
        unread: for each small value that a tensor gets, {2, array, memory, counts..} as they are while the tensor and a
            register are its only owners.
    """

    def __init__(self, program: HostProgram, views: Sequence[Recipe] = ()) -> None:
        self._program, self._pool = program, program.pool
        self._views = [(program.value_at[view.key[1]], program.value_at[view.base.key[1]], view.layout) for view in views]
        self._laid: list[Array] = []
        self.run = run = self._pool.new_run(program.recorded.device)
        self._count = self._pool.kept_count + 2 * len(views)
        self.owned = array("Q", bytes(8 * (1 + 2 * self._count)))
        self.addresses = array("Q", run.addresses)
        self.arrays = array("Q", bytes(8 * len(run.arrays)))
        self.unread = [array("Q", [2, id(None), id(None), 0, 0]) for _ in self._pool.selected]
        self._disown()

    def _disown(self) -> None:
        """Mark everything as owned by others, so that the next call renews all."""
        count = self._count
        self.owned[:] = array("Q", [count, *[id(None)] * count, *[0] * count])

    def renew(self) -> None:
        """Allocate memory for large results, and replace memory that has another owner."""
        self._disown()  # in case this raises
        run = self.run
        self.release()  # left by a call that failed
        self._pool.provide(run, self._program.reused())
        self.addresses[:] = array("Q", run.addresses)
        self.arrays[:] = array("Q", [id(made) for made in run.arrays])
        for value, root, layout in self._views:
            self._laid.append(_laid(run.arrays[value], run.arrays[root], layout))
            self.arrays[value] = id(self._laid[-1])
        kept = [*{id(one): one for one in (*run.kept, *self._laid, *map(_memory, self._laid))}.values()]
        found = [count - IN_LIST for count in map(reference_count, kept)]
        counts = dict(zip(map(id, kept), found, strict=True))
        self.owned[: 1 + 2 * len(counts)] = array("Q", [len(counts), *counts, *found])
        for words, value in zip(self.unread, self._pool.selected, strict=True):
            of_array, of_memory = id(run.arrays[value]), id(run.memories[value])
            words[:] = array("Q", [2, of_array, of_memory, counts[of_array] + 2, counts[of_memory]])

    def release(self) -> None:
        """Release large results, which their tensors own now."""
        self._laid.clear()
        self._pool.drop_passing(self.run)


def _laid(view: Array, root: Array, layout: Layout | None) -> Array:
    """The array of a view, in the memory of its root."""
    assert root.memory is not None and layout is not None
    return Array(view.trace, view.index, view.node, root.memory.at(layout, view.node.dtype, root.node.dtype))


def word_address(words: array[int], index: int = 0) -> int:
    """The address of a word of an array."""
    return words.buffer_info()[0] + words.itemsize * index
