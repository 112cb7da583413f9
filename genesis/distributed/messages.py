"""Point-to-point messages. They run at once, after pending work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.distributed import mpi
from genesis.distributed.flat import check_tensors, joined, put
from genesis.distributed.nn import functional
from genesis.distributed.process_group import NON_GROUP_MEMBER, ProcessGroup, get_group_rank, group_of, root_of
from genesis.distributed.work import Message, Work
from genesis.execution.flush import flush_all
from genesis.functions.from_data import tensor as tensor_from
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.runtime.devices import CPU
from genesis.runtime.groups import CollectiveError
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.state import grad_mode


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Message:
    """Begin to send the current value of `tensor` to rank `dst`; the tensor may be changed at once.

    Raises ValueError for a tensor on a GPU: see `batch_isend_irecv`.
    """
    _check_on_host("isend", tensor)
    own, there = _other("isend", group, dst, group_dst)
    values = tensor.detach().numpy().copy()
    request = own.comm.Isend([_bytes_of(values), mpi.library().BYTE], there, tag)
    to = own.ranks[there]
    return Message(request, lambda message: None, f"isend of {_named(tensor)} to rank {to}", own.handle.timeout, [to])


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Message:
    """Begin to receive from rank `src`, by default from any, into `tensor`, which is written when `wait` returns.

    `wait` raises CollectiveError for a message of another size. Raises ValueError for a tensor on a GPU.
    """
    _check_on_host("irecv", tensor)
    library = mpi.library()
    own, there = _other("irecv", group, src, group_src, library.ANY_SOURCE)
    source = "any rank" if there == library.ANY_SOURCE else f"rank {own.ranks[there]}"
    said = f"irecv of {_named(tensor)} from {source}"
    values = np.zeros(tensor.numel() * tensor.dtype.itemsize, np.uint8)

    def finish(message: Message) -> None:
        count = message.status.Get_count(library.BYTE)
        if count != len(values):
            raise CollectiveError(f"{said}: what came has {count} bytes, not {len(values)}")
        message.source = own.ranks[message.status.Get_source()]
        came = values.view(tensor.dtype.numpy).reshape(tensor.shape)
        with grad_mode(False):
            write(detach(tensor), tensor_from(came, dtype=tensor.dtype, device=CPU))

    others = [rank for rank in own.ranks if rank != own.ranks[own.rank()]] if source == "any rank" else [own.ranks[there]]
    return Message(own.comm.Irecv([values, library.BYTE], there, tag), finish, said, own.handle.timeout, others)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send `tensor` to rank `dst`, and wait until it has been sent. One on a GPU is recorded, like `nn.functional.send`."""
    check_tensors("send", tensor)
    if group is NON_GROUP_MEMBER:
        return
    if array_of(tensor).device.memory.is_host:
        isend(tensor, dst, group, tag, group_dst).wait()
    else:
        functional.send(tensor.detach(), _peer("send", group, dst, tag, group_dst), group)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive `tensor` from rank `src`, by default from any; returns the sender's global rank.

    For one on a GPU, `src` is required. It is recorded, like `nn.functional.recv`.
    """
    check_tensors("recv", tensor)
    if group is NON_GROUP_MEMBER:
        return -1
    if not array_of(tensor).device.memory.is_host:
        peer = _peer("recv", group, src, tag, group_src)
        with grad_mode(False):
            write(detach(tensor), functional.recv(tensor.detach(), peer, group))
        return peer
    message = irecv(tensor, src, group, tag, group_src)
    message.wait()
    return message.source


class P2POp(NamedTuple):
    """A message for `batch_isend_irecv`: `isend` or `irecv`, and its arguments."""

    op: Callable[..., Message]
    tensor: Tensor
    peer: int | None = None
    group: Any = None
    tag: int = 0
    group_peer: int | None = None


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages, in any order on each rank. Messages of GPU tensors are recorded, like collectives.

    Raises ValueError for other operations than isend and irecv, and for a mix of GPU and CPU tensors; TypeError if a rank
    receives tensors of several dtypes from a GPU.
    """
    if not p2p_op_list or any(not isinstance(each, P2POp) or each.op not in (isend, irecv) for each in p2p_op_list):
        raise ArgumentError("batch_isend_irecv: want a list of P2POp(isend or irecv, ..), one at least")
    on_host = {array_of(each.tensor).device.memory.is_host for each in p2p_op_list}
    if len(on_host) > 1:
        raise ArgumentError("batch_isend_irecv: some tensors are on GPUs, some on the CPU; want a batch for each")
    if on_host == {True}:
        return [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]
    return _begin_on_gpus(p2p_op_list)


def _begin_on_gpus(messages: Sequence[P2POp]) -> list[Work]:
    """Record messages between GPUs, combined per pair of ranks.

    The two ranks of a pair wait for each other. All ranks use the same order of pairs, so there is no deadlock.
    """
    pairs: dict[tuple[int, int, int], dict[Callable[..., Message], list[Tensor]]] = {}
    for each in messages:
        own = group_of(each.group)
        there = get_group_rank(own, _peer(each.op.__name__, own, each.peer, each.tag, each.group_peer))
        low, high = sorted((own.rank(), there))
        pairs.setdefault((own.number, low, high), {isend: [], irecv: []})[each.op].append(each.tensor)
    groups = {group.number: group for group in [group_of(each.group) for each in messages]}
    with grad_mode(False):
        for number, low, high in sorted(pairs):
            sent, received = pairs[number, low, high].values()
            _check_one_dtype(sent)
            _check_one_dtype(received)
            _pass(sent, received, groups[number], low, high)
    return [Work([each.tensor]) for each in messages]


def _pass(sent: Sequence[Tensor], received: Sequence[Tensor], group: ProcessGroup, low: int, high: int) -> None:
    """The messages between two ranks of a group: one exchange if shapes are equal, otherwise `low` sends first."""
    is_low = group.rank() == low
    peer = group.ranks[high if is_low else low]
    outgoing, incoming = (joined(tensors) if tensors else None for tensors in (sent, received))
    if outgoing is not None and incoming is not None and outgoing.shape == incoming.shape and outgoing.dtype is incoming.dtype:
        put(received, functional.sendrecv(outgoing, peer, group))
        return
    for sends in (is_low, not is_low):
        if sends and outgoing is not None:
            functional.send(outgoing, peer, group)
        elif not sends and incoming is not None:
            put(received, functional.recv(incoming, peer, group))


def _check_one_dtype(tensors: Sequence[Tensor]) -> None:
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise ArgumentTypeError("batch_isend_irecv: tensors of several dtypes go one way between two GPUs; want one dtype")


def _other(
    name: str, group: Any, rank: int | None, group_rank: int | None, missing: int | None = None
) -> tuple[ProcessGroup, int]:
    """The group, and the peer's rank in it."""
    own = group_of(group)
    if own.comm is None:
        raise ArgumentError(f"{name}: the group has one rank; there is nobody to send to or receive from")
    refuse(name)
    flush_all()
    if not own.handle.is_usable:
        why = "the group was destroyed, or a collective of it failed"
        raise CollectiveError(f"{name}: {why}, or this is a fork of the rank's process")
    if rank is None and group_rank is None:
        if missing is None:
            raise ArgumentError(f"{name}: want the rank to send to")
        return own, missing
    there = get_group_rank(own, rank) if group_rank is None and rank is not None else group_rank
    assert there is not None
    if there == own.rank() or not 0 <= there < own.size():
        raise ArgumentError(f"{name}: rank {there} of the group; want another one of its {own.size()} ranks")
    return own, there


def _check_on_host(name: str, tensor: Tensor) -> None:
    check_tensors(name, tensor)
    device = array_of(tensor).device
    if not device.memory.is_host:
        raise ArgumentError(f"{name}: the tensor is on {device}; want one on cpu, or batch_isend_irecv, send or recv")


def _peer(name: str, group: Any, rank: int | None, tag: int, group_rank: int | None) -> int:
    """The peer's global rank, for a message between GPUs."""
    own = group_of(group)
    if tag or (rank is None and group_rank is None):
        raise ArgumentError(f"{name}: tag {tag}, rank {rank}; want tag 0 and the other's rank for tensors on a GPU")
    return own.ranks[root_of(own, rank, group_rank)]


def _bytes_of(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _named(tensor: Tensor) -> str:
    return f"{tensor.dtype.name}{[*tensor.shape]}"
