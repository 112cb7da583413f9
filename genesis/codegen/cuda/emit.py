"""From a Kernel to functions of the device, as text: what a person who knows CUDA would write by hand.

Kept points of the nest are shared out over the grid. Who works on one of them is a *team*: one thread, a warp, a whole block
or, where lanes are kept, the threads of a block that have one x. A team makes as many passes over the reduced axes as the
kernel's reductions are deep, and a value is computed in the outermost loop that has bound all it varies over.

A point that has much to reduce may be *shared* by teams in several layers of the grid (y and z), if one pass does it: each
reduces its share, and what depends on the result is computed by the finishing function.
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
    """A kernel's main function; with `many`, the one that serves a call for each layer of the grid."""
    function = _main(Emitter(kernel, team), many)
    return function if team.threads == THREADS else function._replace(threads=team.threads)


def emit_finish(kernel: Kernel, team: Team) -> Function:
    """The function that joins the parts of several blocks, and computes what depends on the results."""
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
    """One kept point: the passes over the reduced axes, and what they reduce to."""
    kernel = emitter.kernel
    for step in kernel.steps:
        targets = kernel.targets(step)
        needed = kernel.needed(targets)
        held = [emitter.accumulator(n) for n in targets if kernel.instructions[n].level == "row"]
        for accumulator in [*held, *[emitter.accumulator(n) for n in targets if kernel.instructions[n].name == "scan"]]:
            emitter.text.line(accumulator.begin())
        with emitter.guard():
            emitter.values.hoist(needed)
            passes.pass_over(emitter, targets, partial(_targets, emitter, targets))
        if emitter.team.shared:
            partials.store_shares(emitter)
            return
        for accumulator in held:
            over = None if emitter.team.kind == "thread" else emitter.team.kind
            emitter.values.define(accumulator.number, accumulator.folded(over, emitter.arrays, emitter.team.threads))


def _targets(emitter: Emitter, targets: Sequence[int]) -> None:
    """Reductions take in the values at hand, and effects happen."""
    for n in targets:
        i = emitter.kernel.instructions[n]
        if i.name in REDUCTIONS or i.name == "scan":
            emitter.text.line(emitter.accumulator(n).take(f"v{i.args[0]}", emitter.position(emitter.reduced)))
        if i.name == "scan":
            emitter.values.store(n, emitter.accumulator(n).folded(None, {}, 0))
        elif i.name not in REDUCTIONS:
            emitter.values.effect(n)


def _after(emitter: Emitter) -> None:
    """What depends on the passes, once for each kept point."""
    kernel = emitter.kernel
    stores = [n for n, i in enumerate(kernel.instructions) if i.name == "store" and i.level in ("row", "uniform")]
    added = [n for n in emitter.finals if kernel.instructions[n].attr("over") == "row"]
    if not stores and not added:
        return
    if stores and emitter.team.kind != "thread" and any(i.name == "load" and i.level == "row" for i in kernel.instructions):
        barrier = "cuda.syncwarp()" if emitter.team.kind == "warp" else "cuda.syncthreads()"
        emitter.text.line(f"{barrier}  # all have read: a result may lie over an input")
    with emitter.first(emitter.team.kind):
        emitter.values.hoist(kernel.needed([*stores, *added]))
        for n in stores:
            emitter.values.effect(n)
        for n in added:
            emitter.text.line(emitter.accumulator(n).take(f"v{kernel.instructions[n].args[0]}", ""))
