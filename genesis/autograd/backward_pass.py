"""The backward pass: cotangents propagate from trace to trace, newest first.

A derivation spans the open trace, flushed traces, and those of other devices; `TraceBackward` derives each. Gradient nodes
always go to the open trace, as steps of the trie, so a repeated program finds its backward by look-up and derives nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from operator import attrgetter

from genesis.autograd.derivation import derived_at
from genesis.autograd.trace_backward import Cotangent, TraceBackward, add_cotangent, derivable, leads_on, ones_like
from genesis.ir.errors import ArgumentError
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tensor.new_programs import flush_part
from genesis.tensor.transfer import sent
from genesis.tracing.state import grad_mode, thread_state
from genesis.tracing.trace import Array, Trace

_number = attrgetter("number")


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
        self.found: dict[Tensor, Array] = {}
        self.wanted: dict[Trace, dict[int, Tensor]] = {}
        self.reachable: Mapping[Trace, AbstractSet[int]] | None = None

    def start(self, root: Tensor, gradient: Tensor | None) -> None:
        """Begin at `root` (too), with `gradient`; None is ones."""
        array = array_of(root)
        cotangent = _seed(root, gradient, self.create_graph)
        if array.node.differentiable:
            self._add(array, cotangent, array)
        elif root.requires_grad:
            with grad_mode(self.create_graph):
                self._find(root, ones_like(array) if cotangent is None else array_of(tensor_of(
                    cotangent, cotangent.node.differentiable).clone()))

    def aim_at(self, wanted: Sequence[Tensor], roots: Sequence[Tensor]) -> None:
        """Compute the gradients of `wanted`, possibly results, and call only hooks and Functions on the way there."""
        for tensor in wanted:
            array = array_of(tensor)
            if array.node.differentiable and array.trace is not None:
                trace, index = derived_at(array.trace, array.index)
                self.wanted.setdefault(trace, {})[index] = tensor
        self.reachable = _reachable(wanted, roots, not self.retain_graph)

    def steps(self) -> Iterator[BackwardPass]:
        """Go from trace to trace. Yields inner passes that must run before this one can continue."""
        left: dict[Trace, dict[int, Cotangent]] = {}
        last, above = self.until or (None, -1)
        while self.pending:
            trace = max(self.pending, key=_number)
            if last is not None and trace.number < last.number:
                break
            wanted = self.wanted.get(trace, {})
            reachable = None if self.reachable is None else self.reachable.get(trace)
            if retained := trace.backward.retained:
                wanted = {**{index: tensor for index, to in retained.items() if (tensor := to()) is not None
                             and (reachable is None or index in reachable)}, **wanted}
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
                release(trace, current.readers if reachable is None else frozenset(
                    [index for index in current.readers if leads_on(trace, index, reachable)]))
            self._arrive(current, wanted)
            if self.pending:
                flush_part(max(self.pending, key=_number))
        self.pending.update(left)

    def _take_over(self, inner: BackwardPass, current: TraceBackward) -> None:
        """Take over an inner pass's gradients and its pending cotangents."""
        for tensor, gradient in inner.found.items():
            self._find(tensor, gradient)
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
                self._find(trace.variables[index], array)
            elif index in current.origins:
                onward.append((current.origins[index], array))
            if index in wanted:
                self._find(wanted[index], array)
        for origin, array in onward:  # after all others: sending to another device flushes what was recorded here
            (there,) = sent([array], origin.trace.device)  # type: ignore[union-attr]
            self._add(origin, there, there)

    def _find(self, tensor: Tensor, gradient: Array) -> None:
        """Add what has come to a leaf or a wanted tensor: at once, so that the backwards of equal traces are equal programs."""
        add_cotangent(self.found, tensor, gradient, gradient, self.create_graph)

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
    with grad_mode(create_graph):
        if gradient.shape != root.shape:
            if gradient.numel() != 1 or root.numel() != 1:
                raise ArgumentError(f"backward: gradient has shape {gradient.shape}; want the tensor's {root.shape}")
            gradient = call(OPERATIONS["reshape"], (gradient, root.shape))
        if gradient.dtype is not root.dtype:
            gradient = call(OPERATIONS["to_dtype"], (gradient, root.dtype))
    return derivable(gradient, create_graph)


def _derivation(roots: Sequence[Tensor]) -> dict[Trace, int]:
    """The traces that the roots derive from, each with the last position of these there."""
    found: dict[Trace, int] = {}
    waiting = [(array.trace, array.index) for array in map(array_of, roots)]
    while waiting:
        trace, last = waiting.pop()
        if trace is None:
            continue
        if trace not in found:
            waiting += [(array.trace, array.index) for array in trace.input_at.values()]
            waiting += [(source, len(source.nodes) - 1) for source, _ in trace.backward.copies]
        found[trace] = max(last, found.get(trace, -1))
    return found


def _reachable(wanted: Sequence[Tensor], roots: Sequence[Tensor], releases: bool) -> Mapping[Trace, AbstractSet[int]] | None:
    """The positions between `roots` and `wanted`; None if these traces call no Python, retain nothing, have all values and,
    if the request `releases` what it reads, no leaf but those of `wanted`.

    Other rules need no such bounds: what they write and nobody reads is dropped in lowering.
    """
    chosen = {id(tensor) for tensor in wanted}

    def is_chosen(leaf: Tensor) -> bool:
        return id(leaf if leaf._stands_for is None else leaf._stands_for[0]) in chosen

    last = _derivation(roots)
    reachable: dict[Trace, set[int]] = {trace: set() for trace in last}
    bounded = [t.released or s.hooks or s.node_hooks or s.custom_calls or s.retained
               or (releases and not all(map(is_chosen, t.variables.values())))
               for t, s in [(trace, trace.backward) for trace in reachable]]
    if not (any(bounded) or thread_state.observers):
        return None
    for array in map(array_of, wanted):
        if array.trace is not None:
            trace, index = derived_at(array.trace, array.index)
            if trace in reachable:
                reachable[trace].add(index)
    for trace, positions in sorted(reachable.items(), key=lambda pair: pair[0].number):
        for index, node in enumerate(trace.nodes[: last[trace] + 1]):
            if not node.differentiable:
                continue
            origin = trace.input_at.get(index)
            leaf = trace.variables.get(index)
            if (
                (leaf is not None and is_chosen(leaf))
                or (origin is not None and origin.trace in reachable and origin.index in reachable[origin.trace])
                or leads_on(trace, index, positions)
            ):
                positions.add(index)
    return reachable
