"""What the launcher sees of a rank: a process that waits for the rank's own, and says how that one ended.

MPICH's launcher kills all ranks within milliseconds of the first that is killed, and reads no more of what they print. A guard
leaves the others the time to say where they wait for it.
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

GRACE = 3.0  # seconds for other ranks to find that one was killed, to say where they are, and to end the job
_ENDS_WITH_PARENT = 1  # prctl: PR_SET_PDEATHSIG
_FATAL = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}
_PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}


def go_on_guarded() -> None:
    """Return in a child of this process, which ends as the child does. Linux alone lets a child end with its parent."""
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
    """Wait for the process of a rank, and end as it did.

    Launchers and terminals send signals to groups of processes, where a launcher makes a rank the leader of one: the rank's own
    process gets them itself. So it does under Slurm.
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
