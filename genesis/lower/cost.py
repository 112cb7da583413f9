"""The cost model: what a stage moves and computes, how long that takes, and whether a value is worth its place in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.fuse import FULL
from genesis.lower.schedule import Product, Stage
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.speeds import speeds

__all__ = ["PARALLEL_COST", "Estimate", "estimate"]

PARALLEL_COST = 40_000  # units of work, about one simple operation on an element each, that pay for waking the team


class Estimate(NamedTuple):
    """Bytes to and from memory, floating-point operations (an exponential counts as several), and seconds."""

    nbytes: int
    flops: int
    seconds: float


def estimate(nodes: Sequence[Node], stage: Stage, threads: int) -> Estimate:
    """What a stage costs on `threads` threads. Of a call back into Python only the bytes are known."""
    machine = speeds()
    nbytes = flops = 0
    products = False
    for call in stage:
        if isinstance(call, KernelCall):
            nbytes += _bytes_of(call)
            flops += _operations_of(call)
            continue
        nbytes += sum(nodes[value].nbytes for value in (*call.reads, *call.writes))
        if isinstance(call, Product):
            products = True
            flops += 2 * nodes[call.node].numel * call.a_layout.shape[-1]
    workers = threads if flops > (8 if products else 1) * PARALLEL_COST else 1
    moving = nbytes / (machine.cache * workers if nbytes <= machine.cached else machine.memory)
    computing = flops / ((machine.products if products else machine.operations) * workers)
    return Estimate(nbytes, flops, machine.launch + machine.team * (workers > 1) + max(moving, computing))


def _bytes_of(call: KernelCall) -> int:
    """Each element that a kernel reads or writes, once."""
    words, total = call.kernel.words, 0
    seen = set()
    for i in call.kernel.instructions:
        if i.access is None or words[i.access.pointer].kind != "pointer":
            continue
        place = (words[i.access.pointer], i.access.strides)
        if place in seen:
            continue
        seen.add(place)
        axes = [axis for axis, stride in enumerate(i.access.strides) if stride]
        total += numel(call.extents[axis] for axis in axes) * i.access.dtype.itemsize
    return total


def _operations_of(call: KernelCall) -> int:
    """Simple operations: each instruction's cost at every point of its level."""
    points = numel(call.extents)
    rows = numel(extent for extent, (_, reduced) in zip(call.extents, call.kernel.axes, strict=True) if not reduced)
    return sum(
        PRIMITIVES[i.name].cost * (points if i.level == FULL or "over" in dict(i.attrs) else rows)
        for i in call.kernel.instructions if i.name in PRIMITIVES
    )
