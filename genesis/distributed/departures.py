"""Ranks that will not come any more: at the end of the program, or killed. What others wait for of them will never come.

A rank tells all others when it comes to its end. Who waits for a message, a file or a comparison of such a rank gives up.
Collectives that have begun are not given up then: the rank has done its part of them. They are where its process has ended
without a word. Ranks of its machine see that, and tell the others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import Any

from genesis.distributed import mpi
from genesis.distributed.neighbours import KILLED, Neighbours
from genesis.runtime.collectives import GROUPS, CollectiveError

GRACE = 1.5  # seconds for what a rank has sent before its end
_UNDER_WAY = 1.0  # seconds for its word that it is at its end
_TAG = 78
_INTERVAL = 0.5  # seconds between looks


class Departures:
    """What ranks of a communicator have said of their end; threads listen where MPI can be asked by several at once."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._heard: dict[int, float] = {}  # rank -> when
        self._killed: set[int] = set()
        self._sent: list[Any] = []
        self._is_at_end = False
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="departures", daemon=True)
        self._neighbours: Neighbours | None = None
        if mpi.table().is_shared:
            self._thread.start()
            self._neighbours = Neighbours(comm, self._ended)

    def announce(self) -> None:
        """Tell all others that this rank is at its end."""
        if not self._is_at_end:
            self._is_at_end = True
            self._tell(None, range(self._comm.size))

    def end(self, all_came: bool) -> None:
        """Listen no more. If all came to the end, what they have said is taken."""
        self._ending.set()
        if self._neighbours is not None:
            self._neighbours.close()
        if self._thread.is_alive():
            self._thread.join()
        while all_came and len(self._heard) < self._comm.size - 1:
            self._hear()

    def gone(self, ranks: Collection[int]) -> dict[int, str]:
        """Those of `ranks` that were killed, or have been at their end for a while, and which of it."""
        now = time.monotonic()
        ended = [rank for rank in ranks if now - self._heard.get(rank, now) > GRACE]
        return {**dict.fromkeys(ended, "at the end of the program"), **dict.fromkeys(self._killed & {*ranks}, KILLED)}

    def check(self, said: str, ranks: Collection[int]) -> None:
        """Raise CollectiveError if one of `ranks`, for which `said` waits, is at its end."""
        if gone := self.gone(ranks):
            raise CollectiveError(f"{said}: {', '.join(f'rank {rank} is {how}' for rank, how in sorted(gone.items()))}")

    def _tell(self, killed: int | None, ranks: Collection[int]) -> None:
        self._sent += [self._comm.isend(killed, other, _TAG) for other in ranks if other != self._comm.rank]

    def _listen(self) -> None:
        while not self._ending.wait(_INTERVAL):
            self._hear()
            self._give_up()

    def _give_up(self) -> None:
        """Have collectives that wait for those that are gone be late.

        Who is at the end itself waits there with those that have come to it, for those that have not.
        """
        for group in [*GROUPS.values()] if self._heard or self._killed else ():
            ranks, all_came = group.awaited_ranks()
            if self._killed & {*ranks} or not (all_came or self._is_at_end or not self.gone(ranks)):
                group.give_up()

    def _hear(self) -> None:
        with self._lock:
            status = mpi.library().Status()
            while self._comm.iprobe(mpi.library().ANY_SOURCE, _TAG, status):
                source = status.Get_source()
                killed = self._comm.recv(source=source, tag=_TAG)
                if killed is None:
                    self._heard[source] = time.monotonic()
                else:
                    self._killed.add(killed)

    def _ended(self, rank: int, near: Collection[int]) -> None:
        """The process of a rank has ended, one of those `near`. It was killed, if it has not said that it is at its end."""
        limit = time.monotonic() + (_UNDER_WAY if self._is_at_end else 0)
        self._hear()
        while rank not in self._heard and time.monotonic() < limit:
            time.sleep(0.01)
            self._hear()
        if rank not in self._heard:
            self._killed.add(rank)
            self._give_up()
            here = {self._comm.rank, *near}
            if self._comm.rank == min(here - self._killed):
                self._tell(rank, {*range(self._comm.size)} - here)
