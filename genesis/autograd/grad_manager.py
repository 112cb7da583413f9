"""GradManager: accumulates the gradients of chosen tensors, over several devices if requested."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Self, TypeVar

from genesis.autograd.backward_pass import release
from genesis.autograd.data_parallel import scatter, total
from genesis.autograd.derivation import derivation
from genesis.autograd.gradients import add_gradient, backward, grad
from genesis.execution.realize import realize
from genesis.ir.annotations import Tree
from genesis.pytree import leaves_of
from genesis.runtime.devices import Device, DeviceLike, device_of
from genesis.runtime.fork import fork_safe_lock
from genesis.tensor.dispatch import array_of, moved
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor, hold_gradient
from genesis.tensor.modes import enable_grad
from genesis.tensor.views import move_storage
from genesis.tracing.state import grad_mode
from genesis.tracing.tensor_state import EXPOSED
from genesis.tracing.trace import LOCK, Array

_OF_STORAGE = "_array", "_base", "_layout", "_storage", "_element_map", "_detached", "_detached_root"
T = TypeVar("T")

_FEW = 16
_LENDING = fork_safe_lock()  # one `run` at a time moves attached tensors to other devices


class GradManager:
    """Accumulates the gradients of the attached tensors only.

    Args:
        devices: the devices on which `run` computes, one shard each; by default the tensors' own.
        keep_empty_grad: whether an attached tensor without a gradient keeps `.grad = None` instead of zeros. May be set
            later.

    As a context it records gradients, inside `no_grad` too.

    >>> w, unused = genesis.ones(2), genesis.ones(3)
    >>> gm = genesis.GradManager(devices=["cpu", "cpu:1"]).attach([w, unused])
    >>> with gm:
    ...     loss = (w * genesis.tensor([3.0, 4.0])).sum()
    >>> gm.backward(loss)
    >>> w.grad, unused.grad
    (tensor([3., 4.]), None)
    >>> gm.release()
    >>> print(w.grad)
    None
    >>> gm.run(lambda x: (x * w).sum(1).mean(), genesis.arange(6.0).reshape(3, 2))
    tensor(5.)
    >>> w.grad
    tensor([2., 3.])
    """

    def __init__(self, devices: Sequence[DeviceLike] | None = None, keep_empty_grad: bool = True) -> None:
        if devices is not None and not len(devices):
            raise ValueError("GradManager: devices is empty; want one at least, or None")
        self.keep_empty_grad = keep_empty_grad
        self._devices = None if devices is None else [device_of(device) for device in devices]
        self._attached: dict[int, Tensor] = {}
        self._outputs: list[weakref.ref[Tensor]] = []
        self._limit = _FEW  # prune dead references at this length
        self._recording: list[enable_grad] = []

    def attach(self, tensors: Tensor | Iterable[Tensor]) -> Self:
        """Attach `tensors`, floating leaves or results; leaves require gradients from now on."""
        listed: Iterable[object] = [tensors] if isinstance(tensors, Tensor) else tensors
        for tensor in listed:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"GradManager.attach: wants tensors, got {type(tensor).__name__} {tensor!r:.40}")
            if not tensor.requires_grad:
                tensor.requires_grad = True
            self._attached[id(tensor)] = tensor
        return self

    def attached_tensors(self) -> list[Tensor]:
        """The attached tensors, in order."""
        return list(self._attached.values())

    def __enter__(self) -> Self:
        self._recording.append(enable_grad())
        self._recording[-1].__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._recording.pop().__exit__(*problem)

    def backward(
        self, outputs: Tensor | Sequence[Tensor], gradient: Tensor | Sequence[Tensor | None] | None = None,
        retain_graph: bool | None = None, create_graph: bool = False,
    ) -> None:
        """Add the gradients of `outputs`, seeded with `gradient` (or ones, for one element), to the attached `.grad`.

        Raises RuntimeError if nothing is attached, and as `Tensor.backward`.
        """
        wanted = self._wanted("backward")
        backward(outputs, gradient, retain_graph, create_graph, wanted)
        self._outputs += [weakref.ref(o) for o in ([outputs] if isinstance(outputs, Tensor) else outputs)]
        if len(self._outputs) > self._limit:
            self._outputs = [output for output in self._outputs if output() is not None]
            self._limit = 2 * len(self._outputs) + _FEW
        self._fill(wanted)

    def run(
        self, loss_fn: Callable[..., Tensor], *batch: Tree, reduction: str = "mean", buffers: Iterable[Tensor] = ()
    ) -> Tensor:
        """Add the gradients of a loss over `batch`, split along axis 0 into one shard per device; returns the loss.

        Args:
            loss_fn: called as `loss_fn(*shard)` for each device, with the attached tensors on that device. It returns a
                single-element loss.
            batch: tensors of one length, also in lists, tuples and dicts; 0-d tensors and other values go to every device.
            reduction: the reduction in `loss_fn`. "mean" losses are weighted by their shards' rows, "sum" losses are
                added: either way the result equals `loss_fn(*batch)` on one device.
            buffers: further tensors that `loss_fn` reads, such as `module.buffers()`. Writes to them, or to attached
                tensors, are kept only on their own device.

        Other threads must not use the attached tensors meanwhile; calls of `run` wait for each other. Raises RuntimeError if
        nothing is attached or an attached tensor is not a leaf, ValueError for another `reduction` or a loss of several
        elements.
        """
        if reduction not in ("mean", "sum"):
            raise ValueError(f"GradManager.run: reduction must be 'mean' or 'sum', got {reduction!r}")
        wanted = self._wanted("run")
        if any(not tensor.is_leaf for tensor in wanted):
            raise RuntimeError("GradManager.run: an attached tensor is no leaf, and cannot stand on another device")
        with _LENDING:  # another thread's run may have moved the tensors to other devices
            own, travelling = wanted[0].device, [*wanted, *buffers]
            shards = scatter(batch, self._devices or [own])
            rows = [_rows(shard) for shard in shards]
            losses: list[Tensor] = []
            parts: dict[int, list[Tensor]] = {id(tensor): [] for tensor in wanted}
            for shard, device, count in zip(shards, self._devices or [own], rows, strict=False):
                weight = count / sum(rows) if reduction == "mean" and len(shards) > 1 else 1
                loss, found = _away(travelling, device, partial(_derived, loss_fn, shard, weight, wanted))
                losses.append(loss)
                for tensor, gradient in zip(wanted, found, strict=True):
                    parts[id(tensor)] += [] if gradient is None else [gradient]
            with grad_mode(False):
                for tensor in wanted:
                    if parts[id(tensor)]:
                        add_gradient(tensor, total(parts[id(tensor)], tensor.device), False)
                loss = total(losses, own)
            self._fill(wanted)
            return loss

    def release(self) -> None:
        """Free the attached `.grad`, and the graphs of the outputs of `backward`.

        The outputs become leaves and keep their values. Saved values of their graphs are freed, so other results of these
        graphs cannot run backward either. A second call does nothing.
        """
        for tensor in self._attached.values():
            hold_gradient(tensor, None)
        for reference in self._outputs:
            output = reference()
            if output is not None:
                _forget(output)
        self._outputs.clear()

    def _wanted(self, name: str) -> list[Tensor]:
        if not self._attached:
            raise RuntimeError(f"GradManager.{name}: no tensor is attached; attach() those whose gradients are wanted")
        return self.attached_tensors()

    def _fill(self, tensors: Iterable[Tensor]) -> None:
        """Set missing gradients to zeros, unless `keep_empty_grad`."""
        for tensor in tensors:
            if tensor._grad is None and not self.keep_empty_grad:
                hold_gradient(tensor, filled(0, tensor.shape, tensor.dtype, tensor.device))


def _rows(shard: Tree) -> int:
    """The length of a shard's tensors; 1 without tensors, because it is then the only shard."""
    return next((x.shape[0] for x in leaves_of(shard) if isinstance(x, Tensor) and x.shape), 1)


def _derived(
    loss_fn: Callable[..., Tensor], shard: Sequence[Tree], weight: float, wanted: Sequence[Tensor]
) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """A shard's loss and its gradients."""
    with grad_mode(True):
        loss = loss_fn(*shard)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise ValueError("GradManager.run: loss_fn must return a tensor of one element")
        loss = loss if weight == 1 else loss * weight
        return loss.detach(), grad(loss, wanted, allow_unused=True)


def _away(tensors: Sequence[Tensor], device: Device, function: Callable[[], T]) -> T:
    """`function()` with the tensors, which are leaves, temporarily copied to `device`."""
    with _LENDING:
        lent = [t for t in {id(t): t for t in tensors}.values() if t.device is not device]
        before = [(t, [getattr(t, name) for name in _OF_STORAGE]) for t in lent]
        with grad_mode(False):
            copies = moved(lent, device)
        try:
            try:
                for tensor, copy in zip(lent, copies, strict=True):
                    move_storage(tensor, copy)
                return function()
            finally:
                _brought_back(before)
        finally:  # twice, because an interrupt may have cut the first short
            _brought_back(before)


def _brought_back(before: Sequence[tuple[Tensor, Sequence[object]]]) -> None:
    for tensor, values in before:
        any(map(setattr, [tensor] * len(values), _OF_STORAGE, values))
        tensor._changes += EXPOSED


def _forget(output: Tensor) -> None:
    """Detach `output`, and free its graph's saved values."""
    with LOCK:
        array = array_of(output)
        if not array.node.differentiable:
            return
        for trace, reached in derivation([array]).items():
            release(trace, frozenset(reached))
            for index in reached & trace.backward.retained.keys():
                del trace.backward.retained[index]
        memory = realize(array)
        output._array = Array.over(memory, output.dtype)
        output._requires_grad = False
