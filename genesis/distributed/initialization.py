"""A process joins a job of several ranks, and leaves it."""

from __future__ import annotations

import atexit
import datetime
import multiprocessing
import os
import sys
from multiprocessing.util import Finalize
from typing import Any

from genesis.distributed import mpi, rendezvous
from genesis.distributed.departures import Departures, end_job
from genesis.distributed.gpus import become_current, disconnect, uses_nccl
from genesis.distributed.launchers import launched_ranks
from genesis.distributed.process_group import JOB, ProcessGroup, group_of, seconds_of, synchronize
from genesis.distributed.stores import Store
from genesis.execution.flush import flush_all
from genesis.ir.errors import ArgumentError
from genesis.runtime.cuda import nccl
from genesis.runtime.groups import WORLD
from genesis.runtime.number_of_threads import share_processors

_END = "at the end of the program"  # or of the group: reported when another rank is elsewhere


def is_available() -> bool:
    """Whether distributed computing is available: mpi4py is installed.

    >>> isinstance(genesis.distributed.is_available(), bool)
    True
    """
    return mpi.is_installed()


def is_mpi_available() -> bool:
    """As `is_available`."""
    return is_available()


def is_nccl_available() -> bool:
    """Whether NCCL can be loaded. It is tested with a simulation only.

    >>> isinstance(genesis.distributed.is_nccl_available(), bool)
    True
    """
    return nccl.is_installed()


def is_gloo_available() -> bool:
    """False: "gloo" means MPI here."""
    return False


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: datetime.timedelta | float | None = None,
    world_size: int = -1, rank: int = -1, store: Store | None = None, group_name: str = "", pg_options: object = None,
    device_id: object = None,
) -> None:
    """Connect to the other ranks, started by `mpiexec` or meeting at an address; otherwise there is a single rank.

    Args:
        backend: "mpi", "gloo" and None all mean MPI, for CPU tensors. "nccl" or "cpu:mpi,cuda:nccl" also connect the ranks'
        GPUs
            by NCCL; CPU tensors still use MPI.
        device_id: for NCCL, the rank's GPU, a device or its number. By default it is the one chosen by `cuda.set_device`, if
            not the first, or the one with the local rank's number. "cuda" means that GPU from then on.
        init_method: where ranks not started by `mpiexec` meet, such as those of `torch.multiprocessing.spawn`:
            "tcp://HOST:PORT", "file://PATH" of a new file on a shared file system, or "env://", the default, for the variables
            MASTER_ADDR and MASTER_PORT. It requires MPICH.
        store: replaces `init_method`: a store that all share.
        timeout: of this call and of collectives: a timedelta or seconds; by default 30 minutes.
        world_size, rank: the number of ranks, and this one's. With `mpiexec` they must match; otherwise they default to the
            variables WORLD_SIZE and RANK.
        group_name, pg_options: ignored.

    Raises RuntimeError if called before, on all ranks if MPI, NCCL or a GPU is missing on one, and if ranks are missing;
    ValueError for another backend, rank or size.

    >>> genesis.distributed.init_process_group()
    >>> genesis.distributed.get_rank(), genesis.distributed.get_world_size()
    (0, 1)
    >>> genesis.distributed.destroy_process_group()
    """
    if JOB.group is not None:
        raise RuntimeError("init_process_group: it was called before; destroy_process_group() first")
    uses_gpus = uses_nccl(backend)
    seconds, launched = seconds_of(timeout), launched_ranks() > 0
    where = None if launched else rendezvous.rendezvous_of(init_method, store, world_size, rank, os.environ)
    if where is not None:
        rendezvous.meet(where, seconds)
        launched = True
    comm = mpi.library().COMM_WORLD.Dup() if launched else None
    size, own = (comm.size, comm.rank) if comm is not None else (1, 0)
    if world_size not in (-1, size) or rank not in (-1, own):
        raise ArgumentError(
            f"init_process_group: this is rank {own} of {size}, not rank {rank} of {world_size}; mpiexec -n says how many")
    if comm is not None:
        JOB.neighbours, JOB.local_rank = mpi.neighbours_of(comm)
        share_processors(JOB.neighbours)
        mpi.unlink_shared_memory()
    JOB.backend = ("nccl" if str(backend).lower() == "nccl" else "cpu:mpi,cuda:nccl") if uses_gpus else "mpi"
    JOB.uses_gpus, JOB.device_id = uses_gpus, device_id
    JOB.group = ProcessGroup(range(size), comm if size > 1 else None, seconds)
    WORLD[:] = [JOB.group.handle]
    JOB.departures = None if size == 1 else Departures(JOB.group.control)
    if size > 1 and uses_gpus:
        JOB.device_id = become_current(JOB.group.handle)
    if size > 1 and not JOB.is_watched:
        JOB.is_watched = True
        if multiprocessing.parent_process() is None:
            atexit.register(_leave)
        else:  # its processes skip atexit functions
            Finalize(None, _leave, exitpriority=0)
        sys.excepthook = end_job


def destroy_process_group(group: Any = None) -> None:
    """Run pending work, and close a group, or all. Unfinished communication of the group cannot continue."""
    found = group_of(group)
    flush_all()
    if found is JOB.group:
        _end(found)
    closing = [found, *JOB.others] if found is JOB.group else [found]
    for each in closing:
        each.handle.close()
        disconnect(each.handle)
        JOB.others = [other for other in JOB.others if other is not each]
    if found is JOB.group:
        JOB.group = None
        WORLD.clear()


def _leave() -> None:
    """At the end of the script: run pending work, and tell ranks that are still elsewhere."""
    group = JOB.group
    if group is None or mpi.is_fork():
        return
    problem = sys.exc_info()[1]
    has_failed = problem.code if isinstance(problem, SystemExit) else problem
    if problem is not None and has_failed:  # in a process of `multiprocessing`, which reports it afterwards
        end_job(type(problem), problem, problem.__traceback__)
    try:
        flush_all()
        _end(group)
    except Exception as problem:
        end_job(type(problem), problem, problem.__traceback__)


def _end(group: ProcessGroup) -> None:
    """Synchronize at the end. Raises CollectiveError if other ranks are elsewhere."""
    departures, JOB.departures = JOB.departures, None
    all_came = False
    try:
        if group.handle.is_usable:
            if departures is not None:
                departures.announce()
            synchronize(group, _END)
            all_came = True
    finally:
        if departures is not None:
            departures.end(all_came)
