"""MPI through mpi4py: addresses of its functions, words for its handles, and error messages.

mpi4py is imported only when a job of several ranks begins, because the import starts MPI.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from genesis.distributed.launchers import check_launcher, launched_ranks
from genesis.distributed.neighbours import KILLED
from genesis.runtime import collective_ir as ir
from genesis.runtime.groups import Library
from genesis.runtime.installation import install_command

GRACE = 2.0  # seconds for other ranks to report where they are
_SHORT_GRACE = 0.5  # after a rank was killed: the launcher will soon end the job
_FUNCTIONS = (
    "Iallreduce", "Ireduce", "Ibcast", "Iallgatherv", "Igatherv", "Iscatterv", "Ireduce_scatter", "Ialltoallv", "Ibarrier",
    "Isendrecv", "Test")
_DTYPES = {
    "float32": "FLOAT", "float64": "DOUBLE", "int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T", "int64": "INT64_T",
    "uint8": "UINT8_T", "uint16": "UINT16_T", "uint32": "UINT32_T", "uint64": "UINT64_T", "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}
_REDUCTIONS = {"sum": "SUM", "prod": "PROD", "min": "MIN", "max": "MAX", "band": "BAND", "bor": "BOR", "bxor": "BXOR"}
_PROCESS: list[int] = []  # the one that started MPI
_REPORT = 77  # the tag of ranks' failure reports


def is_installed() -> bool:
    """Whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


@cache
def library() -> Any:
    """`mpi4py.MPI`; starts MPI. Raises RuntimeError if it is missing or does not match the launcher."""
    check_launcher()
    try:
        from mpi4py import rc
        if "mpi4py.MPI" not in sys.modules and rc.finalize is not False:
            rc.finalize = False  # mpi4py would end MPI in forks as well, for their parents
            atexit.register(_finalize)
        from mpi4py import MPI
    except (ImportError, RuntimeError) as problem:
        raise RuntimeError(
            f"init_process_group: {launched_ranks()} ranks were launched, but mpi4py cannot be loaded ({problem}); "
            f"install it: {install_command('mpi')}") from problem
    if launched_ranks() > 1 == MPI.COMM_WORLD.size:
        raise RuntimeError(
            f"init_process_group: {launched_ranks()} ranks were launched, but MPI is alone: mpiexec is of another MPI than "
            f"the one that mpi4py loads, {MPI.Get_library_version().splitlines()[0].strip()!r}; want that one's mpiexec")
    _PROCESS.append(os.getpid())
    return MPI


def _finalize() -> None:
    if not is_fork() and not library().Is_finalized():
        library().Finalize()


def is_fork() -> bool:
    """Whether this process is a fork of a rank's: it takes no part in the job, and its end is its own."""
    return bool(_PROCESS) and _PROCESS[-1] != os.getpid()


def neighbours_of(comm: Any) -> tuple[int, int]:
    """(number of the communicator's ranks on this machine, this one's local rank).

    With `MPIR_CVAR_NOLOCAL=1` MPICH's ranks share no memory, but still processors, according to its launcher.
    """
    local = comm.Split_type(library().COMM_TYPE_SHARED)
    found = local.size, local.rank
    local.Free()
    launched = [os.environ.get(name, "") for name in ("MPI_LOCALNRANKS", "MPI_LOCALRANKID")]
    return max(found, (int(launched[0]), int(launched[1]))) if all(map(str.isdecimal, launched)) else found


def ranks_by_name() -> dict[str, str]:
    """The rank variables that `torchrun` sets."""
    comm = library().COMM_WORLD
    size, local_rank = neighbours_of(comm)
    found = {"RANK": comm.rank, "WORLD_SIZE": comm.size, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": size}
    return {name: str(number) for name, number in found.items()}


def unlink_shared_memory() -> None:
    """Remove MPICH's shared memory file, after all processes of the machine have opened it.

    MPICH removes it only at its end: aborted or killed jobs left 2 MB each.
    """
    maps = Path("/proc/self/maps")
    lines = maps.read_text(encoding="utf-8").splitlines() if maps.exists() else []
    for path in {line.split(maxsplit=5)[-1] for line in lines if "/dev/shm/mpich_shm_" in line}:
        with contextlib.suppress(OSError):
            os.unlink(path)


def word(handle: Any) -> int:
    """A handle as a word, for MPI's functions."""
    MPI = library()
    return int(MPI._handleof(handle)) & ((1 << 8 * MPI._sizeof(type(handle))) - 1)


@cache
def table() -> Library:
    """The MPI functions and handles that collectives need."""
    MPI = library()
    loaded = ctypes.CDLL(MPI.__file__)
    functions: Mapping[str, int] = {
        name: ctypes.cast(getattr(loaded, f"MPI_{name}", 0), ctypes.c_void_p).value or 0 for name in _FUNCTIONS}
    return Library(
        functions, {name: word(getattr(MPI, kind)) for name, kind in _DTYPES.items()},
        {name: word(getattr(MPI, kind)) for name, kind in _REDUCTIONS.items()}, MPI._sizeof(MPI.Status),
        MPI.Query_thread() == MPI.THREAD_MULTIPLE)


class Explanation:
    """Explains why a group's collective failed, by asking the other ranks over a separate communicator."""

    def __init__(self, comm: Any, ranks: Sequence[int], timeout: Any, gone: Callable[[Sequence[int]], dict[int, str]]) -> None:
        self._comm, self._ranks, self._timeout, self._gone = comm, ranks, timeout, gone

    def __call__(self, what: str, flag: int, value: int, other: int | None) -> str:
        own = self._ranks[self._comm.rank]
        if flag == ir.REFUSED:
            return f"rank {own}: {what}: MPI says: {library().Get_error_string(value)}"
        if flag not in (ir.DIFFERENT, ir.LATE):
            why = "its group was destroyed, or an earlier collective of it failed or was interrupted"
            return f"rank {own}: {what}: {why}, or this is a fork of the rank's process"
        ranks = self._ranks if other is None else sorted((own, self._ranks[other]))
        gone = self._gone(ranks)
        reports = self._reports(what, ranks, gone)
        lines = [f"  rank {rank}: {reports.get(rank, 'no answer')}" for rank in ranks]
        if flag == ir.DIFFERENT:
            return "\n".join(["ranks do not agree about their next collective:", *lines])
        if gone:
            return "\n".join([f"rank {own}: {what} waits for a rank that is {[*gone.values()][-1]}:", *lines])
        absent = [rank for rank in ranks if rank not in reports]
        missed = f"rank{'s' * (len(absent) > 1)} {', '.join(map(str, absent))} did not come" if absent else "it did not end"
        return "\n".join([f"rank {own}: {what} waited {self._timeout():g} s, and {missed}:", *lines])

    def _reports(self, what: str, ranks: Sequence[int], gone: dict[int, str]) -> dict[int, str]:
        """Rank -> what it is about to do, for those of `ranks` that answer; departed ones do not."""
        comm, found = self._comm, {**gone, self._ranks[self._comm.rank]: what}
        killed = [rank for rank, how in gone.items() if how == KILLED]
        asked = [other for other, rank in enumerate(self._ranks) if other != comm.rank and rank not in killed]
        sent = [comm.isend(what, other, _REPORT) for other in asked]
        end = time.monotonic() + (_SHORT_GRACE if killed else GRACE)
        while not found.keys() >= {*ranks} and time.monotonic() < end:
            status = library().Status()
            if comm.iprobe(library().ANY_SOURCE, _REPORT, status):
                source = status.Get_source()
                found[self._ranks[source]] = comm.recv(source=source, tag=_REPORT)
            else:
                time.sleep(0.001)
        for request in sent:
            request.Test()
        return found
