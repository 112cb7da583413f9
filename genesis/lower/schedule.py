"""The schedule: calls in order, in parallel where they are independent, and the location of each value.

A schedule names storage and kernel arguments, not addresses: a backend turns it into a program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from genesis.ir.annotations import Key
from genesis.ir.graph import Node
from genesis.lower.build import KernelCall, build_group
from genesis.lower.group import Group, Partition
from genesis.lower.index_map import Unmappable
from genesis.lower.operands import collapsed_batch, layout_of, operand_layout, result_layout
from genesis.lower.rewriting import base_of
from genesis.lower.stages import Call, HostCall, Matrix, Product, Stage
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.registry import PRIMITIVES


class Location(NamedTuple):
    """A value's location: its position among the inputs or outputs, or its byte offset in the arena."""

    kind: str
    position: int


class Schedule(NamedTuple):
    """Stages in order, the location of each value, the arena's size in bytes; and for values that loops accumulate, the offset
    in the arena of the workers' partial sums, which lie one after the other."""

    stages: list[Stage]
    locations: dict[int, Location]
    arena_bytes: int
    sums: dict[int, int]


def order(nodes: Sequence[Node], partition: Partition, native: bool) -> tuple[list[Stage], set[int]]:
    """The calls of all groups, in order; neighbours that run the same code on different data become one stage.

    With `native`, host operations that have a kernel run it. Returns the stages, and the values that a group cannot read where
    they are: these must be materialized first.
    """
    stages: list[Stage] = []
    repeats = Repeats(nodes, partition)
    refused: set[int] = set()
    read: set[int] = set()  # by the last stage
    written: set[int] = set()
    for group in partition.groups:
        calls: Sequence[KernelCall | Product | HostCall]
        if group.kind == "contract":
            calls = [_product(nodes, i) for i in group.members]
        elif group.kind in ("host", "collective"):
            calls = [_host_call(nodes, i, native) for i in group.members]
        else:
            try:
                calls = repeats.calls(group)
            except Unmappable as refusal:
                index, last = refusal.index, nodes[group.members[-1]]
                # A copy cannot read it there either: it is a view of a view.
                is_copied = "materialize" in last.attrs and last.inputs == (index,) and nodes[index].op == "view"
                refused.add(nodes[index].inputs[0] if is_copied else index)
                continue
        for call in calls:
            # One launch runs all calls of a stage in parallel: none may touch what another writes, except parts of a `cat`.
            # Separate launches took 3 us for each of the 35 gradients of an LSTM's gates, 2 us of it waiting.
            whole = [value for value in call.writes if group.kind != "cat" or value not in group.members]
            independent = written.isdisjoint((*call.reads, *whole)) and read.isdisjoint(call.writes)
            if stages and independent and _alike(stages[-1][0], call):
                stages[-1].append(call)
            else:
                stages.append([call])
                read, written = set(), set()
            read.update(call.reads)
            written.update(call.writes)
    return stages, refused


def _alike(first: Call, call: Call) -> bool:
    """Whether two calls are of one kernel, and one launch can run both."""
    return isinstance(call, KernelCall) and isinstance(first, KernelCall) and call.kernel.text == first.kernel.text


def _host_call(nodes: Sequence[Node], index: int, native: bool) -> HostCall:
    fails = not (native and PRIMITIVES[nodes[index].op].native)
    return HostCall(index, tuple(_operand(nodes, i) for i in nodes[index].inputs), fails=fails)


def _operand(nodes: Sequence[Node], index: int) -> tuple[int, Layout]:
    layout = layout_of(nodes, index)
    assert layout is not None, "legalize gives operands a layout"
    return base_of(nodes, index), layout


def _product(nodes: Sequence[Node], index: int) -> Product:
    left, right = nodes[index].inputs
    (a, a_groups), (b, b_groups) = (operand_layout(nodes, i) for i in (left, right))
    (m, k), n = nodes[left].shape[-2:], nodes[right].shape[-1]
    batch, steps = collapsed_batch([a, b, result_layout(nodes[index], nodes[left].shape)])
    a_steps, b_steps, c_steps = map(tuple, steps)
    return Product(
        Matrix(base_of(nodes, left), a, a_steps, a_groups), Matrix(base_of(nodes, right), b, b_steps, b_groups),
        Matrix(index, contiguous_layout((m, n)), c_steps), tuple(batch), (m, n, k), nodes[index].attrs.get("only", ""),
        pairs="pairs" in nodes[index].attrs,
    )


# ---- groups with the same structure ----
MOST_BUILT = 1 << 12  # groups that are remembered, of some KB each

_built: dict[Key, tuple[list[KernelCall], list[int]]] = {}  # structure -> the kernels of the first such group, and its values


class Repeats:
    """The groups of one graph, whose kernels are built once for all groups of a structure, in any graph."""

    def __init__(self, nodes: Sequence[Node], partition: Partition) -> None:
        self.nodes = nodes
        self.partition = partition

    def calls(self, group: Group) -> list[KernelCall]:
        """The kernels of a group, in order. Raises Unmappable, as `build_group`."""
        structure, values = self._structure(group)
        found = _built.get(structure)
        if found is None:
            if len(_built) >= MOST_BUILT:
                _built.clear()
            calls = build_group(self.nodes, self.partition, group)
            _built[structure] = calls, values
            return calls
        calls, of = found
        names = dict(zip(of, values, strict=True))
        return [_renamed(call, names) for call in calls]

    def _structure(self, group: Group) -> tuple[Key, list[int]]:
        """Everything that `build_group` reads of a group, with values renamed to positions in a list; and that list.

        Values in memory are described by shape and dtype alone; others are followed down to values in memory.
        """
        nodes, group_of, materialized = self.nodes, self.partition.group_of, self.partition.materialized
        level_of, passes_of = group.levels.get, group.passes.get
        values = list(group.members)
        names = {index: name for name, index in enumerate(values)}
        structure: list[Key] = [self.partition.target.unroll, group.kind, group.axes, len(values)]
        # Kernels depend on their group alone: two groups with equal structures differ only in names.
        for index in values:  # grows during the loop
            node, kept, level = nodes[index], index in materialized, level_of(index)
            row, attrs, inputs = PRIMITIVES[node.op], node.attrs, []  # not its name: a user may give that to another row later
            if not level and index in group_of and (kept or row.kind not in ("elementwise", "gather")):
                structure += (None, node.shape, node.dtype)
                continue
            for i in node.inputs:
                if i not in names:
                    names[i] = len(values)
                    values.append(i)
                inputs.append(names[i])
            structure += (
                row, repr(attrs["value"]) if node.op == "constant" else (*attrs.items(),), node.shape, node.dtype, (*inputs,),
                level, passes_of(index), kept,
            )
            if node.op == "scalar":
                structure.append(self.partition.scalars[attrs["slot"]] if "slot" in attrs else None)
        return tuple(structure), values


def _renamed(call: KernelCall, names: Mapping[int, int]) -> KernelCall:
    """The same kernel over other values."""
    reads, writes, nodes = [tuple([names[value] for value in of]) for of in (call.reads, call.writes, call.nodes)]
    return KernelCall(call.kernel.renamed(names), call.extents, reads, writes, nodes)
