"""Levels: whether a node fits into a group's loop nest, and at which level (see `group`) it finds what it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.group import COLUMN, FINAL, FULL, ROW, Axis, Group, aligned, canonical_map, pattern_of, pull_views
from genesis.lower.index_map import SplitAxis, Unmappable, memory_layout, pull
from genesis.lower.target import Target
from genesis.ops.registry import PRIMITIVES

# Rows per thread from which one kernel takes several passes over each row; fewer rows leave threads idle.
ROWS_FOR_PASSES = 16
LONGEST_COLUMN_SUMS = 1 << 14  # column sums that a worker accumulates while it passes over rows
# Bytes of column sums, at least and at most, that a kernel of column sums alone accumulates row by row: they stay in a
# first-level cache, and the prefetcher sees rows (2048 x 2048: 0.32 to 0.27 ms). Narrower and wider ones were slower.
LEAST_SUMS, MOST_SUMS = 1 << 9, 1 << 14
SMALL = 1 << 15  # elements that a single thread processes in any case
LARGE = 1 << 19  # elements that exceed a second-level cache: column sums pass over rows in order, too

ELSEWHERE = "it reads a value of that kernel away from where it is computed"
EXTENTS = "it has another number of elements, or reduces other axes"


class Levels:
    """Finds levels for nodes of a graph with the groups `group_of` so far; `reason` is why the last one did not fit."""

    def __init__(self, nodes: Sequence[Node], bases: Sequence[int], group_of: Mapping[int, Group], target: Target) -> None:
        self.nodes = nodes
        self.bases = bases
        self.group_of = group_of
        self.target = target
        self.rows_wanted = ROWS_FOR_PASSES * target.planned
        self.reason = ""

    def of(self, group: Group, node: Node) -> str | None:
        """The level at which `node` fits into `group`, whose axes are refined for it; None, with a `reason`, if it does not."""
        self.reason = EXTENTS
        if PRIMITIVES[node.op].kind == "reduce":
            return self._reduction_level(group, node, node.attrs["axes"])
        size = numel(node.shape)
        # Readers of column sums can only be computed with them, after all rows.
        if group.reduces and COLUMN in [group.levels[b] for i in node.inputs if self.group_of.get(b := self.bases[i]) is group]:
            return COLUMN if group.numel(COLUMN) == size and self._reads_fit(group, group.axes, COLUMN, node.inputs) else None
        # The outermost level is the cheapest: it is tried first.
        for level in (FINAL, ROW, FULL) if size == 1 else (ROW, FULL) if group.reduces else (FULL,):
            if (level == ROW and not group.reduces) or group.numel(level) != size:
                continue
            if level == FINAL and (not group.has(FINAL) or self._waits_for_totals(group, node)):
                continue
            if level == FULL and (group.is_product or (group.reduces and not group.numel(ROW))):
                continue
            if self._reads_fit(group, group.axes, level, node.inputs):
                return level
        return None

    def _waits_for_totals(self, group: Group, node: Node) -> bool:
        """Whether `node` reads totals of other kernels, which are one launch if none waits for another."""
        owners = [self.group_of.get(self.bases[i]) for i in node.inputs]
        return any([h is not None and h is not group and h.totals for h in owners])

    def _reduction_level(self, group: Group, node: Node, axes: Sequence[int]) -> str | None:
        size = self.nodes[node.inputs[0]].numel
        pattern = pattern_of(self.nodes[node.inputs[0]].shape, axes)
        everything = all(reduced for _, reduced in pattern) and not node.op.startswith("arg")
        if group.is_product and (everything or group.reduces):
            return None
        if everything:
            if group.has(COLUMN):
                return None
            # A total of row values adds one number per row, not one per point.
            of_rows = group.reduces and size == group.numel(ROW) != group.numel(FULL)
            fits = (of_rows and self._reads_fit(group, group.axes, ROW, node.inputs)) or (
                size == group.numel(FULL) and self._reads_fit(group, group.axes, FULL, node.inputs))
            return FINAL if fits else None
        if group.reduces:
            if pattern == tuple([(extent, not reduced) for extent, reduced in group.axes]):
                return self._crossing_level(group, node, pattern)
            fits = pattern == group.axes
        else:
            fits = size == group.numel(FULL) and not group.has(FINAL)
        if not fits or not self._reads_fit(group, pattern, FULL, node.inputs):
            return None
        # An elementwise group adopts the nest of the first reduction that joins it.
        summed = None if group.reduces else self._columns_of_rows(node, pattern)
        group.loop_over(summed or pattern)
        return COLUMN if summed else ROW

    def of_fresh(self, node: Node, pattern: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], str]:
        """The axes and the level of reduction `node` in a group of its own.

        Column sums alone accumulate row by row if they are several vectors wide and stay in a first-level cache.
        """
        if not any(not reduced for _, reduced in pattern) and not node.op.startswith("arg"):
            return pattern_of((numel(self.nodes[node.inputs[0]].shape),), ()), FINAL
        summed = self._columns_of_rows(node, pattern)
        if summed and summed[1][0] * node.dtype.compute.itemsize <= MOST_SUMS:
            return summed, COLUMN
        return pattern, ROW

    def _columns_of_rows(self, node: Node, pattern: tuple[Axis, ...]) -> tuple[Axis, ...] | None:
        """The axes of a pass over rows in which `node` sums columns, if these are many and large; else None.

        GELU's gradient with its column sums takes 1.1 ms row by row (2048 x 1024), and 1.85 ms down strips of columns.
        """
        if node.op != "sum" or [reduced for _, reduced in pattern] != [True, False] or not self.target.crossing:
            return None
        (rows, _), (columns, _) = pattern
        if rows < self.rows_wanted or rows * columns < LARGE or columns > LONGEST_COLUMN_SUMS or (
            columns * node.dtype.compute.itemsize < LEAST_SUMS
        ):
            return None
        axes = ((rows, False), (columns, True))
        try:
            base, at = pull_views(self.nodes, node.inputs[0], canonical_map(axes, FULL), [rows, columns])
            at = pull(at, [rows, columns], *memory_layout(self.nodes[base]))
        except (SplitAxis, Unmappable):
            return None
        return axes if at.strides[1] == 1 else None

    def _crossing_level(self, group: Group, node: Node, pattern: tuple[Axis, ...]) -> str | None:
        """The level of a reduction that crosses the group's: row reductions with column sums that accumulate from row to row.

        Layer norm's gradients then read their operands once: 2.35 ms instead of 6.5 to 8 (2048 x 2048).
        """
        if len(pattern) != 2 or group.has(FINAL) or not self.target.crossing:
            return None
        rows = pattern if pattern[1][1] else group.axes
        many = rows[0][0] >= self.rows_wanted or group.numel(FULL) <= SMALL
        if not many or rows[1][0] > LONGEST_COLUMN_SUMS or not self._reads_fit(group, rows, FULL, node.inputs):
            return None
        if group.axes == rows:
            return COLUMN if node.op == "sum" else None
        # The group has a nest of columns. Turned into one of rows, its reductions become column sums: so they must be sums that
        # nothing has been computed from.
        for member, level in group.levels.items():
            op = self.nodes[member].op
            if (level == FULL and group.passes[member]) or (PRIMITIVES[op].kind == "reduce" and op != "sum"):
                return None
        group.loop_over(rows)
        group.levels = {member: COLUMN if level == ROW else level for member, level in group.levels.items()}
        return ROW

    def _reads_fit(self, group: Group, axes: tuple[Axis, ...], level: str, reads: Sequence[int]) -> bool:
        """Whether each read at `level` finds its base, if the group computes it, at the base's own point of the nest."""
        for index in reads:
            base = self.bases[index]
            if self.group_of.get(base) is not group:
                continue
            there = group.levels[base]
            self.reason = ELSEWHERE
            if index == base and there == level:
                continue
            if (there == FINAL) != (level == FINAL) or (there == COLUMN) != (level == COLUMN):
                return False  # complete only after the nest
            if there == ROW and level == FULL and group.passes[base] and (
                group.numel(ROW) < self.rows_wanted and group.numel(FULL) > SMALL
            ):
                self.reason = "few long rows would be passed over once more by fewer threads"
                return False
            if not aligned(self.nodes, axes, index, level, there):
                return False
        return True
