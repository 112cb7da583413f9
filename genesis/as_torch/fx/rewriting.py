"""Replaces patterns in graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

from genesis.as_torch.fx.graph import Graph
from genesis.as_torch.fx.graph_module import GraphModule, _put
from genesis.as_torch.fx.node import Argument, Node, map_arg
from genesis.as_torch.fx.tracer import symbolic_trace
from genesis.nn.module import Module


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
    looked_for, put = [each if isinstance(each, GraphModule) else symbolic_trace(each) for each in (pattern, replacement)]
    wanted, result = [each.graph.output_node().args[0] for each in (looked_for, put)]
    if not isinstance(wanted, Node) or wanted.op == "placeholder" or isinstance(result, list | tuple):
        raise ValueError(f"replace_pattern: the pattern returns {wanted}, the replacement {result}; want one computed value")
    matches: list[Match] = []
    taken: set[Node] = set()
    for node in gm.graph.nodes:
        found: dict[Node, Any] = {}
        if _matches(wanted, node, found):
            within = {n for key, n in found.items() if key.op != "placeholder"}
            read = [user for n in within - {node} for user in n.users]
            if taken.isdisjoint(within) and within.issuperset(read):  # nobody else reads what is within
                taken |= within
                matches.append(Match(node, found))
    replaced: dict[Node, Any] = {}
    for match in matches:
        _replace(gm, match, looked_for.graph, put, replaced)
    gm.graph.eliminate_dead_code()
    if isinstance(replacement, Module):
        gm.delete_all_unused_submodules()
    gm.recompile()
    return matches


def _matches(pattern: Argument, given: Argument, found: dict[Node, Any]) -> bool:
    """Whether an argument matches a pattern's; notes the nodes in `found`."""
    if isinstance(pattern, Node):
        if pattern in found:
            return found[pattern] is given or (not isinstance(given, Node) and bool(found[pattern] == given))
        found[pattern] = given
        return pattern.op == "placeholder" or (
            isinstance(given, Node) and (pattern.op, pattern.target) == (given.op, given.target)
            and _matches(pattern.args, given.args, found) and _matches(pattern.kwargs, given.kwargs, found))
    if isinstance(pattern, list | tuple) and isinstance(given, list | tuple):
        return len(pattern) == len(given) and all([_matches(p, n, found) for p, n in zip(pattern, given, strict=True)])
    if type(pattern) is not type(given):  # 1 is not True
        return False
    if isinstance(pattern, slice):
        return _matches(pattern.__reduce__()[1], given.__reduce__()[1], found)
    if isinstance(pattern, dict):
        return pattern.keys() == given.keys() and all([_matches(pattern[key], given[key], found) for key in pattern])
    return bool(pattern == given)


def _replace(gm: GraphModule, match: Match, pattern: Graph, put: GraphModule, replaced: dict[Node, Any]) -> None:
    """Put a graph's nodes in place of a match; what they read may have been `replaced` itself."""
    names, given = [[n for n in graph.nodes if n.op == "placeholder"] for graph in (pattern, put.graph)]
    values = {new: map_arg(match.nodes_map[old], lambda n: replaced.get(n, n)) for new, old in zip(given, names, strict=True)}
    with gm.graph.inserting_before(match.anchor):
        result = replaced[match.anchor] = gm.graph.graph_copy(put.graph, values)
    match.anchor.replace_all_uses_with(result)
    for node in put.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            values[node].target = _lent(gm, put, node.target)


def _lent(gm: GraphModule, put: GraphModule, path: str) -> str:
    """The path in `gm` of a layer or a tensor of the replacement, which is copied unless there is one of this path."""
    value, numbers = attrgetter(path)(put), count()
    while path.startswith("_tensor_constant") and getattr(gm, path, value) is not value:  # another trace's
        path = f"_tensor_constant{next(numbers)}"
    try:
        attrgetter(path)(gm)
    except AttributeError:
        _put(gm, path, value if path.startswith("_tensor_constant") else copy.deepcopy(value))
    return path
