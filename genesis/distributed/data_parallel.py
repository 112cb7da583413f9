"""Data parallelism over ranks: each has the whole model and a part of the batch; gradients are averaged after backward.

The average is recorded like any operation, in buckets of many gradients, so a compiled step includes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from genesis.autograd.after_backward import queue_callback
from genesis.autograd.custom import Context
from genesis.autograd.function import Function
from genesis.distributed.communication_hooks import BUILTIN, BuiltinCommHookType, CommunicationHook, GradBucket
from genesis.distributed.flat import joined, put
from genesis.distributed.nn.functional import all_reduce, broadcast
from genesis.distributed.objects import all_gather_object
from genesis.distributed.process_group import ProcessGroup, get_process_group_ranks, group_of
from genesis.execution.flush import flush_all
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.nn.module import Module
from genesis.pytree import map_tree
from genesis.runtime.groups import Collective
from genesis.tensor.composite import differentiated
from genesis.tensor.dispatch import array_of
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor, hold_gradient
from genesis.tensor.views import detach
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.state import grad_mode, thread_state

BUCKET_MB = 25.0


class DistributedDataParallel(Module):
    """`module` on every rank, trained as one: after each backward `.grad` is the average over ranks.

    Args:
        module: its parameters and buffers, with equal names, shapes and dtypes on all ranks, are replaced by rank 0's.
        broadcast_buffers: whether to copy rank 0's buffers at the start, and before each forward, also in evaluation, that
            follows a forward whose gradients were averaged.
        process_group: the ranks; by default all.
        bucket_cap_mb: megabytes of gradients averaged at once; by default 25. Gradients are in the order of rank 0's first
            backward; with `find_unused_parameters`, the last parameters come first.
        find_unused_parameters: whether parameters may lack a gradient on some ranks. It counts as zeros there; a parameter
            without gradient on all ranks keeps its `.grad`. Otherwise a missing gradient raises RuntimeError at the end of
            backward.
        init_sync: whether to copy rank 0's parameters and buffers now.
        forward_sync_buffers: replaces `broadcast_buffers` for forwards; buffers are still copied at the start.
        device_ids, output_device, dim, gradient_as_bucket_view, static_graph: no effect.

    The loss of a rank is the mean over its part of the batch; with parts of equal length the averaged gradient is that of the
    whole batch. `autograd.grad` returns this rank's own gradients.

    >>> model = genesis.distributed.DistributedDataParallel(genesis.nn.Linear(3, 2))
    >>> model(genesis.ones(4, 3)).sum().backward()
    >>> model.module.bias.grad
    tensor([4., 4.])
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool = True, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, gradient_as_bucket_view: bool = False,
        static_graph: bool = False, forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        cap = BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb
        if not cap > 0:
            raise ArgumentError(f"DistributedDataParallel: bucket_cap_mb is {bucket_cap_mb}; want more than 0")
        trained = [(name, differentiated(p)) for name, p in module.named_parameters() if p.requires_grad]
        if not trained:
            raise RuntimeError("DistributedDataParallel: the module has no parameter that requires a gradient; want the module")
        self.module = module
        self.process_group: ProcessGroup = group_of(process_group)
        self.broadcast_buffers = broadcast_buffers if forward_sync_buffers is None else forward_sync_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True  # whether buffers may differ, because the last forward's gradients were averaged
        self._trained, self._has_buffers = trained, any(True for _ in module.buffers())
        self._hook: tuple[Any, CommunicationHook] | None = None
        self._joining: Joining | None = None
        self._most = int(cap * (1 << 20))
        self._buckets = _buckets_of([p for _, p in reversed(trained)], self._most)
        self._is_in_order = self.process_group.size() == 1 or len(self._buckets) == 1 or find_unused_parameters
        if self.process_group.size() > 1:
            _check_alike(module, self.process_group)
            if init_sync:
                has_own_buffers = forward_sync_buffers is None and not broadcast_buffers
                take_from([*module.parameters(), *(() if has_own_buffers else module.buffers())], 0, self.process_group)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The module's result."""
        if self.process_group.size() == 1:
            return self.module(*inputs, **options)
        averages = self.require_backward_grad_sync and thread_state.grad_enabled
        if self._joining is not None:
            self._joining.begin(averages)
        self._take_buffers(averages)
        outputs = self.module(*inputs, **options)
        return map_tree(self._followed, outputs) if averages else outputs

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context whose forwards' gradients stay local: the next backward of a forward outside averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: CommunicationHook) -> None:
        """Average each bucket of gradients by `hook(state, bucket)` from now on: see `communication_hooks`.

        Raises TypeError for a hook that is not callable, RuntimeError if there is one already.
        """
        if not callable(hook):
            raise ArgumentTypeError(f"register_comm_hook: the hook is {type(hook).__name__} {hook!r:.40}; want a function")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook: this model has a hook already; want one for each model")
        self._hook = state, hook

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        """Average gradients by a hook that has a name."""
        self.register_comm_hook(None, BUILTIN[comm_hook_type])

    @contextmanager
    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Iterator[None]:
        """A context in which ranks may have different numbers of batches: finished ranks take part in the others' collectives.

        Each rank leaves it when all have finished, with the model of the last rank that had a batch.

        Args:
            divide_by_initial_world_size: whether gradients are divided by the number of all ranks or of those with a batch.
            enable: whether it does anything.
            throw_on_early_termination: whether all ranks raise RuntimeError as soon as one has finished.
        """
        if not enable or self.process_group.size() == 1:
            yield
            return
        self._joining = joining = Joining(self.process_group, divide_by_initial_world_size, throw_on_early_termination)
        try:
            yield
            while joining.others_go_on():
                self._take_buffers(joining.is_syncing)
                if joining.is_syncing:
                    self._answer()
            shared = [*self.module.parameters(), *(self.module.buffers() if self.broadcast_buffers else ())]
            take_from(shared, joining.last, self.process_group)
        finally:
            self._joining = None

    def _take_buffers(self, averages: bool) -> None:
        """Copy one rank's buffers to all if they may differ; `averages`: whether they may differ before the next forward."""
        if not self._has_buffers:
            return
        if self.broadcast_buffers and self.require_forward_param_sync:
            root = 0 if self._joining is None else self._joining.last
            take_from([*self.module.buffers()], root, self.process_group)
        if self.require_forward_param_sync is not averages:
            self.require_forward_param_sync = averages

    def _answer(self) -> None:
        """Take part in the other ranks' average without gradients of its own."""
        unused = self._unused([*self._trained]) if self.find_unused_parameters else set()
        with grad_mode(False):
            self._averages([[(p, filled(0, p.shape, p.dtype, p.device)) for p in bucket if id(p) not in unused]
                            for bucket in self._buckets])

    def _followed(self, output: Any) -> Any:
        if not isinstance(output, Tensor) or not output.requires_grad:
            return output
        return _Followed.apply(output, average=self._average)

    def _average(self) -> None:
        """Replace the gradients on all ranks by their averages."""
        group = self.process_group
        missing = [(name, p) for name, p in self._trained if p._grad is None and p.requires_grad]
        unused = self._unused(missing) if self.find_unused_parameters else set()
        if missing and not self.find_unused_parameters:
            raise RuntimeError(
                f"DistributedDataParallel: rank {group.rank()} has no gradient of {', '.join(name for name, _ in missing)}; "
                "want find_unused_parameters=True for parameters that not every loss depends on")
        if not self._is_in_order and self._joining is None:
            self._put_in_order()
        with grad_mode(False):
            for _, p in missing:
                if id(p) not in unused:
                    hold_gradient(p, filled(0, p.shape, p.dtype, p.device))
            buckets = [[(p, p._grad) for p in bucket if p.requires_grad and id(p) not in unused and p._grad is not None]
                       for bucket in self._buckets]
            for bucket, average in zip(filter(None, buckets), self._averages(buckets), strict=True):
                put([gradient for _, gradient in bucket], average)

    def _averages(self, buckets: Sequence[Sequence[tuple[Tensor, Tensor]]]) -> list[Tensor]:
        """The average of each nonempty bucket of parameters and gradients."""
        found: list[Tensor] = []
        filled_buckets = [bucket for bucket in buckets if bucket]
        for number, bucket in enumerate(filled_buckets):
            flat = joined([gradient for _, gradient in bucket])
            if self._hook is not None:
                state, hook = self._hook
                given = GradBucket(flat, [p for p, _ in bucket], number, number == len(filled_buckets) - 1)
                found.append(hook(state, given).wait())
            elif self._joining is None:
                found.append(all_reduce(flat, "avg", self.process_group))
            else:
                found.append(all_reduce(flat, "sum", self.process_group) * (1 / self._joining.divisor))
        return found

    def _put_in_order(self) -> None:
        """Order buckets as rank 0 recorded the gradients, so that the first buckets complete first."""
        own = sorted(range(len(self._trained) - 1, -1, -1), key=lambda k: _recorded_at(self._trained[k][1]))
        refuse("the first backward of DistributedDataParallel asks for rank 0's order of gradients", passes=True)
        flush_all()
        given, count = np.array(own, np.int64), (len(own),)
        found = np.zeros_like(given)
        what = Collective("broadcast_from", "", 0, count, count, "of the order of gradients")
        self.process_group.handle.run(what, given, found)
        self._buckets = _buckets_of([self._trained[k][1] for k in found], self._most)
        self._is_in_order = True

    def _unused(self, missing: Sequence[tuple[str, Tensor]]) -> set[int]:
        """The ids of parameters without a gradient on all ranks."""
        refuse("find_unused_parameters asks other ranks which parameters have gradients")
        flush_all()
        group, absent = self.process_group, {id(p) for _, p in missing}
        own = np.array([id(p) not in absent for _, p in self._trained], np.uint8)
        found, count = np.zeros_like(own), (len(own),)
        group.handle.run(Collective("all_reduce", "max", -1, count, count, "of what has gradients"), own, found)
        return {id(p) for (_, p), used in zip(self._trained, found, strict=True) if not used}


class _Followed(Function):
    """Passes an output on; if it gets a gradient, `average` runs at the end of backward."""

    @staticmethod
    def forward(ctx: Context, output: Tensor, average: Any) -> Tensor:
        ctx.save_variable("average", average)
        return detach(output)

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> Tensor:
        queue_callback(ctx.saved_variables["average"])
        return gradient


def _recorded_at(parameter: Tensor) -> int:
    """The position of a parameter's gradient in the program; -1 if it is computed already."""
    array = array_of(parameter._grad)  # type: ignore[arg-type]
    return -1 if array.trace is None or array.memory is not None else array.index


def _buckets_of(parameters: Sequence[Tensor], most: int) -> list[list[Tensor]]:
    """Buckets of consecutive parameters with one dtype, each of at most `most` bytes or a single parameter."""
    buckets: list[list[Tensor]] = []
    open_: dict[Any, tuple[list[Tensor], int]] = {}
    for parameter in parameters:
        size = parameter.numel() * parameter.dtype.itemsize
        bucket, filled_bytes = open_.get(parameter.dtype, (None, 0))
        if bucket is None or filled_bytes + size > most:
            bucket, filled_bytes = [], 0
            buckets.append(bucket)
        bucket.append(parameter)
        open_[parameter.dtype] = bucket, filled_bytes + size
    return buckets


def _check_alike(module: Module, group: ProcessGroup) -> None:
    """Raise RuntimeError if ranks have models with different parameters."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    own = [(name, tensor.dtype.name, tuple(tensor.shape)) for name, tensor in tensors]
    found: list[Any] = [None] * group.size()
    all_gather_object(found, own, group)
    for rank, other in zip(group.ranks, found, strict=True):
        if other != found[0]:
            first, theirs = next((a, b) for a, b in zip([*found[0], None], [*other, None], strict=False) if a != b)
            differ = f"rank {group.ranks[0]} has {first}, rank {rank} has {theirs}"
            raise RuntimeError(f"DistributedDataParallel: the models differ: {differ}; want the same one on all ranks")


def take_from(tensors: Sequence[Tensor], rank: int, group: ProcessGroup) -> None:
    """Copy the tensors of one rank of the group to all; tensors of one dtype are sent together."""
    root, tensors = get_process_group_ranks(group)[rank], [*map(differentiated, tensors)]
    kinds = dict.fromkeys([tensor.dtype for tensor in tensors])
    with grad_mode(False):
        for kind in kinds:
            of_kind = [tensor for tensor in tensors if tensor.dtype is kind]
            put(of_kind, broadcast(joined(of_kind), root, group))


_THROUGH, _HAS_A_BATCH, _AVERAGES = range(3)


class Joining:
    """The state that a group's ranks have exchanged last.

    Attributes:
        last: the last rank of the group that has a batch.
        is_syncing: whether the gradients of this forward are averaged.
        divisor: the divisor of gradient sums.
    """

    def __init__(self, group: ProcessGroup, divides_by_all: bool, throws: bool) -> None:
        self._group, self._divides_by_all, self._throws = group, divides_by_all, throws
        self.last, self.is_syncing, self.divisor = 0, False, group.size()

    def begin(self, averages: bool) -> None:
        """Announce that this rank has a batch. Raises RuntimeError if another has none and that should raise."""
        refuse("other ranks are asked whether they have a batch")
        found = self._told(_AVERAGES if averages else _HAS_A_BATCH)
        if self._throws and (found == _THROUGH).any():
            self._raise(found)

    def others_go_on(self) -> bool:
        """Announce that this rank has no more batches; returns whether others have."""
        found = self._told(_THROUGH)
        if self._throws and found.any():
            self._raise(found)
        return bool(found.any())

    def _raise(self, found: np.ndarray) -> None:
        through = [rank for rank, state in zip(self._group.ranks, found, strict=True) if state == _THROUGH]
        raise RuntimeError(f"join: rank {', '.join(map(str, through))} has no batch any more, and others have")

    def _told(self, own: int) -> np.ndarray:
        """Exchange `own` with all ranks."""
        flush_all()
        size, rank = self._group.size(), self._group.rank()
        said, found = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        said[rank] = own
        self._group.handle.run(Collective("all_reduce", "max", -1, (size,), (size,), "of who has a batch"), said, found)
        if found.any():
            self.last = int(found.nonzero()[0][-1])
            self.is_syncing = bool((found == _AVERAGES).any())
            self.divisor = size if self._divides_by_all else int((found > _THROUGH).sum())
        return found
