"""How a kernel is shared out: which threads work on one point, how many of them there are, in how many blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.codegen.cuda.emit import Team
from genesis.codegen.cuda.signature import Signature
from genesis.codegen.cuda.target import SIMULATED, THREADS, WARP
from genesis.ir.shapes import numel
from genesis.lower.kernel import Kernel

__all__ = ["Launch", "finishing", "launch", "team_of"]

BLOCKS = 16  # for each multiprocessor: two fillings of it
FEW, MANY = (2, 64) if SIMULATED else (16, 512)  # points that one thread sums up itself; that a warp does
COLUMN_ROWS = 8  # that a team passes over, at least, for the sums of columns that it keeps


class Launch(NamedTuple):
    """The blocks of a grid (x, y), the threads of a block (x, y), the parts in which totals come, and what these take."""

    blocks: tuple[int, int]
    threads: tuple[int, int]
    shares: int
    partial_bytes: int


def team_of(kernel: Kernel, extents: Sequence[int]) -> Team:
    """Who works on one kept point of a kernel: a thread, a warp, a block, or those threads of a block with one x."""
    reduced = numel(e for e, (_, r) in zip(extents, kernel.axes, strict=True) if r)
    kept = numel(e for e, (_, r) in zip(extents, kernel.axes, strict=True) if not r)
    columns = any(i.level == "column" for i in kernel.instructions)
    if not any(r for _, r in kernel.axes) or any(i.name == "scatter" for i in kernel.instructions):
        return "thread"
    if not kernel.lane_is_reduced:
        return "thread" if reduced <= FEW else "column"
    if reduced <= FEW // 2 and not columns:
        return "thread"
    return "warp" if reduced <= MANY and (kept >= THREADS or reduced <= WARP) else "block"


def launch(kernel: Kernel, extents: Sequence[int], team: Team, multiprocessors: int) -> Launch:
    """The grid of a kernel's main function, of a call that runs over `extents`."""
    everywhere = Signature(kernel).is_atomic
    kept = [a for a, (_, reduced) in enumerate(kernel.axes) if everywhere or not reduced]
    lane = kernel.lane if kernel.lane in kept else None
    rows = numel(extents[a] for a in kept if a != lane)
    most = BLOCKS * multiprocessors
    columns = [i for i in kernel.instructions if i.level == "column" and "over" in dict(i.attrs)]
    finals = [i for i in kernel.instructions if i.level == "final" and "over" in dict(i.attrs)]
    if team in ("warp", "block"):
        inner = [a for a, (_, reduced) in enumerate(kernel.axes) if reduced and a != kernel.lane]
        x = WARP if team == "warp" or inner else THREADS
        y = THREADS // x
        teams = y if team == "warp" else 1
        if columns:
            most, rows = 2 * multiprocessors, -(-rows // COLUMN_ROWS)
        blocks = (min(-(-rows // teams), most), 1)
    elif lane is None:
        x, y, teams = THREADS, 1, 1
        blocks = (min(-(-rows // x), most), 1)
    else:
        alone = team == "thread" and len(kept) == 1
        x = WARP if team == "column" else THREADS if alone else _width(extents[lane])
        y, teams = (1 if alone else THREADS // x), 1
        across = max(1, min(-(-extents[lane] // x), most))
        down = rows if team == "column" else -(-rows // y)
        blocks = (across, min(down, max(1, most // across), 65535))
    blocks = (max(blocks[0], 1), max(blocks[1], 1))
    shares = blocks[0] * blocks[1] * (teams if columns else 1)
    numbers = len(finals) + len(columns) * numel(e for e, (_, r) in zip(extents, kernel.axes, strict=True) if r)
    return Launch(blocks, (x, y), shares, 8 * shares * numbers if kernel.has_totals else 0)


def finishing(kernel: Kernel, extents: Sequence[int]) -> Launch:
    """The grid of a kernel's finishing function."""
    columns = any(i.level == "column" for i in kernel.instructions)
    points = numel(e for e, (_, r) in zip(extents, kernel.axes, strict=True) if r) if columns else 1
    return Launch((max(1, -(-points // THREADS)), 1), (THREADS, 1), 0, 0)


def _width(extent: int) -> int:
    """The threads along an axis, a power of two, that leave the fewest without a point."""
    sizes = [1 << n for n in range(THREADS.bit_length()) if 1 << n <= THREADS]
    least = next((size for size in sizes if size >= extent), THREADS)
    return min((size for size in sizes if size >= min(least, WARP)), key=lambda size: (-(-extent // size) * size, -size))
