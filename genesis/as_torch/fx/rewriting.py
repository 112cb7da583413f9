"""Replaces patterns in graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.as_torch.fx.graph import Graph
from genesis.as_torch.fx.graph_module import GraphModule
from genesis.as_torch.fx.node import Node, map_arg
from genesis.as_torch.fx.tracer import Tracer


class Match(NamedTuple):
    """A match of a pattern: its last node, and the node for each of the pattern's nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Replace calls that match the function `pattern` by those of `replacement`; returns the matches.

    >>> from genesis.as_torch.fx import replace_pattern, symbolic_trace
    >>> traced = symbolic_trace(lambda x: genesis.relu(x) + 1)
    >>> found = replace_pattern(traced, lambda x: genesis.relu(x), lambda x: genesis.exp(x))
    >>> len(found), traced(genesis.zeros(1))
    (1, tensor([2.]))
    """
    looked_for, put = _graph_of(pattern), _graph_of(replacement)
    anchor = looked_for.output_node().args[0]
    matches: list[Match] = []
    taken: set[Node] = set()
    for node in gm.graph.nodes:
        found: dict[Node, Any] = {}
        if isinstance(anchor, Node) and _matches(anchor, node, found) and taken.isdisjoint(
            n for key, n in found.items() if key.op != "placeholder"
        ):
            inner = {n for key, n in found.items() if key.op != "placeholder" and key is not anchor}
            if any(user not in found.values() for n in inner for user in n.users):
                continue  # somebody else reads what is within
            taken |= inner | {node}
            matches.append(Match(node, found))
    for match in matches:
        _replace(gm.graph, match, looked_for, put)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return matches


def _graph_of(function: Callable[..., Any] | GraphModule) -> Graph:
    return function.graph if isinstance(function, GraphModule) else Tracer().trace(function)


def _matches(pattern: Node, node: Any, found: dict[Node, Any]) -> bool:
    if pattern in found:
        return found[pattern] is node
    if pattern.op == "placeholder":
        found[pattern] = node
        return True
    if not isinstance(node, Node) or (pattern.op, pattern.target) != (node.op, node.target):
        return False
    if len(pattern.args) != len(node.args) or pattern.kwargs.keys() != node.kwargs.keys():
        return False
    found[pattern] = node
    pairs = [*zip(pattern.args, node.args, strict=True), *((v, node.kwargs[k]) for k, v in pattern.kwargs.items())]
    return all(_matches(p, n, found) if isinstance(p, Node) else p == n for p, n in pairs)


def _replace(graph: Graph, match: Match, pattern: Graph, put: Graph) -> None:
    names = [n for n in pattern.nodes if n.op == "placeholder"]
    given = [n for n in put.nodes if n.op == "placeholder"]
    values: dict[Node, Any] = {new: match.nodes_map[old] for new, old in zip(given, names, strict=True)}
    with graph.inserting_before(match.anchor):
        for node in put.nodes:
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: values[n])
                match.anchor.replace_all_uses_with(result)
            elif node not in values:
                values[node] = graph.node_copy(node, lambda n: values[n])
