"""Partial results of multiple blocks: they go to memory, and a second function combines them in order.

Totals have one part per block. Kernels with few points and long reductions have one per team that shares a point. A part is
eight bytes whatever its type; the position of an extreme is one more part. Parts in order give the same bits in every run,
which atomic additions would not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from genesis.codegen.cuda.emitter import Emitter
from genesis.codegen.cuda.grid_loops import over_points
from genesis.codegen.cuda.passes import layers
from genesis.codegen.cuda.reductions import Accumulator
from genesis.codegen.cuda.signature import Function

__all__ = ["finish", "store_shares", "store_totals"]


def store_totals(emitter: Emitter) -> None:
    """At the end of the main function: the block's parts of the totals."""
    if emitter.finals:
        _store(emitter, emitter.finals, "block", [], "cuda.blockIdx.x + cuda.blockIdx.y * cuda.gridDim.x")


def store_shares(emitter: Emitter) -> None:
    """After the pass over a team's share of the point at hand: the team's part."""
    first, *second = layers(emitter)
    share = f"cuda.blockIdx.{first}" + "".join(f" + cuda.blockIdx.{layer} * cuda.gridDim.{first}" for layer in second)
    _store(emitter, emitter.rows, emitter.team.kind, emitter.kept, share)


def _store(emitter: Emitter, numbers: Sequence[int], over: str, axes: Sequence[int], share: str) -> None:
    accumulators = [emitter.accumulator(n) for n in numbers]
    for a in accumulators:
        emitter.text.line(f"{', '.join(a.variables)} = {a.combined(over, emitter.arrays, emitter.team.threads)}")
    with emitter.first(over):
        emitter.text.line(f"share = {share}")
        for a, parts in zip(accumulators, _parts(emitter, accumulators, axes), strict=True):
            for variable, part in zip(a.variables, parts, strict=True):
                emitter.text.line(f"{part} = {variable}")


def _parts(emitter: Emitter, accumulators: Sequence[Accumulator], axes: Sequence[int]) -> list[list[str]]:
    """The parts of each accumulator's variables for the share at hand, and the point at hand on `axes`."""
    total = sum(len(a.variables) for a in accumulators)
    number, parts = 0, []
    for a in accumulators:
        parts.append([_part(emitter, number + n, total, dtype, axes) for n, dtype in enumerate(a.variables.values())])
        number += len(a.variables)
    return parts


def _part(emitter: Emitter, number: int, total: int, dtype: str, axes: Sequence[int]) -> str:
    """Part `number` of the share's `total`, each of which is an array over the points of `axes`."""
    at = " + ".join(["share" if total == 1 else f"share * {total}"] + [str(number)] * (number > 0))
    # A float32 takes the first half of its eight bytes: all parts have one pitch, whatever their types.
    sizes = [emitter.extent(a) for a in axes] + ["2"] * (dtype == "float32")
    start = " * ".join([f"({at})" if "+" in at and sizes else at, *sizes])
    return f"{emitter.signature.partials(dtype)}[{' + '.join(filter(None, (start, emitter.position(axes))))}]"


def finish(emitter: Emitter) -> Function:
    """The finishing function: one block, or a team per point, combines the parts and computes what depends on the results."""
    kernel, text, team = emitter.kernel, emitter.text, emitter.team
    over, levels = (team.kind, ("row", "uniform")) if team.shared else ("block", ("final",))
    axes = emitter.kept if team.shared else []
    accumulators = [emitter.accumulator(n) for n in (emitter.rows if team.shared else emitter.finals)]
    start, step = ("cuda.threadIdx.y", emitter.warps) if over == "column" else ("cuda.threadIdx.x", team.threads)
    with over_points(emitter, []) if team.shared else nullcontext():
        for a in accumulators:
            text.line(a.begin())
        with emitter.guard(), text.block(f"for share in range({start}, {emitter.signature.shares()}, {step}):"):
            for a, parts in zip(accumulators, _parts(emitter, accumulators, axes), strict=True):
                text.line(a.merge(*parts))
        for a in accumulators:
            emitter.values.define(a.number, a.result(over, emitter.arrays, team.threads))
        with emitter.first(over):
            stores = [n for n, i in enumerate(kernel.instructions) if i.name == "store" and i.level in levels]
            emitter.values.hoist(kernel.needed(stores))
            for n in stores:
                emitter.values.effect(n)
    return emitter.signature.by_value(kernel.name + "_finish", emitter.body())
