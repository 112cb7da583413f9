"""The walk of backward: from the cotangents of results to those of the leaves.

A derivation may lie in the open trace or in traces that have been flushed; it is walked trace by trace, newest first.
Gradient nodes always go to the open trace, as a step of the trie: a program that repeats itself finds its whole
backward by one look-up and derives nothing. Where Python has a word to say - a hook, a custom Function - the walk
stops, asks, and goes on with what it was told: that is one step more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from genesis.autograd.calls import arguments_of, call_at, node_name, span_of
from genesis.autograd.hooks import NodeHooks, hooked
from genesis.autograd.observers import GradientEvent, observers
from genesis.autograd.versions import check_versions
from genesis.execute import flush, realize
from genesis.ir.graph import Graph
from genesis.ops.derive import derive
from genesis.ops.registry import OPERATIONS, expand
from genesis.tensor import Tensor, array_of, call, call_on, tensor_of
from genesis.trace import LOCK, Array, Trace, current_trace, recording, resolve_line, thread_state, user_line
from genesis.transfer import sent

__all__ = ["NO_DERIVATION", "GraphCycleError", "release", "saved_at", "summed", "walk"]

Cotangent = Array | None  # None is ones

_RELEASED = "backward: an earlier backward released this graph; give that one retain_graph=True to run it again"
NO_DERIVATION = "backward: the tensor has no derivation (nothing it came from requires grad)"
_warned: list[bool] = []


class GraphCycleError(RuntimeError):
    """A value was made, by hand, to hang on what is computed from it."""


def walk(
    roots: Sequence[Tensor], gradients: Sequence[Tensor | None] | None, retain_graph: bool | None, create_graph: bool,
    wanted: Sequence[Tensor],
) -> list[tuple[Tensor, Array]]:
    """(tensor, gradient) for every leaf (and wanted or retaining tensor) that the roots depend on."""
    pending: dict[Trace, dict[int, Cotangent]] = {}
    found: list[tuple[Tensor, Array]] = []
    for root, seed in zip(roots, [None] * len(roots) if gradients is None else gradients, strict=True):
        array = array_of(root)
        cotangent = _seed(root, seed)
        if array.node.differentiable:
            assert array.trace is not None
            _join(pending.setdefault(array.trace, {}), array.index, cotangent, array, create_graph)
        elif root.requires_grad:
            found.append((root, _ones_like(array) if cotangent is None else cotangent))
        elif not _warned:
            _warned.append(True)
            warnings.warn_explicit(NO_DERIVATION, UserWarning, *(resolve_line(*user_line()) or (__file__, 1)))
    wanted_at: dict[Trace | None, dict[int, Tensor]] = {}
    for tensor in wanted:
        array = array_of(tensor)
        if array.node.differentiable:
            wanted_at.setdefault(array.trace, {})[array.index] = tensor
    keep = create_graph if retain_graph is None else retain_graph
    while pending:
        trace = max(pending, key=lambda trace: trace.number)
        reported = {**trace.retained, **wanted_at.get(trace, {})}
        part = _Part(trace, pending.pop(trace), frozenset(reported), create_graph)
        part.walk()
        if not keep:
            release(trace, part.readers)
        onward = []
        for index, array in part.ends.items():
            if index in trace.variables:
                found.append((trace.variables[index], array))
            elif index in trace.input_at:
                onward.append((trace.input_at[index], array))
            if index in reported:
                found.append((reported[index], array))
        for origin, array in onward:  # to another device it is sent computed: what was recorded here is flushed
            assert origin.trace is not None
            (there,) = sent([array], origin.trace.device)
            _join(pending.setdefault(origin.trace, {}), origin.index, there, there, create_graph)
    for observer in observers():
        observer.finish()
    return found


class _Part:
    """One trace's part of a walk: the cotangents that have come to its positions, and those of its ends."""

    def __init__(
        self, trace: Trace, held: dict[int, Cotangent], wanted: frozenset[int], create_graph: bool
    ) -> None:
        self.trace = trace
        self.held = held
        self.wanted = wanted
        self.create_graph = create_graph
        self.ends: dict[int, Array] = {}
        self.readers: set[int] = set()
        self._hooked: set[int] = set()

    def walk(self) -> None:
        """Walk it all, with a stop wherever Python is to be asked."""
        for stop, ask in _stops(self.trace):
            self._derive(stop)
            ask(self)
        self._derive(-1)

    # ---- what is asked at a stop ----

    def ask_hooks(self, index: int) -> None:
        """Let the hooks of the value at `index` replace its cotangent."""
        hooks = self.trace.hooks.get(index)
        if not hooks or index not in self.held or index in self._hooked:
            return
        self._hooked.add(index)
        gradient = hooked(self._tensor(index), hooks, self.create_graph)
        self.held[index] = array_of(gradient)

    def ask_custom(self, custom: Any) -> None:
        """Let a custom Function say what the cotangents of its inputs are."""
        places = [index for index in custom.outputs if index in self.held]
        if not places:
            return
        if not self.trace.released.isdisjoint(places):
            raise RuntimeError(_RELEASED)
        nodes = self.trace.nodes
        if any(i is not None and i >= places[0] and nodes[i].op != "variable" for i in custom.inputs):
            raise GraphCycleError(
                f"backward: {custom.name} is to derive a value that its own input is computed from; "
                "a graph of derivations has no cycles"
            )
        for index in places:
            self.ask_hooks(index)
        check_versions(self.trace, {places[0]: [index for index in custom.saved if index is not None]})
        gradients: Any = [self._tensor(i) if i in self.held else None for i in custom.outputs]
        hooks: NodeHooks | None = self.trace.node_hooks.get(custom.first)
        if hooks is not None:
            gradients = hooks.before(gradients, self.create_graph)
        for index in places:
            if index in self.wanted:
                self.ends[index] = array_of(self._tensor(index))
            del self.held[index]
        self.readers.update(places)
        with recording(self.create_graph):
            answers = custom.gradients(gradients, self.trace)
        self._told(custom.first, gradients, list(zip(custom.inputs, answers, strict=True)))

    def ask_node(self, span: range) -> None:
        """Derive one call by itself, so that its hooks, and whoever observes the walk, see what it makes of its cotangents."""
        first = span[0]
        places = [i for i in sorted(self.held) if i in span]
        if not places:
            return
        for index in places:
            self.ask_hooks(index)
        hooks = self.trace.node_hooks.get(first)
        if hooks is not None:
            given = hooks.before([self._tensor(i) for i in places], self.create_graph)
            self.held.update(zip(places, [array_of(g) for g in given], strict=True))
        gradients = [self._tensor(i) for i in places]
        elsewhere = {i: self.held.pop(i) for i in [*self.held] if i not in span}
        self._derive(first - 1)
        passed: dict[int | None, Tensor] = {i: self._tensor(i) for i in self.held}
        self.held = elsewhere
        arguments = dict.fromkeys([*arguments_of(self.trace, first), *passed])
        self._told(first, gradients, [(i, passed.get(i)) for i in arguments])

    def _told(
        self, first: int, gradients: Sequence[Tensor | None], passed: list[tuple[int | None, Tensor | None]]
    ) -> None:
        """Take the cotangents that the call at `first` passes on to its inputs, once hooks and observers have seen them."""
        hooks = self.trace.node_hooks.get(first)
        if hooks is not None:
            replaced = hooks.after([g for _, g in passed], gradients, self.create_graph)
            passed = [(index, g) for (index, _), g in zip(passed, replaced, strict=True)]
        for observer in observers():
            name, line = node_name(self.trace, first), self.trace.line_of(first)
            observer.observe(GradientEvent(name, line, tuple(gradients), tuple([g for _, g in passed])))
        for index, gradient in passed:
            if index is not None and gradient is not None:
                array = array_of(gradient)
                walked = index > first and self.trace.nodes[index].op == "variable"
                _join(self.ends if walked else self.held, index, array, array, self.create_graph)

    # ---- the steps between ----

    def _derive(self, above: int) -> None:
        """Walk the positions beyond `above`."""
        if max(self.held, default=-1) <= above:
            return
        with LOCK:
            source = self.trace
            trace = current_trace(source.device)
            place, token = _placing(source, max(self.held), trace, self.create_graph)
            seeds = tuple([(i, None if a is None else _position(trace, a)) for i, a in sorted(self.held.items())])
            wanted = self.wanted
            key = ("derive", token, seeds, wanted, above, self.create_graph)

            def build(graph: Graph) -> Any:
                given = {}
                for index, seed in seeds:
                    node = source.nodes[index]
                    given[index] = expand(graph.constant(1, node.dtype), node.shape) if seed is None else graph.value(seed)
                ends, rest, reads = derive(source.nodes, given, graph, lambda i: graph.value(place(i)), wanted, above)
                return tuple(ends.items()), tuple(rest.items()), reads

            trace.lines.append((len(trace.nodes), *user_line(), key))
            ends, rest, reads = trace.advance(key, build, grad=self.create_graph).result
            if not source.released.isdisjoint(reads):
                raise RuntimeError(_RELEASED)
            check_versions(source, reads)
            self.readers.update(reads)
            self.ends.update((index, trace.handle(position)) for index, position in ends)
            self.held = {index: trace.handle(position) for index, position in rest}

    def _tensor(self, index: int) -> Tensor:
        """The cotangent held for `index`."""
        array = self.held[index]
        if array is None:
            node = self.trace.nodes[index]
            array = call_on(self.trace.device, OPERATIONS["full"], (1, node.shape, node.dtype))._array
            self.held[index] = array
        return tensor_of(array, array.node.differentiable)


def _stops(trace: Trace) -> list[tuple[int, Callable[[_Part], None]]]:
    """Where Python has a word to say, last position first."""
    if not (trace.hooks or trace.customs or trace.node_hooks or observers()):
        return []
    stops: dict[int, Callable[[_Part], None]] = {}
    for index in trace.hooks:
        stops[index] = partial(_Part.ask_hooks, index=index)
    if observers():
        spans = [span_of(trace, call[0]) for call in trace.lines]
    else:
        spans = [call_at(trace, first) for first in trace.node_hooks]
    customs = {call_at(trace, index)[0] for index in trace.customs}
    for span in spans:
        if span and span[0] not in customs:
            stops[span[-1]] = partial(_Part.ask_node, span=span)
    for index, custom in trace.customs.items():
        if index == custom.last:
            stops[index] = partial(_Part.ask_custom, custom=custom)
    return sorted(stops.items(), key=lambda stop: stop[0], reverse=True)


def saved_at(source: Trace, index: int) -> Tensor:
    """The tensor of the value at `index` of `source`, as backward reads it."""
    with LOCK:
        trace = current_trace(source.device)
        place, _ = _placing(source, index, trace, thread_state.grad_enabled)
        array = trace.handle(place(index))
        return tensor_of(array, array.node.differentiable)


def _placing(source: Trace, last: int, trace: Trace, create_graph: bool) -> tuple[Callable[[int], int], Any]:
    """Where the open trace has the source's values up to `last`, and what stands for that in a step's key.

    What a flushed source saved is read from memory, and what backward needs besides is computed from it anew.
    """
    if source is trace:
        return int, None
    flush(source)  # if another thread has it open, or its flush was interrupted
    if source.spent:
        raise RuntimeError(_RELEASED)
    reach, start, copies = trace.known.get((source, create_graph), (-1, 0, {}))
    if reach < last:
        start = len(trace.nodes)
        copies = _copied(source, trace, last, create_graph)
        trace.known[source, create_graph] = last, start, copies

    def place(index: int) -> int:
        if index not in copies:
            raise RuntimeError(_RELEASED)
        return copies[index]

    return place, (source.step, start)


def _copied(source: Trace, trace: Trace, last: int, create_graph: bool) -> dict[int, int]:
    """The source's values up to `last` in the open trace: what was saved, and copies of the nodes that follow from it.

    Copies that nobody reads are dropped in lowering.
    """
    known = {
        index: trace.place_array(_linked(source, index, array) if create_graph else array)
        for index, array in sorted(source.saved.items())
    }
    for index, node in enumerate(source.nodes):
        if node.op == "scalar":
            known[index] = trace.place_scalar(source.scalars[node.attrs["slot"]], node.dtype)
    key = ("copy", source.step, last, tuple(known.items()))

    def build(graph: Graph) -> Any:
        placed = {index: graph.value(position) for index, position in known.items()}
        for index in range(last + 1):
            node = source.nodes[index]
            if index in placed or node.op == "input" or any(i not in placed for i in node.inputs):
                continue
            if node.op == "custom":  # if its value is read at all, it was saved: only in the source can it be derived
                raw = placed[node.inputs[0]]
                placed[index] = graph.add("detach", (raw,), node.shape, node.dtype, differentiable=False)
                continue
            graph.nodes.append(node.renumbered(tuple(placed[i].index for i in node.inputs)))
            placed[index] = graph.value(len(graph) - 1)
        return {index: value.index for index, value in placed.items()}

    trace.lines.append((len(trace.nodes), *user_line(), key))
    copies: dict[int, int] = trace.advance(key, build).result
    for index, tensor in source.variables.items():
        if index in copies:
            trace.variables[copies[index]] = tensor
    return copies


def _position(trace: Trace, array: Array) -> int:
    """Where the open trace has a cotangent."""
    if array.trace is not trace:
        realize(array)
    return trace.place_array(array)


def _linked(source: Trace, index: int, saved: Array) -> Array:
    """A saved value from which a second derivation finds its way back into `source`."""
    if saved.trace is not None or not saved.node.differentiable:
        return saved
    return Array(source, index, saved.node, saved.memory)


def release(trace: Trace, readers: set[int]) -> None:
    """What the walked rules read will not be read again."""
    trace.released |= readers
    for index in [i for i in trace.saved if trace.nodes[i].op not in ("input", "variable")]:
        if index in readers:
            del trace.saved[index]
    for index in [i for i in trace.customs if i in readers]:
        trace.customs[index].release()


# ---- cotangents ----


def _seed(root: Tensor, gradient: Tensor | None) -> Cotangent:
    """The array that seeds a root."""
    if gradient is None:
        if root.numel() != 1:
            raise RuntimeError(
                f"backward: only a tensor of one element needs no gradient; this one has shape {root.shape}: "
                "give gradient= of that shape"
            )
        return None
    if array_of(gradient).device is not array_of(root).device:
        raise RuntimeError(f"backward: gradient is on {array_of(gradient).device}; want the tensor's {array_of(root).device}")
    if gradient.shape != root.shape:
        if gradient.numel() != 1 or root.numel() != 1:
            raise ValueError(f"backward: gradient has shape {gradient.shape}; want the tensor's {root.shape}")
        gradient = call(OPERATIONS["reshape"], (gradient, root.shape))
    if gradient.dtype is not root.dtype:
        gradient = call(OPERATIONS["to_dtype"], (gradient, root.dtype))
    return array_of(gradient)


def _join(held: dict[int, Any], index: int, new: Cotangent, like: Array, create_graph: bool) -> None:
    """Add a cotangent to what is held for a position."""
    if index in held:
        pair = [tensor_of(a, a.node.differentiable) for a in (
            _ones_like(like) if c is None else c for c in (held[index], new))]
        new = summed(pair[0], pair[1], create_graph)._array
    held[index] = new


def _ones_like(array: Array) -> Array:
    ones: Array = call_on(array.device, OPERATIONS["full"], (1, array.node.shape, array.node.dtype))._array
    return ones


def summed(a: Tensor, b: Tensor, create_graph: bool) -> Tensor:
    """a + b, itself derivable with `create_graph`."""
    with recording(create_graph):
        result: Tensor = call(OPERATIONS["add"], (a, b))
        return result

