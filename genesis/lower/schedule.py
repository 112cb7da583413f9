"""The schedule: kernels in order, side by side where they do not depend on each other, and a place for each value.

A schedule names storage and words, no addresses: a backend turns it into a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.lower.axis_groups import PLAIN, AxisGroups, grouped_layout
from genesis.lower.build import KernelCall
from genesis.lower.group import Partition
from genesis.lower.index_map import Unmappable
from genesis.lower.legalize import base_of, collapsed_batch, layout_of, result_layout
from genesis.lower.repeats import Repeats
from genesis.lower.stages import Call, HostCall, Matrix, Product, Stage
from genesis.ops.layout import Layout, contiguous_layout

__all__ = ["Location", "Schedule", "order"]


class Location(NamedTuple):
    """Where a value lies: the k-th input or output, or a byte offset in the arena."""

    kind: str
    place: int


class Schedule(NamedTuple):
    """Stages in order, the place of every value in memory, the arena's size in bytes, and, for what loops add up, where in
    the arena each worker has its own sum, one after the other."""

    stages: list[Stage]
    locations: dict[int, Location]
    arena_bytes: int
    sums: dict[int, int]


def order(nodes: Sequence[Node], partition: Partition) -> tuple[list[Stage], set[int]]:
    """The calls of all groups, in order; neighbours that run the same code on different data become one stage.

    Returns the stages, and the values that a group cannot read where they are: these must be set apart first.
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
        elif group.kind == "host":
            calls = [HostCall(i, tuple(_operand(nodes, j) for j in nodes[i].inputs)) for i in group.members]
        else:
            try:
                calls = repeats.calls(group)
            except Unmappable as refusal:
                refused.add(refusal.index)
                continue
        for call in calls:
            # One launch runs all calls of a stage at once: none may read or write what another writes.
            independent = written.isdisjoint((*call.reads, *call.writes)) and read.isdisjoint(call.writes)
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


def _operand(nodes: Sequence[Node], index: int) -> tuple[int, Layout]:
    layout = layout_of(nodes, index)
    assert layout is not None, "legalize gives operands a layout"
    return base_of(nodes, index), layout


def _product(nodes: Sequence[Node], index: int) -> Product:
    left, right = nodes[index].inputs
    (a, a_groups), (b, b_groups) = (_matrix(nodes, i) for i in (left, right))
    (m, k), n = nodes[left].shape[-2:], nodes[right].shape[-1]
    batch, steps = collapsed_batch([a, b, result_layout(nodes[index], nodes[left].shape)])
    a_steps, b_steps, c_steps = map(tuple, steps)
    return Product(
        Matrix(base_of(nodes, left), a, a_steps, a_groups), Matrix(base_of(nodes, right), b, b_steps, b_groups),
        Matrix(index, contiguous_layout((m, n)), c_steps), tuple(batch), (m, n, k), nodes[index].attrs.get("only", ""),
    )


def _matrix(nodes: Sequence[Node], index: int) -> tuple[Layout, AxisGroups]:
    layout = layout_of(nodes, index)
    found = (layout, PLAIN) if layout is not None else grouped_layout(nodes, index)
    assert found is not None, "legalize gives operands a layout"
    return found
