"""A group of nodes that one kernel computes: its loop nest, and at which level of the nest each of them lives.

There are four: `full` (every point of the loop nest), `row` (after reducing the group's reduced axes), `column` (after
summing over the others, in a group that also reduces rows) and `final` (after reducing everything). The last two are
complete when all rows are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.decisions import Decisions
from genesis.lower.index_map import IndexMap, SplitAxis, Unmappable, contiguous_map, pull
from genesis.lower.target import Target

__all__ = [
    "COLUMN", "FINAL", "FULL", "ROW", "Axis", "Group", "Partition", "aligned", "canonical_map", "pattern_of", "pull_views",
    "split_axes",
]

FULL, ROW, COLUMN, FINAL = "full", "row", "column", "final"

Axis = tuple[int, bool]  # extent, reduced


class Group:
    """Nodes computed by one kernel: `axes` of its loop nest, and each member's level."""

    __slots__ = ("axes", "first_reader", "is_product", "kind", "levels", "loads", "members", "number", "operations", "passes")

    def __init__(self, number: int, kind: str, axes: tuple[Axis, ...]) -> None:
        self.number = number
        self.kind = kind
        self.axes = axes
        self.members: list[int] = []
        self.levels: dict[int, str] = {}
        self.passes: dict[int, int] = {}  # how many reductions deep a member is
        self.loads: set[int] = set()
        self.operations = 0
        self.first_reader: int | None = None  # the lowest number of another group that reads this one
        self.is_product = False  # a matrix product as elementwise products: it sums these, and does nothing else of their size

    @property
    def reduces(self) -> bool:
        return _reduces(self.axes)

    def numel(self, level: str) -> int:
        return _points(self.axes, level)

    def has(self, level: str) -> bool:
        return level in self.levels.values()


@lru_cache(1 << 12)
def _reduces(axes: tuple[Axis, ...]) -> bool:
    return any(reduced for _, reduced in axes)


@lru_cache(1 << 12)
def _points(axes: tuple[Axis, ...], level: str) -> int:
    """How many values a member of `level` has."""
    if level == FINAL:
        return 1
    return numel(extent for extent, reduced in axes if level == FULL or reduced == (level == COLUMN))


class Partition:
    """Groups in the order they run, and the values that get memory."""

    __slots__ = ("decisions", "groups", "home", "materialized", "scalars", "target")

    def __init__(
        self, groups: list[Group], home: dict[int, Group], materialized: set[int], scalars: Sequence[DType], target: Target,
        decisions: Decisions,
    ) -> None:
        self.decisions = decisions
        self.groups = groups
        self.home = home
        self.materialized = materialized
        self.scalars = scalars  # of each scalar slot: float64 or int64
        self.target = target


def pattern_of(shape: Sequence[int], axes: Sequence[int]) -> tuple[Axis, ...]:
    """A shape as few axes as tell kept extents from reduced ones."""
    pattern: list[Axis] = []
    for axis, extent in enumerate(shape):
        reduced = axis in axes
        if extent == 1:
            continue
        if pattern and pattern[-1][1] == reduced:
            pattern[-1] = (pattern[-1][0] * extent, reduced)
        else:
            pattern.append((extent, reduced))
    return tuple(pattern)


@lru_cache(1 << 12)
def canonical_map(axes: tuple[Axis, ...], level: str) -> IndexMap:
    """Where a member of `level` is at each point of the nest, in its own row-major elements."""
    if level == FINAL:
        return IndexMap(0, (0,) * len(axes))
    counts = [level == FULL or reduced == (level == COLUMN) for _, reduced in axes]
    strides = contiguous_map([extent if c else 1 for (extent, _), c in zip(axes, counts, strict=True)]).strides
    return IndexMap(0, tuple(s if c else 0 for s, c in zip(strides, counts, strict=True)))


def pull_views(nodes: Sequence[Node], index: int, at: IndexMap, extents: Sequence[int]) -> tuple[int, IndexMap]:
    """Through the views that `index` is made of: its base, and the map to the base's elements.

    Raises Unmappable with the index of the view that has to be in memory.
    """
    node = nodes[index]
    while node.op == "view":
        try:
            at = pull(at, extents, node.shape, node.attrs["strides"], node.attrs["offset"])
        except Unmappable as refusal:
            refusal.index = index
            raise
        index = node.inputs[0]
        node = nodes[index]
    return index, at


def split_axes(axes: Sequence[Axis], split: SplitAxis) -> tuple[Axis, ...]:
    """The axes after a split."""
    extent, reduced = axes[split.axis]
    pair = ((extent // split.inner, reduced), (split.inner, reduced))
    return (*axes[: split.axis], *pair, *axes[split.axis + 1 :])


def aligned(nodes: Sequence[Node], axes: tuple[Axis, ...], index: int, level: str, computed: str) -> bool:
    """Whether a read of `index` at `level` finds its base, `computed` at that level, at the base's own place."""
    while True:
        try:
            extents = [e for e, _ in axes]
            _, at = pull_views(nodes, index, canonical_map(axes, level), extents)
            want = canonical_map(axes, computed)
            return at.offset == want.offset and all(
                a == b or e == 1 for a, b, e in zip(at.strides, want.strides, extents, strict=True))
        except SplitAxis as split:
            axes = split_axes(axes, split)
        except Unmappable:
            return False
