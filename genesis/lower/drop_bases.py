"""Values assembled from parts are not filled first.

Before: a simplified graph. After: where a chain of `put`s into a constant covers all of it, the constant is not written: the
`put`s have `rest="unread"`. A strided transposed convolution is such a value: one product for each remainder of the indices
modulo the stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.ir.unguarded import gcd
from genesis.lower.rewriting import Simplified, base_of, readers_of

MOST_PARTS = 27  # windows three steps apart along three axes


class Indices(NamedTuple):
    """Those of a part along an axis: a range, but of sizes that may be symbolic."""

    start: int
    step: int
    number: int

    @property
    def last(self) -> int:
        return self.start + self.step * (self.number - 1)

    def has(self, index: int) -> bool:
        return self.start <= index <= self.last and (index - self.start) % self.step == 0


Box = tuple[Indices, ...]


def drop_bases(graph: Simplified) -> Simplified:
    """The graph, with `put`s that together write all of a value marked `rest="unread"`."""
    nodes = [*graph.nodes]
    if sum(node.op == "put" for node in nodes) < 2:
        return graph
    readers = readers_of(enumerate(nodes))
    for last, node in enumerate(graph.nodes):
        if node.op != "put" or "rest" in node.attrs or [nodes[i].op for i in readers.get(last, [])] == ["put"]:
            continue
        chain = _chain(nodes, last, readers, {*graph.outputs} - {last})
        if chain and _cover([_box(nodes[i]) for i in chain], node.numel):
            for i in chain:
                put = nodes[i]
                nodes[i] = Node(put.op, put.inputs, {**put.attrs, "rest": "unread"}, put.shape, put.dtype)
    return graph._replace(nodes=nodes)


def _chain(nodes: Sequence[Node], last: int, readers: dict[int, list[int]], outputs: set[int]) -> list[int]:
    """The chain of `put`s into a constant that ends in `last`; empty if one of them has another reader."""
    chain = [last]
    while nodes[at := nodes[chain[-1]].inputs[0]].op == "put":
        if at in outputs or readers[at] != [chain[-1]] or len(chain) == MOST_PARTS:
            return []
        chain.append(at)
    return chain if nodes[base_of(nodes, at)].op == "constant" else []


def _box(put: Node) -> Box | None:
    """The indices along each axis that a `put` writes; None if they are not a box."""
    starts, strides, rest = [], contiguous_strides(put.shape), put.attrs["offset"]
    if len(put.attrs["shape"]) != len(put.shape):
        return None
    for stride in strides:
        start, rest = divmod(rest, stride)
        starts.append(start)
    steps = [there // own if extent > 1 else 1
             for there, own, extent in zip(put.attrs["strides"], strides, put.attrs["shape"], strict=True)]
    box = tuple(Indices(*along) for along in zip(starts, steps, put.attrs["shape"], strict=True) if along[1] > 0)
    whole = all(extent == 1 or there == step * own for there, own, step, extent in zip(
        put.attrs["strides"], strides, steps, put.attrs["shape"], strict=True))
    inside = len(box) == len(steps) and all(part.number and part.last < e for part, e in zip(box, put.shape, strict=True))
    return box if whole and inside else None


def _cover(boxes: Sequence[Box | None], size: int) -> bool:
    """Whether the boxes are disjoint and cover `size` elements."""
    found = [box for box in boxes if box is not None]
    return len(found) == len(boxes) and sum(numel(part.number for part in box) for box in found) == size and all(
        any(map(_are_apart, one, other)) for one, other in combinations(found, 2))


def _are_apart(one: Indices, other: Indices) -> bool:
    """Whether two ascending ranges are disjoint, judging by their ends and steps."""
    if one.number == 1 or other.number == 1:
        return not one.has(other.start) and not other.has(one.start)
    return one.last < other.start or other.last < one.start or (one.start - other.start) % gcd(one.step, other.step) != 0
