"""Communication hooks: custom averaging of `DistributedDataParallel`'s gradient buckets.

`register_comm_hook(state, hook)` takes a function of a process group (None: the wrapper's, or all ranks) and a GradBucket.
It returns a Future of the averages, one tensor of the bucket's length. The names are those of PyTorch's `default_hooks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from genesis.distributed.futures import Future, resolved
from genesis.distributed.nn.functional import all_reduce, collective
from genesis.distributed.process_group import group_of
from genesis.ir.dtypes import DType, bfloat16, float16, float32
from genesis.ops import collective as rows
from genesis.tensor.handle import Tensor

CommunicationHook = Callable[[Any, "GradBucket"], Future]


class GradBucket:
    """Gradients that are averaged together, concatenated in a flat tensor."""

    def __init__(self, buffer: Tensor, parameters: Sequence[Tensor], index: int, is_last: bool) -> None:
        self._buffer, self._parameters, self._index, self._is_last = buffer, list(parameters), index, is_last

    def buffer(self) -> Tensor:
        """All gradients, of shape (number of elements,)."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace all gradients."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Each parameter's gradient, in the parameter's shape."""
        found, start = [], 0
        for parameter in self._parameters:
            found.append(self._buffer[start : start + parameter.numel()].reshape(parameter.shape))
            start += parameter.numel()
        return found

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients these are."""
        return self._parameters

    def index(self) -> int:
        """The bucket's number in this backward."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last one."""
        return self._is_last


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The average, as without a hook.

    >>> model = genesis.distributed.DistributedDataParallel(genesis.nn.Linear(2, 1))
    >>> model.register_comm_hook(None, genesis.distributed.communication_hooks.allreduce_hook)
    """
    return resolved(all_reduce(bucket.buffer(), "avg", process_group))


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The average of gradients sent as bfloat16 and summed as float32: half the bytes."""
    return resolved(_averaged_as(bfloat16, bucket.buffer(), process_group))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The average of gradients sent as float16 and summed as float32: half the bytes. Values above 65504 become infinite."""
    return resolved(_averaged_as(float16, bucket.buffer(), process_group))


class BuiltinCommHookType(Enum):
    """Hooks by name: `model._register_builtin_comm_hook(BuiltinCommHookType.FP16_COMPRESS)`."""

    ALLREDUCE, FP16_COMPRESS = "allreduce", "fp16_compress"


BUILTIN = {BuiltinCommHookType.ALLREDUCE: allreduce_hook, BuiltinCommHookType.FP16_COMPRESS: fp16_compress_hook}


def bf16_compress_wrapper(hook: CommunicationHook) -> CommunicationHook:
    """`hook` with the bucket converted to bfloat16 and its result converted back."""
    return _compressed(hook, bfloat16)


def fp16_compress_wrapper(hook: CommunicationHook) -> CommunicationHook:
    """`hook` with the bucket converted to float16 and its result converted back."""
    return _compressed(hook, float16)


def _compressed(hook: CommunicationHook, dtype: DType) -> CommunicationHook:
    def compressed(state: Any, bucket: GradBucket) -> Future:
        wide = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().to(dtype))
        return hook(state, bucket).then(lambda found: found.value().to(wide))

    return compressed


def _averaged_as(dtype: DType, flat: Tensor, process_group: Any) -> Tensor:
    """The average, sent as `dtype`: each rank sums one part of all ranks' tensors, and sends it to all.

    MPI does not sum 16-bit floats; an all_reduce would send float32.
    """
    group = group_of(process_group)
    count, size, rank = flat.numel(), group.size(), group.rank()
    if size == 1:
        return flat.to(dtype).to(flat.dtype)
    sizes = tuple([(k + 1) * count // size - k * count // size for k in range(size)])
    parts = collective(rows.all_to_all, flat.to(dtype), sizes, (sizes[rank],) * size, group.number)
    mean = parts.reshape((size, sizes[rank])).to(float32).sum(0) * (1 / size)
    return collective(rows.all_gather, mean.to(dtype), sizes, group.number).to(flat.dtype)
