"""What is reduced over all rows: each block's part goes to memory, and a second function, of one block, joins the parts.

A part is eight bytes whatever its type. Sums of columns beside reductions of rows have a part for each team of rows, a number
for each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from genesis.codegen.cuda.reductions import Accumulator
from genesis.codegen.cuda.registers import register_type
from genesis.codegen.cuda.signature import Function
from genesis.codegen.cuda.target import THREADS

if TYPE_CHECKING:
    from genesis.codegen.cuda.emit import Emitter

__all__ = ["add_to_column", "clear_columns", "finish", "store_partials"]


def store_partials(emitter: Emitter) -> None:
    """At the end of the main function: what the block's threads have found altogether."""
    if not emitter.finals:
        return
    text = emitter.text
    found = []
    for n in emitter.finals:
        accumulator = emitter.accumulator(n)
        text.line(f"{accumulator.name} = {_raw(accumulator, emitter)}")
        found.append(accumulator)
    with text.block("if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:"):
        text.line("share = cuda.blockIdx.x + cuda.blockIdx.y * cuda.gridDim.x")
        for position, accumulator in enumerate(found):
            text.line(f"{_partial(emitter, accumulator.type, position)} = {accumulator.name}")


def _raw(accumulator: Accumulator, emitter: Emitter) -> str:
    """What a block's threads hold, joined but not yet in the result's dtype."""
    raw = accumulator._replace(source=accumulator.type, dtype=accumulator.type)
    return raw.folded("block", emitter.arrays, emitter.team.threads)


def _partial(emitter: Emitter, dtype: str, position: int) -> str:
    """The result number `position` of the share at hand."""
    at = f"share * {len(emitter.finals)} + {position}" if len(emitter.finals) > 1 else "share"
    at = at if dtype != "float32" else f"2 * ({at})" if " " in at else f"2 * {at}"
    return f"{emitter.signature.partials(dtype)}[{at}]"


def finish(emitter: Emitter) -> Function:
    """The finishing function."""
    if emitter.columns:
        _finish_columns(emitter)
    else:
        _finish_finals(emitter)
    return emitter.signature.by_value(emitter.kernel.name + "_finish", emitter.body())


def _finish_finals(emitter: Emitter) -> None:
    text, accumulators = emitter.text, [emitter.accumulator(n) for n in emitter.finals]
    for accumulator in accumulators:
        text.line(accumulator.begin())
    with text.block(f"for share in range(cuda.threadIdx.x, {_shares(emitter)}, {THREADS}):"):
        for position, accumulator in enumerate(accumulators):
            text.line(accumulator.take(_partial(emitter, accumulator.type, position), ""))
    for accumulator in accumulators:
        emitter.values.define(accumulator.number, accumulator.folded("block", emitter.arrays, emitter.team.threads))
    with text.block("if cuda.threadIdx.x == 0:"):
        _stores(emitter, "final")


def _shares(emitter: Emitter) -> str:
    return emitter.signature.name(next(n for n, word in enumerate(emitter.kernel.words) if word.kind == "shares"))


def _stores(emitter: Emitter, level: str) -> None:
    """All is read before anything is written: a result may lie where an input lay."""
    kernel = emitter.kernel
    stores = [n for n, i in enumerate(kernel.instructions) if i.name == "store" and i.level == level]
    emitter.values.hoist(kernel.needed(stores))
    for n in stores:
        emitter.values.effect(kernel.instructions[n])


# ---- sums of columns ----


def clear_columns(emitter: Emitter) -> None:
    """Before the first row: the team's part is nothing. Each thread clears what it will add to."""
    team = f"cuda.blockIdx.x * {emitter.warps} + cuda.threadIdx.y" if emitter.team.kind == "warp" else "cuda.blockIdx.x"
    emitter.text.line(f"share = {team}")

    def clear() -> None:
        for n in emitter.columns:
            emitter.text.line(f"{_column(emitter, n)} = 0")

    emitter.share_out([], clear)


def add_to_column(emitter: Emitter, n: int) -> None:
    """The value at hand, to its column's sum."""
    emitter.text.line(f"{_column(emitter, n)} += v{emitter.kernel.instructions[n].args[0]}")


def _column(emitter: Emitter, n: int) -> str:
    """The share's sum `n` of the column at hand."""
    dtype = register_type(emitter.kernel.instructions[n].dtype.name)
    count = emitter.count(emitter.reduced)
    part = f"share * {len(emitter.columns)} + {emitter.columns.index(n)}"
    start = f"({part}) * {count}" + (" * 2" if dtype in ("float32", "int32") else "")
    return f"{emitter.signature.partials(dtype)}[{start} + {emitter.reduced_position()}]"


def _finish_columns(emitter: Emitter) -> None:
    text = emitter.text
    with emitter.over(emitter.reduced, "cuda.grid(1)", "cuda.gridsize(1)", "column"):
        for n in emitter.columns:
            dtype = register_type(emitter.kernel.instructions[n].dtype.name)
            text.line(f"sum{n} = {dtype}(0)")
        with text.block(f"for share in range({_shares(emitter)}):"):
            for n in emitter.columns:
                text.line(f"sum{n} += {_column(emitter, n)}")
        for n in emitter.columns:
            emitter.values.define(n, emitter.accumulator(n).folded(None, {}, 0))
        _stores(emitter, "column")
