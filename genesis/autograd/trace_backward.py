"""Backward over one trace: derives gradients, stopping where Python must be called.

It stops at hooks, at custom Functions, and at every call while there are observers. The part up to a stop is one step of the
open trace; then Python is called, and derivation continues with its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set as AbstractSet
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from genesis.autograd.custom import CustomCall, Deferred
from genesis.autograd.derivation import arguments_of, call_at, node_name, span_of
from genesis.autograd.forward_values import (
    Regathered, ReleasedError, check_versions, forward_values, operands_of, position_of, rules_read,
)
from genesis.autograd.hooks import GradientEvent, Gradients, hooked
from genesis.execution.flush import flush
from genesis.execution.plan import transient_collectives
from genesis.ir.annotations import Key
from genesis.ir.graph import Graph, Node, Value
from genesis.ops.derive import derive
from genesis.ops.registry import OPERATIONS, expand
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tracing.families import Form
from genesis.tracing.recording_hooks import unwatched
from genesis.tracing.state import grad_mode, recorded, thread_mode, thread_state
from genesis.tracing.trace import LOCK, Array, Trace
from genesis.tracing.trie import BYTE_LIMIT

Cotangent = Array | None  # None is ones

_first, _number = itemgetter(0), attrgetter("number")


class GraphCycleError(RuntimeError):
    """A cycle: a value was manually made to depend on something computed from it."""


class Waiting(NamedTuple):
    """A custom Function's result that needs an inner pass first, and the continuation after it."""

    answer: Deferred
    then: Callable[[], None]


class TraceBackward:
    """The cotangents that have come to positions of one trace, and those of the ends: inputs, leaves, what is wanted."""

    def __init__(
        self, trace: Trace, cotangents: dict[int, Cotangent], wanted: frozenset[int], create_graph: bool,
        reachable: AbstractSet[int] | None = None, adjoint: bool = False,
    ) -> None:
        self.trace = trace
        self.cotangents = cotangents
        self.wanted = wanted
        self.create_graph = create_graph
        self.adjoint = adjoint
        self.reachable = reachable  # positions where Python is to be asked; None is everywhere
        self.ends: dict[int, Array] = {}
        self.origins: dict[int, Array] = {}  # inputs among the ends: once all is derived, a flush may drop the trace's
        self.readers: frozenset[int] = frozenset()  # positions whose rules read values
        self._hooked: set[int] = set()
        self._stop = len(trace.nodes)

    def steps(self, above: int = -1) -> Iterator[Waiting]:
        """Derive the positions beyond `above`, stop by stop. Yields what an answer waits for."""
        for stop, visit in _stops(self.trace, above, max(self.cotangents, default=-1)):
            self._derive(stop)
            self._stop = stop
            waiting = visit(self)
            if waiting is not None:
                yield waiting
        self._derive(above)

    def add(self, cotangents: Iterable[tuple[int, Array]]) -> None:
        """Add cotangents. A leaf may have been passed already; nothing else can have been."""
        for index, array in cotangents:
            passed = index > self._stop and self.trace.nodes[index].op == "variable"
            add_cotangent(self.ends if passed else self.cotangents, index, array, array, self.create_graph)

    def _derive(self, above: int) -> None:
        """Derive the positions beyond `above`, as one step of the open trace."""
        due = [index for index in self.cotangents if index > above]
        if self.reachable is not None and not any([self._goes_on(index) for index in due]):
            self._leave(due)
            return
        if not due:
            return
        with LOCK:
            trace = recorded(self.trace.device, partial(self._derive_in, above))
            if trace.weight > BYTE_LIMIT:
                flush(trace)

    def _goes_on(self, index: int) -> bool:
        """Whether the cotangent at `index` is that of an end, or a gradient goes on from there."""
        return self.trace.nodes[index].op in ("variable", "input") or leads_on(self.trace, index, self.reachable)

    def _derive_in(self, above: int, trace: Trace) -> Trace:
        source = self.trace
        values = forward_values(source, max(self.cotangents), trace, self.create_graph)
        position, shape_only, regathered = values.position, values.shape_only, values.regathered
        seeds = tuple([(i, None if a is None else position_of(trace, a)) for i, a in sorted(self.cotangents.items())])
        wanted = self.wanted
        within = None if self.reachable is None or not source.released else frozenset(self.reachable)
        asked = seeds, wanted, above, self.create_graph, self.adjoint, within
        key = ("derive", values.key, *asked)
        of = None if values.key is None else (source.step.family, *values.key[1:])
        sources = () if of is None else (source.nodes,)
        form = None if regathered or (of is not None and of[0] is None) else Form(("derive", of, *asked), [], sources)

        def build(graph: Graph, key: Key, nodes: Sequence[Node] | None = None) -> Any:
            if nodes is None:
                nodes = graph.nodes if of is None else source.nodes

            def derived(graph: Graph, value_of: Callable[[int], Value]) -> Any:
                given = {}
                for index, seed in seeds:
                    node = nodes[index]
                    given[index] = expand(graph.constant(1, node.dtype), node.shape) if seed is None else graph.value(seed)
                return derive(nodes, given, graph, value_of, wanted, above, adjoint=self.adjoint, within=within)

            needed = rules_read(regathered, derived, graph, position) if regathered else ()
            made, start = Regathered(source.nodes, regathered, graph, position), len(graph)
            ends, rest, reads = derived(graph, lambda i: made.value(i) if i in needed else graph.value(position(i)))
            _copy_shared(ends, nodes, start)
            reads = {reader: tuple([i for at in seen for i in operands_of(source.nodes, regathered, at)])
                     for reader, seen in reads.items()} if needed else reads
            return tuple(ends), tuple(ends.values()), tuple(rest), tuple(rest.values()), reads, frozenset(reads)

        step = trace.record(key, unwatched(build), grad=self.create_graph, form=form)
        ends, end_values, rest, rest_values, reads, readers = step.result
        lacks_values = bool(shape_only) and any(i in shape_only for seen in reads.values() for i in seen)
        if lacks_values and self.create_graph and transient_collectives(source):
            raise RuntimeError("backward: create_graph=True needs parameters that were gathered for their forward alone; give "
                               "fully_shard reshard_after_forward=False")
        if not source.released.isdisjoint(readers) or lacks_values:
            raise ReleasedError
        check_versions(source, reads)
        self.readers = self.readers | readers if self.readers else readers
        self.ends |= zip(ends, trace.handles(end_values), strict=True)
        self.origins |= {index: source.input_at[index] for index in source.input_at.keys() & ends}
        self.cotangents = dict(zip(rest, trace.handles(rest_values), strict=True)) if rest else {}
        return trace

    # ---- stops ----
    def at_value(self, index: int) -> None:
        """Apply the hooks of the value at `index` to its cotangent."""
        hooks = self.trace.backward.hooks.get(index)
        if not hooks or index not in self.cotangents or index in self._hooked or (
            self.reachable is not None and index not in self.reachable
        ):
            return
        self._hooked.add(index)
        self.cotangents[index] = derivable(hooked(self._tensor(index), hooks, self.create_graph), self.create_graph)

    def at_copy(self, index: int, origin: Array) -> None:
        """The gradient of a copy goes on at its origin, where hooks are: they are to see all of it."""
        if index in self.cotangents:
            self.ends[index], self.origins[index] = array_of(self._tensor(index)), origin
            del self.cotangents[index]

    def at_custom(self, custom: CustomCall) -> Waiting | None:
        """Call a custom Function for its inputs' cotangents. It may need an inner pass first."""
        arrived = [index for index in custom.outputs if index in self.cotangents]
        if not arrived:
            return None
        if not self.trace.released.isdisjoint(arrived):
            raise ReleasedError
        nodes = self.trace.nodes
        if any(i is not None and i >= arrived[0] and nodes[i].op != "variable" for i in custom.inputs):
            raise GraphCycleError(
                f"backward: {custom.name} is to derive a value that its own input is computed from; "
                "a graph of derivations has no cycles"
            )
        for index in arrived:
            self.at_value(index)
        if not leads_on(self.trace, arrived[0], self.reachable):
            self._leave(arrived)
            return None
        check_versions(self.trace, {arrived[0]: [index for index in custom.saved or () if index is not None]})
        gradients = [self._tensor(i) if i in self.cotangents else None for i in custom.outputs]
        gradients = self._hooked_before(custom.first, gradients)
        self._leave(arrived)
        self.readers = self.readers.union(arrived)
        with thread_mode("grad_enabled", self.create_graph), thread_mode("scope", self.trace.scope_of(custom.first)):
            answers = custom.gradients(gradients, self.trace, self.adjoint)

        def pass_on(answers: Gradients) -> None:
            self._pass_on(custom.first, gradients, list(zip(custom.inputs, answers, strict=True)))

        if isinstance(answers, Deferred):
            deferred = answers
            return Waiting(deferred, lambda: pass_on(deferred.gradients()))
        pass_on(answers)
        return None

    def at_call(self, span: range) -> None:
        """Derive one call separately, for its hooks and observers."""
        first = span[0]
        arrived = [i for i in sorted(self.cotangents) if i in span]
        if not arrived or (self.reachable is not None and self.reachable.isdisjoint(span)):
            return
        for index in arrived:
            self.at_value(index)
        gradients = self._hooked_before(first, [self._tensor(i) for i in arrived])
        self.cotangents.update({
            i: derivable(g, self.create_graph) for i, g in zip(arrived, gradients, strict=True) if g is not None
        })
        elsewhere = {i: self.cotangents.pop(i) for i in [*self.cotangents] if i not in span}
        self._derive(first - 1)
        passed: dict[int | None, Tensor] = {i: self._tensor(i) for i in self.cotangents}
        self.cotangents = elsewhere
        arguments = dict.fromkeys([*arguments_of(self.trace, first), *passed])
        self._pass_on(first, gradients, [(i, passed.get(i)) for i in arguments])

    def _hooked_before(self, first: int, gradients: list[Tensor | None]) -> list[Tensor | None]:
        """The gradients of a call's results as the call's hooks leave them."""
        hooks = self.trace.backward.node_hooks.get(first)
        return gradients if hooks is None else [*hooks.before(gradients, self.create_graph)]

    def _leave(self, indices: Iterable[int]) -> None:
        """Drop the cotangents of a custom Function's results, once those that are wanted are noted."""
        for index in indices:
            if index in self.wanted:
                self.ends[index] = array_of(self._tensor(index))
            del self.cotangents[index]

    def _pass_on(self, first: int, gradients: Gradients, passed: list[tuple[int | None, Tensor | None]]) -> None:
        """Add what the call at `first` passes on to its inputs, once hooks and observers have seen it."""
        hooks = self.trace.backward.node_hooks.get(first)
        if hooks is not None:
            replaced = hooks.after([g for _, g in passed], gradients, self.create_graph)
            passed = [(index, g) for (index, _), g in zip(passed, replaced, strict=True)]
        for observer in thread_state.observers:
            name, line = node_name(self.trace, first), self.trace.line_of(first)
            observer.observe(GradientEvent(name, line, tuple(gradients), tuple([g for _, g in passed])))
        given = [(index, g) for index, g in passed if index is not None and g is not None]
        self.add([(index, derivable(g, self.create_graph)) for index, g in given])

    def _tensor(self, index: int) -> Tensor:
        """The cotangent of `index`."""
        array = self.cotangents[index]
        if array is None:
            node = self.trace.nodes[index]
            array = filled(1, node.shape, node.dtype, self.trace.device)._array
            self.cotangents[index] = array
        return tensor_of(array, array.node.differentiable)


Visit = Callable[[TraceBackward], Waiting | None]


def _stops(trace: Trace, above: int, top: int) -> list[tuple[int, Visit]]:
    """The positions in (`above`, `top`] at which to stop, last first, each with the method to call there."""
    state = trace.backward
    if not (state.hooks or state.custom_calls or state.node_hooks or state.copies or thread_state.observers):
        return []
    stops: dict[int, Visit] = {
        index: partial(TraceBackward.at_value, index=index) for index in state.hooks if above < index <= top
    }
    spans: list[range] = []
    if thread_state.observers:
        spans = [span_of(trace, call[0]) for call in trace.lines if above < call[0] <= top]
    elif state.node_hooks:
        spans = [call_at(trace, first) for first in state.node_hooks if above < first <= top]
    customs = {call_at(trace, index)[0] for index in state.custom_calls} if spans else ()
    for span in spans:
        if span and span[0] not in customs:
            stops[span[-1]] = partial(TraceBackward.at_call, span=span)
    for index, custom in state.custom_calls.items():
        if index == custom.last and above < index and custom.first <= top:
            stops[index] = partial(TraceBackward.at_custom, custom=custom)
    for index, origin in _hooked_origins(trace).items():
        if above < index <= top:
            stops[index] = partial(TraceBackward.at_copy, index=index, origin=origin)
    return sorted(stops.items(), key=_first, reverse=True)


def _hooked_origins(trace: Trace) -> dict[int, Array]:
    """Position of a copy, for second derivatives, of a value with hooks -> that value."""
    sources: dict[Trace, dict[int, Array]] = {trace: {}}
    waiting = [trace]
    while waiting:
        found = [source for source, _ in waiting.pop().backward.copies if source not in sources]
        sources.update((source, {}) for source in found)
        waiting += found
    asked: dict[Trace, set[int]] = {}
    for each in sorted(sources, key=_number):
        for (source, _), copied in each.backward.copies.items():
            sources[each].update((here, Array(source, there, source.nodes[there])) for here, there in copied.origins.items()
                                 if there in asked[source])
        state = each.backward
        asked[each] = {*state.hooks, *sources[each], *[i for first in state.node_hooks for i in call_at(each, first)]}
    return sources[trace]


def leads_on(trace: Trace, index: int, reachable: AbstractSet[int] | None) -> bool:
    """Whether a gradient goes on from `index` to a position that is `reachable` (None is everywhere)."""
    custom, inputs = trace.backward.custom_calls.get(index), trace.nodes[index].inputs
    if custom is None:
        return reachable is None or not reachable.isdisjoint(inputs)
    if custom.context._reaches_more:  # all that the result was computed from
        return reachable is None or trace.nodes[inputs[0]].op == "input" or not reachable.isdisjoint(inputs[:1])
    return reachable is None or not reachable.isdisjoint(custom.inputs)


# ---- cotangents ----
def _copy_shared(ends: dict[int, Value], nodes: Sequence[Node], start: int) -> None:
    """Copy each leaf's gradient that is another leaf's too, or was there before `start`: a `.grad` has memory of its own."""
    met = set[int]()
    for index, value in ends.items():
        if nodes[index].op == "variable":
            if value.index < start or value.index in met:
                ends[index] = value.graph.add("clone", (value,), value.shape, value.dtype)
            met.add(value.index)


def add_cotangent(cotangents: dict[Any, Any], index: Any, new: Cotangent, like: Array, create_graph: bool) -> None:
    """Add a cotangent at a position, or a tensor's gradient."""
    if index in cotangents:
        a, b = [ones_like(like) if c is None else c for c in (cotangents[index], new)]
        new = summed(tensor_of(a, a.node.differentiable), tensor_of(b, b.node.differentiable), create_graph)._array
    cotangents[index] = new


def derivable(gradient: Tensor, create_graph: bool) -> Array:
    """The array of a gradient that the user gave; with `create_graph`, a leaf is to get its own gradient."""
    array = array_of(gradient)
    if create_graph and gradient.requires_grad and not array.node.differentiable:
        with grad_mode(True):
            array = call(OPERATIONS["clone"], (gradient,))._array
    return array


def ones_like(array: Array) -> Array:
    return filled(1, array.node.shape, array.node.dtype, array.device)._array


def summed(a: Tensor, b: Tensor, create_graph: bool) -> Tensor:
    """a + b, itself derivable with `create_graph`, in the program of what came before: backward divides it between traces."""
    with grad_mode(create_graph), thread_mode("undivided", True):
        return call(OPERATIONS["add"], (a, b))
