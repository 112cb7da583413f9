"""Lowering: from a graph to a Schedule. The passes, in order, are the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.verify import verify
from genesis.lower.convolve import convolve
from genesis.lower.decisions import Decisions
from genesis.lower.elide_copies import elide_copies
from genesis.lower.fuse import fuse
from genesis.lower.fuse_epilogues import fuse_epilogues
from genesis.lower.fuse_tiles import fuse_tiles
from genesis.lower.legalize import base_of, force_materialized, layout_of, legalize
from genesis.lower.lower_concat import lower_concat
from genesis.lower.rematerialize import rematerialize
from genesis.lower.schedule import Schedule, allocate, donations, order
from genesis.lower.simplify import simplify
from genesis.lower.sum_batches import sum_batches
from genesis.lower.target import Target
from genesis.ops.layout import Layout

__all__ = ["VERIFY", "Lowered", "lower"]

VERIFY = [False]  # check the graph between passes: on in tests


class Lowered(NamedTuple):
    """What lowering gives: the final nodes, where each came from in the trace, the schedule, the outputs' places, what fusion
    decided, which inputs may give their memory to which outputs, and for which machine that is."""

    nodes: list[Node]
    origins: list[int]
    inputs: list[int]
    outputs: list[tuple[int, Layout]]
    schedule: Schedule
    decisions: Decisions
    donations: list[tuple[int, int]]
    target: Target


def lower(
    nodes: Sequence[Node], outputs: Sequence[int], target: Target, scalars: Sequence[DType] = (), saved: Sequence[int] = ()
) -> Lowered:
    """Lower a graph for `target`; `scalars` gives for each scalar slot float64 or int64.

    The values `saved` are outputs too, and may share their memory with others.
    """
    graph = rematerialize(lower_concat(simplify(nodes, [*outputs, *saved])))
    graph = sum_batches(graph if target.strided else convolve(graph))
    _check(graph.nodes, graph.outputs)
    graph = legalize(graph, len(saved), target.strided)
    _check(graph.nodes, graph.outputs)
    while True:
        partition = fuse(graph.nodes, graph.outputs, target, scalars)
        stages, refused = order(graph.nodes, partition)
        if not refused:
            break
        graph = force_materialized(graph, refused)
    inputs = [i for i, node in enumerate(graph.nodes) if node.op == "input"]
    bases = [base_of(graph.nodes, o) for o in graph.outputs]
    if target.sequential_tiles is None:
        stages = elide_copies(graph.nodes, stages, bases)
    stages = fuse_tiles(graph.nodes, stages, bases, target)
    if target.sequential_tiles is None:
        stages = fuse_epilogues(graph.nodes, stages, bases, target)
    schedule = allocate(graph.nodes, stages, inputs, bases, 1 if target.sequential_tiles else target.threads)
    layouts: list[Layout] = [layout_of(graph.nodes, o) for o in graph.outputs]  # type: ignore[misc]
    places = list(zip(bases, layouts, strict=True))
    given = donations(graph.nodes, schedule)
    return Lowered(graph.nodes, graph.origins, inputs, places, schedule, partition.decisions, given, target)


def _check(nodes: Sequence[Node], outputs: Sequence[int]) -> None:
    if VERIFY[0]:
        verify(nodes, outputs)
