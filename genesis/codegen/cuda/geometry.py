"""How a kernel is shared out: which threads work on one point, how many of them there are, in how many blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.codegen.cuda.emit import Team
from genesis.codegen.cuda.signature import Signature
from genesis.codegen.cuda.target import LARGE, SIMULATED, THREADS, WARP
from genesis.codegen.cuda.vectors import points_at_a_time, vectors_of
from genesis.ir.shapes import numel
from genesis.lower.kernel import REDUCTIONS, Kernel

__all__ = ["LAYERS", "Launch", "finishing", "launch", "team_of"]

LAYERS = 65535  # that a grid has at most, along y and along z
# An H100 or H200 has 132 multiprocessors. Each holds 2048 threads of at most 32 registers; a loop that the compiler unrolls by
# four takes up to 64, which leaves 1024. With four numbers of four bytes each on their way these ask for 16 KB in the 0.65 us
# that memory takes to answer, 3.3 TB/s on all multiprocessors: an H100's memory is busy then, an H200's to two thirds.
HELD = 32 if SIMULATED else 1024  # threads that each multiprocessor should have
BLOCKS = 16  # for each multiprocessor, at most, where threads are as many as points: two fillings of 2048
FEW, MANY = (2, 64) if SIMULATED else (16, 512)  # points that one thread reduces itself; that a warp does
# Points are shared where each thread has so many turns that it takes longer than another launch, some 4 us: a turn, one of
# four whose loads leave together, takes a quarter of 0.65 us. Each team then has an eighth of them at least.
DEEP, LEAST = (2, 1) if SIMULATED else (64, 8)


class Launch(NamedTuple):
    """Blocks of a grid (x, y, perhaps z), threads of a block (x, y), parts in which results come, and the bytes of these."""

    blocks: tuple[int, ...]
    threads: tuple[int, int]
    shares: int
    partial_bytes: int


def team_of(kernel: Kernel, extents: Sequence[int], multiprocessors: int) -> Team:
    """Who works on one kept point of a kernel: a thread, a warp, a block, or those threads of a block with one x; or many."""
    if not any(r for _, r in kernel.axes) or any(i.name in ("scatter", "scan") for i in kernel.instructions):
        return Team("thread")
    kept, outer, lanes = _extents(kernel, extents)
    reduced = outer * lanes
    blocks = multiprocessors * HELD // LARGE
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
    turns = numel(_turns(kernel, extents, team))
    alone = team.kind in ("thread", "warp") or kernel.has_totals or len(kernel.steps) > 1 or turns < DEEP
    shared = team._replace(shared=not alone)
    return team if alone or launch(kernel, extents, shared, multiprocessors).shares == 1 else shared


def _extents(kernel: Kernel, extents: Sequence[int]) -> tuple[int, int, int]:
    """How many points are kept; for each, how many are reduced along the axes other than the lane axis, and along that one."""
    kept = numel(e for e, (_, r) in zip(extents, kernel.axes, strict=True) if not r)
    outer = numel(extents[a] for a, (_, r) in enumerate(kernel.axes) if r and a != kernel.lane)
    return kept, outer, extents[kernel.lane] if kernel.lane is not None and kernel.lane_is_reduced else 1


def _turns(kernel: Kernel, extents: Sequence[int], team: Team) -> tuple[int, int]:
    """How often a thread of a block or column goes around for a point: along lanes, and along all other reduced axes."""
    _, outer, lanes = _extents(kernel, extents)
    x, y = _shape(kernel, team)
    return -(-lanes // x) if kernel.lane_is_reduced else 1, -(-outer // y)


def _shape(kernel: Kernel, team: Team) -> tuple[int, int]:
    """The threads of a block whose teams are more than a thread: all along the lanes, if there is no other axis to go along."""
    inner = any(reduced and a != kernel.lane for a, (_, reduced) in enumerate(kernel.axes))
    x = team.threads if team.kind == "block" and not inner else WARP
    return x, team.threads // x


def launch(kernel: Kernel, extents: Sequence[int], team: Team, multiprocessors: int) -> Launch:
    """The grid of a kernel's main function, of a call that runs over `extents`."""
    blocks, threads = _grid(kernel, extents, team, multiprocessors)
    finals = [i for i in kernel.instructions if i.level == "final" and "over" in dict(i.attrs)]
    if not team.shared:
        shares = blocks[0] * blocks[1]
        return Launch(blocks, threads, shares, 8 * shares * len(finals))
    across, down = _turns(kernel, extents, team)
    wanted = max(1, min(multiprocessors * HELD // (team.threads * blocks[0] * blocks[1]), across * down // LEAST))
    z = max(1, min(wanted, down))
    y = max(1, min(wanted // z, -(-across // vectors_of(kernel, kernel.targets()).points)))
    numbers = sum(2 if i.name.startswith("arg") else 1 for i in kernel.instructions if i.name in REDUCTIONS)
    kept, _, _ = _extents(kernel, extents)
    return Launch((blocks[0], y if team.kind == "block" else blocks[1], z), threads, y * z, 8 * y * z * numbers * kept)


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


def finishing(kernel: Kernel, extents: Sequence[int], team: Team, multiprocessors: int) -> Launch:
    """The grid of a kernel's finishing function: a team for each point that is shared, or one block for totals."""
    if not team.shared:
        return Launch((1, 1), (THREADS, 1), 0, 0)
    blocks, threads = _grid(kernel, extents, team, multiprocessors)
    return Launch(blocks, threads if team.kind == "column" else (team.threads, 1), 0, 0)


def _width(extent: int, rows: int) -> int:
    """The threads along an axis, a power of two, that leave the fewest of a block without a point: so many rows have it."""
    sizes = [1 << n for n in range(THREADS.bit_length()) if 1 << n <= THREADS]
    least = next((size for size in sizes if size >= extent), THREADS)
    sizes = [size for size in sizes if size >= min(least, WARP)]

    def threads(x: int) -> int:
        y = THREADS // x
        return -(-extent // x) * x * (-(-rows // y) * y)

    return min(sizes, key=lambda size: (threads(size), -size))
