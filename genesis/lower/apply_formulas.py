"""Host operations with a formula become other primitives, which have kernels.

Before: a simplified graph. After: no node of real numbers has a primitive with a formula.
"""

from __future__ import annotations

from genesis.lower.rewriting import Rewriting, Simplified
from genesis.lower.simplify import resimplified
from genesis.ops.registry import PRIMITIVES


def apply_formulas(graph: Simplified) -> Simplified:
    """The graph with formulas in place of their operations."""
    if not any([PRIMITIVES[node.op].formula for node in graph.nodes]):
        return graph
    result = Rewriting(graph)
    for node in graph.nodes:
        formula = PRIMITIVES[node.op].formula
        if formula is None or node.dtype.is_complex:
            result.copy(node)
        else:
            moved = result.moved(node)
            result.put(formula(moved, *map(result.value, moved.inputs)).index)
    return resimplified(result.finished())
