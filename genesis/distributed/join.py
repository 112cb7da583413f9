"""Uneven numbers of batches: before each forward, ranks tell each other who still has one."""

from __future__ import annotations

import numpy as np

from genesis.distributed.process_group import ProcessGroup
from genesis.execution.flush import flush_all
from genesis.runtime.groups import Collective
from genesis.tracing.recording_hooks import refuse

_THROUGH, _HAS_A_BATCH, _AVERAGES = range(3)


class Joining:
    """The state that a group's ranks have exchanged last.

    Attributes:
        last: the last rank of the group that has a batch.
        is_syncing: whether the gradients of this forward are averaged.
        divisor: the divisor of gradient sums.
    """

    def __init__(self, group: ProcessGroup, divides_by_all: bool, throws: bool) -> None:
        self._group, self._divides_by_all, self._throws = group, divides_by_all, throws
        self.last, self.is_syncing, self.divisor = 0, False, group.size()

    def begin(self, averages: bool) -> None:
        """Announce that this rank has a batch. Raises RuntimeError if another has none and that should raise."""
        refuse("other ranks are asked whether they have a batch")
        found = self._told(_AVERAGES if averages else _HAS_A_BATCH)
        if self._throws and (found == _THROUGH).any():
            self._raise(found)

    def others_go_on(self) -> bool:
        """Announce that this rank has no more batches; returns whether others have."""
        found = self._told(_THROUGH)
        if self._throws and found.any():
            self._raise(found)
        return bool(found.any())

    def _raise(self, found: np.ndarray) -> None:
        through = [rank for rank, state in zip(self._group.ranks, found, strict=True) if state == _THROUGH]
        raise RuntimeError(f"join: rank {', '.join(map(str, through))} has no batch any more, and others have")

    def _told(self, own: int) -> np.ndarray:
        """Exchange `own` with all ranks."""
        flush_all()
        size, rank = self._group.size(), self._group.rank()
        said, found = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        said[rank] = own
        self._group.handle.run(Collective("all_reduce", "max", -1, (size,), (size,), "of who has a batch"), said, found)
        if found.any():
            self.last = int(found.nonzero()[0][-1])
            self.is_syncing = bool((found == _AVERAGES).any())
            self.divisor = size if self._divides_by_all else int((found > _THROUGH).sum())
        return found
