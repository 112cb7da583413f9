"""Batching (vmap) as a pure function on graphs: one example's computation becomes that of many, along a new first axis.

Every kind of primitive has a rule: axes move up by one, layouts get one more stride, values that depend on no example are
repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.ir.annotations import Attributes
from genesis.ir.graph import Graph, Node, Value
from genesis.ir.shapes import numel
from genesis.ops.joining import cat
from genesis.ops.loop_body import body_of, closed, loop_node, parts_of
from genesis.ops.registry import PRIMITIVES, expand
from genesis.ops.views import permute_value, reshape_value


class NotBatchedError(NotImplementedError):
    """A primitive cannot be computed for many examples along a new axis."""


def batch(
    graph: Graph, examples: Mapping[int, Value], results: Sequence[int], extent: int, draws_differ: bool = False
) -> list[Value]:
    """The results for `extent` examples at once, of shape (extent, *shape each).

    Args:
        graph: holds the computation of one example; the batched one is added to it.
        examples: position of a per-example value, which only its computation reads -> all examples, stacked.
        results: positions of the results. One that depends on no example is repeated.
        extent: the number of examples.
        draws_differ: each example draws its own random numbers, from one reserved range; otherwise all share them.

    Raises NotBatchedError for a primitive of a kind without a rule, and for a custom Function that has to be derived.
    """
    lifted = dict(examples)
    for index in range(min(examples), max(results) + 1):
        node = graph.nodes[index]
        if index in lifted:
            continue
        if draws_differ and PRIMITIVES[node.op].draws:
            lifted[index] = _draw_of_all(graph, node, lifted, extent)
        elif any([i in lifted for i in node.inputs]):
            lifted[index] = _lift(graph, node, lifted, extent)
    return [lifted[i] if i in lifted else _repeated(graph.value(i), extent) for i in results]


def _draw_of_all(graph: Graph, node: Node, lifted: Mapping[int, Value], extent: int) -> Value:
    """One draw for all examples, the first example's numbers first."""
    *parameters, seed, start = node.inputs
    given = [lifted[i] if i in lifted else _repeated(graph.value(i), extent) for i in parameters]
    given += [graph.value(seed), graph.value(start)]
    return graph.add(node.op, given, (extent, *node.shape), node.dtype, dict(node.attrs))


def _lift(graph: Graph, node: Node, lifted: Mapping[int, Value], extent: int) -> Value:
    if node.op in ("matmul", "linear_dynamic") and len(node.shape) == 2 and not any([i in lifted for i in node.inputs[1:]]):
        rows = lifted[node.inputs[0]]  # one product over all examples' rows
        operands = reshape_value(rows, (extent * rows.shape[1], rows.shape[2])), *map(graph.value, node.inputs[1:])
        merged = graph.add(node.op, operands, (operands[0].shape[0], node.shape[1]), node.dtype)
        return reshape_value(merged, (extent, *node.shape))
    if node.op == "time_loop":
        return _looped(graph, node, lifted, extent)
    given = [lifted[i] if i in lifted else _repeated(graph.value(i), extent) for i in node.inputs]
    if node.op == "custom" and any([v.node.differentiable for v in given]):
        raise NotBatchedError("vmap: a custom Function is derived for one example; map its gradient, or use no_grad")
    if node.op in ("custom", "variable"):
        return given[0]
    attrs = _moved(node, numel(given[0].shape[1:]), extent)
    return graph.add(node.op, given, (extent, *node.shape), node.dtype, attrs, None if node.differentiable else False)


def _looped(graph: Graph, node: Node, lifted: Mapping[int, Value], extent: int) -> Value:
    """A loop over time whose step is batched; constants that are equal for all examples stay what they are."""
    body = body_of(node)
    step, given = Graph([*body.nodes]), [graph.value(i) for i in node.inputs]
    inputs = [step.value(position) for position in range(len(given))]
    for position, i in enumerate(node.inputs):
        if i in lifted or position >= body.constants:
            whole = lifted[i] if i in lifted else _repeated(given[position], extent)
            given[position] = whole if position < body.first_sequence else _exchanged(whole)
            shape, dtype = body.nodes[position].shape, whole.dtype
            inputs[position] = step.add("input", (), (extent, *shape), dtype, {}, body.nodes[position].differentiable)
    examples = {position: value for position, value in enumerate(inputs) if value.index != position}
    results = batch(step, examples, [*body.following, *body.stacked], extent)
    count, steps = len(body.following), given[-1].shape[0]
    batched = closed(step, inputs, body.constants, results[:count], results[count:])
    states, stacks = parts_of(loop_node(batched, given, node.attrs["reverse"]), batched, steps)
    return cat([reshape_value(_exchanged(x), (extent, numel(x.shape) // extent)) for x in (*states, *stacks)], 1)


def _exchanged(x: Value) -> Value:
    """The first two axes exchanged."""
    return permute_value(x, (1, 0, *range(2, x.ndim)))


def _moved(node: Node, size: int, extent: int) -> Attributes:
    """A node's attributes after adding a first axis; `size` is the number of elements of its first input."""
    attrs, kind = dict(node.attrs), PRIMITIVES[node.op].kind
    if kind == "reduce":
        attrs["axes"] = tuple([axis + 1 for axis in attrs["axes"]])
    elif kind in ("view", "put"):
        attrs["shape"], attrs["strides"] = (extent, *attrs["shape"]), (size, *attrs["strides"])
    elif kind in ("gather", "scatter", "cat") or "dim" in attrs:
        attrs["dim"] += 1
    elif kind not in ("elementwise", "contract", "host"):
        raise NotBatchedError(f"vmap: {node.op} cannot be batched")
    return attrs


def _repeated(x: Value, extent: int) -> Value:
    return expand(x, (extent, *x.shape))
