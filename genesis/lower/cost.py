"""The cost model: what a stage moves and computes, and how long that takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.group import FULL
from genesis.lower.stages import Loop, Product, Stage, parts
from genesis.lower.target import Target
from genesis.ops.registry import PRIMITIVES

PARALLEL_COST = 100_000  # units of work, about a simple operation on an element each, that pay for waking the team: 2 us of it


class Estimate(NamedTuple):
    """Bytes to and from memory, floating-point operations (an exponential counts as several), and seconds."""

    nbytes: int
    flops: int
    seconds: float


def estimate(nodes: Sequence[Node], stage: Stage, target: Target) -> Estimate:
    """What a stage costs on a machine. Of a call back into Python only the bytes are known."""
    nbytes = flops = multiplied = 0
    for call in stage:
        private = call.private if isinstance(call, Loop) else ()
        for part in parts(call):
            if isinstance(part, KernelCall):
                nbytes += _bytes_of(part, private)
                flops += _operations_of(part)
                continue
            nbytes += sum(nodes[value].nbytes for value in (*part.reads, *part.writes) if value not in private)
            if isinstance(part, Product):
                multiplied += part.flops
    workers = target.threads if flops + multiplied / 3 > PARALLEL_COST else 1
    machine = target.at_work(workers)
    moving = nbytes / (machine.cache if nbytes <= machine.cached else machine.memory)
    computing = multiplied / machine.products + flops / machine.operations
    seconds = machine.launch + machine.team * (workers > 1) + max(moving, computing)
    return Estimate(nbytes, flops + multiplied, seconds)


def _bytes_of(call: KernelCall, private: Sequence[int]) -> int:
    """Each element that a kernel reads or writes in memory, once: a second access to it is served by the cache."""
    accesses = [(call.kernel.words[i.access.pointer], i.access) for i in call.kernel.instructions if i.access is not None]
    places = {(word, access.strides): access.dtype.itemsize for word, access in accesses
              if word.kind == "pointer" and word.value not in private}
    return sum(size * numel(call.extents[axis] for axis, stride in enumerate(strides) if stride)
               for (_, strides), size in places.items())


def _operations_of(call: KernelCall) -> int:
    """Simple operations: each instruction's cost at every point of its level."""
    points = numel(call.extents)
    rows = numel(extent for extent, (_, reduced) in zip(call.extents, call.kernel.axes, strict=True) if not reduced)
    return sum(
        PRIMITIVES[i.name].cost * (points if i.level == FULL or "over" in dict(i.attrs) else rows)
        for i in call.kernel.instructions if i.name in PRIMITIVES
    )
