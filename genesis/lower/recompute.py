"""Recompute or keep: a product much larger than its operands, and read again after others were computed from it, is
computed again there.

Attention's scores are such a product: backward reads them, and what softmax makes of them, long after forward did. Kept,
they are written to memory and read again; computed again, they stay in cache with what reads them (Dao et al., 2022).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from genesis.ir.graph import Node
from genesis.lower.simplify import Simplified, without_dead
from genesis.ops.registry import PRIMITIVES

__all__ = ["recomputed"]

LEAST_BYTES = 1 << 20
SHORT, GROWTH_IF_SHORT = 64, 2  # a sum over so few terms takes no longer than memory does
LONG, GROWTH_IF_LONG = 128, 8
LONGEST_REGION = 64  # nodes


def recomputed(graph: Simplified) -> Simplified:
    """Before: a simplified graph. After: the same values; late readers of large products read what is computed for them.

    The region of a product is what elementwise operations, reductions and views make of it before the first product that
    reads them; whatever reads the region and that product's result is late. It gets copies of the region's large values.
    Small ones, such as softmax's maxima and sums, are kept.
    """
    nodes = graph.nodes
    large = [index for index, node in enumerate(nodes) if node.op == "matmul" and _pays(nodes, node)]
    if not large:
        return graph
    readers: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        for i in node.inputs:
            readers.setdefault(i, []).append(index)
    copies: dict[int, list[int]] = {}  # first late reader -> the region
    for product in large:
        region, first = _region(nodes, readers, product)
        size = nodes[product].numel
        candidates = {r for value in region for r in readers.get(value, ()) if r > first and nodes[value].numel * 4 > size}
        late = candidates & _made_of(nodes, first, max(candidates)) if first >= 0 and candidates else set()
        if late:
            copies[min(late)] = region
    return _copied(graph, copies) if copies else graph


def _pays(nodes: Sequence[Node], node: Node) -> bool:
    a, b = (nodes[i] for i in node.inputs)
    growth = node.numel / max(a.numel + b.numel, 1)
    terms = a.shape[-1]
    return node.nbytes >= LEAST_BYTES and (
        (terms <= SHORT and growth >= GROWTH_IF_SHORT) or (terms <= LONG and growth >= GROWTH_IF_LONG)
    )


def _region(nodes: Sequence[Node], readers: dict[int, list[int]], product: int) -> tuple[list[int], int]:
    """The values made of a product, in order, and the first product that reads one of them (-1: none does)."""
    region, queue, seen = [product], list(readers.get(product, ())), set()
    heapq.heapify(queue)
    while queue:
        index = heapq.heappop(queue)
        kind = PRIMITIVES[nodes[index].op].kind
        if kind == "contract":
            return region, index
        if index in seen or kind not in ("elementwise", "reduce", "view") or len(region) >= LONGEST_REGION:
            continue
        seen.add(index)
        region.append(index)
        for reader in readers.get(index, ()):
            heapq.heappush(queue, reader)
    return region, -1


def _made_of(nodes: Sequence[Node], value: int, end: int) -> set[int]:
    """Every node up to `end` that depends on `value`."""
    found = {value}
    for index in range(value + 1, end + 1):
        if not found.isdisjoint(nodes[index].inputs):
            found.add(index)
    return found


def _copied(graph: Simplified, copies: dict[int, list[int]]) -> Simplified:
    """The graph with copies of regions' large values, each region's in front of its first late reader."""
    nodes: list[Node] = []
    origins: list[int] = []
    place: list[int] = []
    original: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if position in copies:
            region = copies[position]
            size = graph.nodes[region[0]].numel
            again: dict[int, int] = {}
            for value in region:
                old = graph.nodes[value]
                if old.numel * 4 > size:
                    again[value] = len(nodes)
                    nodes.append(old.renumbered(tuple([again.get(i, place[i]) for i in old.inputs])))
                    origins.append(graph.origins[value])
            for value, number in again.items():
                original[value], place[value] = place[value], number
        nodes.append(node.renumbered(tuple([place[i] for i in node.inputs])))
        origins.append(graph.origins[position])
        place.append(len(nodes) - 1)
    return without_dead(Simplified(nodes, [original.get(o, place[o]) for o in graph.outputs], origins))
