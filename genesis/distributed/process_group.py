"""Process groups: the ranks of a job, and subsets of them."""

from __future__ import annotations

import atexit
import datetime
import itertools
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing.util import Finalize
from typing import Any

import numpy as np

from genesis.distributed import mpi, rendezvous
from genesis.distributed.departures import Departures
from genesis.distributed.ending import end_job
from genesis.distributed.gpus import become_current, connect, disconnect, uses_nccl
from genesis.distributed.launchers import launched_ranks
from genesis.distributed.stores import Store
from genesis.execution.flush import flush_all
from genesis.ir.errors import ArgumentError
from genesis.ir.replayable import replayable
from genesis.runtime.collectives import Group, Library
from genesis.runtime.cuda import nccl
from genesis.runtime.groups import GROUPS, WORLD, Collective
from genesis.runtime.number_of_threads import share_processors

TIMEOUT = datetime.timedelta(minutes=30)


class ProcessGroup:
    """Ranks that communicate with each other, including this process. `new_group` makes one."""

    def __init__(self, ranks: Sequence[int], comm: Any, timeout: float) -> None:
        self.ranks = list(ranks)
        self.comm = comm
        self.parts: dict[int, ProcessGroup] = {}  # see `neighbours_of`
        number = next(_numbers)
        self.handle: Group
        if comm is None:  # a single rank
            self.control = None
            table, handles, own_rank = Library({"Test": 0, "Iallreduce": 0}, {"int64": 0}, {"max": 0}, 0, False), (0, 0), 0
            explain: Callable[[str, int, int, int | None], str] = _alone
        else:
            self.control, comparing = comm.Dup(), comm.Dup()
            table, handles, own_rank = mpi.table(), (mpi.word(comm), mpi.word(comparing)), comm.rank
            explain = mpi.Explanation(self.control, self.ranks, lambda: self.handle.timeout, departed)
            for each in (comm, self.control, comparing):
                each.Set_errhandler(mpi.library().ERRORS_RETURN)
            self._comparing = comparing
        self.handle = Group(number, own_rank, self.ranks, table, *handles, timeout, _world.neighbours, explain)
        GROUPS[number] = self.handle
        if comm is not None and _world.uses_gpus:
            connect(self.handle, self.control, _world.device_id, _world.local_rank)

    @property
    def number(self) -> int:
        """The group's number in the rows of collectives."""
        return self.handle.number

    def rank(self) -> int:
        """This process's rank in the group."""
        return self.handle.rank

    def size(self) -> int:
        """The number of ranks."""
        return self.handle.size

    def __repr__(self) -> str:
        return f"ProcessGroup(ranks={self.ranks})"


class _World:
    """The group of all ranks, if initialized, and the groups made since."""

    def __init__(self) -> None:
        self.group: ProcessGroup | None = None
        self.others: list[ProcessGroup] = []
        self.neighbours, self.local_rank = 1, 0  # the number of ranks on this machine, and this one's local rank
        self.backend, self.uses_gpus = "mpi", False
        self.device_id: object = None
        self.departures: Departures | None = None
        self.is_watched = False  # whether the end of this process ends the job


_END = "at the end of the program"  # or of the group: reported when another rank is elsewhere
NON_GROUP_MEMBER = object()  # new_group's result on ranks outside of it
_numbers = itertools.count()
_world = _World()


def _alone(what: str, flag: int, value: int, other: int | None) -> str:
    return f"{what}: the group was destroyed"


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


def is_initialized() -> bool:
    """Whether `init_process_group` has been called and not undone.

    >>> genesis.distributed.is_initialized()
    False
    """
    return _world.group is not None


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
    if _world.group is not None:
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
        _world.neighbours, _world.local_rank = mpi.neighbours_of(comm)
        share_processors(_world.neighbours)
        mpi.unlink_shared_memory()
    _world.backend = ("nccl" if str(backend).lower() == "nccl" else "cpu:mpi,cuda:nccl") if uses_gpus else "mpi"
    _world.uses_gpus, _world.device_id = uses_gpus, device_id
    _world.group = ProcessGroup(range(size), comm if size > 1 else None, seconds)
    WORLD[:] = [_world.group.handle]
    _world.departures = None if size == 1 else Departures(_world.group.control)
    if size > 1 and uses_gpus:
        _world.device_id = become_current(_world.group.handle)
    if size > 1 and not _world.is_watched:
        _world.is_watched = True
        if multiprocessing.parent_process() is None:
            atexit.register(_leave)
        else:  # its processes skip atexit functions
            Finalize(None, _leave, exitpriority=0)
        sys.excepthook = end_job


def seconds_of(timeout: datetime.timedelta | float | None) -> float:
    """A timeout in seconds. Raises ValueError for one that is not positive."""
    wait = TIMEOUT if timeout is None else timeout
    seconds = wait.total_seconds() if isinstance(wait, datetime.timedelta) else float(wait)
    if not seconds > 0:
        raise ArgumentError(f"timeout: {timeout}; want more than 0 seconds")
    return seconds


def world() -> ProcessGroup:
    """The group of all ranks. Raises RuntimeError before `init_process_group`."""
    if _world.group is None:
        raise ArgumentError("there is no process group; call genesis.distributed.init_process_group() first")
    return _world.group


def group_of(group: Any) -> ProcessGroup:
    """The group; None means all ranks. Raises RuntimeError if this process is not in it, or it was destroyed."""
    found = world() if group is None else group
    if found is NON_GROUP_MEMBER:
        raise RuntimeError(f"rank {world().rank()} is not in this group")
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"group: want a ProcessGroup or None, got {type(found).__name__} {found!r:.40}")
    return found


@replayable
def get_rank(group: Any = None) -> int:
    """This process's rank in a group, by default of all ranks; -1 if it is not in it."""
    return -1 if group is NON_GROUP_MEMBER else group_of(group).rank()


@replayable
def get_world_size(group: Any = None) -> int:
    """The number of ranks of a group, by default of all; -1 if this process is not in it."""
    return -1 if group is NON_GROUP_MEMBER else group_of(group).size()


@replayable
def get_backend(group: Any = None) -> str:
    """The backend: "mpi", "nccl" or "cpu:mpi,cuda:nccl"."""
    group_of(group)
    return _world.backend


@replayable
def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's local rank, from LOCAL_RANK; otherwise `fallback_rank`.

    Raises RuntimeError if both are missing.
    """
    said = os.environ.get("LOCAL_RANK", fallback_rank)
    if said is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment; want a launcher, or fallback_rank=")
    return int(said)


@replayable
def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks of a group, in its order."""
    return list(group_of(group).ranks)


@replayable
def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in `group` of a global rank. Raises ValueError if it is not in the group."""
    ranks = group_of(group).ranks
    if global_rank not in ranks:
        raise ArgumentError(f"rank {global_rank} is not among {ranks}, the ranks of the group")
    return ranks.index(global_rank)


def root_of(group: ProcessGroup, of_all: int | None, of_group: int | None) -> int:
    """The root's rank in its group, given that or its global rank; by default global rank 0."""
    if of_all is not None and of_group is not None:
        raise ArgumentError("the root is given by its rank among all and by that in its group; want one of them")
    return get_group_rank(group, of_all or 0) if of_group is None else of_group


@replayable
def get_global_rank(group: Any, group_rank: int) -> int:
    """The global rank of a rank in `group`. Raises ValueError if there is none."""
    ranks = group_of(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ArgumentError(f"the group has no rank {group_rank}; want 0 to {len(ranks) - 1}")
    return ranks[group_rank]


def new_group(
    ranks: Sequence[int] | None = None, timeout: datetime.timedelta | float | None = None, backend: str | None = None,
    pg_options: object = None, use_local_synchronization: bool = False, group_desc: str | None = None,
    device_id: object = None, sort_ranks: bool = True,
) -> Any:
    """A group of some ranks, by default of all. All ranks of the job must call it, with the same `ranks`.

    The group's ranks are in ascending order, or with `sort_ranks=False` in the given one. Other settings have no effect.

    Ranks outside of it get NON_GROUP_MEMBER. Raises ValueError for invalid or repeated ranks, and for
    `use_local_synchronization`: as in PyTorch, MPI creates groups with all ranks.
    """
    whole = world()
    if use_local_synchronization:
        raise ArgumentError("new_group: use_local_synchronization=True; want False: every rank of the job calls new_group")
    chosen = [*(range(whole.size()) if ranks is None else ranks)]
    if sort_ranks:
        chosen.sort()
    if not chosen or len({*chosen}) < len(chosen) or not 0 <= min(chosen) <= max(chosen) < whole.size():
        raise ArgumentError(f"new_group: ranks {chosen}; want different ones of 0 to {whole.size() - 1}")
    return new_groups([chosen], timeout)


def new_groups(
    parts: Sequence[Sequence[int]], timeout: datetime.timedelta | float | None = None, group: ProcessGroup | None = None
) -> Any:
    """This rank's group among several disjoint parts of `group`, by default of all; NON_GROUP_MEMBER if it is in none.

    Parts list ranks in `group`, in their order. All ranks of `group` must call it, with the same parts.
    """
    whole = group_of(group)
    flush_all()
    synchronize(whole, f"new_group {' '.join(map(str, parts))}")
    own = next((number for number, part in enumerate(parts) if whole.rank() in part), None)
    comm = None
    if whole.comm is not None:
        comm = whole.comm.Split(mpi.library().UNDEFINED if own is None else own,
                                0 if own is None else [*parts[own]].index(whole.rank()))
    if own is None:
        next(_numbers)
        return NON_GROUP_MEMBER
    seconds = whole.handle.timeout if timeout is None else seconds_of(timeout)
    made = ProcessGroup([whole.ranks[rank] for rank in parts[own]], comm if len(parts[own]) > 1 else None, seconds)
    _world.others.append(made)
    return made


def neighbours_of(group: ProcessGroup, count: int) -> ProcessGroup:
    """This rank's group of `count` neighbouring ranks of `group`, made once; all of `group` must call it."""
    if count not in group.parts:
        parts = [[*range(first, first + count)] for first in range(0, group.size(), count)]
        group.parts[count] = new_groups(parts, None, group)
    return group.parts[count]


def departed(ranks: Sequence[int]) -> dict[int, str]:
    """Global rank -> how it departed, for the departed ones of `ranks`."""
    return {} if _world.departures is None else _world.departures.gone(ranks)


def get_pg_count() -> int:
    """The number of process groups of this rank, with that of all; 0 before `init_process_group`."""
    return 0 if _world.group is None else 1 + len(_world.others)


def check_departures(said: str, ranks: Sequence[int]) -> None:
    """Raise CollectiveError if `said` waits for a departed one of `ranks`."""
    if _world.departures is not None:
        _world.departures.check(said, ranks)


def _end(group: ProcessGroup) -> None:
    """Synchronize at the end. Raises CollectiveError if other ranks are elsewhere."""
    departures, _world.departures = _world.departures, None
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


def synchronize(group: ProcessGroup, said: str) -> None:
    """Wait until all ranks of a group get here. Raises CollectiveError if one is elsewhere, or on timeout."""
    if group.size() > 1:
        nothing = np.zeros(1, np.int64)
        group.handle.run(Collective("barrier", "", -1, (), (), said), nothing, nothing)


def destroy_process_group(group: Any = None) -> None:
    """Run pending work, and close a group, or all. Unfinished communication of the group cannot continue."""
    found = group_of(group)
    flush_all()
    if found is _world.group:
        _end(found)
    closing = [found, *_world.others] if found is _world.group else [found]
    for each in closing:
        each.handle.close()
        disconnect(each.handle)
        _world.others = [other for other in _world.others if other is not each]
    if found is _world.group:
        _world.group = None
        WORLD.clear()


def _leave() -> None:
    """At the end of the script: run pending work, and tell ranks that are still elsewhere."""
    group = _world.group
    if group is None:
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
