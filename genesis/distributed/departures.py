"""Departed ranks: finished or killed ones, for which other ranks would wait in vain.

A rank announces its end to all others. Whoever waits for a message, a file or a comparison from it then gives up. Collectives
that have begun are not given up, because the rank has done its part, unless its process was killed: ranks on its machine
detect that and tell the others.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Collection
from os import _exit  # the original: the launcher replaces `os._exit`
from types import TracebackType
from typing import Any, NoReturn

from genesis.distributed import mpi
from genesis.distributed.neighbours import KILLED, Neighbours
from genesis.runtime.groups import GROUPS, CollectiveError

GRACE = 1.5  # seconds for messages that a rank sent before its end
_UNDER_WAY = 1.0  # seconds for a rank's announcement of its end
_TAG = 78
_INTERVAL = 0.5  # seconds between checks


class Departures:
    """The announced ends of a communicator's ranks; a thread listens if MPI supports several threads."""

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
        """Tell all others that this rank has reached its end."""
        if not self._is_at_end:
            self._is_at_end = True
            self._tell(None, range(self._comm.size))

    def end(self, all_came: bool) -> None:
        """Stop listening. If all ranks reached the end, their announcements are received first."""
        self._ending.set()
        if self._neighbours is not None:
            self._neighbours.close()
        if self._thread.is_alive():
            self._thread.join()
        while all_came and len(self._heard) < self._comm.size - 1:
            self._hear()

    def gone(self, ranks: Collection[int]) -> dict[int, str]:
        """The departed ones of `ranks` (for longer than GRACE) -> whether they finished or were killed."""
        now = time.monotonic()
        ended = [rank for rank in ranks if now - self._heard.get(rank, now) > GRACE]
        return {**dict.fromkeys(ended, "at the end of the program"), **dict.fromkeys(self._killed & {*ranks}, KILLED)}

    def check(self, said: str, ranks: Collection[int]) -> None:
        """Raise CollectiveError if one of `ranks`, for which `said` waits, has departed."""
        if gone := self.gone(ranks):
            raise CollectiveError(f"{said}: {', '.join(f'rank {rank} is {how}' for rank, how in sorted(gone.items()))}")

    def _tell(self, killed: int | None, ranks: Collection[int]) -> None:
        self._sent += [self._comm.isend(killed, other, _TAG) for other in ranks if other != self._comm.rank]

    def _listen(self) -> None:
        while not self._ending.wait(_INTERVAL):
            self._hear()
            self._give_up()

    def _give_up(self) -> None:
        """Make collectives that wait for departed ranks time out.

        A rank at its own end keeps waiting there, for those that have not reached it.
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
        """The process of a rank on this machine has ended. It was killed unless it announced its end."""
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


# ---- a rank that fails ends the whole job: others would wait for it forever ----
_FORWARDING = 0.5  # seconds for mpiexec to forward output: after an abort it reads no more


def abort(code: int) -> NoReturn:
    """End all ranks' processes, including this one."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(_FORWARDING)
    # MPI_Abort has been seen to return, and to wait for ranks that were asleep. mpiexec ends the job when a rank is killed.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    mpi.library().COMM_WORLD.Abort(code)
    _exit(code)


def end_job(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    """End the job after an uncaught exception or a nonzero status: other ranks would wait for this one forever.

    A fork of a rank's process only shows the exception.
    """
    if mpi.is_fork():
        return sys.__excepthook__(kind, problem, trace)
    own = mpi.library().COMM_WORLD.rank
    text = "".join(traceback.format_exception(kind, problem, trace))
    sys.stderr.write("".join(f"[rank {own}] {line}" for line in text.splitlines(True)))
    if isinstance(problem, SystemExit):
        abort(problem.code if isinstance(problem.code, int) else 1)
    abort(130 if issubclass(kind, KeyboardInterrupt) else 1)
