"""Ends the whole job when a rank fails: other ranks would wait for it forever."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from os import _exit  # the original: the launcher replaces `os._exit`
from types import TracebackType
from typing import NoReturn

from genesis.distributed import mpi

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
