"""Fusion: which values are computed together, and which of them get memory.

Before: a legal graph. After: every node that is computed has a group, and groups are in an order that respects their reads.

Nodes are taken in order, and groups are numbered in the order of their creation. Invariant: a node joins a group only if all
that it reads comes from groups with no higher number. So groups stay convex, in linear time and without a search for cycles.
A node joins only at a level of the group's nest (see `group`) where it finds what it reads.

A group of single numbers is numbered right after its inputs, so that any later group may read it: numbered in order, it would
separate groups before it from those that read both. Loops compute single numbers once, before they begin, unless `materialize`
keeps them in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.group import COLUMN, FINAL, FULL, WRITES, Axis, Decisions, Group, Partition, Unfused, aligned, pattern_of
from genesis.lower.kernel import SCANS
from genesis.lower.levels import Levels
from genesis.lower.materialize import materialize
from genesis.lower.rewriting import base_of
from genesis.lower.target import Target
from genesis.ops.registry import PRIMITIVES

OPERATION_LIMIT = 64  # of a kernel, which then compiles in 32 ms
LOAD_LIMIT = 24  # values that a kernel loads: each takes an address in each of its loops
STORED_COPY = 4  # operations that a copy of a view into an output counts as: compile time grows with the cube of their number


def fuse(nodes: Sequence[Node], outputs: Sequence[int], target: Target, scalars: Sequence[DType] = ()) -> Partition:
    """The groups of a legal graph, in order, and the values that get memory."""
    fusion = _Fusion(nodes, outputs, target)
    fusion.run()
    groups = sorted((g for g in fusion.groups if g.members), key=lambda g: g.number)
    for group in groups:
        group.members.sort()  # absorbed members were appended late, but must be computed first
    # Last, as only now it is known which values another group reads.
    kept = materialize(nodes, outputs, fusion.group_of, fusion.bases, target, fusion.decisions)
    return Partition(groups, fusion.group_of, kept, scalars, target, fusion.decisions)


class _Fusion:
    def __init__(self, nodes: Sequence[Node], outputs: Sequence[int], target: Target) -> None:
        self.nodes = nodes
        self.stored = frozenset(outputs)
        self.decisions = Decisions([], [])
        self.groups: list[Group] = []
        self.singles: dict[float, Group] = {}  # number of a group -> the group of single numbers right after it
        self.group_of: dict[int, Group] = {}
        self.readers: dict[int, Group] = {}  # base -> the last loop group that reads it
        self.bases = [base_of(nodes, i) if n.op == "view" else i for i, n in enumerate(nodes)]
        read = [i for node in nodes if node.op != "view" for i in node.inputs]
        self.counts = Counter(self.bases[i] for i in (*read, *outputs))  # of readers of each base
        self.levels = Levels(nodes, self.bases, self.group_of, target)

    def run(self) -> None:
        for index, node in enumerate(self.nodes):
            kind = PRIMITIVES[node.op].kind
            if kind in ("source", "view"):  # inlined into their readers
                continue
            if node.attrs.get("materialize"):
                group = self._opened("loop", pattern_of((node.numel,), ()))
                self._join(group, index, FULL)
                group.operations = OPERATION_LIMIT  # nothing joins it
            elif kind in ("elementwise", "gather", "reduce"):
                self._assign(index, node, kind)
            elif (loop := self._loop_of_parts(node)) is not None:
                self._join(loop, index, FULL)
                loop.operations = OPERATION_LIMIT  # what reads it must find all of it
            else:
                group = self._opened("scan" if node.op in SCANS and node.dtype.category < 3 else kind, ())
                # The gradient of a strided convolution is one `put` per remainder. In separate groups, each would copy
                # the whole image.
                if kind in WRITES:
                    self._take_over(group, node)
                self._join(group, index, FULL)

    def _loop_of_parts(self, node: Node) -> Group | None:
        """The loop that computes all parts of a concatenation, one of each at each of its points: it stores them there."""
        loop = self.group_of.get(node.inputs[0]) if node.op == "cat" else None
        if loop is None or loop.kind != "loop" or loop.is_product:
            return None
        parts = all(self.group_of.get(i) is loop and loop.levels[i] == FULL and self.nodes[i].numel == loop.numel(FULL)
                    for i in node.inputs)
        return loop if parts else None

    def _take_over(self, group: Group, write: Node) -> None:
        """Take in the group that wrote the base of `write`, if nothing else reads that: both write into one buffer."""
        base = write.inputs[0]
        owner = self.group_of.get(base)
        if owner is None or owner.kind not in WRITES or self.counts[base] > 1:
            return
        for member in owner.members:
            self._join(group, member, FULL)
        owner.members, owner.kind = [], "absorbed"

    def _opened(self, kind: str, axes: tuple[Axis, ...], number: float | None = None) -> Group:
        group = Group(len(self.groups) if number is None else number, kind, axes)
        self.groups.append(group)
        return group

    def _join(self, group: Group, index: int, level: str) -> None:
        """Make a node a member of `group`, and note what the group then reads."""
        group.members.append(index)
        group.levels[index] = level
        node = self.nodes[index]
        row = PRIMITIVES[node.op]
        group.operations += row.cost > 0 or (index in self.stored) * STORED_COPY
        depth = 0
        for i in node.inputs:
            base = self.bases[i]
            owner = self.group_of.get(base)
            if owner is group:
                depth = max(depth, group.passes[base])
            elif owner is not None or self.nodes[base].op == "input":
                if owner is not None and (owner.first_reader is None or owner.first_reader > group.number):
                    owner.first_reader = group.number
                group.loads.add(base)
                if group.kind == "loop":
                    self.readers[base] = group
        group.passes[index] = depth + (row.kind == "reduce")
        self.group_of[index] = group

    def _assign(self, index: int, node: Node, kind: str) -> None:
        """Join the latest group that can take a node in, or open one."""
        bases, group_of = [self.bases[i] for i in node.inputs], self.group_of
        owners = [group_of[b] for b in bases if b in group_of]
        # Candidates are the last group that the node reads from, and later ones that read what it reads. In an earlier group it
        # would read from a later one.
        floor = max([h.number for h in owners], default=-1)
        candidates = {h.number: h for h in owners if h.number == floor}
        for base in bases:
            reader = self.readers.get(base)
            if reader is not None and reader.number >= floor and self.nodes[base].numel > 1:  # a shared number saves nothing
                candidates[reader.number] = reader
        source = self.group_of.get(bases[0]) if kind == "gather" else None  # must be complete before a gather from it begins
        is_product = "operands" in node.attrs  # a convolution has a kernel to itself
        refusals: list[Unfused] = []
        for number in [] if is_product else sorted(candidates, reverse=True):
            group = candidates[number]
            closed = _closed(group, source)
            level = None if closed else self.levels.of(group, node)
            if level is not None:
                if any([h is not group and h is not source for h in owners]):
                    self._absorb(group, owners, source, node, level)
                self._join(group, index, level)
                return
            refusals.append(Unfused(index, group.members[-1], closed or self.levels.reason))
        # `genesis.debug.kernels` tells by refusals why two operations are two kernels.
        self.decisions.refusals.extend(refusals)
        group, level = self._fresh(node, kind, floor)
        group.is_product = is_product
        self._join(group, index, level)

    def _fresh(self, node: Node, kind: str, floor: float) -> tuple[Group, str]:
        if kind == "elementwise" and node.numel == 1:
            return self._behind(floor), FULL
        if kind != "reduce":
            return self._opened("loop", pattern_of((numel(node.shape),), ())), FULL
        axes, level = self.levels.of_fresh(node, pattern_of(self.nodes[node.inputs[0]].shape, node.attrs["axes"]))
        return self._opened("loop", axes), level

    def _behind(self, floor: float) -> Group:
        """The group of single numbers right after group `floor`; a new last group if that is full."""
        number = floor if floor % 1 else floor + 0.5
        group = self.singles.get(number)
        if group is None:
            group = self.singles[number] = self._opened("loop", (), number)
        return self._opened("loop", ()) if _closed(group, None) else group

    def _absorb(self, group: Group, owners: Sequence[Group], source: Group | None, node: Node, level: str) -> None:
        """Merge into `group` the groups whose only reader so far is `node`, if they fit; not that of its `source`."""
        for other in owners:
            if other in (group, source) or other.kind != "loop" or not self._mergeable(group, other):
                continue
            axes = other.axes if other.reduces else group.axes
            if not all(aligned(self.nodes, axes, i, level, other.levels[self.bases[i]]) for i in node.inputs
                       if self.group_of.get(self.bases[i]) is other):
                continue
            # The members now run later, which is safe: `_mergeable` requires that no group up to this one reads them.
            group.absorb(other, axes)
            self.group_of.update(dict.fromkeys(other.members, group))
            for base in other.loads:
                if self.readers.get(base) is other:
                    self.readers[base] = group
            other.members, other.kind = [], "absorbed"

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
    """Why a group accepts no more nodes, or no gather from `source`; "" if it does."""
    if group is source:
        return "a gather reads anywhere in its source, which has to be finished"
    if group.kind != "loop":
        return f"a {group.kind} is no loop over elements"
    if group.operations >= OPERATION_LIMIT:
        return f"that kernel has {OPERATION_LIMIT} operations"
    return f"that kernel reads {LOAD_LIMIT} values" if len(group.loads) >= LOAD_LIMIT else ""
