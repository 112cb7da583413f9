"""Process groups: the ranks of a job, and subsets of them; a rank's numbers among all and in a group."""

from __future__ import annotations

import datetime
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.distributed import mpi
from genesis.distributed.departures import Departures
from genesis.distributed.gpus import connect
from genesis.ir.errors import ArgumentError
from genesis.runtime.collectives import Group
from genesis.runtime.groups import GROUPS, Collective, Library


class ProcessGroup:
    """Ranks that communicate with each other, including this process. `new_group` makes one."""

    def __init__(self, ranks: Sequence[int], comm: Any, timeout: float) -> None:
        self.ranks = list(ranks)
        self.comm = comm
        self.parts: dict[int, ProcessGroup] = {}  # see `neighbours_of`
        number = next(JOB.numbers)
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
        self.handle = Group(number, own_rank, self.ranks, table, *handles, timeout, JOB.neighbours, explain)
        GROUPS[number] = self.handle
        if comm is not None and JOB.uses_gpus:
            connect(self.handle, self.control, JOB.device_id, JOB.local_rank)

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


class Job:
    """This process's part in a job: the group of all ranks, once initialized, and the groups made since."""

    def __init__(self) -> None:
        self.group: ProcessGroup | None = None
        self.numbers = itertools.count()  # of its groups
        self.others: list[ProcessGroup] = []
        self.neighbours, self.local_rank = 1, 0  # the number of ranks on this machine, and this one's local rank
        self.backend, self.uses_gpus = "mpi", False
        self.device_id: object = None
        self.departures: Departures | None = None
        self.is_watched = False  # whether the end of this process ends the job


TIMEOUT = datetime.timedelta(minutes=30)
NON_GROUP_MEMBER = object()  # new_group's result on ranks outside of it
JOB = Job()


def _alone(what: str, flag: int, value: int, other: int | None) -> str:
    return f"{what}: the group was destroyed"


def is_initialized() -> bool:
    """Whether `init_process_group` has been called and not undone.

    >>> genesis.distributed.is_initialized()
    True
    """
    return JOB.group is not None


def get_pg_count() -> int:
    """The number of process groups of this rank, with that of all; 0 before `init_process_group`."""
    return 0 if JOB.group is None else 1 + len(JOB.others)


def world() -> ProcessGroup:
    """The group of all ranks. Raises RuntimeError before `init_process_group`."""
    if JOB.group is None:
        raise ArgumentError("there is no process group; call genesis.distributed.init_process_group() first")
    return JOB.group


def group_of(group: Any) -> ProcessGroup:
    """The group; None means all ranks. Raises RuntimeError if this process is not in it, or it was destroyed."""
    found = world() if group is None else group
    if found is NON_GROUP_MEMBER:
        raise RuntimeError(f"rank {world().rank()} is not in this group")
    if not isinstance(found, ProcessGroup):
        raise TypeError(f"group: want a ProcessGroup or None, got {type(found).__name__} {found!r:.40}")
    return found


def seconds_of(timeout: datetime.timedelta | float | None) -> float:
    """A timeout in seconds. Raises ValueError for one that is not positive."""
    wait = TIMEOUT if timeout is None else timeout
    seconds = wait.total_seconds() if isinstance(wait, datetime.timedelta) else float(wait)
    if not seconds > 0:
        raise ArgumentError(f"timeout: {timeout}; want more than 0 seconds")
    return seconds


def synchronize(group: ProcessGroup, said: str) -> None:
    """Wait until all ranks of a group get here. Raises CollectiveError if one is elsewhere, or on timeout."""
    if group.size() > 1:
        nothing = np.zeros(1, np.int64)
        group.handle.run(Collective("barrier", "", -1, (), (), said), nothing, nothing)


def departed(ranks: Sequence[int]) -> dict[int, str]:
    """Global rank -> how it departed, for the departed ones of `ranks`."""
    return {} if JOB.departures is None else JOB.departures.gone(ranks)


def check_departures(said: str, ranks: Sequence[int]) -> None:
    """Raise CollectiveError if `said` waits for a departed one of `ranks`."""
    if JOB.departures is not None:
        JOB.departures.check(said, ranks)


# ---- ranks, among all and in a group ----
def get_rank(group: Any = None) -> int:
    """This process's rank in a group, by default of all ranks; -1 if it is not in it."""
    return -1 if group is NON_GROUP_MEMBER else group_of(group).rank()


def get_world_size(group: Any = None) -> int:
    """The number of ranks of a group, by default of all; -1 if this process is not in it."""
    return -1 if group is NON_GROUP_MEMBER else group_of(group).size()


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks of a group, in its order."""
    return list(group_of(group).ranks)


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


def get_global_rank(group: Any, group_rank: int) -> int:
    """The global rank of a rank in `group`. Raises ValueError if there is none."""
    ranks = group_of(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ArgumentError(f"the group has no rank {group_rank}; want 0 to {len(ranks) - 1}")
    return ranks[group_rank]


def get_backend(group: Any = None) -> str:
    """The backend: "mpi", "nccl" or "cpu:mpi,cuda:nccl"."""
    group_of(group)
    return JOB.backend


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's local rank, from LOCAL_RANK; otherwise `fallback_rank`.

    Raises RuntimeError if both are missing.
    """
    said = os.environ.get("LOCAL_RANK", fallback_rank)
    if said is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment; want a launcher, or fallback_rank=")
    return int(said)
