"""Loops over time as the graph of all their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.ir.graph import Graph, Node, Value
from genesis.ops.loop_body import unrolled
from genesis.pytree import map_tree
from genesis.shipping import ExportError
from genesis.shipping.dynamic import Sizes, fitted, numbers_of, samples
from genesis.shipping.graph_of_call import CallGraph, Position


def without_loops(graph: CallGraph, sizes: Sizes) -> tuple[CallGraph, Sizes]:
    """The graph with all steps of its loops, and the formulas of its numbers. Raises ExportError if their number is dynamic."""
    if all(node.op != "time_loop" for node in graph.nodes):
        return graph, sizes
    grid = samples(sizes.dims, sizes.examples)[0] if sizes.dims else [()]
    found = [_unrolled(sizes.at(point, graph.nodes, graph.numbers)[0]) for point in grid]
    nodes, moved = found[0]
    if any(len(other) != len(nodes) for other, _ in found):
        raise ExportError("onnx.export: a loop over a dynamic number of steps has no form in ONNX that genesis knows")
    formulas = {key: formula for key, formula in sizes.formulas.items() if key[0] < 0}
    for index, alike in enumerate(zip(*[each for each, _ in found], strict=True)):
        for number, values in enumerate(zip(*map(numbers_of, alike), strict=True)):
            formula = fitted(grid, values) if any(value != values[0] for value in values) else None
            if formula is not None:
                formulas[index, number] = formula
    lines = [line for k, line in enumerate(graph.lines) for _ in range(moved[k] - (moved[k - 1] if k else -1))]

    def at(leaf: Any) -> Any:
        return Position(moved[leaf]) if isinstance(leaf, Position) else leaf

    calls = [call._replace(
        nodes=range(moved[call.nodes.start], moved[call.nodes.stop - 1] + 1), arguments=map_tree(at, call.arguments),
        options=map_tree(at, call.options)) for call in graph.calls if call.operation != "recurrent" and len(call.nodes)]
    other = graph._replace(
        nodes=nodes, lines=lines, calls=calls, inputs=[one._replace(node=moved[one.node]) for one in graph.inputs],
        outputs=[moved[index] for index in graph.outputs], written={name: moved[k] for name, k in graph.written.items()})
    return other, Sizes(sizes.dims, sizes.axes, sizes.examples, formulas)


def _unrolled(nodes: Sequence[Node]) -> tuple[list[Node], list[int]]:
    """The nodes without loops, and where each value is among them."""
    graph, values = Graph(grad_enabled=False), list[Value]()
    for node in nodes:
        inputs = [values[i] for i in node.inputs]
        values.append(unrolled(node, *inputs) if node.op == "time_loop" else
                      graph.add(node.op, inputs, node.shape, node.dtype, node.attrs))
    return graph.nodes, [value.index for value in values]
