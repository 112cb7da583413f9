"""The launch geometry of a kernel: the team of a point, the threads of a block, the blocks of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.codegen.cuda.emit import Team
from genesis.codegen.cuda.grid_loops import points_at_a_time, vectors_of
from genesis.codegen.cuda.signature import Signature
from genesis.codegen.cuda.target import LARGE, SIMULATED, THREADS, WARP
from genesis.ir.shapes import numel
from genesis.lower.kernel import REDUCTIONS, Kernel

LAYERS = 65535  # the most blocks of a grid along y and along z
# An H100 or H200 has 132 multiprocessors, each with 2048 threads of at most 32 registers; a loop that the compiler unrolls by
# four takes up to 64, which leaves 1024 threads. With four loads of four bytes in flight these request 16 KB per 0.65 us, the
# latency of memory: 3.3 TB/s on all multiprocessors, all of an H100's bandwidth and two thirds of an H200's.
RESIDENT = 32 if SIMULATED else 1024  # threads per multiprocessor
BLOCKS = 16  # per multiprocessor, at most, where each thread has one point: two fillings of 2048 threads
FEW, MANY = (2, 64) if SIMULATED else (16, 512)  # the most reduced elements per point for a thread; for a warp
# Teams share a point where a thread has so many rounds that they take longer than another launch, about 4 us: a round takes a
# quarter of 0.65 us, since four of them load together. Each team then has at least LEAST rounds.
# Column sums of 2048 x 512 then have 256 blocks instead of 16, four rows of 10M 264 instead of 4.
DEEP, LEAST = (2, 1) if SIMULATED else (64, 8)


class Grid(NamedTuple):
    """Blocks of a grid (x, y, perhaps z), threads of a block (x, y), shares with partial results, and the bytes of these."""

    blocks: tuple[int, ...]
    threads: tuple[int, int]
    shares: int
    partial_bytes: int


def team_of(kernel: Kernel, extents: Sequence[int], multiprocessors: int) -> Team:
    """The team of a kept point: a thread, a warp, a block, a column, or multiple blocks or columns that share it."""
    if not any(r for _, r in kernel.axes) or any(i.name in ("scatter", "scan") for i in kernel.instructions):
        return Team("thread")
    # Short reductions are a thread's, middling ones a warp's, which needs no barrier of the block; long ones a block's. Where
    # lanes are kept, threads of a warp have adjacent columns, so that their loads coalesce.
    kept, outer, lanes = _extents(kernel, extents)
    reduced = outer * lanes
    blocks = multiprocessors * RESIDENT // LARGE
    if not kernel.lane_is_reduced:
        few = kept <= blocks * WARP and reduced >= LARGE // 2
        team = Team("thread") if reduced <= FEW else Team("column", LARGE if few else THREADS)
    elif reduced <= FEW // 2:
        team = Team("thread")
    elif reduced <= MANY and (kept >= THREADS or reduced <= WARP):
        team = Team("warp")
    else:
        threads = LARGE if kept <= blocks and reduced >= 8 * LARGE else THREADS
        most = WARP << max(1, (outer - 1).bit_length()) if outer > 1 else threads  # a warp for each point of the other axes
        team = Team("block", min(threads, most))
    rounds = numel(_rounds(kernel, extents, team))
    alone = team.kind in ("thread", "warp") or kernel.has_totals or len(kernel.steps) > 1 or rounds < DEEP
    shared = team._replace(shared=not alone)
    return team if alone or launch(kernel, extents, shared, multiprocessors).shares == 1 else shared


def _extents(kernel: Kernel, extents: Sequence[int]) -> tuple[int, int, int]:
    """The kept points; the reduced elements per point along all axes but the lane axis, and along that one."""
    kept = numel(e for e, (_, r) in zip(extents, kernel.axes, strict=True) if not r)
    outer = numel(extents[a] for a, (_, r) in enumerate(kernel.axes) if r and a != kernel.lane)
    return kept, outer, extents[kernel.lane] if kernel.lane is not None and kernel.lane_is_reduced else 1


def _rounds(kernel: Kernel, extents: Sequence[int], team: Team) -> tuple[int, int]:
    """The iterations of a thread of a block or column per point: along lanes, and along all other reduced axes."""
    _, outer, lanes = _extents(kernel, extents)
    x, y = _shape(kernel, team)
    return -(-lanes // x) if kernel.lane_is_reduced else 1, -(-outer // y)


def _shape(kernel: Kernel, team: Team) -> tuple[int, int]:
    """The threads of a block (x, y) whose teams are larger than a thread: all along the lanes, if no other axis is reduced."""
    inner = any(reduced and a != kernel.lane for a, (_, reduced) in enumerate(kernel.axes))
    x = team.threads if team.kind == "block" and not inner else WARP
    return x, team.threads // x


def launch(kernel: Kernel, extents: Sequence[int], team: Team, multiprocessors: int) -> Grid:
    """The grid of a kernel's main function, of a call that runs over `extents`."""
    blocks, threads = _grid(kernel, extents, team, multiprocessors)
    finals = [i for i in kernel.instructions if i.level == "final" and "over" in dict(i.attrs)]
    if not team.shared:
        shares = blocks[0] * blocks[1]
        return Grid(blocks, threads, shares, 8 * shares * len(finals))
    # As many teams share a point as fill the multiprocessors, first over the outer axes, then along the lanes.
    across, down = _rounds(kernel, extents, team)
    wanted = max(1, min(multiprocessors * RESIDENT // (team.threads * blocks[0] * blocks[1]), across * down // LEAST))
    z = max(1, min(wanted, down))
    y = max(1, min(wanted // z, -(-across // vectors_of(kernel, kernel.targets()).points)))
    numbers = sum(2 if i.name.startswith("arg") else 1 for i in kernel.instructions if i.name in REDUCTIONS)
    kept, _, _ = _extents(kernel, extents)
    return Grid((blocks[0], y if team.kind == "block" else blocks[1], z), threads, y * z, 8 * y * z * numbers * kept)


def _grid(kernel: Kernel, extents: Sequence[int], team: Team, multiprocessors: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The blocks of one layer of a grid, and the threads of a block."""
    everywhere = Signature(kernel).is_atomic
    kept = [a for a, (_, reduced) in enumerate(kernel.axes) if everywhere or not reduced]
    lane = kernel.lane if kernel.lane in kept else None
    rows = numel(extents[a] for a in kept if a != lane)
    most = BLOCKS * multiprocessors
    if team.kind in ("warp", "block"):
        x, y = _shape(kernel, team)
        blocks = (min(-(-rows // (y if team.kind == "warp" else 1)), most), 1)
    elif lane is None:
        x, y = THREADS, 1
        blocks = (min(-(-rows // x), most), 1)
    else:
        alone = team.kind == "thread" and len(kept) == 1
        points = points_at_a_time(kernel) if team.kind == "thread" else 1
        each = -(-extents[lane] // points)  # threads to have a point each
        x = WARP if team.kind == "column" else THREADS if alone else _width(each, rows)
        y = 1 if alone else team.threads // x
        across = max(1, min(-(-each // x), most))
        down = rows if team.kind == "column" else -(-rows // y)
        blocks = (across, min(down, max(1, most // across), LAYERS))
    return (max(blocks[0], 1), max(blocks[1], 1)), (x, y)


def finishing(kernel: Kernel, extents: Sequence[int], team: Team, multiprocessors: int) -> Grid:
    """The grid of a kernel's finishing function: a team for each point that is shared, or one block for totals."""
    if not team.shared:
        return Grid((1, 1), (THREADS, 1), 0, 0)
    blocks, threads = _grid(kernel, extents, team, multiprocessors)
    return Grid(blocks, threads if team.kind == "column" else (team.threads, 1), 0, 0)


def _width(extent: int, rows: int) -> int:
    """The threads along an axis of `rows`, a power of two, that leave the fewest threads of a block without a point."""
    sizes = [1 << n for n in range(THREADS.bit_length()) if 1 << n <= THREADS]
    least = next((size for size in sizes if size >= extent), THREADS)
    sizes = [size for size in sizes if size >= min(least, WARP)]

    def threads(x: int) -> int:
        y = THREADS // x
        return -(-extent // x) * x * (-(-rows // y) * y)

    return min(sizes, key=lambda size: (threads(size), -size))
