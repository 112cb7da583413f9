"""Several groups at once: a group divided into parts."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from genesis.cuda.gpus import device_count
from genesis.distributed.process_group import NON_GROUP_MEMBER, get_process_group_ranks, group_of, new_groups, world
from genesis.ir.errors import ArgumentError

Timeout = datetime.timedelta | float | None


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: Timeout = None, backend: str | None = None,
    pg_options: object = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """(this rank's group, all groups) of `group_size` neighbouring ranks each, by default as many as there are GPUs.

    All ranks of the job must call it. Groups of other ranks are NON_GROUP_MEMBER. Raises ValueError if the size does not divide
    the number of ranks.

    >>> genesis.distributed.init_process_group()
    >>> genesis.distributed.new_subgroups(1)[0]
    ProcessGroup(ranks=[0])
    >>> genesis.distributed.destroy_process_group()
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
