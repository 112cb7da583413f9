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
    Axis,
    Group,
    Partition,
    aligned,
    pattern_of,
)
from genesis.lower.legalize import base_of
from genesis.lower.levels import Levels
from genesis.lower.materialize import materialize
from genesis.lower.target import Target
from genesis.ops.registry import PRIMITIVES

__all__ = ["fuse"]

OPERATION_LIMIT = 64
LOAD_LIMIT = 24


class _Fusion:
    def __init__(self, nodes: Sequence[Node], outputs: Sequence[int], target: Target) -> None:
        self.nodes = nodes
        self.outputs = outputs
        self.decisions = Decisions([], [])
        self.groups: list[Group] = []
        self.home: dict[int, Group] = {}
        self.readers: dict[int, Group] = {}  # base -> the last loop group that reads it
        self.bases = [base_of(nodes, i) if n.op == "view" else i for i, n in enumerate(nodes)]
        read = [i for node in nodes if node.op != "view" for i in node.inputs]
        self.counts = Counter(self.bases[i] for i in (*read, *outputs))  # of readers of each base
        self.levels = Levels(nodes, self.bases, self.home, target)

    def run(self) -> None:
        for index, node in enumerate(self.nodes):
            kind = PRIMITIVES[node.op].kind
            if kind in ("source", "view"):
                continue
            if node.attrs.get("materialize"):
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
        bases = [self.bases[i] for i in node.inputs]
        homes = [self.home[b] for b in bases if b in self.home]
        floor = max([h.number for h in homes], default=-1)
        candidates = {h.number: h for h in homes if h.number == floor}
        is_product = "operands" in node.attrs
        for base in bases:
            reader = self.readers.get(base)
            if reader is not None and reader.number >= floor and self.nodes[base].numel > 1:  # not for a number
                candidates[reader.number] = reader
        source = self.home.get(bases[0]) if kind == "gather" else None  # done before a gather from it begins
        refusals: list[Refusal] = []
        for number in [] if is_product else sorted(candidates, reverse=True):
            group = candidates[number]
            closed = _closed(group, source)
            level = None if closed else self.levels.of(group, node)
            if level is not None:
                if any([h is not group and h is not source for h in homes]):
                    self._absorb(group, homes, source, node, level)
                self._join(group, index, level)
                return
            refusals.append(Refusal(index, group.members[-1], closed or self.levels.reason))
        self.decisions.refusals.extend(refusals)
        group, level = self._fresh(node, kind)
        group.is_product = is_product
        self._join(group, index, level)

    def _fresh(self, node: Node, kind: str) -> tuple[Group, str]:
        if kind != "reduce":
            return self._opened("loop", pattern_of((numel(node.shape),), ())), FULL
        axes, level = self.levels.of_fresh(node, pattern_of(self.nodes[node.inputs[0]].shape, node.attrs["axes"]))
        return self._opened("loop", axes), level

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


def _closed(group: Group, source: Group | None) -> str:
    """Why a group takes nothing in, at least not a gather from `source`; "" if it does."""
    if group is source:
        return "a gather reads anywhere in its source, which has to be finished"
    if group.kind != "loop":
        return f"a {group.kind} is no loop over elements"
    if group.operations >= OPERATION_LIMIT:
        return f"that kernel has {OPERATION_LIMIT} operations"
    return f"that kernel reads {LOAD_LIMIT} values" if len(group.loads) >= LOAD_LIMIT else ""


def fuse(nodes: Sequence[Node], outputs: Sequence[int], target: Target, scalars: Sequence[DType] = ()) -> Partition:
    """Before: a legal graph. After: every node that is computed has a group, in an order that respects what they read."""
    fusion = _Fusion(nodes, outputs, target)
    fusion.run()
    groups = [g for g in fusion.groups if g.members]
    for group in groups:
        group.members.sort()
    kept = materialize(nodes, outputs, fusion.home, fusion.bases, target, fusion.decisions)
    return Partition(groups, fusion.home, kept, scalars, target, fusion.decisions)
