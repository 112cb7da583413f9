"""Where a program's results lie, as words that instructions read."""

from __future__ import annotations

from array import array

from genesis.capture.replay.host_program import HostProgram
from genesis.runtime.references import IN_LIST


class ResultWords:
    """A run of a program, and the words that instructions know its memory by.

    Attributes:
        owned: {how many, objects.., counts..} of what makes up its results, for SKIP_ALONE.
        addresses: those of its buffers.
        arrays: the addresses of its results, as arrays.
        run: the run.
        unread: for each small value that a tensor gets, {2, array, memory, counts..} as long as that tensor alone owns it,
            which a register holds meanwhile, too.
    """

    def __init__(self, program: HostProgram) -> None:
        self._program, self._pool = program, program.pool
        self.run = run = self._pool.new_run(program.recorded.device)
        self.owned = array("Q", bytes(8 * (1 + 2 * self._pool.kept_count)))
        self.addresses = array("Q", run.addresses)
        self.arrays = array("Q", bytes(8 * len(run.arrays)))
        self.unread = [array("Q", [2, id(None), id(None), 0, 0]) for _ in self._pool.selected]
        self._disown()

    def _disown(self) -> None:
        """Nothing that there is is alone: the next call renews all."""
        count = self._pool.kept_count
        self.owned[:] = array("Q", [count, *[id(None)] * count, *[0] * count])

    def renew(self) -> None:
        """Find memory in place of what somebody owns, and for large results."""
        self._disown()  # should this raise
        run = self.run
        self.release()  # what a call has left that came to nothing
        self._pool.provide(run, self._program.reused())
        self.addresses[:] = array("Q", run.addresses)
        self.arrays[:] = array("Q", [id(made) for made in run.arrays])
        counts = {id(kept): counted - IN_LIST + 1 for kept, counted in zip(run.kept, run.unowned or (), strict=True)}
        self.owned[:] = array("Q", [len(counts), *counts, *counts.values()])
        for words, value in zip(self.unread, self._pool.selected, strict=True):
            of_array, of_memory = id(run.arrays[value]), id(run.memories[value])
            words[:] = array("Q", [2, of_array, of_memory, counts[of_array] + 2, counts[of_memory]])

    def release(self) -> None:
        """Let go of large results, which their tensors own now."""
        self._pool.drop_passing(self.run)
