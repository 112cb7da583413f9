"""`mpiexec -n 4 python -m genesis.distributed script.py ..` runs a script on 4 ranks; if one fails, all end.

`-m module` runs a module. Uncaught exceptions are printed with their rank, and the job's exit status is not 0. The environment
has the variables of `torchrun`: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE.
`python -m genesis.distributed --restarts N COMMAND` runs such a command again when it fails: see `restarts.py`.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import NoReturn

from genesis.distributed import mpi
from genesis.distributed.ending import abort, end_job
from genesis.distributed.guard import go_on_guarded
from genesis.distributed.launchers import check_launcher, launched_ranks
from genesis.distributed.restarts import supervise


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


main(sys.argv[1:])
