"""Requests for gradients: `backward`, which fills `.grad`, and `grad`, which returns gradients.

A derivation spans the open trace, flushed traces, and those of other devices. `BackwardPass` goes from trace to trace,
newest first; `TraceBackward` derives each. Gradient nodes always go to the open trace, as steps of the trie, so a repeated
program finds its backward by look-up and derives nothing.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Any

from genesis.autograd.after_backward import drop_callbacks, run_callbacks
from genesis.autograd.derivation import derived_at
from genesis.autograd.hooks import GradientEvent, Gradients, hooked
from genesis.autograd.trace_backward import Cotangent, TraceBackward, add_cotangent, derivable, leads_on, ones_like, summed
from genesis.execution.flush import flush
from genesis.ir.errors import ArgumentError
from genesis.ir.library import Library
from genesis.ir.replayable import replayable_module
from genesis.ops.registry import OPERATIONS
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tensor.in_place import write
from genesis.tensor.transfer import sent
from genesis.tracing.recording_hooks import is_recording, touched_gradient
from genesis.tracing.source_line import resolve_line, user_line
from genesis.tracing.state import recording, thread_state, unflushed
from genesis.tracing.tensor_state import add_gradient_holder, gradient_holders
from genesis.tracing.trace import BUSY, LOCK, Array, Trace

_NO_DERIVATION = (
    "backward: the tensor has no derivation (nothing it came from requires grad): element 0 of tensors does not require grad "
    "and does not have a grad_fn"
)
_warned: list[bool] = []
_number = attrgetter("number")


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
    wanted = None if inputs is None else _inputs("backward", inputs)
    chosen = {id(t) for t in wanted or ()}
    found = _gradients(roots, grad_tensors, retain_graph, create_graph, wanted or ())
    watched = bool(thread_state.observers)
    for tensor, gradient in found:
        if not tensor._requires_grad:  # frozen since the call that used it
            continue
        if wanted is None or id(tensor) in chosen or tensor._retains_grad:
            if watched or tensor._hooks is not None or tensor._node_hooks is not None or tensor._post_hooks is not None:
                _accumulate(tensor, gradient, create_graph)
            else:
                add_gradient(tensor, gradient, create_graph)
    run_callbacks()
    with LOCK:
        for trace in unflushed():
            trace.backwards += 1
            if trace.backwards > 1 and not is_recording():  # loops of backward alone stay bounded
                flush(trace)


def grad(
    outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Gradients | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False, materialize_grads: bool = False,
    is_grads_batched: bool = False,
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
            grad(roots, given, row, True, create_graph, only_inputs, allow_unused, materialize_grads) for row in rows])
    wanted = [tensor.derived_part if isinstance(tensor, CompositeTensor) else tensor for tensor in given]
    keep = create_graph if retain_graph is None else retain_graph
    found: list[Any] = gradients_of(roots, wanted, grad_outputs, keep, create_graph)
    for i, tensor in enumerate(wanted):
        if found[i] is None and materialize_grads:
            found[i] = tensor.detach() * 0
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
    """What `grad` returns, None for inputs that the outputs do not depend on; with `adjoint` as in `BackwardPass`."""
    chosen = {id(t) for t in inputs}
    totals = {
        id(tensor): hooked(gradient, tensor._hooks, create_graph)  # a leaf's; those of a result were called on the way
        for tensor, gradient in _gradients(outputs, grad_outputs, retain_graph, create_graph, inputs, adjoint)
        if id(tensor) in chosen
    }
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
        raise ValueError(f"{name}: inputs is empty; want the tensors to differentiate by")
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
        raise ValueError(f"backward: {len(seeds)} gradients were given for {len(roots)} tensors; want one, or None, for each")
    drop_callbacks()
    outermost = BackwardPass(create_graph, create_graph if retain_graph is None else retain_graph, adjoint=adjoint)
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
    for tensor, array in outermost.found:
        new = tensor_of(array, array.node.differentiable)
        if tensor._stands_for is not None:
            tensor, gradient_of = tensor._stands_for
            with recording(create_graph) as again, again:
                new = gradient_of(new)
        before = found.get(id(tensor))
        found[id(tensor)] = tensor, new if before is None else summed(before[1], new, create_graph)
    return list(found.values())


def _accumulate(tensor: Tensor, gradient: Tensor, create_graph: bool) -> None:
    """Add to a leaf's `.grad`, between its hooks, and where somebody observes."""
    gradient = hooked(gradient, tensor._hooks, create_graph)
    hooks = tensor._node_hooks
    if hooks is not None:
        (gradient,) = hooks.before([gradient], create_graph)
    add_gradient(tensor, gradient, create_graph)
    if hooks is not None:
        hooks.after([], [gradient], create_graph)
    for observer in thread_state.observers:
        observer.observe(GradientEvent("AccumulateGrad", None, (gradient,), ()))
    for hook in [*(tensor._post_hooks or {}).values()]:
        hook(tensor)


def add_gradient(tensor: Tensor, gradient: Tensor, create_graph: bool) -> None:
    """`.grad = gradient`, or `.grad += gradient`: of a leaf in the tensor that is there, of a result in a new one."""
    if thread_state.recorder is not None:
        touched_gradient(tensor, True)
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


# ---- from trace to trace ----


class BackwardPass:
    """A backward pass: cotangents propagate from results to leaves.

    With `until`, a trace and a position, it goes no further than that: what has come there stays pending. With `adjoint`, it
    takes the rows' rules of that name.
    """

    def __init__(
        self, create_graph: bool, retain_graph: bool, until: tuple[Trace, int] | None = None, adjoint: bool = False
    ) -> None:
        self.create_graph = create_graph
        self.retain_graph = retain_graph
        self.until = until
        self.adjoint = adjoint
        self.pending: dict[Trace, dict[int, Cotangent]] = {}
        self.found: list[tuple[Tensor, Array]] = []
        self.wanted: dict[Trace, dict[int, Tensor]] = {}
        self.reachable: Mapping[Trace, AbstractSet[int]] | None = None

    def start(self, root: Tensor, gradient: Tensor | None) -> None:
        """Begin at `root` (too), with `gradient`; None is ones."""
        array = array_of(root)
        cotangent = _seed(root, gradient, self.create_graph)
        if array.node.differentiable:
            self._add(array, cotangent, array)
        elif root.requires_grad:
            self.found.append((root, ones_like(array) if cotangent is None else cotangent))

    def aim_at(self, wanted: Sequence[Tensor], roots: Sequence[Tensor]) -> None:
        """Compute the gradients of `wanted`, possibly results, and call only hooks and Functions on the way there."""
        for tensor in wanted:
            array = array_of(tensor)
            if array.node.differentiable and array.trace is not None:
                trace, index = derived_at(array.trace, array.index)
                self.wanted.setdefault(trace, {})[index] = tensor
        self.reachable = _reachable(wanted, roots)

    def steps(self) -> Iterator[BackwardPass]:
        """Go from trace to trace. Yields inner passes that must run before this one can continue."""
        left: dict[Trace, dict[int, Cotangent]] = {}
        last, above = self.until or (None, -1)
        while self.pending:
            trace = max(self.pending, key=_number)
            if last is not None and trace.number < last.number:
                break
            wanted = self.wanted.get(trace, {})
            if retained := trace.backward.retained:
                wanted = {**{index: tensor for index, to in retained.items() if (tensor := to()) is not None}, **wanted}
            reachable = None if self.reachable is None else self.reachable.get(trace)
            current = TraceBackward(
                trace, self.pending.pop(trace), frozenset(wanted), self.create_graph, reachable, self.adjoint)
            for waiting in current.steps(above if trace is last else -1):
                inner = waiting.answer.backward_pass
                inner.adjoint = self.adjoint
                yield inner
                waiting.then()
                self._take_over(inner, current)
            if current.cotangents:
                left[trace] = current.cotangents
            if not self.retain_graph:
                release(trace, current.readers)
            self._arrive(current, wanted)
        self.pending.update(left)

    def _take_over(self, inner: BackwardPass, current: TraceBackward) -> None:
        """Take over an inner pass's gradients and its pending cotangents."""
        self.found += inner.found
        for trace, cotangents in inner.pending.items():
            arrived = [(index, array) for index, array in cotangents.items() if array is not None]
            if trace is current.trace:
                current.add(arrived)
                continue
            for index, array in arrived:
                add_cotangent(self.pending.setdefault(trace, {}), index, array, array, self.create_graph)

    def _arrive(self, current: TraceBackward, wanted: Mapping[int, Tensor]) -> None:
        """Distribute the cotangents at a trace's ends: to leaves, values of older traces, and wanted tensors."""
        trace, onward = current.trace, []
        for index, array in current.ends.items():
            if index in trace.variables:
                self.found.append((trace.variables[index], array))
            elif index in current.origins:
                onward.append((current.origins[index], array))
            if index in wanted:
                self.found.append((wanted[index], array))
        for origin, array in onward:  # after all others: sending to another device flushes what was recorded here
            (there,) = sent([array], origin.trace.device)  # type: ignore[union-attr]
            self._add(origin, there, there)

    def _add(self, value: Array, cotangent: Cotangent, like: Array) -> None:
        assert value.trace is not None
        add_cotangent(self.pending.setdefault(value.trace, {}), value.index, cotangent, like, self.create_graph)


def release(trace: Trace, readers: frozenset[int]) -> None:
    """Drop the values that the rules at `readers` read: no backward will need them again."""
    trace.released = trace.released | readers if trace.released else readers
    state = trace.backward
    for index in state.saved.keys() & readers if state.saved else ():
        if trace.nodes[index].op not in ("input", "variable"):
            del state.saved[index]
    for index in state.custom_calls.keys() & readers if state.custom_calls else ():
        state.custom_calls[index].release()
    if trace.done and any([leaf._base is not None for leaf in trace.variables.values()]):
        trace.variables = weakref.WeakValueDictionary(trace.variables)  # a leaf may be a detached result of an older trace


def _seed(root: Tensor, gradient: Tensor | None, create_graph: bool) -> Cotangent:
    """The initial cotangent of a root."""
    if gradient is None:
        node = root._array.node
        if node.shape and node.numel != 1:
            raise RuntimeError(
                f"backward: only a tensor of one element needs no gradient; this one has shape {root.shape}: "
                "give gradient= of that shape"
            )
        if node.dtype.category == 3:
            raise RuntimeError(
                f"backward: only a real number needs no gradient; this one is {root.dtype.name}: take its real or imag, "
                "or abs(), or give gradient="
            )
        return None
    if not isinstance(gradient, Tensor):
        raise TypeError(f"backward: gradient must be a tensor or None, got {type(gradient).__name__} {gradient!r:.40}")
    if array_of(gradient).device is not array_of(root).device:
        raise RuntimeError(f"backward: gradient is on {array_of(gradient).device}; want the tensor's {array_of(root).device}")
    with recording(create_graph) as again, again:
        if gradient.shape != root.shape:
            if gradient.numel() != 1 or root.numel() != 1:
                raise ArgumentError(f"backward: gradient has shape {gradient.shape}; want the tensor's {root.shape}")
            gradient = call(OPERATIONS["reshape"], (gradient, root.shape))
        if gradient.dtype is not root.dtype:
            gradient = call(OPERATIONS["to_dtype"], (gradient, root.dtype))
    return derivable(gradient, create_graph)


def _reachable(wanted: Sequence[Tensor], roots: Sequence[Tensor]) -> Mapping[Trace, AbstractSet[int]] | None:
    """The positions between `roots` and `wanted`; None if these traces call no Python.

    Rules need no such bounds: what they write and nobody reads is dropped in lowering.
    """
    reachable: dict[Trace, set[int]] = {}
    waiting = [array_of(root).trace for root in roots]
    while waiting:
        earlier = waiting.pop()
        if earlier is not None and earlier not in reachable:
            reachable[earlier] = set()
            waiting += [array.trace for array in earlier.input_at.values()]
    calls_python = [s.hooks or s.node_hooks or s.custom_calls for s in [t.backward for t in reachable]]
    if not (any(calls_python) or thread_state.observers):
        return None
    for array in map(array_of, wanted):
        if array.trace is not None:
            trace, index = derived_at(array.trace, array.index)
            if trace in reachable:
                reachable[trace].add(index)
    chosen = {id(tensor) for tensor in wanted}
    for trace, positions in sorted(reachable.items(), key=lambda pair: pair[0].number):
        for index, node in enumerate(trace.nodes):
            origin = trace.input_at.get(index)
            leaf = trace.variables.get(index)
            if node.differentiable and (
                (leaf is not None and id(leaf if leaf._stands_for is None else leaf._stands_for[0]) in chosen)
                or (origin is not None and origin.trace in reachable and origin.index in reachable[origin.trace])
                or leads_on(trace, index, positions)
            ):
                positions.add(index)
    return reachable


replayable_module(__name__)
