"""Collectives and messages of Python objects, which are pickled: all ranks must be trusted.

A barrier comes before a collective: it has a timeout, runs pending work, and reports missing ranks.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.distributed.flat import check_count
from genesis.distributed.messages import recv, send
from genesis.distributed.process_group import NON_GROUP_MEMBER, ProcessGroup, group_of, root_of, synchronize
from genesis.execution.flush import flush_all
from genesis.functions.creation import zeros
from genesis.functions.from_data import tensor as tensor_from
from genesis.ir.dtypes import int64, uint8
from genesis.tracing.recording_hooks import refuse


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fill `object_list` with all ranks' objects. They are pickled: all ranks must be trusted.

    >>> found = [None]
    >>> genesis.distributed.all_gather_object(found, {"rank": 0})
    >>> found
    [{'rank': 0}]
    """
    if (own := _ready("all_gather_object", group)) is not None:
        check_count("all_gather_object", object_list, own)
        object_list[:] = [obj] if own.comm is None else own.comm.allgather(obj)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Fill `object_gather_list` on rank `dst` with all ranks' objects; other ranks pass none."""
    if (own := _ready("gather_object", group)) is not None:
        root = root_of(own, dst, group_dst)
        if own.rank() == root:
            check_count("gather_object", object_gather_list or [], own)
        found = [obj] if own.comm is None else own.comm.gather(obj, root)
        if object_gather_list is not None and found is not None:
            object_gather_list[:] = found


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: object = None, group_src: int | None = None
) -> None:
    """Replace the members of `object_list` on every rank by those of rank `src`."""
    if (own := _ready("broadcast_object_list", group)) is not None and own.comm is not None:
        object_list[:] = own.comm.bcast(object_list, root_of(own, src, group_src))


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:
    """Store this rank's entry of rank `src`'s objects as the first element of the output list."""
    if (own := _ready("scatter_object_list", group)) is not None:
        root = root_of(own, src, group_src)
        if own.rank() == root:
            check_count("scatter_object_list", scatter_object_input_list or [], own)
        given = scatter_object_input_list if own.rank() == root else None
        scatter_object_output_list[0] = given[0] if own.comm is None and given else own.comm.scatter(given, root)


def _ready(name: str, group: Any) -> ProcessGroup | None:
    """The group, after a barrier; None on a rank outside of it."""
    if group is NON_GROUP_MEMBER:
        return None
    refuse(name)
    flush_all()
    own = group_of(group)
    synchronize(own, f"before {name}")
    return own


# ---- messages ----
def send_object_list(
    object_list: Sequence[Any], dst: int | None = None, group: Any = None, device: object = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:
    """Send objects to rank `dst`, which receives as many. `device` and `use_batch` have no effect: the hosts communicate."""
    if group is not NON_GROUP_MEMBER:
        parts = [pickle.dumps(item) for item in object_list]
        send(tensor_from([len(part) for part in parts], dtype=int64), dst, group, group_dst=group_dst)
        send(tensor_from(np.frombuffer(b"".join(parts), np.uint8)), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: object = None, group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Replace the members of `object_list` by those that rank `src` has sent, by default any; returns its global rank.

    Raises CollectiveError if their numbers differ.
    """
    if group is NON_GROUP_MEMBER:
        return -1
    sizes = zeros(len(object_list), dtype=int64)
    sender = recv(sizes, src, group, group_src=group_src)
    content = zeros(int(sizes.sum()), dtype=uint8)
    recv(content, sender, group)
    whole, start = content.numpy().tobytes(), 0
    for number, size in enumerate(sizes.tolist()):
        object_list[number] = pickle.loads(whole[start : start + size])
        start += size
    return sender
