"""Materialization: which of a partition's values get memory.

Before: every node has a group. After: the values that get memory are known. The others stay in registers, and other groups
that read them recompute them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.lower.group import Choice, Decisions, Group
from genesis.lower.target import Target
from genesis.ops.registry import PRIMITIVES

GENERATE_COST = 80  # of a value without inputs, such as a random number: recomputing it takes no memory traffic
MOST_SINGLES = 8  # inputs of a single number recomputed before each loop that reads it: each takes an address there
# How much more an element costs that is computed as a scalar, once for a row of products: attention of one query takes 36 us
# with its weights in memory, and 75 with each exponential recomputed beside 64 products.
LANES = 12
# How much more an element costs that many rows read, each of which would compute it again.
ROWS = 8
TRAFFIC = 8  # bytes to write and read an element of float32


Recomputed = tuple[int, set[int]]  # an elementwise value: its operations, and the values with memory that it is computed from


class Readers(NamedTuple):
    """What reads values.

    Attributes:
        in_memory: values that must have memory: outputs, and what products, host calls and gathers read.
        outside: values that groups other than their own read, with these groups.
        shortest_row: of values read once a row, the length of the shortest.
        repeated: values of which several rows read the same elements.
        put_parts: values that the kernel computes which puts them into a part of another.
    """

    in_memory: set[int]
    outside: dict[int, set[int]]
    shortest_row: dict[int, int]
    repeated: set[int]
    put_parts: set[int]


def materialize(
    nodes: Sequence[Node], outputs: Sequence[int], group_of: Mapping[int, Group], bases: Sequence[int], target: Target,
    decisions: Decisions,
) -> set[int]:
    """The values that get memory: those that must, and those read by other groups that are expensive to recompute.

    An elementwise value is recomputed if that is cheap and reads no more than it saves. The other groups then read its inputs
    instead, which need memory in turn.
    """
    read = _readers(nodes, outputs, group_of, bases)
    found, outside = read.in_memory, read.outside
    computed: dict[int, Recomputed] = {}  # elementwise values
    for index, node in enumerate(nodes):
        if index not in group_of:
            continue
        row = PRIMITIVES[node.op]
        if row.kind != "elementwise":
            found |= {index} & outside.keys()
            continue
        computed[index] = cost, sources = _recomputed(nodes, index, found, computed, group_of, bases)
        if index in read.put_parts and index not in found:
            found |= {s for s in sources if s in group_of and PRIMITIVES[nodes[s].op].kind != "gather"}
        if index in outside and index not in found:
            # A broadcast source is smaller at any batch size, so no choice depends on that size.
            size = node.numel
            large = sum([nodes[s].numel >= size for s in sources])
            is_row = cost * LANES >= read.shortest_row.get(index, inf)
            each = cost * (LANES if is_row else ROWS if index in read.repeated else 1)
            # A single number is recomputed before a loop, which takes less than a launch; not a draw or a sum of many.
            # What may fail is computed once: after it nothing fails, so updates may follow in place.
            kept = (row.fault is not None and len(outside[index]) > 1) or (
                cost > GENERATE_COST or len(sources) > MOST_SINGLES if node.numel == 1 else
                is_worth_keeping(each, node.nbytes, target, len(sources), large))
            decisions.choices.append(Choice(index, kept, cost))
            found |= {index} if kept else {s for s in sources if s in group_of}
    return found


def _recomputed(
    nodes: Sequence[Node], index: int, found: Collection[int], computed: Mapping[int, Recomputed],
    group_of: Mapping[int, Group], bases: Sequence[int],
) -> Recomputed:
    """The cost of an elementwise value, and the values with memory that it is computed from."""
    cost, sources = PRIMITIVES[nodes[index].op].cost, set[int]()
    for i in nodes[index].inputs:
        base = bases[i]
        made = None if base in found else computed.get(base)
        if made is not None:
            cost += made[0]
            sources |= made[1]
        elif base in group_of or nodes[base].op == "input":
            sources.add(base)
        else:
            cost += PRIMITIVES[nodes[base].op].cost
    return cost, sources


def _readers(
    nodes: Sequence[Node], outputs: Sequence[int], group_of: Mapping[int, Group], bases: Sequence[int]
) -> Readers:
    found, outside, shortest_row, repeated, put_parts = read = Readers(
        {bases[o] for o in outputs if bases[o] in group_of}, {}, {}, set(), set())
    counts = Counter(bases[i] for node in nodes if node.op != "view" for i in node.inputs)
    for index, node in enumerate(nodes):
        op = node.op
        if op == "view" or not node.inputs:
            continue
        attrs, kind, here = node.attrs, PRIMITIVES[op].kind, group_of.get(index)
        if attrs.get("materialize"):
            found.add(index)
        in_memory = kind in ("contract", "host", "collective") or "operands" in attrs
        for i in node.inputs:
            base = bases[i]
            there = group_of.get(base)
            if there is not None:
                if "rest" in attrs and counts[base] == 1 and PRIMITIVES[nodes[base].op].kind == "elementwise":
                    put_parts.add(base)
                elif in_memory:
                    found.add(base)
                elif there is not here:
                    outside.setdefault(base, set()).add(id(here))
                    if (row := _spread(nodes[i])) > 1:
                        shortest_row[base] = min(row, shortest_row.get(base, row))
                    elif nodes[i].numel > nodes[base].numel:
                        repeated.add(base)
        if kind == "gather" and bases[node.inputs[0]] in group_of:
            found.add(bases[node.inputs[0]])
    return read


def _spread(node: Node) -> int:
    """The number of elements of a row to which a node broadcasts each element."""
    return node.shape[-1] if node.op == "view" and node.shape and not node.attrs["strides"][-1] else 1


def is_worth_keeping(cost: int, nbytes: int, target: Target, sources: int, large: int) -> bool:
    """Whether to store a value rather than recompute it.

    Recomputing takes `cost` simple operations an element from `sources` values in memory, `large` of them as large as itself.
    """
    if not sources:
        return cost > GENERATE_COST
    if large > 1:  # it would read more than it saves
        return True
    machine = target.at_work(target.planned)
    bandwidth = machine.cache if nbytes <= machine.cached else min(machine.cache, machine.memory)
    return cost / machine.operations > TRAFFIC / bandwidth
