"""A pipeline stage: a rank's part of a model, and the micro-batches that await backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genesis.autograd.gradients import backward
from genesis.distributed.nn.functional import check_device
from genesis.distributed.pipelining.link import Link
from genesis.distributed.process_group import group_of
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.nn.module import Module
from genesis.runtime.devices import CPU, device_of
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor


class PipelineStage:
    """This rank's part of a model, between those of the previous and the next rank.

    A stage's result, a tensor or a tuple of tensors, is the next one's arguments; floating tensors get gradients back. A
    schedule runs it: see `ScheduleGPipe` and `Schedule1F1B`.

    Args:
        submodule: its part of the model.
        stage_index: the part's number: this rank's number in the group.
        num_stages: the number of stages: one per rank of the group.
        device: the submodule's device: the CPU, or this rank's GPU if the ranks' GPUs communicate.
        group: the ranks; by default all.

    Raises ValueError for a group of another number of ranks, another rank's stage and another device.

    >>> stage = genesis.distributed.pipelining.PipelineStage(genesis.nn.Linear(3, 2), 0, 1)
    >>> stage.is_first, stage.is_last
    (True, True)
    """

    def __init__(self, submodule: Module, stage_index: int, num_stages: int, device: Any = "cpu", *, group: Any = None) -> None:
        own = group_of(group)
        if not isinstance(submodule, Module):
            raise ArgumentTypeError(f"PipelineStage: the submodule is {type(submodule).__name__}; want a module")
        if num_stages != own.size():
            raise ArgumentError(f"PipelineStage: {num_stages} stages in a group of {own.size()} ranks; want one for each rank")
        if stage_index != own.rank():
            raise ArgumentError(f"PipelineStage: stage {stage_index} on rank {own.rank()} of the group; want {own.rank()}")
        target = device_of(device)
        if target is not CPU:
            check_device("PipelineStage", target, own.number)
        self.submodule, self.stage_index, self.num_stages, self.group = submodule, stage_index, num_stages, own
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.live: dict[int, tuple[Sequence[Tensor], Sequence[Tensor]]] = {}  # micro-batch -> (its arguments, its results)
        self._before = None if self.is_first else Link(own, stage_index - 1, is_next=False, device=target)
        self._after = None if self.is_last else Link(own, stage_index + 1, is_next=True, device=target)

    def begin(self, count: int, before: int, after: int) -> None:
        """Begin a step of `count` micro-batches; `before` and `after` are sent ahead at each boundary."""
        self.live.clear()
        for link, ahead in ((self._before, before), (self._after, after)):
            if link is not None:
                link.begin(count, ahead)

    def forward(self, number: int, args: Sequence[Any], kwargs: Mapping[str, Any], keeps: bool) -> Any:
        """Compute a micro-batch and send its results. With `keeps`, keep it for backward."""
        if self._before is not None:
            self._before.agree()
            args = [_received(tensor, keeps) for tensor in self._before.take(number) if tensor is not None]
        outputs = self.submodule(*args, **kwargs)
        if self._after is not None:
            listed = _tensors(outputs)
            self._after.agree(listed)
            self._after.give(number, [tensor.detach() for tensor in listed])
            self.keep(number, args, listed, keeps)
            return None
        self.keep(number, args, (), keeps)
        return outputs

    def keep(self, number: int, args: Sequence[Any], results: Sequence[Tensor], keeps: bool = True) -> None:
        """Keep `results` for `backward` to start from."""
        if keeps:
            self.live[number] = args, results

    def backward(self, number: int, seed: float) -> None:
        """Run a micro-batch's backward, and send its arguments' gradients. On the last stage the loss's gradient is `seed`."""
        args, results = self.live.pop(number)
        gradients = [filled(seed, loss.shape, loss.dtype, loss.device) for loss in results] if self._after is None else (
            self._after.take(number))
        derived = [(result, gradient) for result, gradient in zip(results, gradients, strict=True)
                   if gradient is not None and result.requires_grad]
        if derived:
            backward([result for result, _ in derived], [gradient for _, gradient in derived])
        if self._before is not None:
            self._before.give(number, [_gradient(tensor) for tensor in args])


def _received(tensor: Tensor, keeps: bool) -> Tensor:
    found = tensor.detach()
    return found.requires_grad_() if keeps and found.dtype.category >= 2 else found


def _gradient(tensor: Tensor) -> Tensor | None:
    """An argument's gradient; zeros if nothing depends on it, None for integers."""
    if not tensor.requires_grad:
        return None
    return filled(0, tensor.shape, tensor.dtype, tensor.device) if tensor.grad is None else tensor.grad


def _tensors(outputs: Any) -> list[Tensor]:
    listed = [*outputs] if isinstance(outputs, tuple | list) else [outputs]
    for each in listed:
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(f"PipelineStage: a stage gives {type(each).__name__}; want a tensor or a tuple of tensors")
    return listed
