"""Lowering: from a graph to a Schedule. The passes, in order, are the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node, verify
from genesis.lower.allocate import allocate, donations
from genesis.lower.apply_formulas import apply_formulas
from genesis.lower.convolve import convolve, sum_batches
from genesis.lower.elide_copies import elide_copies
from genesis.lower.fuse import fuse
from genesis.lower.fuse_epilogues import fuse_epilogues
from genesis.lower.fuse_tiles import fuse_tiles
from genesis.lower.group import Decisions
from genesis.lower.join_batches import join_batches
from genesis.lower.join_concats import join_concats
from genesis.lower.join_products import join_products
from genesis.lower.legalize import force_materialized, legalize
from genesis.lower.lower_concat import lower_concat
from genesis.lower.operands import layout_of
from genesis.lower.overlap_collectives import overlap_collectives
from genesis.lower.pool_first import pool_first
from genesis.lower.rematerialize import rematerialize
from genesis.lower.reorder import reorder
from genesis.lower.rewriting import Simplified, base_of
from genesis.lower.schedule import Schedule, order
from genesis.lower.share_decompositions import share_decompositions
from genesis.lower.share_packing import share_packing
from genesis.lower.simplify import simplify
from genesis.lower.split_complex import split_complex
from genesis.lower.target import Target
from genesis.lower.winograd import winograd
from genesis.lower.write_in_place import check_early, prepare_writes
from genesis.ops.layout import Layout

__all__ = ["VERIFY", "Lowered", "lower"]

VERIFY = [False]  # check the graph between passes: on in tests


class Lowered(NamedTuple):
    """The result of lowering: the final nodes, the trace's node that each comes from, the schedule, the values and layouts of
    the outputs, the decisions of fusion, the donations of inputs to outputs, and the target machine."""

    nodes: list[Node]
    origins: list[int]
    inputs: list[int]
    outputs: list[tuple[int, Layout]]
    schedule: Schedule
    decisions: Decisions
    donations: list[tuple[int, int]]
    target: Target


def lower(
    nodes: Sequence[Node], outputs: Sequence[int], target: Target, scalars: Sequence[DType] = (), saved: Sequence[int] = (),
    awaited: Sequence[int] = (),
) -> Lowered:
    """Lower a graph for `target`; `scalars` gives the dtype of each scalar slot, float64 or int64.

    The values `saved` are outputs too, and may share memory with others. Those `awaited` are computed even if nothing reads
    them: other processes wait for them.
    """
    real = split_complex(nodes, [*outputs, *saved, *awaited])
    graph = simplify(real.nodes, real.outputs)
    graph = graph._replace(origins=[real.origins[i] for i in graph.origins])
    graph = reorder(pool_first(share_decompositions(apply_formulas(graph, target.native))))
    graph = join_products(graph)
    if not target.strided:
        graph = join_batches(winograd(graph, target.pairs))
    graph = join_concats(lower_concat(graph))
    graph = rematerialize(graph)
    if not target.strided:
        graph = share_packing(convolve(graph, target.sums), target.strip)
    graph = sum_batches(graph)
    _check(graph)
    graph = legalize(graph, len(saved) + len(awaited), target.strided, target.pairs)
    graph = graph._replace(outputs=graph.outputs[: len(outputs) + len(saved)])
    graph = prepare_writes(graph)
    _check(graph)
    while True:  # values without an index map are copied, and fusion starts over: it may choose other groups
        partition = fuse(graph.nodes, graph.outputs, target, scalars)
        stages, unreachable = order(graph.nodes, partition, target.native)
        if not unreachable:
            break
        graph = force_materialized(graph, unreachable)
    nodes, values = graph.nodes, [base_of(graph.nodes, o) for o in graph.outputs]
    stages = check_early(nodes, stages)
    if target.sequential_tiles is None:
        stages = elide_copies(nodes, stages, values)
    stages = fuse_tiles(nodes, stages, values, target)
    if target.sequential_tiles is None:
        stages = fuse_epilogues(nodes, stages, values, target)
    stages = overlap_collectives(nodes, stages)
    inputs = [i for i, node in enumerate(nodes) if node.op == "input"]
    schedule = allocate(nodes, stages, inputs, values, 1 if target.sequential_tiles else target.threads)
    layouts: list[Layout] = [layout_of(nodes, o) for o in graph.outputs]  # type: ignore[misc]
    located = [*zip(values, layouts, strict=True)]
    donated = donations(nodes, schedule, values)
    return Lowered(graph.nodes, graph.origins, inputs, located, schedule, partition.decisions, donated, target)


def _check(graph: Simplified) -> None:
    if VERIFY[0]:
        verify(graph.nodes, graph.outputs)
