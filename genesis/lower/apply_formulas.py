"""Host operations with a formula become other primitives, which have kernels.

Before: a simplified graph. After: no node of real numbers has a primitive with a formula that takes it, but for those that have
a kernel on the target: loops over time are unrolled for others.
"""

from __future__ import annotations

from genesis.ir.graph import Node, Value
from genesis.lower.rewriting import Rewriting, Simplified
from genesis.lower.simplify import replaced
from genesis.ops.registry import PRIMITIVES


def apply_formulas(graph: Simplified, native: bool) -> Simplified:
    """The graph with formulas in place of their operations; `native`: the target has kernels for host operations."""
    rows = [PRIMITIVES[node.op] for node in graph.nodes]
    found = [index for index, (node, row) in enumerate(zip(graph.nodes, rows, strict=True))
             if row.formula and not node.dtype.is_complex and not (native and row.native)]
    return replaced(graph, dict.fromkeys(found, _by_formula))


def _by_formula(result: Rewriting, node: Node) -> Value | None:
    formula = PRIMITIVES[node.op].formula
    assert formula is not None
    return formula(node, *map(result.value, node.inputs))
