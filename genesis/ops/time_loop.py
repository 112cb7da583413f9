"""Loops over time, and their derivatives.

The derivative is a loop the other way. Its steps read the states and what the loop has saved: products and expensive
elementwise values. Where a constant's cotangent is a product of two rows, or a sum over a row, the loop stacks these: what
remains is one product or sum over all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, reduce
from operator import add
from typing import NamedTuple

from genesis.ir.graph import Graph, Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.contraction import product, swapped
from genesis.ops.derive import derive, needed
from genesis.ops.layout import Layout, layout_in
from genesis.ops.loop_body import Body, body_of, closed, is_transposed, loop_node, parts_of, reference, row, unrolled
from genesis.ops.reduction import sum
from genesis.ops.registry import PRIMITIVES, cast, expand, primitive
from genesis.ops.views import put_value, reshape_value, slice_value

EXPENSIVE = 8  # cost of an elementwise value that is saved for the derivative
_Source = tuple[str, int]  # of an input of the derivative's step: what it is, and of which carry, sequence, stack or constant
_Total = tuple[tuple[_Source, ...], Callable[..., Value]]  # rows that a sum over all steps is computed of, and how


def time_loop(
    step: Callable[..., tuple[Sequence[Value], Sequence[Value]]], constants: Sequence[Value], carries: Sequence[Value],
    sequences: Sequence[Value], reverse: bool = False,
) -> tuple[list[Value], list[Value]]:
    """The last carried values, and the stacks, of `step(constants, carries, rows) -> (carries, rows)` over all rows of
    `sequences`. All floating-point values have one dtype."""
    inner, steps = Graph(), sequences[0].shape[0]
    shapes = [*[v.shape for v in (*constants, *carries)], *[v.shape[1:] for v in sequences]]
    given = [*constants, *carries, *sequences]
    inputs = [inner.add("input", (), shape, v.dtype, {}, v.dtype.category >= 2) for shape, v in zip(shapes, given, strict=True)]
    first = len(constants) + len(carries)
    following, rows = step(inputs[: len(constants)], inputs[len(constants) : first], inputs[first:])
    carried = [value.index for value in following]
    stacked = [each for each in rows if each.index not in carried]
    body = closed(inner, inputs, len(constants), following, stacked)
    if given[0].graph.grad_enabled and any([v.node.differentiable for v in given]):
        body = _with_saved(body)
    states, stacks = parts_of(loop_node(body, given, reverse), body, steps)
    low, following_stacks = int(not reverse), iter(stacks)
    found = [slice_value(states[carried.index(each.index)], 0, low, low + steps) if each.index in carried
             else next(following_stacks) for each in rows]
    return [row(s, 0 if reverse else steps) for s in states], found


# ---- the derivative ----
class _Derivative(NamedTuple):
    """The body of the derivative, the `sources` of its inputs and of the sequences' cotangents, and how those of constants are
    computed."""

    body: Body
    sources: tuple[_Source, ...]
    sequences: Mapping[int, _Source]
    constants: Mapping[int, _Total]


def _with_saved(body: Body) -> Body:
    """The body that also stacks what its derivative reads and would not want to recompute."""
    dtype, taken = body.nodes[body.constants].dtype, {*body.following, *body.stacked}
    dear = [i for i, node in enumerate(body.nodes) if i not in taken and node.dtype is dtype and (
        node.op == "matmul" or (PRIMITIVES[node.op].kind == "elementwise" and PRIMITIVES[node.op].cost >= EXPENSIVE))]
    more = body._replace(stacked=(*body.stacked, *dear))
    found = _derivative(more, (True,) * len(body.following), (True,) * len(body.stacked) + (False,) * len(dear))
    read = {*found.sources, *[source for sources, _ in found.constants.values() for source in sources]}
    saved = [i for k, i in enumerate(dear, len(body.stacked)) if ("stack", k) in read]
    return body._replace(stacked=(*body.stacked, *saved))


@lru_cache(256)
def _derivative(body: Body, states: tuple[bool, ...], stacks: tuple[bool, ...]) -> _Derivative:
    """The derivative where there are cotangents of some states and stacks."""
    graph, nodes, first = Graph(), body.nodes, body.first_sequence
    inputs: dict[_Source, Value] = {}

    def given(kind: str, number: int, like: int) -> Value:
        if (kind, number) not in inputs:
            inputs[kind, number] = graph.add("input", (), nodes[like].shape, nodes[like].dtype, {}, True)
        return inputs[kind, number]

    @cache
    def value_of(index: int) -> Value:
        if index < body.constants:
            return given("constant", index, index)
        if index < first:
            return given("before", index - body.constants, index)
        node = nodes[index]
        if node.op == "input":
            return given("sequence", index - first, index)
        for kind, values in (("stack", body.stacked), ("after", body.following)):
            if index in values:
                return given(kind, values.index(index), index)
        return graph.add(node.op, [value_of(i) for i in node.inputs], node.shape, node.dtype, node.attrs)

    carried = [given("carry", k, i) for k, i in enumerate(body.following)]
    seeds: dict[int, Value] = {}
    terms = [*zip(body.following, carried, strict=True)]
    for kind, values, exist in (("of state", body.following, states), ("of stack", body.stacked, stacks)):
        terms += [(i, given(kind, k, i)) for k, (i, there) in enumerate(zip(values, exist, strict=True)) if there]
    for i, g in terms:
        seeds[i] = seeds[i] + g if i in seeds else g
    ends, _, _ = derive(nodes, seeds, graph, value_of)
    following = [ends[i] if i in ends else expand(graph.constant(0, nodes[i].dtype), nodes[i].shape)
                 for i in range(body.constants, first)]
    stacked: dict[int, Value] = {}

    def stack(x: Value) -> _Source:
        """Where all rows of `x` will be."""
        source = next((source for source, value in inputs.items() if value.index == x.index), ("", 0))
        if source[0] in ("", "carry", "constant"):
            stacked[x.index] = cast(x, carried[0].dtype)
            return "stacked", [*stacked].index(x.index)
        return source

    sequences = {index - first: stack(ends[index]) for index in ends if index >= first}
    constants = {index: _total(ends[index], stack) for index in ends if index < body.constants}
    return _ordered(graph, inputs, following, [*stacked.values()], sequences, constants)


def _ordered(
    graph: Graph, inputs: Mapping[_Source, Value], following: Sequence[Value], stacked: Sequence[Value],
    sequences: Mapping[int, _Source], constants: Mapping[int, _Total],
) -> _Derivative:
    """The derivative with those inputs that are read, in the order of a body's."""
    read = needed(graph, [value.index for value in (*following, *stacked)])
    groups = ["constant"], ["carry"], ["before", "after", "sequence", "stack", "of state", "of stack"]
    fixed, carries, rows = [
        [source for source in inputs if source[0] in kinds and (inputs[source].index in read or source[0] == "carry")]
        for kinds in groups]
    sources = (*fixed, *carries, *rows)
    body = closed(graph, [inputs[source] for source in sources], len(fixed), following, stacked)
    return _Derivative(body, sources, sequences, constants)


def _total(x: Value, stack: Callable[[Value], _Source]) -> _Total:
    """How to compute the sum of `x` over all steps."""
    node, nodes = x.node, x.graph.nodes
    sources = [x.graph.value(i) for i in node.inputs]
    if node.op == "add" and all(v.shape == x.shape and v.dtype is x.dtype for v in sources):
        (rows, one), (others, other) = [_total(v, stack) for v in sources]
        return (*rows, *others), lambda *found: one(*found[: len(rows)]) + other(*found[len(rows) :])
    if is_transposed(nodes, x.index):
        rows, one = _total(sources[0], stack)
        return rows, lambda *found: swapped(one(*found))
    if node.op == "matmul" and x.ndim == 2 and is_transposed(nodes, node.inputs[0]):
        return (stack(x.graph.value(sources[0].node.inputs[0])), stack(sources[1])), _product_over_steps
    if node.op == "sum" and sources[0].dtype is x.dtype:
        axes = (0, *[axis + 1 for axis in node.attrs["axes"]])
        return (stack(sources[0]),), lambda found: sum(found, axes)
    return (stack(x),), lambda found: sum(found, (0,))


def _product_over_steps(left: Value, right: Value) -> Value:
    """The sum over all steps of the products of rows, the left one transposed."""
    left, right = [reshape_value(x, (x.shape[0] * x.shape[1], x.shape[2])) for x in (left, right)]
    return product(swapped(left), right)


def _grad(g: Value, y: Value, *inputs: Value) -> tuple[Value | None, ...]:
    node, body, steps, graph = y.node, body_of(y.node), inputs[-1].shape[0], g.graph
    reverse, count = node.attrs["reverse"], len(body.following)
    states, stacks = parts_of(graph.value(y.index), body, steps)
    places, leaves = body.places(steps), _leaves(g)
    first, last = (steps, 0) if reverse else (0, steps)  # entries of a state
    carried: list[Value] = []
    initial: list[Value | None] = []
    given: dict[_Source, Value | None] = {}
    for k, (offset, shape) in enumerate(places[:count]):
        size, start = numel(shape[1:]), offset + last * numel(shape[1:])
        at_last, others = [[(at, x) for at, x in leaves if (start <= at and at + x.shape[0] <= start + size) is there]
                           for there in (True, False)]
        found_last = _between(at_last, start, shape[1:])
        carried.append(expand(graph.constant(0, g.dtype), shape[1:]) if found_last is None else found_last)
        initial.append(_between(others, offset + first * size, shape[1:]))
        given["of state", k] = _between(others, offset + (0 if reverse else size), (steps, *shape[1:]))
    for k, (offset, shape) in enumerate(places[count:]):
        given["of stack", k] = _between(leaves, offset, shape)
    of_states = tuple([given["of state", k] is not None for k in range(count)])
    found = _derivative(body, of_states, tuple([given["of stack", k] is not None for k in range(len(stacks))]))

    def rows(source: _Source) -> Value:
        kind, number = source
        if kind == "stacked":
            return stacked[number]
        if kind in ("before", "after"):
            low = int((kind == "after") is not reverse)
            return slice_value(states[number], 0, low, low + steps)
        at = {"constant": 0, "sequence": body.first_sequence}
        value = inputs[at[kind] + number] if kind in at else stacks[number] if kind == "stack" else given[source]
        assert value is not None
        return value

    sources = [carried[number] if kind == "carry" else rows((kind, number)) for kind, number in found.sources]
    result = loop_node(found.body, sources, not reverse)
    back, stacked = parts_of(result, found.body, steps)
    totals = {k: total(*map(rows, sources)) for k, (sources, total) in found.constants.items()}
    to_carries = [row(s, steps if reverse else 0) for s in back]
    to_carries = [value if more is None else value + more for value, more in zip(to_carries, initial, strict=True)]
    to_sequences = [rows(found.sequences[k]) if k in found.sequences else None
                    for k in range(len(inputs) - body.first_sequence)]
    return (*[totals.get(k) for k in range(body.constants)], *to_carries, *to_sequences)


_Leaf = tuple[int, Value]  # the first element, and the elements from there on, of a value that is zero elsewhere


def _leaves(g: Value) -> list[_Leaf]:
    """The terms of a cotangent, in which parts of parts are put into zeros; itself if it has a sum twice."""
    graph, pending, sums, found = g.graph, [(g.index, 0)], set[int](), list[_Leaf]()
    while pending:
        index, first = pending.pop()
        node, x = graph.nodes[index], graph.value(index)
        if index in sums:
            return [(0, reshape_value(g, (g.node.numel,)))]
        if node.op == "add":
            sums.add(index)
            pending += [(i, first) for i in node.inputs]
        elif node.op == "view" and layout_in(node).is_contiguous and node.numel == graph.nodes[node.inputs[0]].numel:
            pending.append((node.inputs[0], first))
        elif (node.op == "put" and Layout(node.attrs["shape"], node.attrs["strides"], 0).is_contiguous
              and _is_zero(graph.value(node.inputs[0]))):
            pending.append((node.inputs[1], first + node.attrs["offset"]))
        elif not _is_zero(x):
            found.append((first, reshape_value(x, (node.numel,))))
    return found


def _is_zero(x: Value) -> bool:
    node = x.node
    while node.op == "view":
        node = x.graph.nodes[node.inputs[0]]
    return node.op == "constant" and not node.attrs["value"]


def _between(leaves: Sequence[_Leaf], start: int, shape: Shape) -> Value | None:
    """The sum of what terms have in the elements from `start` on, in this shape; None if that is nothing."""
    size, found = numel(shape), []
    for first, x in leaves:
        low, high = max(first, start), min(first + x.shape[0], start + size)
        if low < high:
            part = slice_value(x, 0, low - first, high - first)
            found.append(reshape_value(put_value(None, part, Layout(part.shape, (1,), low - start), (size,)), shape))
    return reduce(add, found) if found else None


primitive("time_loop", "host", grad=_grad, reference=reference, contiguous=True, native=True, formula=unrolled)
