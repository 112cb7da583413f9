"""Differentiable collectives: pure functions of tensors.

Each rank has its own loss; the gradient of a rank's tensor is that of the sum of all ranks' losses.
"""

from __future__ import annotations

from typing import Any

from genesis.distributed.process_group import get_group_rank, group_of
from genesis.execution.flush import flush_collectives
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ops import collective as rows, messages
from genesis.ops.registry import OPERATIONS, Operation
from genesis.runtime.cuda.nccl import Communicator, refusal
from genesis.runtime.devices import CPU, Device
from genesis.runtime.groups import GROUPS
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor
from genesis.tracing.state import thread_state


def all_reduce(tensor: Tensor, op: str = "sum", group: Any = None) -> Tensor:
    """The sum (or another reduction) of all ranks' tensors, on every rank. Gradients flow through "sum" and "avg".

    >>> x = genesis.ones(2, requires_grad=True)
    >>> genesis.distributed.nn.functional.all_reduce(x * 3).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """
    return collective(rows.all_reduce, tensor, str(op), group_of(group).number)


def reduce(tensor: Tensor, dst: int, op: str = "sum", group: Any = None) -> Tensor:
    """The reduction of all ranks' tensors on rank `dst`; other ranks get their own tensor."""
    return collective(rows.reduce_to, tensor, get_group_rank(group, dst), str(op), group_of(group).number)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src`, whose gradient is the sum of all ranks' gradients."""
    return collective(rows.broadcast_from, tensor, get_group_rank(group, src), group_of(group).number)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All ranks' tensors, of one shape."""
    own = group_of(group)
    whole = collective(rows.all_gather, tensor.reshape((1, *tensor.shape)), None, own.number)
    return tuple(whole.unbind(0))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All ranks' tensors on rank `dst`; zeros elsewhere."""
    own, root = group_of(group), get_group_rank(group, dst)
    whole = collective(rows.gather_to, tensor, root, own.number)
    return tuple(whole.unbind(0)) if own.rank() == root else tuple([whole * 0 for _ in range(own.size())])


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This rank's entry of the tensors of rank `src`; other ranks pass as many, for their shapes alone."""
    own, root = group_of(group), get_group_rank(group, src)
    if len(tensors) != own.size():
        raise ArgumentError(f"scatter: {len(tensors)} tensors; want {own.size()}, one for each rank")
    given = call(OPERATIONS["stack"], (list(tensors),)) if own.rank() == root else tensors[own.rank()]
    return collective(rows.scatter_from, given, root, own.number)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: str = "sum", group: Any = None) -> Tensor:
    """The reduction of all ranks' lists, member by member; rank k gets member k. `output` is not used."""
    own = group_of(group)
    sizes = tuple([tensor.numel() for tensor in input_list])
    joined = call(OPERATIONS["cat"], ([tensor.reshape((-1,)) for tensor in input_list],))
    return collective(rows.reduce_scatter, joined, str(op), sizes, own.number).reshape(input_list[own.rank()].shape)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Sends part k of axis 0 to rank k and joins the received parts along axis 0. `output` is not used."""
    sizes = [None if given is None else tuple(given) for given in (input_split_sizes, output_split_sizes)]
    return collective(rows.all_to_all, input, *sizes, group_of(group).number)


def send(tensor: Tensor, dst: int, group: Any = None) -> Tensor:
    """Send `tensor` to rank `dst`, which receives it by `recv`; returns a zero to add to the loss, so that gradients return.

    The zero's backward receives the gradient of `tensor` from `dst`. There are gradients if both ranks' tensors have
    `requires_grad`. The ranks wait for each other. Raises ValueError for this rank, or one outside of the group.
    """
    return collective(messages.send_to, tensor, get_group_rank(group, dst), _is_recorded(tensor), group_of(group).number)


def recv(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor that rank `src` sends by `send`, with the shape and dtype of `tensor`, which does not change.

    If `tensor` requires gradients, so does the result; its gradient is sent to `src`. Raises as `send`.
    """
    return collective(messages.receive_from, tensor, get_group_rank(group, src), _is_recorded(tensor), group_of(group).number)


def sendrecv(tensor: Tensor, peer: int, group: Any = None) -> Tensor:
    """Exchanges `tensor` with rank `peer`, with the same shape and dtype; gradients are exchanged too. Raises as `send`."""
    return collective(messages.exchange_with, tensor, get_group_rank(group, peer), _is_recorded(tensor), group_of(group).number)


def _is_recorded(tensor: Tensor) -> bool:
    return thread_state.grad_enabled and tensor.requires_grad


def collective(row: Operation, tensor: Tensor, *arguments: Any) -> Tensor:
    """A row of `genesis.ops.collective` applied to a tensor on the CPU, or on this rank's GPU if the group has NCCL.

    Raises ValueError for other devices, TypeError for dtypes that NCCL cannot reduce.
    """
    device = array_of(tensor).device
    if device is not CPU:
        check_device(row.name, device, arguments[-1])
        reduce = next((setting for setting in arguments if isinstance(setting, str)), "")
        if reduce in rows.REDUCTIONS and GROUPS[arguments[-1]].size > 1 and (said := refusal(tensor.dtype, reduce)):
            raise ArgumentTypeError(f"{row.name}: {said}")
    flush_collectives(thread_state.traces.get(device.name))
    return call(row, (tensor, *arguments))  # type: ignore[no-any-return]


def check_device(name: str, device: Device, number: int) -> None:
    """Raise ValueError for a device without communication in the group."""
    group, memory = GROUPS[number], device.memory
    if group.size == 1 and device.type == "cuda":
        return
    if not isinstance(group.gpu, Communicator):
        hint = "; GPUs communicate after init_process_group('nccl')" * (device.type == "cuda")
        raise ArgumentError(f"{name}: the tensor is on {device}; want one on cpu{hint}")
    if memory is not group.gpu.memory:
        own = f"cuda:{group.gpu.memory.gpu.index}"
        raise ArgumentError(f"{name}: the tensor is on {device}; want one on {own}, this rank's device_id, or cpu")
