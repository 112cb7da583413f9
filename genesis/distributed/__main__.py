"""`mpiexec -n 4 python -m genesis.distributed script.py ..` runs a script on 4 ranks; if one fails, all end.

`-m module` runs a module. Uncaught exceptions are printed with their rank, and the job's exit status is not 0. The environment
has the variables of `torchrun`: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE.
`python -m genesis.distributed --restarts N COMMAND` runs such a command again when it fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from genesis.distributed import mpi
from genesis.distributed.departures import abort, end_job
from genesis.distributed.launchers import check_launcher, launched_rank, launched_ranks


def main(arguments: list[str]) -> None:
    """Run the script or module that the command line names."""
    if arguments[:1] == ["--restarts"]:
        supervise(arguments[1:])
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return
    if not arguments or arguments == ["-m"]:
        sys.exit("usage: mpiexec -n RANKS python -m genesis.distributed [-m MODULE | SCRIPT] [ARGUMENT ..]")
    is_distributed = launched_ranks() > 1
    if is_distributed:
        check_launcher()
        go_on_guarded()
        mpi.library()
        os.environ.update(mpi.ranks_by_name())
        os._exit = _left(os.getpid(), os._exit)  # type: ignore[assignment]
    is_module = arguments[0] == "-m"
    sys.argv = arguments[is_module:]
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(arguments[0]))
    try:
        if is_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if is_distributed and end.code and not mpi.is_fork():
            end_job(SystemExit, end, None)
        raise
    except BaseException as problem:
        if is_distributed and not mpi.is_fork():
            end_job(type(problem), problem, problem.__traceback__)
        raise


def _left(process: int, leave: object) -> object:
    """`os._exit` for a rank: it would not tell the other ranks. A job whose rank exits this way has failed, whatever the
    status."""
    def exit_rank(status: int) -> NoReturn:
        if os.getpid() == process:
            sys.stderr.write(f"[rank {mpi.library().COMM_WORLD.rank}] os._exit({status}) while other ranks may wait\n")
            abort(status or 1)
        leave(status)  # type: ignore[operator]
        raise AssertionError

    return exit_rank


# ---- guards ----
# The launcher's process waits for the rank's own, a child, and ends as it does. MPICH's launcher kills all ranks within
# milliseconds after one is killed, and drops their output: a guard delays that, so that the others can report where they wait.
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


# ---- restarts: the script should load its last checkpoint; GENESIS_RESTART is the number of restarts ----
USAGE = "usage: python -m genesis.distributed --restarts N mpiexec -n RANKS python -m genesis.distributed SCRIPT [ARGUMENT ..]"


def supervise(arguments: Sequence[str]) -> NoReturn:
    """Run the command until it succeeds, with at most the given number of restarts; exit with its last status."""
    if len(arguments) < 2 or not arguments[0].isdecimal():
        sys.exit(USAGE)
    most, command = int(arguments[0]), arguments[1:]
    for restart in range(most + 1):
        status = _run(command, {**os.environ, "GENESIS_RESTART": str(restart)})
        if status == 0 or restart == most:
            break
        sys.stderr.write(f"the job ended with status {status}; it begins anew ({restart + 1} of {most})\n")
    sys.exit(status if status >= 0 else 128 - status)


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """The exit status of a command. An interrupt is passed on to it and does not count as a failure: this process then ends."""
    job = subprocess.Popen(command, env=environment)
    received: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:  # not `wait`: it holds a lock that a handler cannot take
        job.send_signal(signal.SIGKILL if received else number)
        received.append(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        status = job.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        sys.exit(128 + received[0])
    return status


main(sys.argv[1:])
