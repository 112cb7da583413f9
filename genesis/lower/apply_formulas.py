"""Host operations with a formula become other primitives, which have kernels.

Before: a simplified graph. After: no node of real numbers has a primitive with a formula that
takes it.
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
        moved = result.moved(node)
        instead = formula(moved, *map(result.value, moved.inputs)) if formula and not node.dtype.is_complex else None
        if instead is None:
            result.copy(node)
        else:
            result.put(instead.index)
    return resimplified(result.finished())
