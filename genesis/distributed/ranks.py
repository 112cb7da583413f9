"""The ranks of process groups, among all ranks and in a group."""

from __future__ import annotations

import os
from typing import Any

from genesis.distributed.process_group import JOB, NON_GROUP_MEMBER, ProcessGroup, group_of
from genesis.ir.errors import ArgumentError
from genesis.ir.replayable import replayable


@replayable
def get_rank(group: Any = None) -> int:
    """This process's rank in a group, by default of all ranks; -1 if it is not in it."""
    return -1 if group is NON_GROUP_MEMBER else group_of(group).rank()


@replayable
def get_world_size(group: Any = None) -> int:
    """The number of ranks of a group, by default of all; -1 if this process is not in it."""
    return -1 if group is NON_GROUP_MEMBER else group_of(group).size()


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


@replayable
def get_backend(group: Any = None) -> str:
    """The backend: "mpi", "nccl" or "cpu:mpi,cuda:nccl"."""
    group_of(group)
    return JOB.backend


@replayable
def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's local rank, from LOCAL_RANK; otherwise `fallback_rank`.

    Raises RuntimeError if both are missing.
    """
    said = os.environ.get("LOCAL_RANK", fallback_rank)
    if said is None:
        raise RuntimeError("get_node_local_rank: LOCAL_RANK is not in the environment; want a launcher, or fallback_rank=")
    return int(said)
