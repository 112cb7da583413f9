"""Which of a partition's values get memory; the others live in registers, and are computed again where they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.ir.graph import Node
from genesis.lower.decisions import Choice, Decisions, is_worth_keeping
from genesis.lower.group import Group
from genesis.ops.registry import PRIMITIVES

__all__ = ["realized"]


def realized(
    nodes: Sequence[Node], outputs: Sequence[int], home: Mapping[int, Group], bases: Sequence[int], threads: int,
    decisions: Decisions,
) -> set[int]:
    """The values that get memory: outputs, operands of what is no loop, and what another group reads and would not
    rather compute again: an elementwise value is computed again if that takes little and reads no more than it saves.
    """
    found: set[int] = {bases[o] for o in outputs if bases[o] in home}
    outside: set[int] = set()
    for index, node in enumerate(nodes):
        kind = PRIMITIVES[node.op].kind
        if node.attrs.get("apart"):
            found.add(index)
        for position, i in enumerate(node.inputs):
            base = bases[i]
            if base not in home or kind == "view":
                continue
            if kind in ("contract", "host") or (kind == "gather" and position == 0) or "operands" in node.attrs:
                found.add(base)
            elif home.get(index) is not home[base]:
                outside.add(base)
    recipe: dict[int, tuple[int, frozenset[int]]] = {}  # value -> (cost, what it is computed from)
    for index, node in enumerate(nodes):
        if index not in home:
            continue
        kind = PRIMITIVES[node.op].kind
        if kind not in ("elementwise",):
            if index in outside:
                found.add(index)
            continue
        cost = PRIMITIVES[node.op].cost
        sources: set[int] = set()
        for i in node.inputs:
            base = bases[i]
            if base in recipe and base not in found:
                cost += recipe[base][0]
                sources |= recipe[base][1]
            elif base in home or nodes[base].op == "input":
                sources.add(base)
            else:
                cost += PRIMITIVES[nodes[base].op].cost if PRIMITIVES[nodes[base].op].kind == "source" else 0
        size = node.numel
        large = sum(1 for s in sources if nodes[s].numel >= size)  # one that is broadcast never is, whatever the sizes
        recipe[index] = (cost, frozenset(sources))
        if index in outside and index not in found:
            kept = is_worth_keeping(cost, node.nbytes, threads, len(sources), large)
            decisions.choices.append(Choice(index, kept, cost))
            found |= {index} if kept else {s for s in sources if s in home}
    return found
