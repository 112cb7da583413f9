"""Ranks that have come to the end of the program: what others wait for of them will never come.

A rank tells all others when it comes to its end. Who waits for a message, a file or a comparison of such a rank gives up.
Collectives that have begun are not given up: the rank has done its part of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import Any

from genesis.distributed import mpi
from genesis.runtime.collectives import GROUPS, CollectiveError

GRACE = 1.5  # seconds for what a rank has sent before its end
_TAG = 78
_INTERVAL = 0.5  # seconds between looks


class Departures:
    """What ranks of a communicator have said of their end; a thread listens where MPI can be asked by several at once."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._heard: dict[int, float] = {}  # rank -> when
        self._sent: list[Any] = []
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="departures", daemon=True)
        if mpi.table().is_shared:
            self._thread.start()

    def announce(self) -> None:
        """Tell all others that this rank is at its end."""
        if not self._sent:
            own = self._comm.rank
            self._sent = [self._comm.isend(None, other, _TAG) for other in range(self._comm.size) if other != own]

    def end(self, all_came: bool) -> None:
        """Listen no more. If all came to the end, what they have said is taken."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        while all_came and len(self._heard) < self._comm.size - 1:
            self._hear()

    def gone(self, ranks: Collection[int]) -> list[int]:
        """Those of `ranks` that have been at their end for a while."""
        now = time.monotonic()
        return [rank for rank in ranks if now - self._heard.get(rank, now) > GRACE]

    def check(self, said: str, ranks: Collection[int]) -> None:
        """Raise CollectiveError if one of `ranks`, for which `said` waits, is at its end."""
        if self._heard and (gone := self.gone(ranks)):
            raise CollectiveError(f"{said}: {described(gone)} at the end of the program")

    def _listen(self) -> None:
        while not self._ending.wait(_INTERVAL):
            self._hear()
            for group in [*GROUPS.values()] if self._heard else ():
                if self.gone(group.compared_ranks()):
                    group.give_up()

    def _hear(self) -> None:
        with self._lock:
            status = mpi.library().Status()
            while self._comm.iprobe(mpi.library().ANY_SOURCE, _TAG, status):
                source = status.Get_source()
                self._comm.recv(source=source, tag=_TAG)
                self._heard[source] = time.monotonic()


def described(ranks: Collection[int]) -> str:
    """Ranks as the subject of what they are."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} {'are' if len(ranks) > 1 else 'is'}"
