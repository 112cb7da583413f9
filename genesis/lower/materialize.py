"""Which of a partition's values get memory; the others live in registers, and are computed again where they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.ir.graph import Node
from genesis.lower.decisions import Choice, Decisions, is_worth_keeping
from genesis.lower.group import Group
from genesis.lower.target import Target
from genesis.ops.registry import PRIMITIVES

__all__ = ["materialize"]


def materialize(
    nodes: Sequence[Node], outputs: Sequence[int], home: Mapping[int, Group], bases: Sequence[int], target: Target,
    decisions: Decisions,
) -> set[int]:
    """The values that get memory: outputs, operands of what is no loop, and what another group reads and would not
    rather compute again: an elementwise value is computed again if that takes little and reads no more than it saves.
    """
    found: set[int] = {bases[o] for o in outputs if bases[o] in home}
    outside: set[int] = set()
    for index, node in enumerate(nodes):
        kind = PRIMITIVES[node.op].kind
        if kind == "view":
            continue
        if node.attrs.get("materialize"):
            found.add(index)
        here, in_memory = home.get(index), kind in ("contract", "host") or "operands" in node.attrs
        for i in node.inputs:
            base = bases[i]
            there = home.get(base)
            if there is not None:
                if in_memory:
                    found.add(base)
                elif there is not here:
                    outside.add(base)
        if kind == "gather" and bases[node.inputs[0]] in home:
            found.add(bases[node.inputs[0]])
    recipe: dict[int, tuple[int, set[int]]] = {}  # value -> (cost, what it is computed from)
    for index, node in enumerate(nodes):
        if index not in home:
            continue
        row = PRIMITIVES[node.op]
        if row.kind != "elementwise":
            if index in outside:
                found.add(index)
            continue
        cost = row.cost
        sources: set[int] = set()
        for i in node.inputs:
            base = bases[i]
            made = None if base in found else recipe.get(base)
            if made is not None:
                cost += made[0]
                sources |= made[1]
            elif base in home or nodes[base].op == "input":
                sources.add(base)
            else:
                cost += PRIMITIVES[nodes[base].op].cost
        recipe[index] = cost, sources
        if index in outside and index not in found:
            size = node.numel
            large = sum([nodes[s].numel >= size for s in sources])  # one that is broadcast never is, whatever the sizes
            kept = is_worth_keeping(cost, node.nbytes, target, len(sources), large)
            decisions.choices.append(Choice(index, kept, cost))
            found |= {index} if kept else {s for s in sources if s in home}
    return found
