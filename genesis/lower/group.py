"""A group of nodes that one kernel computes: its loop nest, and the level of each node in it.

A level says how often a value is computed: `full` (at every point of the nest), `row` (once for each point of the kept axes,
after the reduced ones), `column` (once for each point of the reduced axes, in a group that also passes over rows) and `final`
(once). `column` and `final` values are complete only when all workers have finished all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.index_map import IndexMap, SplitAxis, Unmappable, contiguous_map, pull
from genesis.lower.target import Target

FULL, ROW, COLUMN, FINAL = "full", "row", "column", "final"
WRITES = frozenset(("put", "scatter"))  # primitives that write into a copy of another value

Axis = tuple[int, bool]  # extent, reduced


class Group:
    """Nodes computed by one kernel: `axes` of its loop nest, and each member's level."""

    __slots__ = (
        "axes", "first_reader", "is_product", "kind", "levels", "loads", "members", "number", "operations", "passes", "reduces",
    )

    def __init__(self, number: float, kind: str, axes: tuple[Axis, ...]) -> None:
        self.number = number  # the order of groups; groups of single numbers have numbers between two others
        self.kind = kind
        self.loop_over(axes)
        self.members: list[int] = []
        self.levels: dict[int, str] = {}
        self.passes: dict[int, int] = {}  # reductions that precede a member: each takes a pass over the row
        self.loads: set[int] = set()  # the values that it loads
        self.operations = 0
        self.first_reader: float | None = None  # the lowest number of another group that reads this one
        self.is_product = False  # a matrix product as a sum of elementwise products, with nothing else at every point

    @property
    def totals(self) -> bool:
        """Whether it has values that wait for all rows of a kernel: its own, or the one before it."""
        return self.has(FINAL) or (self.number > 0 and self.number % 1 != 0)

    def loop_over(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self.reduces = any([reduced for _, reduced in axes])

    def numel(self, level: str) -> int:
        return _points(self.axes, level)

    def has(self, level: str) -> bool:
        return level in self.levels.values()

    def absorb(self, other: Group, axes: tuple[Axis, ...]) -> None:
        """Take in all of `other`, in a nest of `axes`."""
        self.loop_over(axes)
        self.members += other.members
        self.levels |= other.levels
        self.passes |= other.passes
        self.operations += other.operations
        self.loads |= other.loads
        readers = [reader for reader in (self.first_reader, other.first_reader) if reader is not None]
        self.first_reader = min(readers, default=None)


# Cached: fusion asks for every node and candidate, and layers repeat their nests.
@lru_cache(1 << 12)
def _points(axes: tuple[Axis, ...], level: str) -> int:
    """The number of values of a member of `level`."""
    if level == FINAL:
        return 1
    return numel(extent for extent, reduced in axes if level == FULL or reduced == (level == COLUMN))


class Unfused(NamedTuple):
    """Node `node` began a new kernel, because the kernel of `beside` could not take it in."""

    node: int
    beside: int
    reason: str


class Choice(NamedTuple):
    """Whether value `node`, which other kernels read, was stored for them or is recomputed in each, at `cost` an element."""

    node: int
    kept: bool
    cost: int


class Decisions(NamedTuple):
    """The refusals and choices of fusion, in the order of the nodes."""

    refusals: list[Unfused]
    choices: list[Choice]


class Partition(NamedTuple):
    """Groups in the order they run, and the values that get memory."""

    groups: list[Group]
    group_of: dict[int, Group]
    materialized: set[int]
    scalars: Sequence[DType]  # of each scalar slot: float64 or int64
    target: Target
    decisions: Decisions


def pattern_of(shape: Sequence[int], axes: Sequence[int]) -> tuple[Axis, ...]:
    """The axes of a loop nest over `shape` that reduces `axes`: neighbours of one kind are merged."""
    pattern: list[Axis] = []
    for axis, extent in enumerate(shape):
        reduced = axis in axes
        if extent == 1:
            continue
        if pattern and pattern[-1][1] == reduced:
            pattern[-1] = (pattern[-1][0] * extent, reduced)
        else:
            pattern.append((extent, reduced))
    return tuple(pattern)  # extents of 1 are dropped, so broadcasting over them needs no separate kernel


@lru_cache(1 << 12)
def canonical_map(axes: tuple[Axis, ...], level: str) -> IndexMap:
    """The map from points of the nest to the row-major elements of a member of `level`."""
    if level == FINAL:
        return IndexMap(0, (0,) * len(axes))
    counts = [level == FULL or reduced == (level == COLUMN) for _, reduced in axes]
    strides = contiguous_map([extent if c else 1 for (extent, _), c in zip(axes, counts, strict=True)]).strides
    return IndexMap(0, tuple(s if c else 0 for s, c in zip(strides, counts, strict=True)))


def pull_views(nodes: Sequence[Node], index: int, at: IndexMap, extents: Sequence[int]) -> tuple[int, IndexMap]:
    """Follow the views of `index` to its base, and compose the map to the base's elements.

    Raises Unmappable with the index of the view that has to be in memory.
    """
    node = nodes[index]
    while node.op == "view":
        try:
            at = pull(at, extents, node.shape, node.attrs["strides"], node.attrs["offset"])
        # The view is refused, not its base: one copy of the view then serves all of its readers.
        except Unmappable as refusal:
            refusal.index = index
            raise
        index = node.inputs[0]
        node = nodes[index]
    return index, at


def aligned(nodes: Sequence[Node], axes: tuple[Axis, ...], index: int, level: str, computed: str) -> bool:
    """Whether a read of `index` at `level` finds its base, `computed` at that level, at the base's own canonical map."""
    while True:
        try:
            extents = [e for e, _ in axes]
            _, at = pull_views(nodes, index, canonical_map(axes, level), extents)
            want = canonical_map(axes, computed)
            return at.offset == want.offset and all(
                a == b or e == 1 for a, b, e in zip(at.strides, want.strides, extents, strict=True))
        except SplitAxis as split:
            # The finer axes are for this test alone: `build` splits the group's axes where a kernel needs it.
            axes = split.applied(axes)
        except Unmappable:
            return False
