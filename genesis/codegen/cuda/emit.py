"""From a Kernel to functions of the device, as text, such as one would write in CUDA by hand.

The grid covers the kept points. A *team* computes one of them: a thread, a warp, a block or, where lanes are kept, a column,
the threads of a block that have one x. A team makes one pass over the reduced axes per level of nested reductions, and each
value is computed in the outermost loop that has bound the axes it varies over.

A point with a long reduction may be *shared* by teams in multiple layers of the grid (y and z), if one pass is enough. Such
shares, and the totals of blocks, are partial results in memory, which the finishing function combines in order: the same bits
in every run, which atomic additions would not give. A part is eight bytes whatever its type; the position of an extreme is one
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from genesis.codegen.cuda.arithmetic import Accumulator
from genesis.codegen.cuda.emitter import Emitter, Team
from genesis.codegen.cuda.grid_loops import begin_shares, layers, over_points, pass_over
from genesis.codegen.cuda.signature import Function
from genesis.codegen.cuda.target import THREADS
from genesis.lower.kernel import REDUCTIONS, Kernel


def emit_kernel(kernel: Kernel, team: Team, many: bool = False) -> Function:
    """A kernel's main function; with `many`, one call per layer of the grid."""
    function = _main(Emitter(kernel, team), many)
    return function if team.threads == THREADS else function._replace(threads=team.threads)


def emit_finish(kernel: Kernel, team: Team) -> Function:
    """The function that combines the partial results of multiple blocks, and computes what depends on them."""
    function = finish(Emitter(kernel, team if team.shared else Team("thread")))
    return function._replace(threads=team.threads) if team.shared and team.threads != THREADS else function


def _main(emitter: Emitter, many: bool) -> Function:
    for n in emitter.finals:
        emitter.text.line(emitter.accumulator(n).begin())
    if emitter.team.shared:
        begin_shares(emitter)
    with over_points(emitter, emitter.kernel.needed(emitter.kernel.targets())):
        _passes(emitter)
        if not emitter.team.shared:
            _after(emitter)
    store_totals(emitter)
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
            pass_over(emitter, targets, partial(_targets, emitter, targets))
        if emitter.team.shared:
            store_shares(emitter)
            return
        for accumulator in running:
            over = None if emitter.team.kind == "thread" else emitter.team.kind
            emitter.values.define(accumulator.number, accumulator.result(over, emitter.arrays, emitter.team.threads))


def _targets(emitter: Emitter, targets: Sequence[int]) -> None:
    for n in targets:
        i = emitter.kernel.instructions[n]
        if i.name == "scan" and i.attr("mode") == "recurrence":
            factor, term = (f"v{a}" for a in i.args)
            name, first = emitter.accumulator(n).name, f"({emitter.position(emitter.reduced)}) == 0"
            emitter.text.line(f"{name} = {term} if {first} else {factor} * {name} + {term}")
        elif i.name in REDUCTIONS or i.name == "scan":
            emitter.text.line(emitter.accumulator(n).take(f"v{i.args[0]}", emitter.position(emitter.reduced)))
        if i.name == "scan":
            emitter.values.store(n, emitter.accumulator(n).result(None, {}, 0))
        elif i.name not in REDUCTIONS:
            emitter.values.effect(n)


def _after(emitter: Emitter) -> None:
    """Emit the code that reads the passes' results, once per kept point."""
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


def store_totals(emitter: Emitter) -> None:
    """At the end of the main function: the block's parts of the totals."""
    if emitter.finals:
        _store(emitter, emitter.finals, "block", [], "cuda.blockIdx.x + cuda.blockIdx.y * cuda.gridDim.x")


def store_shares(emitter: Emitter) -> None:
    """After the pass over a team's share of the current point: the team's part."""
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
    """The parts of each accumulator's variables for the current share, and the current point on `axes`."""
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
