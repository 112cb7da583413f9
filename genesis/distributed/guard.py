"""Guards: the launcher starts a process that waits for the rank's own process and ends as it does.

MPICH's launcher kills all ranks within milliseconds after one is killed, and drops their output. A guard delays that, so that
the others can report where they wait for the killed rank.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import NoReturn

from genesis.distributed.launchers import launched_rank

GRACE = 3.0  # seconds for other ranks to detect the killed one, report and end the job
_ENDS_WITH_PARENT = 1  # prctl: PR_SET_PDEATHSIG
_FATAL = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}
_PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}


def go_on_guarded() -> None:
    """Fork and return in the child; this process ends as the child does. Linux only: there a child can end with its parent."""
    if sys.platform != "linux":
        return
    guard, before = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
    rank = os.fork()
    if rank:
        _guard(rank)
    ctypes.CDLL(None).prctl(_ENDS_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != guard:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _guard(rank: int) -> NoReturn:
    """Wait for a rank's process, and end as it did.

    Launchers that make a rank a group leader, terminals and Slurm signal the process group, so the rank's own process gets the
    signals itself.
    """
    reaches_both = {0, os.getppid()} if os.getpgrp() == os.getpid() or "SLURM_STEP_ID" in os.environ else {0}
    while True:
        signalled = signal.sigwaitinfo({*_PASSED_ON, signal.SIGCHLD})
        if signalled.si_signo != signal.SIGCHLD and signalled.si_pid not in reaches_both:
            os.kill(rank, signalled.si_signo)
        ended, status = os.waitpid(rank, os.WNOHANG)
        if ended:
            break
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    if number in _FATAL:
        reason = ", as the system does where memory runs out" * (number == signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.write(2, f"[rank {launched_rank()}] was killed by {signal.Signals(number).name}{reason}\n".encode())
        time.sleep(GRACE)
    os._exit(128 + number)
