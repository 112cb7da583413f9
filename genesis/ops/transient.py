"""Transient collectives: their results are not saved for backward, which runs them again on the same operands.

Or another collective recovers the result: a node `kept_in_parts` after the transient one names it, and its last input is the
saved operand of that collective.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.graph import Node
from genesis.ops.registry import PRIMITIVES

CHEAP = "elementwise", "view", "source"
# Operations that compute nothing: which of its inputs each one is.
FORWARDED = {
    "custom": 0, "detach": 0, "variable": 0, "clone": 0, "normalized": 0, "kept_in_parts": 0, "rewritten": 1, "with_value": 1}


def is_transient(node: Node) -> bool:
    """Whether a node is a collective whose result is not saved, or a `kept_in_parts`."""
    return "transient" in node.attrs


def read_inputs(node: Node) -> tuple[int, ...]:
    """The inputs that a value is computed from; for `kept_in_parts`, the one that backward gathers from."""
    if is_transient(node):
        return node.inputs[-1:]
    return (node.inputs[FORWARDED[node.op]],) if node.op in FORWARDED else node.inputs


def gathered_alone(nodes: Sequence[Node]) -> frozenset[int]:
    """The positions of transient results, and of views and elementwise functions of these and of numbers alone."""
    found: set[int] = set()
    numbers: set[int] = set()
    for index, node in enumerate(nodes):
        if is_transient(node):
            found.add(index)
        elif "materialize" in node.attrs:
            continue
        elif node.op != "input" and PRIMITIVES[node.op].kind in CHEAP:
            inputs = read_inputs(node)
            if all([i in numbers for i in inputs]):
                numbers.add(index)
            elif all([i in found or i in numbers for i in inputs]):
                found.add(index)
    return frozenset(found)
