"""Groups of some ranks, and a group divided into parts."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from genesis.cuda.gpus import device_count
from genesis.distributed import mpi
from genesis.distributed.process_group import (
    JOB, NON_GROUP_MEMBER, ProcessGroup, get_process_group_ranks, group_of, seconds_of, synchronize, world,
)
from genesis.execution.flush import flush_all
from genesis.ir.errors import ArgumentError

Timeout = datetime.timedelta | float | None


def new_group(
    ranks: Sequence[int] | None = None, timeout: Timeout = None, backend: str | None = None, pg_options: object = None,
    use_local_synchronization: bool = False, group_desc: str | None = None, device_id: object = None, sort_ranks: bool = True,
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


def new_groups(parts: Sequence[Sequence[int]], timeout: Timeout = None, group: ProcessGroup | None = None) -> Any:
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
        next(JOB.numbers)
        return NON_GROUP_MEMBER
    seconds = whole.handle.timeout if timeout is None else seconds_of(timeout)
    made = ProcessGroup([whole.ranks[rank] for rank in parts[own]], comm if len(parts[own]) > 1 else None, seconds)
    JOB.others.append(made)
    return made


def neighbours_of(group: ProcessGroup, count: int) -> ProcessGroup:
    """This rank's group of `count` neighbouring ranks of `group`, made once; all of `group` must call it."""
    if count not in group.parts:
        parts = [[*range(first, first + count)] for first in range(0, group.size(), count)]
        group.parts[count] = new_groups(parts, None, group)
    return group.parts[count]


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: Timeout = None, backend: str | None = None,
    pg_options: object = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """(this rank's group, all groups) of `group_size` neighbouring ranks each, by default as many as there are GPUs.

    All ranks of the job must call it. Groups of other ranks are NON_GROUP_MEMBER. Raises ValueError if the size does not divide
    the number of ranks.

    >>> genesis.distributed.new_subgroups(1)[0]
    ProcessGroup(ranks=[0])
    """
    ranks = get_process_group_ranks(group)
    if group_size is None and not device_count():
        raise ArgumentError("new_subgroups: without a GPU there is no default group_size; want a number of ranks")
    size = device_count() if group_size is None else group_size
    if size <= 0 or len(ranks) % size:
        raise ArgumentError(f"new_subgroups: group_size is {size}; want a positive divisor of the {len(ranks)} ranks")
    return new_subgroups_by_enumeration([ranks[at : at + size] for at in range(0, len(ranks), size)], timeout)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: Timeout = None, backend: str | None = None,
    pg_options: object = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """(this rank's group, all groups) of the given global ranks; None if it is in no group. All ranks of the job must call it.

    Raises ValueError if a rank is in two groups.
    """
    parts = [sorted(ranks) for ranks in ranks_per_subgroup_list or ()]
    own = _divided("new_subgroups_by_enumeration", world(), parts, timeout)
    return own, [own if own is not None and own.ranks == ranks else NON_GROUP_MEMBER for ranks in parts]


def split_group(
    parent_pg: Any = None, split_ranks: Sequence[Sequence[int]] | None = None, timeout: Timeout = None,
    pg_options: object = None, group_desc: str | None = None, backend: str | None = None,
) -> Any:
    """This rank's group among parts of `parent_pg`, given by ranks in it; None if it is in no part. All of it must call it.

    Raises ValueError if a rank is in two parts.
    """
    return _divided("split_group", group_of(parent_pg), split_ranks or (), timeout)


def _divided(name: str, whole: Any, parts: Sequence[Sequence[int]], timeout: Timeout) -> Any:
    ranks = [rank for part in parts for rank in part]
    if not ranks or len({*ranks}) < len(ranks) or not 0 <= min(ranks) <= max(ranks) < whole.size():
        raise ArgumentError(f"{name}: groups {[*map(list, parts)]}; want different ranks of 0 to {whole.size() - 1} in them")
    own = new_groups(parts, timeout, whole)
    return None if own is NON_GROUP_MEMBER else own
