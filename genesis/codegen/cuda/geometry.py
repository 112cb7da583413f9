"""How a kernel is shared out: which threads work on one point, how many of them there are, in how many blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.codegen.cuda.emit import Team
from genesis.codegen.cuda.readahead import points_at_a_time
from genesis.codegen.cuda.signature import Signature
from genesis.codegen.cuda.target import LARGE, SIMULATED, THREADS, WARP
from genesis.ir.shapes import numel
from genesis.lower.kernel import Kernel

__all__ = ["Launch", "finishing", "launch", "team_of"]

BLOCKS = 16  # for each multiprocessor: two fillings of it
FEW, MANY = (2, 64) if SIMULATED else (16, 512)  # points that one thread sums up itself; that a warp does
BLOCKS_ENOUGH = 2 if SIMULATED else 256  # that keep a device busy, of the usual size
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
    if not any(r for _, r in kernel.axes) or any(i.name in ("scatter", "scan") for i in kernel.instructions):
        return Team("thread")
    if not kernel.lane_is_reduced:
        few = kept <= BLOCKS_ENOUGH * WARP and reduced >= LARGE // 2
        return Team("thread") if reduced <= FEW else Team("column", LARGE if few else THREADS)
    if reduced <= FEW // 2 and not columns:
        return Team("thread")
    if reduced <= MANY and (kept >= THREADS or reduced <= WARP):
        return Team("warp")
    return Team("block", LARGE if kept <= BLOCKS_ENOUGH and reduced >= 8 * LARGE else THREADS)


def launch(kernel: Kernel, extents: Sequence[int], team: Team, multiprocessors: int) -> Launch:
    """The grid of a kernel's main function, of a call that runs over `extents`."""
    everywhere = Signature(kernel).is_atomic
    kept = [a for a, (_, reduced) in enumerate(kernel.axes) if everywhere or not reduced]
    lane = kernel.lane if kernel.lane in kept else None
    rows = numel(extents[a] for a in kept if a != lane)
    most = BLOCKS * multiprocessors
    columns = [i for i in kernel.instructions if i.level == "column" and "over" in dict(i.attrs)]
    finals = [i for i in kernel.instructions if i.level == "final" and "over" in dict(i.attrs)]
    if team.kind in ("warp", "block"):
        inner = [a for a, (_, reduced) in enumerate(kernel.axes) if reduced and a != kernel.lane]
        x = WARP if team.kind == "warp" or inner else team.threads
        y = team.threads // x
        teams = y if team.kind == "warp" else 1
        if columns:
            most, rows = 2 * multiprocessors, -(-rows // COLUMN_ROWS)
        blocks = (min(-(-rows // teams), most), 1)
    elif lane is None:
        x, y, teams = THREADS, 1, 1
        blocks = (min(-(-rows // x), most), 1)
    else:
        alone = team.kind == "thread" and len(kept) == 1
        points = points_at_a_time(kernel) if team.kind == "thread" else 1
        each = -(-extents[lane] // points)  # threads to have a point each
        x = WARP if team.kind == "column" else THREADS if alone else _width(each)
        y, teams = (1 if alone else team.threads // x), 1
        across = max(1, min(-(-each // x), most))
        down = rows if team.kind == "column" else -(-rows // y)
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
