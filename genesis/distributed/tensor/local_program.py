"""The part of an operation on distributed tensors that one rank computes, as a function of graphs.

An operation's definition runs on the shapes of the whole tensors. Its nodes are then rewritten for this rank's parts, one axis
of the mesh after the other, by the rules of `sharding.py`. Of the placements that the inputs may be moved to before, those are
taken that send the fewest elements.

The gradient of a whole tensor is whole, that of a part a part, and each term of a sum has the gradient of the sum. Where a
whole tensor is used for a part of the work, its gradients are terms of a sum, which backward sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from genesis.distributed.process_group import ProcessGroup
from genesis.distributed.tensor.sharding import Cut, NoRuleError, State, cut_view, even, part_of, taken
from genesis.ir.dtypes import bool_
from genesis.ir.graph import Graph, Node, Value
from genesis.ir.shapes import contiguous_strides
from genesis.lower.rewriting import live_nodes
from genesis.ops import collective as rows
from genesis.ops.conversion import with_value
from genesis.ops.elementwise import where
from genesis.ops.layout import Layout, layout_in
from genesis.ops.registry import PRIMITIVES
from genesis.ops.views import reshape_value, view_value

_MOST_CHOICES = 4096  # of the placements of an operation's inputs


class Step(NamedTuple):
    """A graph of parts along one axis of the mesh, and what is done with its inputs before."""

    graph: Graph
    inputs: list[int]
    results: list[int]
    given: list[State]  # the states to which inputs are moved
    shares: list[bool]  # which inputs are whole but have terms of a sum as gradients
    found: list[State]  # the states of the results


def along_axis(
    graph: Graph, inputs: Sequence[int], results: Sequence[int], states: Sequence[State], group: ProcessGroup
) -> Step:
    """The graph of this rank's parts, on one axis of the mesh, with inputs moved to the best states."""
    best: tuple[int, _Plan] | None = None
    for cost, chosen in _choices(graph, inputs, states, group.size()):
        if best is not None and cost >= best[0]:
            break
        try:
            plan = _Plan(graph, dict(zip(inputs, chosen, strict=True)), results, group.size())
        except NoRuleError:
            continue
        if best is None or cost + plan.sent < best[0]:
            best = cost + plan.sent, plan
    assert best is not None, "whole inputs need no rule"
    plan = best[1]
    made, places = plan.rewritten(group)
    return Step(made, [places[i] for i in inputs], [places[i] for i in results], [plan.states[i] for i in inputs],
                ["part" in plan.uses[i] for i in inputs], [plan.states[i] for i in results])


def _choices(
    graph: Graph, inputs: Sequence[int], states: Sequence[State], parts: int
) -> Iterator[tuple[int, tuple[State, ...]]]:
    """(elements sent, states of the inputs), the cheapest first."""
    options: list[list[tuple[int, State]]] = []
    total = 1
    for index, state in zip(inputs, states, strict=True):
        node = graph.nodes[index]
        moved: list[tuple[int, State]] = [(0, state)]
        if state is not None:
            moved.append((node.numel * (2 if isinstance(state, str) else 1), None))
            moved += [(node.numel if isinstance(state, str) else node.numel // parts, Cut(dim))
                      for dim, extent in enumerate(node.shape) if extent % parts == 0 and state != Cut(dim)]
        options.append(moved)
        total *= len(moved)
    if total > _MOST_CHOICES:
        options = [[each[0], *each[1:2]] for each in options] if 2 ** len(options) <= _MOST_CHOICES else [
            [each[0]] for each in options]
    listed = [(sum(cost for cost, _ in each), tuple([state for _, state in each])) for each in product(*options)]
    yield from sorted(listed, key=lambda each: each[0])
    yield 1 << 60, (None,) * len(inputs)


class _Plan:
    """The states of all values, for those of the inputs. Raises NoRuleError.

    Attributes:
        wanted: by node, the states in which it takes its inputs.
        uses: by value, whether a whole one's gradients come whole, from what is computed with whole values alone, or in parts.
        joined: the same for the reductions of terms that a node takes whole.
        sent: the number of elements that all reductions send.
    """

    def __init__(self, graph: Graph, given: dict[int, State], results: Sequence[int], parts: int) -> None:
        self.graph, self.results, self.parts = graph, results, parts
        self.states: dict[int, State] = dict(given)
        self.wanted: dict[int, list[State]] = {}
        self.sent = 0
        self.order = [i for i, live in enumerate(live_nodes(graph.nodes, results)) if live and i not in given]
        for index in self.order:
            node = graph.nodes[index]
            inputs = [graph.nodes[i] for i in node.inputs]
            held = [self.states[i] for i in node.inputs]
            try:
                state, wanted = taken(node, held, inputs, parts)
            except NoRuleError:
                if not any(isinstance(each, str) for each in held):
                    raise
                state, wanted = taken(node, [None if isinstance(each, str) else each for each in held], inputs, parts)
            self.states[index], self.wanted[index] = state, wanted
            for shape, want in zip([x.shape for x in inputs], wanted, strict=True):
                if isinstance(want, Cut):
                    even(shape, want, parts)
        for index in results:
            state = self.states[index]
            if (isinstance(state, Cut) and state.outer > 1) or (state in ("max", "min") and graph.nodes[index].differentiable):
                raise NoRuleError
        self._follow_gradients()

    def _follow_gradients(self) -> None:
        nodes = self.graph.nodes
        self.uses: dict[int, set[str]] = {index: set() for index in self.states}
        self.joined: dict[int, set[str]] = {}
        for index in self.results:
            if self.states[index] is None:
                self.uses[index].add("whole")
        for index in reversed(self.order):
            node, state = nodes[index], self.states[index]
            for i, want in zip(node.inputs, self.wanted[index], strict=True):
                use = self.uses[index] if state is None else {"part"}
                if isinstance(self.states[i], str) and not isinstance(want, str):
                    if i not in self.joined:
                        self.sent += 2 * nodes[i].numel
                    use = use if want is None else {"part"}
                    self.joined.setdefault(i, set()).update(use if node.differentiable else ())
                elif self.states[i] is None and node.differentiable:
                    self.uses[i] |= {"whole"} if isinstance(want, str) else use
        for index, each in [*self.uses.items(), *self.joined.items()]:
            if len(each) > 1 and nodes[index].differentiable:
                raise NoRuleError

    def rewritten(self, group: ProcessGroup) -> tuple[Graph, dict[int, int]]:
        """The graph of this rank's parts, and where it has the values."""
        made, nodes, places = Graph(), self.graph.nodes, dict[int, int]()
        for index, state in self.states.items():
            node = nodes[index]
            if index not in self.wanted:  # an input
                shape = part_of(node.shape, state, self.parts)
                places[index] = made.add(node.op, (), shape, node.dtype, node.attrs, node.differentiable).index
                continue
            given = [self._held(made.value(places[i]), i, want, group)
                     for i, want in zip(node.inputs, self.wanted[index], strict=True)]
            places[index] = self._node(made, index, given, group).index
        return made, places

    def _held(self, x: Value, index: int, want: State, group: ProcessGroup) -> Value:
        """A value as a node wants it: terms of a sum are summed, whole values cut."""
        held = self.states[index]
        if isinstance(held, str) and held != want:
            x, held = x.graph.once(("joined", index), partial(self._reduced, x, index, held, group)), None
        if want is None or held is not None:
            return x
        if not isinstance(want, Cut):  # a term of a sum, the first rank's; its gradient is the sum's
            is_first = x.graph.constant(group.rank() == 0, bool_)
            return with_value(x, where(is_first, x, x.graph.constant(0, x.dtype)))  # type: ignore[no-any-return]
        return x.graph.once((x.index, *want), lambda: _cut(x, want, group))

    def _reduced(self, x: Value, index: int, reduce: str, group: ProcessGroup) -> Value:
        is_whole = "part" not in self.joined[index]
        total: Value = rows.all_reduce(x, reduce, group.number)
        return with_value(x, total) if is_whole and x.node.differentiable else total  # type: ignore[no-any-return]

    def _node(self, made: Graph, index: int, given: list[Value], group: ProcessGroup) -> Value:
        node, state, wanted = self.graph.nodes[index], self.states[index], self.wanted[index]
        kind = PRIMITIVES[node.op].kind
        if kind == "gather" and wanted[0] == Cut(node.attrs["dim"]):
            return _own_rows(node, given[0], given[1], group)
        shape, attrs = part_of(node.shape, state, self.parts), dict(node.attrs)
        if kind == "view" and isinstance(wanted[0], Cut):
            attrs |= _replaced(cut_view(self.graph.nodes[node.inputs[0]].shape, wanted[0], layout_in(node), self.parts)[1])
        elif kind == "put" and isinstance(wanted[0], Cut):
            attrs |= _replaced(cut_view(node.shape, wanted[0], layout_in(node), self.parts)[1])
        elif kind == "collective" and isinstance(state, Cut):
            attrs["sends"] = attrs["receives"] = (shape[0],)
        return made.add(node.op, given, shape, node.dtype, attrs, None if node.differentiable else False)


def _replaced(at: Layout) -> dict[str, Any]:
    return {"shape": at.shape, "strides": at.strides, "offset": at.offset}


def _cut(x: Value, cut: Cut, group: ProcessGroup) -> Value:
    """This rank's part of each block of a whole value."""
    dim, outer = cut
    length = x.shape[dim] // outer // group.size()
    strides = contiguous_strides(x.shape)
    lead, rest = x.shape[:dim], x.shape[dim + 1 :]
    steps = *strides[:dim], strides[dim] * length * group.size(), *strides[dim:]
    blocks = Layout((*lead, outer, length, *rest), steps, group.rank() * length * strides[dim])
    return reshape_value(view_value(x, blocks, "cut"), (*lead, outer * length, *rest))


def _own_rows(node: Node, x: Value, index: Value, group: ProcessGroup) -> Value:
    """A gather from this rank's rows: other ranks' rows are zeros here."""
    attrs, count = dict(node.attrs), x.shape[node.attrs["dim"]]
    start = group.rank() * count
    here = (index >= start) & (index < start + count)
    if attrs.get("muted") is not None:
        attrs["muted"] -= start
    found = x.graph.add("gather", (x, where(here, index - start, 0)), node.shape, node.dtype, attrs)
    return where(here, found, 0)  # type: ignore[no-any-return]
