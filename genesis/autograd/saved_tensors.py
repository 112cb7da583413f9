"""Saved tensor hooks: operands are packed when an operation is called, and unpacked in backward.

Normally lowering decides what a program saves, and operations save nothing themselves. Within these hooks each operation
becomes a node that holds the packed operands that its gradient reads, and recomputes from the unpacked ones. This is slow; it
is for saving to disk, to another device, or as a quantized copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from genesis.autograd.backward_pass import BackwardPass
from genesis.autograd.custom import Context, Deferred, record_custom
from genesis.ir.annotations import AnyFunction, Options, Tree
from genesis.pytree import leaves_of, map_tree, with_leaves
from genesis.runtime.devices import Device
from genesis.tensor.call_modes import FunctionMode
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, is_written_since, root_of, tensor_of
from genesis.tensor.in_place import write
from genesis.tensor.modes import autocast
from genesis.tracing.state import current_trace, grad_mode, thread_mode, thread_state
from genesis.tracing.trace import Array, Trace

__all__ = ["save_on_cpu", "saved_tensors_hooks"]

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]
_TENSOR = object()  # placeholder of a tensor argument
# Operations whose gradient reads no operand: nothing is saved.
LINEAR = {
    "add", "sub", "neg", "sum", "mean", "reshape", "view", "permute", "transpose", "t", "expand", "squeeze", "unsqueeze",
    "flatten", "unflatten", "narrow", "select", "slice", "subscript", "flip", "cat", "stack", "clone", "to_dtype", "detach",
    "movedim", "swapaxes", "contiguous", "chunk", "split", "unbind", "diagonal", "roll", "tile", "broadcast_to", "rsub",
}


class saved_tensors_hooks(FunctionMode):
    """A context in which `pack_hook` gets each tensor that an operation's gradient reads. In backward `unpack_hook` gets the
    packed object and returns a tensor of the same shape and dtype.

    Each operation packs its operands again. In-place operations, and those whose gradient reads nothing, pack nothing. Unpacked
    tensors have no gradient: backward with create_graph raises RuntimeError.

    >>> kept = []
    >>> x = genesis.tensor([2., 3.], requires_grad=True)
    >>> with genesis.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or len(kept) - 1, lambda i: kept[i]):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad, len(kept)
    (tensor([4., 6.]), 2)
    """

    refusal: str | None = None  # why entering is forbidden

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> FunctionMode:
        if saved_tensors_hooks.refusal is not None:
            raise RuntimeError(saved_tensors_hooks.refusal)
        return super().__enter__()

    def intercept(self, function: AnyFunction, args: Sequence[Any], kwargs: Options) -> Tree:
        given = [a for a in leaves_of((args, kwargs)) if isinstance(a, Tensor)]
        carries = thread_state.grad_enabled and any(t.requires_grad for t in given)
        if not carries or function.__name__ in LINEAR or function.__name__.endswith("_"):
            return function(*args, **kwargs)
        arrays, changes = [array_of(t) for t in given], [root_of(t)._changes for t in given]
        with grad_mode(False):
            outcome = function(*args, **kwargs)
            written = [(t, a) for t, a, before in zip(given, arrays, changes, strict=True) if is_written_since(t, before)]
            for tensor, array in written:  # the call below writes again
                write(tensor, tensor_of(array))
        results = leaves_of(outcome)
        if written or not any(isinstance(r, Tensor) and r.dtype.is_floating_point for r in results):
            return function(*args, **kwargs)
        packed = [self.pack_hook(t.detach()) for t in given]
        if any(map(is_written_since, given, changes)):
            raise RuntimeError("saved_tensors_hooks: pack_hook changes in place what it gets; want a new tensor, as of clone()")
        context = Context()
        context.mark_non_differentiable(*[r for r in results if isinstance(r, Tensor) and not r.dtype.is_floating_point])
        context.set_materialize_grads(False)
        bare = map_tree(lambda a: _TENSOR if isinstance(a, Tensor) else a, (tuple(args), dict(kwargs)))
        cast_as_now = autocast(dtype=thread_state.autocast, enabled=thread_state.autocast is not None)(function)
        kinds = [(t.shape, t.dtype, t.requires_grad) for t in given]

        def backward(context: Context, *gradients: Tensor | None) -> Deferred:
            return self._again(cast_as_now, bare, packed, kinds, gradients)

        inputs = [(t, array) if t.requires_grad else None for t, array in zip(given, arrays, strict=True)]
        return with_leaves(outcome, iter(record_custom(function.__name__, backward, context, inputs, results, {})))

    def _again(
        self, function: AnyFunction, bare: Tree, packed: Sequence[Any], kinds: Sequence[tuple[Any, ...]],
        gradients: Sequence[Tensor | None],
    ) -> Deferred:
        """The operation again, on unpacked tensors, and the backward pass from its results to these."""
        if thread_state.grad_enabled:
            raise RuntimeError("saved_tensors_hooks: what is unpacked has no derivation, so create_graph=True is not for these")
        device: Device = next(array_of(g).device for g in gradients if g is not None)
        with grad_mode(False):
            operands = [self._unpacked(held, shape, dtype) for held, (shape, dtype, _) in zip(packed, kinds, strict=True)]
        with grad_mode(True):
            with thread_mode("undivided", True):
                copies = [t.detach().clone().requires_grad_(carries) for t, (*_, carries) in zip(operands, kinds, strict=True)]
                starts = [array_of(t.view_as(t)) if t.requires_grad else array_of(t) for t in copies]
                trace = current_trace(device)
            inner = BackwardPass(False, False, until=(trace, len(trace.nodes) - 1))
            tensors = iter([tensor_of(array, array.node.differentiable) for array in starts])
            args, kwargs = map_tree(lambda a: next(tensors) if a is _TENSOR else a, bare)
            results = leaves_of(function(*args, **kwargs))
        return passed_back(inner, trace, starts, results, gradients)

    def _unpacked(self, held: Any, shape: Any, dtype: Any) -> Tensor:
        found = self.unpack_hook(held)
        if not isinstance(found, Tensor) or found.shape != shape or found.dtype is not dtype:
            got = f"{found.dtype.name} {found.shape}" if isinstance(found, Tensor) else type(found).__name__
            raise RuntimeError(f"saved_tensors_hooks: unpack_hook returned {got}; want what was packed, {dtype.name} {shape}")
        return found


def passed_back(
    inner: BackwardPass, trace: Trace, starts: Sequence[Array], results: Iterable[Tree], gradients: Iterable[Tensor | None]
) -> Deferred:
    """The gradients of `starts`, arrays of a trace, by the pass `inner` from `results` with these gradients."""
    for result, gradient in zip(results, gradients, strict=True):
        if gradient is not None:
            inner.start(result, gradient)

    def answers() -> list[Tensor | None]:
        arrived_at = inner.pending.get(trace, {})
        arrived = [arrived_at.pop(array.index, None) if array.node.differentiable else None for array in starts]
        return [None if array is None else tensor_of(array, array.node.differentiable) for array in arrived]

    return Deferred(inner, answers)


class save_on_cpu(saved_tensors_hooks):
    """A context in which saved tensors are kept on the CPU, and return when backward needs them.

    >>> x = genesis.tensor([2., 3.], requires_grad=True)
    >>> with genesis.autograd.graph.save_on_cpu():
    ...     y = x.exp().sum()
    >>> y.backward()
    >>> genesis.allclose(x.grad, x.exp())
    True
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.cpu()), lambda held: held[1].to(held[0]))
