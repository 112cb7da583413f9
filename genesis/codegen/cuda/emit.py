"""From a Kernel to functions of the device, as text, such as one would write in CUDA by hand.

The grid covers the kept points. A *team* computes one of them: a thread, a warp, a block or, where lanes are kept, a column,
the threads of a block that have one x. A team makes one pass over the reduced axes per level of nested reductions, and each
value is computed in the outermost loop that has bound the axes it varies over.

A point with a long reduction may be *shared* by teams in multiple layers of the grid (y and z), if one pass is enough: each
reduces its share, and the finishing function combines the shares and computes what depends on the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from genesis.codegen.cuda import partials, passes
from genesis.codegen.cuda.emitter import Emitter, Team
from genesis.codegen.cuda.grid_loops import over_points
from genesis.codegen.cuda.signature import Function
from genesis.codegen.cuda.target import THREADS
from genesis.lower.kernel import REDUCTIONS, Kernel

__all__ = ["Team", "emit_finish", "emit_kernel"]


def emit_kernel(kernel: Kernel, team: Team, many: bool = False) -> Function:
    """A kernel's main function; with `many`, one call per layer of the grid."""
    function = _main(Emitter(kernel, team), many)
    return function if team.threads == THREADS else function._replace(threads=team.threads)


def emit_finish(kernel: Kernel, team: Team) -> Function:
    """The function that combines the partial results of multiple blocks, and computes what depends on them."""
    function = partials.finish(Emitter(kernel, team if team.shared else Team("thread")))
    return function._replace(threads=team.threads) if team.shared and team.threads != THREADS else function


def _main(emitter: Emitter, many: bool) -> Function:
    for n in emitter.finals:
        emitter.text.line(emitter.accumulator(n).begin())
    if emitter.team.shared:
        passes.begin_shares(emitter)
    with over_points(emitter, emitter.kernel.needed(emitter.kernel.targets())):
        _passes(emitter)
        if not emitter.team.shared:
            _after(emitter)
    partials.store_totals(emitter)
    make = emitter.signature.by_table if many else emitter.signature.by_value
    return make(emitter.kernel.name + "_many" * many, emitter.body())


def _passes(emitter: Emitter) -> None:
    """One kept point: the passes over the reduced axes, and their results."""
    kernel = emitter.kernel
    for step in kernel.steps:
        targets = kernel.targets(step)
        needed = kernel.needed(targets)
        running = [emitter.accumulator(n) for n in targets if kernel.instructions[n].level == "row"]
        for accumulator in [*running, *[emitter.accumulator(n) for n in targets if kernel.instructions[n].name == "scan"]]:
            emitter.text.line(accumulator.begin())
        with emitter.guard():
            emitter.values.hoist(needed)
            passes.pass_over(emitter, targets, partial(_targets, emitter, targets))
        if emitter.team.shared:
            partials.store_shares(emitter)
            return
        for accumulator in running:
            over = None if emitter.team.kind == "thread" else emitter.team.kind
            emitter.values.define(accumulator.number, accumulator.result(over, emitter.arrays, emitter.team.threads))


def _targets(emitter: Emitter, targets: Sequence[int]) -> None:
    """Accumulate the values at hand, and write."""
    for n in targets:
        i = emitter.kernel.instructions[n]
        if i.name in REDUCTIONS or i.name == "scan":
            emitter.text.line(emitter.accumulator(n).take(f"v{i.args[0]}", emitter.position(emitter.reduced)))
        if i.name == "scan":
            emitter.values.store(n, emitter.accumulator(n).result(None, {}, 0))
        elif i.name not in REDUCTIONS:
            emitter.values.effect(n)


def _after(emitter: Emitter) -> None:
    """What depends on the passes, once per kept point."""
    kernel = emitter.kernel
    stores = [n for n, i in enumerate(kernel.instructions) if i.name == "store" and i.level in ("row", "uniform")]
    added = [n for n in emitter.finals if kernel.instructions[n].attr("over") == "row"]
    if not stores and not added:
        return
    # A result may overwrite an input that other threads of the team have not read yet.
    if stores and emitter.team.kind != "thread" and any(i.name == "load" and i.level == "row" for i in kernel.instructions):
        barrier = "cuda.syncwarp()" if emitter.team.kind == "warp" else "cuda.syncthreads()"
        emitter.text.line(f"{barrier}  # all have read: a result may lie over an input")
    with emitter.first(emitter.team.kind):
        emitter.values.hoist(kernel.needed([*stores, *added]))
        for n in stores:
            emitter.values.effect(n)
        for n in added:
            emitter.text.line(emitter.accumulator(n).take(f"v{kernel.instructions[n].args[0]}", ""))
