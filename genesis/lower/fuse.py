"""The third pass: which values are computed together, and which of them must reach memory.

Nodes are taken in order, and a group's number is the order in which it was opened. A node may join a group only if all
it reads comes from groups numbered no higher, so groups stay convex without any search, in linear time; and only at a
level of the group's nest (see `group`) where it finds what it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.decisions import Decisions, Refusal
from genesis.lower.group import (
    COLUMN,
    FINAL,
    FULL,
    ROW,
    Axis,
    Group,
    Partition,
    aligned,
    canonical_map,
    pattern_of,
    pull_views,
)
from genesis.lower.index_map import SplitAxis, Unmappable
from genesis.lower.legalize import base_of
from genesis.lower.realize import realized
from genesis.lower.target import Target
from genesis.ops.registry import PRIMITIVES

__all__ = ["fuse"]

OPERATION_LIMIT = 64
LOAD_LIMIT = 24
ROWS_FOR_PASSES = 16  # rows that make a kernel of several passes over each row worth while
LONGEST_COLUMN_SUMS = 1 << 14  # numbers that each worker keeps beside the rows that it passes over
SMALL = 1 << 15  # elements below which one thread does the work in any case
LARGE = 1 << 19  # elements that outlast a second-level cache: rows are passed over as they lie, also for sums of columns

ELSEWHERE = "it reads a value of that kernel away from where it is computed"
EXTENTS = "it has another number of elements, or reduces other axes"


class _Fusion:
    def __init__(self, nodes: Sequence[Node], outputs: Sequence[int], target: Target) -> None:
        self.nodes = nodes
        self.outputs = outputs
        self.target = target
        self.rows_wanted = ROWS_FOR_PASSES * target.threads
        self.decisions = Decisions([], [])
        self.reason = ""  # why a node did not fit
        self.groups: list[Group] = []
        self.home: dict[int, Group] = {}
        self.readers: dict[int, Group] = {}  # base -> the last loop group that reads it
        self.bases = [base_of(nodes, i) if n.op == "view" else i for i, n in enumerate(nodes)]
        read = [i for node in nodes if node.op != "view" for i in node.inputs]
        self.counts = Counter(self.bases[i] for i in (*read, *outputs))  # of readers of each base

    def run(self) -> None:
        for index, node in enumerate(self.nodes):
            kind = PRIMITIVES[node.op].kind
            if kind in ("source", "view"):
                continue
            if node.attrs.get("apart"):
                self._join(self._opened("loop", pattern_of((node.numel,), ())), index, FULL)
                self.groups[-1].operations = OPERATION_LIMIT
            elif kind in ("elementwise", "gather", "reduce"):
                self._place(index, node, kind)
            else:
                group = self._opened("scan" if node.op == "cumsum" else kind, ())
                if kind == "put":
                    self._take_over(group, node)
                self._join(group, index, FULL)

    def _take_over(self, group: Group, put: Node) -> None:
        """What was put into the base of `put` is put into its memory at once, if nobody else reads the base."""
        base = put.inputs[0]
        home = self.home.get(base)
        if home is None or home.kind != "put" or self.counts[base] > 1:
            return
        for member in home.members:
            self._join(group, member, FULL)
        home.members, home.kind = [], "absorbed"

    def _opened(self, kind: str, axes: tuple[Axis, ...]) -> Group:
        group = Group(len(self.groups), kind, axes)
        self.groups.append(group)
        return group

    def _join(self, group: Group, index: int, level: str) -> None:
        group.members.append(index)
        group.levels[index] = level
        node = self.nodes[index]
        row = PRIMITIVES[node.op]
        group.operations += row.cost > 0
        depth = 0
        for i in node.inputs:
            base = self.bases[i]
            home = self.home.get(base)
            if home is group:
                depth = max(depth, group.passes[base])
            elif home is not None or self.nodes[base].op == "input":
                if home is not None and (home.first_reader is None or home.first_reader > group.number):
                    home.first_reader = group.number
                group.loads.add(base)
                if group.kind == "loop":
                    self.readers[base] = group
        group.passes[index] = depth + (row.kind == "reduce")
        self.home[index] = group

    def _place(self, index: int, node: Node, kind: str) -> None:
        bases = self._bases_of(node)
        homes = [self.home[b] for b in bases if b in self.home]
        floor = max([h.number for h in homes], default=-1)
        candidates = {h.number: h for h in homes if h.number == floor}
        is_product = "operands" in node.attrs
        for base in bases:
            reader = self.readers.get(base)
            if reader is not None and reader.number >= floor and self.nodes[base].numel > 1:  # not for a number
                candidates[reader.number] = reader
        axes = node.attrs["axes"] if kind == "reduce" else ()
        source = self.home.get(bases[0]) if kind == "gather" else None  # done before a gather from it begins
        refusals: list[Refusal] = []
        for number in [] if is_product else sorted(candidates, reverse=True):
            group = candidates[number]
            level = None if self._is_closed(group, source) else self._level(group, index, node, kind, axes)
            if level is not None:
                if any([h is not group and h is not source for h in homes]):
                    self._absorb(group, homes, source, node, level)
                self._join(group, index, level)
                return
            refusals.append(Refusal(index, group.members[-1], self.reason))
        self.decisions.refusals.extend(refusals)
        group, level = self._fresh(node, kind, axes)
        group.is_product = is_product
        self._join(group, index, level)

    def _fresh(self, node: Node, kind: str, axes: Sequence[int]) -> tuple[Group, str]:
        if kind != "reduce":
            return self._opened("loop", pattern_of((numel(node.shape),), ())), FULL
        shape = self.nodes[node.inputs[0]].shape
        if len(axes) == len(shape) and not node.op.startswith("arg"):
            return self._opened("loop", pattern_of((numel(shape),), ())), FINAL
        pattern = pattern_of(shape, axes)
        if not any(not reduced for _, reduced in pattern) and not node.op.startswith("arg"):
            return self._opened("loop", pattern_of((numel(shape),), ())), FINAL
        return self._opened("loop", pattern), ROW

    def _is_closed(self, group: Group, source: Group | None) -> bool:
        """Whether a group takes nothing in, at least not a gather from `source`."""
        if group is source:
            self.reason = "a gather reads anywhere in its source, which has to be finished"
        elif group.kind != "loop":
            self.reason = f"a {group.kind} is no loop over elements"
        elif group.operations >= OPERATION_LIMIT:
            self.reason = f"that kernel has {OPERATION_LIMIT} operations"
        elif len(group.loads) >= LOAD_LIMIT:
            self.reason = f"that kernel reads {LOAD_LIMIT} values"
        else:
            return False
        return True

    def _level(self, group: Group, index: int, node: Node, kind: str, axes: Sequence[int]) -> str | None:
        """The level at which `node` fits into `group`, or None for a reason."""
        self.reason = EXTENTS
        if kind == "reduce":
            return self._reduction_level(group, node, axes)
        size = numel(node.shape)
        if group.reduces and COLUMN in [group.levels[b] for b in self._bases_of(node) if self.home.get(b) is group]:
            return COLUMN if group.numel(COLUMN) == size and self._reads_fit(group, group.axes, COLUMN, node.inputs) else None
        for level in (FINAL, ROW, FULL) if size == 1 else (ROW, FULL) if group.reduces else (FULL,):
            if (level == ROW and not group.reduces) or group.numel(level) != size:
                continue
            if level == FINAL and (not group.has(FINAL) or self._joins_totals(group, node)):
                continue
            if level == FULL and (group.is_product or (group.reduces and not group.numel(ROW))):
                continue
            if self._reads_fit(group, group.axes, level, node.inputs):
                return level
        return None

    def _bases_of(self, node: Node) -> list[int]:
        return [self.bases[i] for i in node.inputs]

    def _joins_totals(self, group: Group, node: Node) -> bool:
        """Whether `node` reads totals of other kernels, which are one launch if none waits for another."""
        homes = [self.home.get(b) for b in self._bases_of(node)]
        return any([h is not None and h is not group and h.has(FINAL) for h in homes])

    def _reduction_level(self, group: Group, node: Node, axes: Sequence[int]) -> str | None:
        source = node.inputs[0]
        shape = self.nodes[source].shape
        size = numel(shape)
        pattern = pattern_of(shape, axes)
        everything = all(reduced for _, reduced in pattern) and not node.op.startswith("arg")
        if group.is_product and (everything or group.reduces):
            return None
        if everything:
            if group.has(COLUMN):
                return None
            if group.reduces and size == group.numel(ROW) and size != group.numel(FULL) and self._reads_fit(
                group, group.axes, ROW, node.inputs
            ):
                return FINAL
            if size == group.numel(FULL) and self._reads_fit(group, group.axes, FULL, node.inputs):
                return FINAL
            return None
        if group.reduces:
            if pattern == tuple([(extent, not reduced) for extent, reduced in group.axes]):
                return self._crossing_level(group, node, pattern)
            fits = pattern == group.axes
        else:
            fits = size == group.numel(FULL) and not group.has(FINAL)
        if not fits or not self._reads_fit(group, pattern, FULL, node.inputs):
            return None
        summed = None if group.reduces else self._columns_of_rows(node, pattern)
        group.axes = summed or pattern
        return COLUMN if summed else ROW

    def _columns_of_rows(self, node: Node, pattern: tuple[Axis, ...]) -> tuple[Axis, ...] | None:
        """The axes of a pass over rows on which `node` sums columns, if they are many and large."""
        if node.op != "sum" or [reduced for _, reduced in pattern] != [True, False] or not self.target.crossing:
            return None
        (rows, _), (columns, _) = pattern
        if rows < self.rows_wanted or rows * columns < LARGE or columns > LONGEST_COLUMN_SUMS:
            return None
        axes = ((rows, False), (columns, True))
        try:
            _, at = pull_views(self.nodes, node.inputs[0], canonical_map(axes, FULL), [rows, columns])
        except (SplitAxis, Unmappable):
            return None
        return axes if at.strides[1] == 1 else None

    def _crossing_level(self, group: Group, node: Node, pattern: tuple[Axis, ...]) -> str | None:
        """Beside reductions of rows, sums of columns go on from row to row; what was reduced first may have been either."""
        if len(pattern) != 2 or group.has(FINAL) or not self.target.crossing:
            return None
        rows = pattern if pattern[1][1] else group.axes
        many = rows[0][0] >= self.rows_wanted or group.numel(FULL) <= SMALL
        if not many or rows[1][0] > LONGEST_COLUMN_SUMS or not self._reads_fit(group, rows, FULL, node.inputs):
            return None
        if group.axes == rows:
            return COLUMN if node.op == "sum" else None
        for member, level in group.levels.items():
            op = self.nodes[member].op
            if (level == FULL and group.passes[member]) or (PRIMITIVES[op].kind == "reduce" and op != "sum"):
                return None
        group.axes = rows
        group.levels = {member: COLUMN if level == ROW else level for member, level in group.levels.items()}
        return ROW

    def _reads_fit(self, group: Group, axes: tuple[Axis, ...], level: str, reads: Sequence[int]) -> bool:
        """Whether each read at `level` finds its base, if the group computes it, at the base's own place in the nest."""
        for index in reads:
            base = self.bases[index]
            if self.home.get(base) is not group:
                continue
            held = group.levels[base]
            self.reason = ELSEWHERE
            if index == base and held == level:
                continue
            if (held == FINAL) != (level == FINAL) or (held == COLUMN) != (level == COLUMN):
                return False
            if held == ROW and level == FULL and group.passes[base] and (
                group.numel(ROW) < self.rows_wanted and group.numel(FULL) > SMALL
            ):
                self.reason = "few long rows would be passed over once more by fewer threads"
                return False
            if not aligned(self.nodes, axes, index, level, held):
                return False
        return True

    def _absorb(self, group: Group, homes: Sequence[Group], source: Group | None, node: Node, level: str) -> None:
        """Move into `group` those groups that feed `node` and nothing else so far, where they fit; not that of its `source`."""
        for other in homes:
            if other in (group, source) or other.kind != "loop" or not self._mergeable(group, other):
                continue
            axes = other.axes if other.reduces else group.axes
            if not all(aligned(self.nodes, axes, i, level, other.levels[self.bases[i]]) for i in node.inputs
                       if self.home.get(self.bases[i]) is other):
                continue
            group.axes = axes
            for member in other.members:
                group.members.append(member)
                group.levels[member] = other.levels[member]
                group.passes[member] = other.passes[member]
                self.home[member] = group
            group.operations += other.operations
            group.loads |= other.loads
            for base in other.loads:
                if self.readers.get(base) is other:
                    self.readers[base] = group
            if group.first_reader is None or (other.first_reader or group.first_reader) < group.first_reader:
                group.first_reader = other.first_reader
            other.members = []
            other.kind = "absorbed"

    def _mergeable(self, group: Group, other: Group) -> bool:
        """Whether nothing before or in `group` reads `other` yet, and one nest can hold both."""
        if other.first_reader is not None and other.first_reader <= group.number:
            return False
        if other.operations + group.operations > OPERATION_LIMIT or len(other.loads | group.loads) > LOAD_LIMIT:
            return False
        if other.has(FINAL) or other.has(COLUMN) or group.has(COLUMN) or other.numel(FULL) != group.numel(FULL):
            return False
        if other.is_product or group.is_product:
            return False
        return not other.reduces or (not group.reduces and not group.has(FINAL))


def fuse(nodes: Sequence[Node], outputs: Sequence[int], target: Target, scalars: Sequence[DType] = ()) -> Partition:
    """Before: a legal graph. After: every node that is computed has a group, in an order that respects what they read."""
    fusion = _Fusion(nodes, outputs, target)
    fusion.run()
    groups = [g for g in fusion.groups if g.members]
    for group in groups:
        group.members.sort()
    kept = realized(nodes, outputs, fusion.home, fusion.bases, target.threads, fusion.decisions)
    return Partition(groups, fusion.home, kept, scalars, target, fusion.decisions)
