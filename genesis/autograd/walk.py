"""The walk of backward: from the cotangents of results to those of the leaves.

A derivation may lie in the open trace or in traces that have been flushed; it is walked trace by trace, newest first.
Gradient nodes always go to the open trace, as steps of the trie: a program that repeats itself finds its backward by
look-up and derives nothing.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from genesis.autograd.calls import derived_at
from genesis.autograd.observers import observers
from genesis.autograd.part import Cotangent, Part, derivable, join, ones_like
from genesis.autograd.paths import ways_to
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor
from genesis.tensor.transfer import sent
from genesis.tracing.source_line import resolve_line, user_line
from genesis.tracing.state import recording, unflushed
from genesis.tracing.trace import Array, Trace

__all__ = ["NO_DERIVATION", "Walk", "release", "walk"]

NO_DERIVATION = "backward: the tensor has no derivation (nothing it came from requires grad)"
_warned: list[bool] = []


def walk(
    roots: Sequence[Tensor], gradients: Sequence[Tensor | None] | None, retain_graph: bool | None, create_graph: bool,
    wanted: Sequence[Tensor],
) -> list[tuple[Tensor, Array]]:
    """(tensor, gradient) for every leaf (and wanted or retaining tensor) that the roots depend on."""
    walk = Walk(create_graph, create_graph if retain_graph is None else retain_graph)
    for root, seed in zip(roots, [None] * len(roots) if gradients is None else gradients, strict=True):
        walk.start(root, seed)
    if not walk.pending and not walk.found and not _warned:
        _warned.append(True)
        warnings.warn_explicit(NO_DERIVATION, UserWarning, *(resolve_line(*user_line()) or (__file__, 1)))
    wanted_at: dict[Trace | None, dict[int, Tensor]] = {}
    for tensor in wanted:
        array = array_of(tensor)
        if array.node.differentiable and array.trace is not None:
            trace, index = derived_at(array.trace, array.index)
            wanted_at.setdefault(trace, {})[index] = tensor
    walk.ways = ways_to(wanted, roots)
    stack = [walk.steps(wanted_at)]
    while stack:  # a part of a walk may have to wait for another walk: no recursion, however deep
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
        else:
            stack.append(inner.steps({}))
    for observer in observers():
        observer.finish()
    for trace in unflushed():
        trace.backward_done = bool(trace.backward.copies)
    return walk.found


class Walk:
    """Cotangents on their way: those that have come to positions of traces, and what has been found of tensors.

    With `until`, a trace and a position, the walk goes no further than that: what has come there stays pending.
    """

    def __init__(self, create_graph: bool, keeps: bool, until: tuple[Trace, int] | None = None) -> None:
        self.create_graph = create_graph
        self.keeps = keeps
        self.until = until
        self.pending: dict[Trace, dict[int, Cotangent]] = {}
        self.found: list[tuple[Tensor, Array]] = []
        self.ways: Mapping[Trace, AbstractSet[int]] | None = None

    def start(self, root: Tensor, gradient: Tensor | None) -> None:
        """Begin at `root` (too), with `gradient`; None is ones."""
        array = array_of(root)
        cotangent = _seed(root, gradient, self.create_graph)
        if array.node.differentiable:
            assert array.trace is not None
            join(self.pending.setdefault(array.trace, {}), array.index, cotangent, array, self.create_graph)
        elif root.requires_grad:
            self.found.append((root, ones_like(array) if cotangent is None else cotangent))

    def steps(self, wanted_at: Mapping[Trace | None, dict[int, Tensor]]) -> Iterator[Walk]:
        """Walk. Yields the walks that have to be made before this one can go on."""
        left: dict[Trace, dict[int, Cotangent]] = {}
        last, above = self.until or (None, -1)
        while self.pending:
            trace = max(self.pending, key=lambda trace: trace.number)
            if last is not None and trace.number < last.number:
                break
            retained = {index: tensor for index, to in trace.backward.retained.items() if (tensor := to()) is not None}
            wanted = {**retained, **wanted_at.get(trace, {})}
            way = None if self.ways is None else self.ways.get(trace)
            part = Part(trace, self.pending.pop(trace), frozenset(wanted), self.create_graph, way)
            for waiting in part.steps(above if trace is last else -1):
                yield waiting.walk
                waiting.then()
                self._take(waiting.walk, part)
            if part.held:
                left[trace] = part.held
            if not self.keeps:
                release(trace, part.readers)
            self._arrive(part, wanted)
        self.pending.update(left)

    def _take(self, inner: Walk, part: Part) -> None:
        """Take over what an inner walk has found, and what is still pending of it."""
        self.found += inner.found
        for trace, held in inner.pending.items():
            arrived = [(index, array) for index, array in held.items() if array is not None]
            if trace is part.trace:
                part.take(arrived)
                continue
            for index, array in arrived:
                join(self.pending.setdefault(trace, {}), index, array, array, self.create_graph)

    def _arrive(self, part: Part, wanted: Mapping[int, Tensor]) -> None:
        """Take what has come to the ends of a part: to leaves, to values of older traces, to what was wanted."""
        trace, onward = part.trace, []
        for index, array in part.ends.items():
            if index in trace.variables:
                self.found.append((trace.variables[index], array))
            elif index in trace.input_at:
                onward.append((trace.input_at[index], array))
            if index in wanted:
                self.found.append((wanted[index], array))
        for origin, array in onward:  # to another device it is sent computed: what was recorded here is flushed
            assert origin.trace is not None
            (there,) = sent([array], origin.trace.device)
            join(self.pending.setdefault(origin.trace, {}), origin.index, there, there, self.create_graph)


def release(trace: Trace, readers: set[int]) -> None:
    """What the walked rules read will not be read again."""
    trace.released |= readers
    state = trace.backward
    for index in state.saved.keys() & readers:
        if trace.nodes[index].op not in ("input", "variable"):
            del state.saved[index]
    for index in state.custom_calls.keys() & readers:
        state.custom_calls[index].release()
    if trace.done and any([leaf._base is not None for leaf in trace.variables.values()]):
        trace.variables = weakref.WeakValueDictionary(trace.variables)  # a leaf may be a detached result of an older trace


def _seed(root: Tensor, gradient: Tensor | None, create_graph: bool) -> Cotangent:
    """The array that seeds a root."""
    if gradient is None:
        if root.numel() != 1:
            raise RuntimeError(
                f"backward: only a tensor of one element needs no gradient; this one has shape {root.shape}: "
                "give gradient= of that shape"
            )
        return None
    if not isinstance(gradient, Tensor):
        raise TypeError(f"backward: gradient must be a tensor or None, got {type(gradient).__name__} {gradient!r:.40}")
    if array_of(gradient).device is not array_of(root).device:
        raise RuntimeError(f"backward: gradient is on {array_of(gradient).device}; want the tensor's {array_of(root).device}")
    with recording(create_graph) as again, again:
        if gradient.shape != root.shape:
            if gradient.numel() != 1 or root.numel() != 1:
                raise ValueError(f"backward: gradient has shape {gradient.shape}; want the tensor's {root.shape}")
            gradient = call(OPERATIONS["reshape"], (gradient, root.shape))
        if gradient.dtype is not root.dtype:
            gradient = call(OPERATIONS["to_dtype"], (gradient, root.dtype))
    return derivable(gradient, create_graph)
