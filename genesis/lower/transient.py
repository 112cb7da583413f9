"""Transient collectives: their results are not kept for backward, where they run again on the same operands.

Or another collective gives there what they gave: a node `kept_in_parts` after them says which one, and has as its last input
what that one gathers, which is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.graph import Node
from genesis.lower.simplify import FORWARDED
from genesis.ops.registry import PRIMITIVES

CHEAP = "elementwise", "view", "source"


def is_transient(node: Node) -> bool:
    """Whether a node is a collective whose result is not kept, or says how it is gathered again."""
    return "transient" in node.attrs


def read_inputs(node: Node) -> tuple[int, ...]:
    """The inputs that a value is computed from; one that is gathered again, in backward."""
    if is_transient(node):
        return node.inputs[-1:]
    return (node.inputs[FORWARDED[node.op]],) if node.op in FORWARDED else node.inputs


def gathered_alone(nodes: Sequence[Node]) -> frozenset[int]:
    """The positions of transient results, and of what views and elementwise operations make of these and of numbers alone."""
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
