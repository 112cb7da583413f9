"""Decides which values of a forward graph are saved for backward."""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet

from genesis.ir.graph import Graph, Node
from genesis.lower.rematerialize import is_quick_product
from genesis.lower.rewriting import base_of
from genesis.ops.derive import NotDifferentiableError, derive
from genesis.ops.registry import PRIMITIVES, expand
from genesis.ops.transient import gathered_alone, is_transient, read_inputs


def read_by_backward(nodes: Sequence[Node], roots: Sequence[int], released: AbstractSet[int]) -> tuple[set[int], set[int]]:
    """(the `roots` that a backward may start from, the values to save for it).

    Saved are the values that gradient rules read, if they are expensive to recompute. Elementwise values and views are
    recomputed from contractions, reductions and loads; so are products much larger than their operands, such as attention
    scores. A root needs nothing if all rules that read values were `released`, as its backward has run and freed the graph.
    """
    graph = Graph(list(nodes), grad_enabled=False)
    first = len(nodes)
    customs = [index for index, node in enumerate(nodes) if node.op == "custom"]
    wanted: set[int] = set()
    alive: set[int] = set()
    for together in [roots] if not released else [[root] for root in roots]:
        seeds = {root: expand(graph.constant(1, nodes[root].dtype), nodes[root].shape) for root in together}
        try:
            ends, _, reads = derive(nodes, seeds, graph, graph.value, customs, released=released)
        except NotDifferentiableError:
            alive.update(together)
            wanted.update(together)
            continue
        readers = {*reads, *ends.keys() & customs}
        if together and not (readers and readers <= released):
            alive.update(together)
            wanted.update(value.index for value in ends.values())
            for index in customs:
                if index in ends and index not in released:
                    attrs = nodes[index].attrs
                    wanted.update(nodes[index].inputs[1 + attrs["inputs"] :], [index + k for k in attrs["kept"]])
    again = gathered_alone(nodes) if any([is_transient(node) for node in nodes]) else ()
    expensive: set[int] = set()
    for index in range(len(graph) - 1, -1, -1):
        if index not in wanted:
            continue
        node = graph.nodes[index]
        cheap = "materialize" not in node.attrs and (
            (PRIMITIVES[node.op].kind in ("elementwise", "view", "source") and node.op != "custom")
            or is_quick_product(graph.nodes, node) or index in again)
        if index < first and not cheap:
            expensive.add(base_of(graph.nodes, index))
        else:
            wanted.update(read_inputs(node))
    return alive, expensive


def inputs_under(nodes: Sequence[Node], roots: AbstractSet[int]) -> frozenset[int]:
    """The positions of the inputs that `roots` derive from."""
    reached, waiting = set(roots), [*roots]
    while waiting:
        found = set(nodes[waiting.pop()].inputs) - reached
        waiting += found
        reached |= found
    return frozenset([index for index in reached if nodes[index].op == "input"])
