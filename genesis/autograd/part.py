"""One trace's part of a walk: derive, from stop to stop.

Where Python has a word to say - a hook, a custom Function, a look at the gradients of one call - derive stops; what it
has found so far is a step of the open trace; Python is asked, and the walk goes on with what it was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from genesis.autograd.calls import arguments_of, call_at, node_name, span_of
from genesis.autograd.hooks import NodeHooks, hooked
from genesis.autograd.observers import GradientEvent, observers
from genesis.autograd.paths import leads_on
from genesis.autograd.placing import ReleasedError, placing, position_of
from genesis.autograd.versions import check_versions
from genesis.execution.flush import flush
from genesis.ir.graph import Graph
from genesis.ops.derive import derive
from genesis.ops.registry import OPERATIONS, expand
from genesis.tensor.dispatch import array_of, call, filled
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tracing.state import current_trace, recording, thread_state
from genesis.tracing.trace import LOCK, Array, Trace
from genesis.tracing.trie import BYTE_LIMIT

__all__ = ["Cotangent", "Deferred", "GraphCycleError", "Part", "derivable", "join", "ones_like", "summed"]

Cotangent = Array | None  # None is ones

_first, _second = itemgetter(0), itemgetter(1)


class GraphCycleError(RuntimeError):
    """A value was made, by hand, to hang on what is computed from it."""


class Deferred(NamedTuple):
    """A custom Function's answer that needs a walk of its own: `gradients` gives it once `walk` has been made."""

    walk: Any
    gradients: Callable[[], Sequence[Tensor | None]]


class Waiting(NamedTuple):
    """A walk that has to be made before a part goes on, and what to do then."""

    walk: Any
    then: Callable[[], None]


class Part:
    """One trace's part of a walk: the cotangents that have come to its positions, and those of its ends."""

    def __init__(
        self, trace: Trace, held: dict[int, Cotangent], wanted: frozenset[int], create_graph: bool,
        way: AbstractSet[int] | None = None,
    ) -> None:
        self.trace = trace
        self.held = held
        self.wanted = wanted
        self.create_graph = create_graph
        self.way = way  # the positions where Python is to be asked; None is everywhere
        self.ends: dict[int, Array] = {}
        self.readers: set[int] = set()
        self._hooked: set[int] = set()
        self._stop = len(trace.nodes)

    def steps(self, above: int = -1) -> Iterator[Waiting]:
        """Walk down to `above`, with a stop wherever Python is to be asked. Yields what an answer waits for."""
        for stop, ask in _stops(self.trace, above, max(self.held, default=-1)):
            self._derive(stop)
            self._stop = stop
            waiting = ask(self)
            if waiting is not None:
                yield waiting
        self._derive(above)

    def take(self, cotangents: Iterable[tuple[int, Array]]) -> None:
        """Add cotangents to those held. A leaf may have been passed already; nothing else can have been."""
        for index, array in cotangents:
            passed = index > self._stop and self.trace.nodes[index].op == "variable"
            join(self.ends if passed else self.held, index, array, array, self.create_graph)

    # ---- what is asked at a stop ----

    def ask_hooks(self, index: int) -> None:
        """Let the hooks of the value at `index` replace its cotangent."""
        hooks = self.trace.backward.hooks.get(index)
        if not hooks or index not in self.held or index in self._hooked or (self.way is not None and index not in self.way):
            return
        self._hooked.add(index)
        gradient = hooked(self._tensor(index), hooks, self.create_graph)
        self.held[index] = derivable(gradient, self.create_graph)

    def ask_custom(self, custom: Any) -> Waiting | None:
        """Let a custom Function say what the cotangents of its inputs are. It may ask for another walk first."""
        places = [index for index in custom.outputs if index in self.held]
        if not places:
            return None
        if not self.trace.released.isdisjoint(places):
            raise ReleasedError
        nodes = self.trace.nodes
        if any(i is not None and i >= places[0] and nodes[i].op != "variable" for i in custom.inputs):
            raise GraphCycleError(
                f"backward: {custom.name} is to derive a value that its own input is computed from; "
                "a graph of derivations has no cycles"
            )
        for index in places:
            self.ask_hooks(index)
        if not leads_on(self.trace, places[0], self.way):
            self._leave(places)
            return None
        check_versions(self.trace, {places[0]: [index for index in custom.saved if index is not None]})
        gradients: Any = [self._tensor(i) if i in self.held else None for i in custom.outputs]
        hooks: NodeHooks | None = self.trace.backward.node_hooks.get(custom.first)
        if hooks is not None:
            gradients = hooks.before(gradients, self.create_graph)
        self._leave(places)
        self.readers.update(places)
        with recording(self.create_graph) as again, again:
            answers = custom.gradients(gradients, self.trace)

        def told(answers: Sequence[Tensor | None]) -> None:
            self._told(custom.first, gradients, list(zip(custom.inputs, answers, strict=True)))

        if isinstance(answers, Deferred):
            return Waiting(answers.walk, lambda: told(answers.gradients()))
        told(answers)
        return None

    def _leave(self, places: Iterable[int]) -> None:
        """Let go of the cotangents of a custom Function's results."""
        for index in places:
            if index in self.wanted:
                self.ends[index] = array_of(self._tensor(index))
            del self.held[index]

    def ask_node(self, span: range) -> None:
        """Derive one call by itself, so that its hooks, and whoever observes the walk, see what it makes of its cotangents."""
        first = span[0]
        places = [i for i in sorted(self.held) if i in span]
        if not places or (self.way is not None and self.way.isdisjoint(span)):
            return
        for index in places:
            self.ask_hooks(index)
        hooks = self.trace.backward.node_hooks.get(first)
        if hooks is not None:
            given = hooks.before([self._tensor(i) for i in places], self.create_graph)
            self.held.update(zip(places, [derivable(g, self.create_graph) for g in given], strict=True))
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
        hooks = self.trace.backward.node_hooks.get(first)
        if hooks is not None:
            replaced = hooks.after([g for _, g in passed], gradients, self.create_graph)
            passed = [(index, g) for (index, _), g in zip(passed, replaced, strict=True)]
        for observer in observers():
            name, line = node_name(self.trace, first), self.trace.line_of(first)
            observer.observe(GradientEvent(name, line, tuple(gradients), tuple([g for _, g in passed])))
        given = [(index, g) for index, g in passed if index is not None and g is not None]
        self.take([(index, derivable(g, self.create_graph)) for index, g in given])

    # ---- the steps between ----

    def _derive(self, above: int) -> None:
        """Walk the positions beyond `above`."""
        if max(self.held, default=-1) <= above:
            return
        with LOCK:
            source = self.trace
            trace = current_trace(source.device)
            place, token = placing(source, max(self.held), trace, self.create_graph)
            seeds = tuple([(i, None if a is None else position_of(trace, a)) for i, a in sorted(self.held.items())])
            wanted = self.wanted
            key = ("derive", token, seeds, wanted, above, self.create_graph)

            def build(graph: Graph) -> Any:
                given = {}
                for index, seed in seeds:
                    node = source.nodes[index]
                    given[index] = expand(graph.constant(1, node.dtype), node.shape) if seed is None else graph.value(seed)
                ends, rest, reads = derive(source.nodes, given, graph, lambda i: graph.value(place(i)), wanted, above)
                return tuple(ends.items()), tuple(rest.items()), reads

            recorder = thread_state.recorder
            step = trace.record(key, build if recorder is None else recorder.unwatched(build), grad=self.create_graph)
            ends, rest, reads = step.result
            if not source.released.isdisjoint(reads):
                raise ReleasedError
            check_versions(source, reads)
            self.readers.update(reads)
            self.ends |= zip(map(_first, ends), trace.handles(map(_second, ends)), strict=True)
            self.held = dict(zip(map(_first, rest), trace.handles(map(_second, rest)), strict=True))
            if trace.weight > BYTE_LIMIT:
                flush(trace)

    def _tensor(self, index: int) -> Tensor:
        """The cotangent held for `index`."""
        array = self.held[index]
        if array is None:
            node = self.trace.nodes[index]
            array = filled(1, node.shape, node.dtype, self.trace.device)._array
            self.held[index] = array
        return tensor_of(array, array.node.differentiable)


def _stops(trace: Trace, above: int, top: int) -> list[tuple[int, Callable[[Part], Waiting | None]]]:
    """Where Python has a word to say beyond `above` of what cotangents at `top` and before may come to, last position first."""
    state = trace.backward
    if not (state.hooks or state.custom_calls or state.node_hooks or observers()):
        return []
    stops: dict[int, Any] = {index: partial(Part.ask_hooks, index=index) for index in state.hooks if above < index <= top}
    spans: list[range] = []
    if observers():
        spans = [span_of(trace, call[0]) for call in trace.lines if above < call[0] <= top]
    elif state.node_hooks:
        spans = [call_at(trace, first) for first in state.node_hooks if above < first <= top]
    customs = {call_at(trace, index)[0] for index in state.custom_calls} if spans else ()
    for span in spans:
        if span and span[0] not in customs:
            stops[span[-1]] = partial(Part.ask_node, span=span)
    for index, custom in state.custom_calls.items():
        if index == custom.last and above < index and custom.first <= top:
            stops[index] = partial(Part.ask_custom, custom=custom)
    return sorted(stops.items(), key=lambda stop: stop[0], reverse=True)


# ---- cotangents ----


def join(held: dict[int, Any], index: int, new: Cotangent, like: Array, create_graph: bool) -> None:
    """Add a cotangent to what is held for a position."""
    if index in held:
        pair = [tensor_of(a, a.node.differentiable) for a in (
            ones_like(like) if c is None else c for c in (held[index], new))]
        new = summed(pair[0], pair[1], create_graph)._array
    held[index] = new


def derivable(gradient: Tensor, create_graph: bool) -> Array:
    """The array of a gradient that the user gave; with `create_graph`, a leaf is to get its own gradient."""
    array = array_of(gradient)
    if create_graph and gradient.requires_grad and not array.node.differentiable:
        with recording(True) as again, again:
            array = call(OPERATIONS["clone"], (gradient,))._array
    return array


def ones_like(array: Array) -> Array:
    return filled(1, array.node.shape, array.node.dtype, array.device)._array


def summed(a: Tensor, b: Tensor, create_graph: bool) -> Tensor:
    """a + b, itself derivable with `create_graph`."""
    with recording(create_graph) as again, again:
        return call(OPERATIONS["add"], (a, b))

