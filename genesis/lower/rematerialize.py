"""Rematerialization: a product much larger than its operands is recomputed for its late readers instead of being stored.

Before: a simplified graph. After: the same values; late readers of large products read recomputed copies.

The region of a product is the elementwise operations, reductions and views on it up to the first product that reads them.
Nodes that depend on that second product and read the region are late: they get copies of the region's large values. Small
ones, such as softmax's maxima and sums, are stored.

Attention's scores are such a product: backward reads them, and their softmax, long after forward. Stored, they are written to
memory and read again; recomputed, they stay in cache with their readers (Dao et al., 2022).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from genesis.ir.graph import Node
from genesis.lower.rewriting import Rewriting, Simplified, without_dead
from genesis.ops.registry import PRIMITIVES

LEAST_BYTES = 1 << 20
SHORT, GROWTH_IF_SHORT = 64, 2  # terms of a product that takes no longer than memory traffic
LONG, GROWTH_IF_LONG = 128, 8
LONGEST_REGION = 64  # nodes


def rematerialize(graph: Simplified) -> Simplified:
    """The graph with large products and their regions recomputed in front of their late readers."""
    nodes = graph.nodes
    large = [index for index, node in enumerate(nodes) if is_quick_product(nodes, node)]
    return _sunk(_with_copies(graph, large)) if large else graph


def _with_copies(graph: Simplified, large: Sequence[int]) -> Simplified:
    """The graph with the regions of `large` products copied for late readers."""
    nodes = graph.nodes
    readers = graph.readers
    copies: dict[int, list[int]] = {}  # first late reader -> the region
    for product in large:
        region, first = _region(nodes, readers, product)
        candidates = {r for value in region for r in readers.get(value, ()) if r > first and _is_large(nodes, value, product)}
        late = candidates & _made_of(nodes, first, max(candidates)) if first >= 0 and candidates else set()
        if late:
            copies[min(late)] = region
    return _copied(graph, copies) if copies else graph


def is_quick_product(nodes: Sequence[Node], node: Node) -> bool:
    """Whether a node is a product so much larger than its operands that recomputing it is faster than reading it."""
    if node.op != "matmul":
        return False
    a, b = (nodes[i] for i in node.inputs)
    growth = node.numel / max(a.numel + b.numel, 1)
    terms = a.shape[-1]
    return node.nbytes >= LEAST_BYTES and (
        (terms <= SHORT and growth >= GROWTH_IF_SHORT) or (terms <= LONG and growth >= GROWTH_IF_LONG)
    )


def _region(nodes: Sequence[Node], readers: dict[int, list[int]], product: int) -> tuple[list[int], int]:
    """The region of a product, in order, and the first product that reads one of its values (-1 if none)."""
    region, queue, seen = [product], list(readers.get(product, ())), set()
    heapq.heapify(queue)
    while queue:
        index = heapq.heappop(queue)
        kind = PRIMITIVES[nodes[index].op].kind
        if kind == "contract":  # the heap yields the lowest number first, so this is the first product
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


def _sunk(graph: Simplified) -> Simplified:
    """The graph with large products and their regions moved down to their first readers.

    A backward recorded separately from its forward begins with everything it recomputes, so all layers' scores would be in
    memory at once: a GPT of four layers of 16 x 128 tokens takes 368 MiB in that order, 304 with each moved down.
    """
    nodes, outputs = graph.nodes, set(graph.outputs)
    readers = graph.readers
    moving: set[int] = set()
    for index, node in enumerate(nodes):
        if is_quick_product(nodes, node):
            moving.update(_region(nodes, readers, index)[0])
    before = [*range(len(nodes))]  # the node in front of which each is to be
    for index in sorted(moving - outputs, reverse=True):
        before[index] = min([before[reader] for reader in readers.get(index, ())], default=index)
    order = sorted(range(len(nodes)), key=lambda index: (before[index], index))
    if order == [*range(len(nodes))]:
        return graph
    number = {index: position for position, index in enumerate(order)}
    moved = [nodes[index].renumbered(tuple([number[i] for i in nodes[index].inputs])) for index in order]
    return Simplified(moved, [number[o] for o in graph.outputs], [graph.origins[index] for index in order])


def _copied(graph: Simplified, copies: dict[int, list[int]]) -> Simplified:
    """The graph with copies of regions' large values, each region's in front of its first late reader."""
    result = Rewriting(graph)
    original: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if position in copies:
            region, again = copies[position], dict[int, int]()
            for value in region:
                old = graph.nodes[value]
                if _is_large(graph.nodes, value, region[0]):
                    again[value] = result.append(old.renumbered(tuple([again.get(i, result.new_index[i]) for i in old.inputs])))
                    result.came_from(value)
            for value, number in again.items():
                original[value], result.new_index[value] = result.new_index[value], number
        result.copy(node)
    return without_dead(result.finished([original.get(o, result.new_index[o]) for o in graph.outputs]))


def _is_large(nodes: Sequence[Node], value: int, product: int) -> bool:
    return nodes[value].numel * 4 > nodes[product].numel
