"""`Tensor.backward` and `genesis.autograd.grad`: what the walk of backward finds is accumulated, or returned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from genesis.autograd.hooks import hooked
from genesis.autograd.observers import GradientEvent, observers
from genesis.autograd.part import summed
from genesis.autograd.walk import NO_DERIVATION, walk
from genesis.execution.flush import flush
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, hold_gradient, tensor_of
from genesis.tensor.in_place import write
from genesis.tracing.state import thread_state, unflushed
from genesis.tracing.trace import LOCK

__all__ = ["add_gradient", "backward", "grad"]


def backward(
    tensors: Tensor | Sequence[Tensor], grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, inputs: Tensor | Sequence[Tensor] | None = None,
    *, strict: bool = False,
) -> None:
    """Accumulate into `.grad` the gradients of the leaves of `tensors` (of `inputs` alone, if given).

    A tensor that depends on no leaf is warned of, once; with `strict` it raises RuntimeError. Raises RuntimeError for an
    input that requires no gradient, ValueError if there are no inputs, or other than one gradient (or None) for a tensor.

    >>> import genesis
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> genesis.autograd.backward([x * x, 3 * x.sum()], [genesis.ones(2), None])
    >>> x.grad
    tensor([5., 7.])
    """
    roots = _tensors("backward", tensors)
    if strict and not all([root.requires_grad for root in roots]):
        raise RuntimeError(NO_DERIVATION)
    wanted = None if inputs is None else _inputs("backward", inputs)
    chosen = {id(t) for t in wanted or ()}
    found = _gradients(roots, grad_tensors, retain_graph, create_graph, wanted or ())
    watched = bool(observers())
    for tensor, gradient in found:
        if wanted is None or id(tensor) in chosen or tensor._retains_grad:
            _accumulate(tensor, gradient, create_graph, watched)
    with LOCK:
        for trace in unflushed():
            trace.backwards += 1
            if trace.backwards > 1 and thread_state.recorder is None:
                flush(trace)


def grad(
    outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False, materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` (seeded with `grad_outputs`, or ones for 0-d outputs) by `inputs`; `.grad` is untouched
    (`only_inputs` has no other meaning, and nobody wants it false).

    Raises RuntimeError for an input that requires no gradient, and for one that the outputs do not depend on, unless
    `allow_unused` (it gets None) or `materialize_grads` (it gets zeros).

    >>> import genesis
    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> genesis.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    roots, wanted = _tensors("grad", outputs), _inputs("grad", inputs)
    keep = create_graph if retain_graph is None else retain_graph
    chosen = {id(t) for t in wanted}
    totals = {
        id(tensor): hooked(gradient, tensor._hooks, create_graph)  # a leaf's: those of a result were asked on the way
        for tensor, gradient in _gradients(roots, grad_outputs, keep, create_graph, wanted) if id(tensor) in chosen
    }
    for i, tensor in enumerate(wanted):
        if id(tensor) not in totals and materialize_grads:
            totals[id(tensor)] = tensor.detach() * 0
        if id(tensor) not in totals and not allow_unused:
            raise RuntimeError(
                f"grad: the outputs do not depend on input {i} (shape {tensor.shape}); allow_unused=True gives None for it"
            )
    return tuple([totals.get(id(t)) for t in wanted])


def _tensors(name: str, given: Any) -> list[Tensor]:
    """A tensor, or an iterable of tensors, as a list."""
    tensors = [*given] if isinstance(given, Iterable) and not isinstance(given, Tensor) else [given]
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: wants a tensor or a sequence of them, got {type(tensor).__name__} {tensor!r:.40}")
    return tensors


def _inputs(name: str, given: Any) -> list[Tensor]:
    """As `_tensors`: what to differentiate by."""
    inputs = _tensors(name, given)
    if not inputs:
        raise ValueError(f"{name}: inputs is empty; want the tensors to differentiate by")
    for i, tensor in enumerate(inputs):
        if not tensor.requires_grad:
            raise RuntimeError(f"{name}: input {i} (shape {tensor.shape}) does not require a gradient")
    return inputs


def _gradients(
    roots: Sequence[Tensor], gradients: Tensor | Sequence[Tensor | None] | None, retain_graph: bool | None,
    create_graph: bool, wanted: Sequence[Tensor],
) -> list[tuple[Tensor, Tensor]]:
    """(tensor, gradient): what the walk finds, each tensor once."""
    seeds: Any = gradients if gradients is None or isinstance(gradients, list | tuple) else [gradients]
    if seeds is not None and len(seeds) != len(roots):
        raise ValueError(f"backward: {len(seeds)} gradients were given for {len(roots)} tensors; want one, or None, for each")
    found: dict[int, tuple[Tensor, Tensor]] = {}
    for tensor, array in walk(roots, seeds, retain_graph, create_graph, wanted):
        new = tensor_of(array, array.node.differentiable)
        held = found.get(id(tensor))
        found[id(tensor)] = tensor, new if held is None else summed(held[1], new, create_graph)
    return list(found.values())


def _accumulate(tensor: Tensor, gradient: Tensor, create_graph: bool, watched: bool) -> None:
    """Add to a leaf's `.grad`, between its hooks."""
    if tensor._hooks is None and tensor._node_hooks is None and tensor._post_hooks is None and not watched:
        return add_gradient(tensor, gradient, create_graph)
    gradient = hooked(gradient, tensor._hooks, create_graph)
    hooks = tensor._node_hooks
    if hooks is not None:
        (gradient,) = hooks.before([gradient], create_graph)
    add_gradient(tensor, gradient, create_graph)
    if hooks is not None:
        hooks.after([], [gradient], create_graph)
    for observer in observers():
        observer.observe(GradientEvent("AccumulateGrad", None, (gradient,), ()))
    for hook in [*(tensor._post_hooks or {}).values()]:
        hook(tensor)


def add_gradient(tensor: Tensor, gradient: Tensor, create_graph: bool) -> None:
    """`.grad = gradient`, or `.grad += gradient` in the tensor that is there."""
    with LOCK:
        if thread_state.recorder is not None:
            thread_state.recorder.met_gradient(tensor, True)
        held = tensor._grad
        if held is None:
            hold_gradient(tensor, gradient)
            gradient._keeps_derivation = True
        elif create_graph or array_of(held).node.differentiable:
            tensor._grad = summed(held, gradient, True)
        else:
            write(held, summed(held, gradient, False))
