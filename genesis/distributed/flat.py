"""Concatenates tensors: one collective on a long tensor is faster than many on short ones."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.distributed.process_group import ProcessGroup
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach


def check_tensors(name: str, *tensors: object) -> None:
    """Raise TypeError unless all are tensors."""
    for each in tensors:
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(f"{name}: {type(each).__name__} instead of a tensor; want a Tensor")


def check_lists(name: str, *lists: object) -> None:
    """Raise TypeError unless all are lists or tuples of tensors."""
    for each in lists:
        if not isinstance(each, list | tuple):
            raise ArgumentTypeError(f"{name}: {type(each).__name__} instead of a list of tensors; want one tensor a rank")
        check_tensors(name, *each)


def check_count(name: str, members: Sequence[object], group: ProcessGroup) -> None:
    """Raise ValueError unless there is a member for each rank of a group."""
    if len(members) != group.size():
        raise ArgumentError(f"{name}: a list of {len(members)}; want {group.size()}, one for each rank")


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of tensors of one dtype, one after the other, without a gradient."""
    flat = [tensor.detach().reshape((-1,)) for tensor in tensors]
    return flat[0] if len(flat) == 1 else call(OPERATIONS["cat"], (flat,))


def put(tensors: Sequence[Tensor], whole: Tensor) -> Sequence[Tensor]:
    """The inverse of `joined`: write each tensor's part of `whole` to it; returns the tensors."""
    start = 0
    for tensor in tensors:
        part = whole if len(tensors) == 1 else whole[start : start + tensor.numel()]
        # A collective's own result is what a later failure keeps: no view of it.
        write(detach(tensor), part if part.shape == tensor.shape else part.reshape(tensor.shape))
        start += tensor.numel()
    return tensors
