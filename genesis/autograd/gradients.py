"""Requests for gradients: `backward`, which fills `.grad`, and `grad`, which returns gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from genesis.autograd.after_backward import RunningBackward
from genesis.autograd.backward_pass import BackwardPass
from genesis.autograd.hooks import GradientEvent, Gradients, hooked
from genesis.autograd.trace_backward import summed
from genesis.execution.flush import flush
from genesis.ir.errors import ArgumentError
from genesis.ir.library import Library
from genesis.ops.registry import OPERATIONS
from genesis.tensor.composite import CompositeTensor, differentiated
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tensor.in_place import write
from genesis.tensor.new_programs import flush_part
from genesis.tracing.recording_hooks import is_recording, touched_gradient
from genesis.tracing.source_line import resolve_line, user_line
from genesis.tracing.state import grad_mode, thread_mode, thread_state, unflushed
from genesis.tracing.tensor_state import add_gradient_holder, gradient_holders
from genesis.tracing.trace import BUSY, LOCK

_NO_DERIVATION = (
    "backward: the tensor has no derivation (nothing it came from requires grad): element 0 of tensors does not require grad "
    "and does not have a grad_fn"
)
_warned: list[bool] = []


def backward(
    tensors: Tensor | Sequence[Tensor], grad_tensors: Tensor | Gradients | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, inputs: Tensor | Sequence[Tensor] | None = None,
    *, strict: bool | None = None,
) -> None:
    """Accumulate into `.grad` the gradients of the leaves of `tensors` (of `inputs` alone, if given).

    A tensor that depends on no leaf is warned of, once; with `strict` (by default where genesis stands in for PyTorch) it
    raises RuntimeError. So does an input that requires no gradient; ValueError if there are none, or for a wrong gradient.

    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> genesis.autograd.backward([x * x, 3 * x.sum()], [genesis.ones(2), None])
    >>> x.grad
    tensor([5., 7.])
    """
    roots = _tensors("backward", tensors)
    if (Library.strict if strict is None else strict) and not all([root.requires_grad for root in roots]):
        raise RuntimeError(_NO_DERIVATION)
    wanted = None if inputs is None else [*map(differentiated, _inputs("backward", inputs))]
    chosen = {id(t) for t in wanted or ()}
    running = RunningBackward()
    with thread_mode("backward", running):
        found = _gradients(roots, grad_tensors, retain_graph, create_graph, wanted or ())
        watched = bool(thread_state.observers)
        for tensor, gradient in found:
            if not tensor._requires_grad:  # frozen since the call that used it
                continue
            if wanted is None or id(tensor) in chosen or tensor._retains_grad:
                if watched or tensor._hooks is not None or tensor._node_hooks is not None or tensor._post_hooks is not None:
                    _accumulate(tensor, gradient, create_graph)
                else:
                    add_gradient(tensor, gradient, create_graph, not tensor.is_leaf)
        running.run_callbacks()
    flush_part()
    with LOCK:
        for trace in unflushed():
            trace.backwards += 1
            if trace.backwards > 1 and not is_recording():  # loops of backward alone stay bounded
                flush(trace)


def grad(
    outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Gradients | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of `outputs` (seeded with `grad_outputs`, or ones for 0-d outputs) by `inputs`; `.grad` is untouched.

    `only_inputs` is accepted as PyTorch's; no other tensor gets a gradient in either case. With `is_grads_batched`, each of
    `grad_outputs` is one for every row of its first axis, and so are the gradients.

    Raises RuntimeError for an input that requires no gradient, and for one that the outputs do not depend on, unless
    `allow_unused` (it gets None) or `materialize_grads` (it gets zeros).

    >>> x = genesis.tensor(3.0, requires_grad=True)
    >>> genesis.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    roots, given = _tensors("grad", outputs), _inputs("grad", inputs)
    if is_grads_batched:
        rows = zip(*[seed.unbind(0) for seed in _tensors("grad", grad_outputs)], strict=True)
        return _stacked([
            grad(roots, given, row, True, create_graph, only_inputs, allow_unused, False, materialize_grads) for row in rows])
    wanted = [*map(differentiated, given)]
    keep = create_graph if retain_graph is None else retain_graph
    found: list[Any] = gradients_of(roots, wanted, grad_outputs, keep, create_graph)
    for i, tensor in enumerate(wanted):
        if found[i] is None and materialize_grads:
            found[i] = tensor.detach().new_zeros(tensor.shape)
        if found[i] is None and not allow_unused:
            raise RuntimeError(
                f"grad: the outputs do not depend on input {i} (shape {tensor.shape}); allow_unused=True gives None for it"
            )
    return tuple([
        tensor.gradient_of(gradient) if gradient is not None and isinstance(tensor, CompositeTensor) else gradient
        for tensor, gradient in zip(given, found, strict=True)])


def gradients_of(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], grad_outputs: Tensor | Gradients | None, retain_graph: bool,
    create_graph: bool, adjoint: bool = False,
) -> list[Tensor | None]:
    """The result of `grad`: None for inputs that the outputs do not depend on. `adjoint` is as in `BackwardPass`."""
    chosen, totals = {id(t) for t in inputs}, dict[int, Tensor]()
    with thread_mode("backward", RunningBackward()):
        for tensor, gradient in _gradients(outputs, grad_outputs, retain_graph, create_graph, inputs, adjoint):
            if id(tensor) in chosen:  # hooks of a leaf; those of a result were called on the way
                totals[id(tensor)] = hooked(gradient, tensor._hooks, create_graph)
            if tensor._retains_grad:
                add_gradient(tensor, gradient, create_graph, True)
    return [totals.get(id(tensor)) for tensor in inputs]


def _stacked(rows: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    found: list[Any] = [None if row[0] is None else call(OPERATIONS["stack"], (list(row),)) for row in zip(*rows, strict=True)]
    return tuple(found)


def _tensors(name: str, given: object) -> list[Tensor]:
    """A tensor or an iterable of tensors, as a list."""
    if isinstance(given, Tensor):
        return [given]
    tensors: list[Any] = [*given] if isinstance(given, Iterable) else [given]
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: wants a tensor or a sequence of them, got {type(tensor).__name__} {tensor!r:.40}")
    return tensors


def _inputs(name: str, given: object) -> list[Tensor]:
    """As `_tensors`, for the tensors to differentiate by."""
    inputs = _tensors(name, given)
    if not inputs:
        raise ArgumentError(f"{name}: inputs is empty; want the tensors to differentiate by")
    for i, tensor in enumerate(inputs):
        if not tensor.requires_grad:
            raise RuntimeError(f"{name}: input {i} (shape {tensor.shape}) does not require a gradient")
    return inputs


def _gradients(
    roots: Sequence[Tensor], gradients: Tensor | Gradients | None, retain_graph: bool | None,
    create_graph: bool, wanted: Sequence[Tensor], adjoint: bool = False,
) -> list[tuple[Tensor, Tensor]]:
    """(tensor, gradient) for every leaf, and every wanted or retaining tensor, that the roots depend on; each once."""
    seeds: Sequence[Any] = (
        [None] * len(roots) if gradients is None else gradients if isinstance(gradients, list | tuple) else [gradients]
    )
    if len(seeds) != len(roots):
        raise ArgumentError(f"backward: {len(seeds)} gradients were given for {len(roots)} tensors; want one or None for each")
    outermost = BackwardPass(create_graph, create_graph if retain_graph is None else retain_graph, adjoint=adjoint)
    seeds = [root.seed_of(seed) if isinstance(root, CompositeTensor) and seed is not None else seed
             for root, seed in zip(roots, seeds, strict=True)]
    roots = [*map(differentiated, roots)]
    for root, seed in zip(roots, seeds, strict=True):
        outermost.start(root, seed)
    if not outermost.pending and not outermost.found and not _warned:
        _warned.append(True)
        warnings.warn_explicit(_NO_DERIVATION, UserWarning, *(resolve_line(*user_line()) or (__file__, 1)))
    if wanted:
        outermost.aim_at(wanted, roots)
    running = [outermost.steps()]
    while running:  # a custom Function may wait for an inner pass: no recursion, however deep
        inner = next(running[-1], None)
        if inner is None:
            running.pop()
        else:
            running.append(inner.steps())
    for observer in thread_state.observers:
        observer.finish()
    for trace in [*thread_state.traces.values()]:
        if trace.backward.copies and trace.closed is not BUSY:
            trace.backward_done = True
    found: dict[int, tuple[Tensor, Tensor]] = {}
    for tensor, array in outermost.found.items():
        new = tensor_of(array, array.node.differentiable)
        if tensor._stands_for is not None:
            tensor, gradient_of = tensor._stands_for
            with grad_mode(create_graph):
                new = gradient_of(new)
        if new.shape != tensor.shape:
            raise RuntimeError(f"backward: a gradient of shape {new.shape} comes to a tensor that was given shape "
                               f"{tensor.shape} after the call that used it; want that before")
        before = found.get(id(tensor))
        found[id(tensor)] = tensor, new if before is None else summed(before[1], new, create_graph)
    return list(found.values())


def _accumulate(tensor: Tensor, gradient: Tensor, create_graph: bool) -> None:
    """Add to a leaf's `.grad`, between its hooks, and where somebody observes."""
    gradient = hooked(gradient, tensor._hooks, create_graph)
    hooks = tensor._node_hooks
    if hooks is not None:
        (gradient,) = hooks.before([gradient], create_graph)
    add_gradient(tensor, gradient, create_graph, True)
    if hooks is not None:
        hooks.after([], [gradient], create_graph)
    for observer in thread_state.observers:
        observer.observe(GradientEvent("AccumulateGrad", None, (gradient,), ()))
    for hook in [*(tensor._post_hooks or {}).values()]:
        if hook(tensor) is not None:
            raise RuntimeError("register_post_accumulate_grad_hook: a hook returned a value, which would be ignored; want None")


def add_gradient(tensor: Tensor, gradient: Tensor, create_graph: bool, shared: bool = False) -> None:
    """`.grad = gradient`, or a copy if it may be another's (`shared`); or `.grad += gradient`, in place for a leaf alone."""
    if thread_state.recorder is not None:
        touched_gradient(tensor, True)
    if shared and tensor._grad is None:
        with grad_mode(create_graph):
            gradient = gradient.clone()
    if tensor._grad is None:  # no call, and so no other thread, comes before it is there
        gradient._keeps_derivation = True
        tensor._grad = gradient
        if not tensor._is_holder:
            add_gradient_holder(tensor)
        return
    with LOCK:
        before = tensor._grad
        if before is None:
            add_gradient(tensor, gradient, create_graph)
        elif create_graph or tensor._retains_grad or not before.is_leaf:
            tensor._grad = summed(before, gradient, True)
        elif isinstance(before, CompositeTensor) and not isinstance(gradient, CompositeTensor):
            tensor._grad = summed(before, gradient, False)
        else:
            write(before, summed(before, gradient, False))


def zero_grad(set_to_none: bool = True) -> None:
    """Drop the accumulated gradient of every living leaf: `.grad` becomes None, or zeros.

    >>> x = genesis.tensor(2.0, requires_grad=True)
    >>> (x * x).backward()
    >>> genesis.zero_grad()
    >>> print(x.grad)
    None
    """
    for tensor in gradient_holders():
        if tensor.is_leaf:
            tensor.zero_grad(set_to_none)
