"""Loops over points: vectorized along the lanes, over the kept points that the grid covers, over the reduced axes of one point.

Grid-stride loops, since a grid may be smaller than the points. A pass over reduced axes is of one thread, of a team's threads,
or of the teams that share the point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

from genesis.codegen.cuda.arithmetic import memory_type
from genesis.codegen.cuda.emitter import Emitter
from genesis.codegen.cuda.target import WARP
from genesis.lower.kernel import Kernel

# Registers with 16 bytes at once: softmax 48 (56 before), layer norm 68 (60); nothing spills.
BYTES, MOST = 16, 8  # bytes of a load or store; points per thread
AHEAD = 128  # bytes that a thread loads ahead: 32 registers
# Simple operations on a point, and on all points of a thread, up to which the compiler unrolls the loop over points: the arrays
# of a loop that stays are in local memory instead of registers.
EXPENSIVE, UNROLLED = 64, 256


class PointsPerThread(NamedTuple):
    """A loop over lanes, `points` at a time: the instructions that load ahead of it and store behind it."""

    points: int
    loads: Sequence[int]
    stores: Sequence[int]


SINGLE = PointsPerThread(1, (), ())


def points_at_a_time(kernel: Kernel) -> int:
    """The points per thread along the lane axis, of a kernel that reduces no axis."""
    return 1 if any(reduced for _, reduced in kernel.axes) else vectors_of(kernel, kernel.targets()).points


def vectors_of(kernel: Kernel, targets: Sequence[int]) -> PointsPerThread:
    """The points per thread in a pass over a kernel's lanes that computes `targets`."""
    lane, every = kernel.lane, kernel.instructions
    if lane is None or kernel.work >= EXPENSIVE or any(i.name in ("scatter", "scan") for i in every):
        return SINGLE
    loads = [n for n in kernel.needed(targets) if every[n].name in ("load", "load_at") and _step(kernel, n) != 0
             and not any(lane in every[a].varies for a in every[n].args)]
    stores = [n for n in targets if every[n].name == "store" and _step(kernel, n) == 1]
    if not loads and not stores:
        return SINGLE
    points = max(2, min(MOST, BYTES // max(every[n].dtype.itemsize for n in (*loads, *stores))))
    nbytes = sum(every[n].dtype.itemsize for n in loads)
    while points > 1 and (points * nbytes > AHEAD or points * kernel.work > UNROLLED):
        points //= 2
    return PointsPerThread(points, loads, stores) if points > 1 else SINGLE


def _step(kernel: Kernel, n: int) -> int | str:
    access = kernel.instructions[n].access
    assert access is not None and kernel.lane is not None
    return access.strides[kernel.lane]


@contextmanager
def over_vectors(
    emitter: Emitter, vectors: PointsPerThread, begin: str, end: str, threads: str | int, step: str | int
) -> Iterator[None]:
    """A loop over the lanes from `begin` to `end` by a row of `threads`; all rows together advance by `step` points. Inside,
    one point is current.
    """
    text, points = emitter.text, vectors.points
    near = {n: _near(emitter, n, points) for n in (*vectors.loads, *vectors.stores)}
    rows = {n: _row(emitter, n) for n in near if _step(emitter.kernel, n) == 1}
    nbytes = {n: min(BYTES, points * emitter.kernel.instructions[n].dtype.itemsize) for n in rows}
    whole = " and ".join(f"is_aligned({row}, {nbytes[n]})" for n, row in rows.items()) or "False"
    text.line(f"lead, apart, reach = points_of_thread({whole}, {threads}, {points}, {end})")
    start = "lead" if begin == "0" else f"{begin} + lead"
    grid = isinstance(step, str)  # known to the launch alone; see `Emitter.over`
    if grid:
        text.line(f"first = {start}")
    with text.block(f"while first < {end}:" if grid else f"for first in range({start}, {end}, {step}):"):
        # All loads come before any point is computed. The compiler must assume that a store aliases a later load, so a loop
        # over single points would wait for each of its loads.
        _read(emitter, {n: near[n] for n in vectors.loads if n not in rows}, points, end)
        for n in near:
            if n in vectors.loads and n in rows:
                text.line(f"read_beside({near[n]}, {rows[n]}, first, apart, {end}, reach, {nbytes[n]})")
        with _each(emitter, points, end):
            emitter.values.near = {n: f"{name}[part]" for n, name in near.items()}
            yield
            emitter.values.near = {}
        for n in vectors.stores:
            text.line(f"write_beside({near[n]}, {rows[n]}, first, apart, {end}, reach, {nbytes[n]})")
        if grid:
            text.line(f"first += {step}")


def _read(emitter: Emitter, near: Mapping[int, str], points: int, end: str) -> None:
    if near:
        with _each(emitter, points, end):
            for n, name in near.items():
                emitter.text.line(f"{name}[part] = {emitter.values.element(n)}")


@contextmanager
def _each(emitter: Emitter, points: int, end: str) -> Iterator[None]:
    """A loop over a thread's points, each with its own bounds check."""
    lane = emitter.kernel.lane
    assert lane is not None
    i = emitter.letter(lane)
    with emitter.text.block(f"for part in range({points}):"), emitter.bound([lane]):
        emitter.text.line(f"{i} = first + part * apart")
        with emitter.text.block(f"if {i} < {end}:"):
            yield


def _near(emitter: Emitter, n: int, points: int) -> str:
    i = emitter.kernel.instructions[n]
    assert i.access is not None
    name = f"near_{emitter.signature.name(i.access.pointer)}"
    emitter.arrays[name] = f"cuda.local.array({points}, {memory_type(i.dtype.name)})"
    return name


def _row(emitter: Emitter, n: int) -> str:
    """The pointer and offset of the element of instruction `n` at the first lane."""
    lane = emitter.kernel.lane
    assert lane is not None
    emitter.index[lane] = "0"
    row = ", ".join(emitter.values.location(n))
    del emitter.index[lane]
    return row


@contextmanager
def over_points(emitter: Emitter, needed: Sequence[int]) -> Iterator[None]:
    """Loops that bind the kept axes, one point per team; `needed` values are computed as far out as possible."""
    x, x_step, y, y_step = "cuda.grid(1)", "cuda.gridsize(1)", "", ""
    if emitter.team.kind == "warp":
        x, x_step = f"cuda.blockIdx.x * {emitter.warps} + cuda.threadIdx.y", f"cuda.gridDim.x * {emitter.warps}"
    elif emitter.team.kind == "block":
        x, x_step = "cuda.blockIdx.x", "cuda.gridDim.x"
    elif emitter.team.kind == "column":
        y, y_step = "cuda.blockIdx.y", "cuda.gridDim.y"
    elif emitter.lane is not None and emitter.outer:
        emitter.text.line("x, y = cuda.grid(2)")
        x, x_step = "x", "cuda.gridDim.x * cuda.blockDim.x"
        y, y_step = "y", "cuda.gridDim.y * cuda.blockDim.y"
    emitter.values.hoist(needed)
    if not emitter.kept:
        alone = {"thread": "cuda.grid(1) == 0", "warp": f"{x} == 0", "block": f"{x} == 0"}[emitter.team.kind]
        with emitter.text.block(f"if {alone}:"), emitter.values.scope():
            yield
    elif emitter.lane is None:
        with emitter.over(emitter.outer, x, x_step, "row"):
            yield
    else:
        with emitter.over(emitter.outer, y, y_step, "row") if emitter.outer else nullcontext():
            emitter.values.hoist(needed)
            vectorized = emitter.team.kind == "thread" and points_at_a_time(emitter.kernel) > 1
            with _over_columns(emitter) if emitter.team.kind == "column" else _over_vectors(emitter) if vectorized else \
                    emitter.over([emitter.lane], x, x_step, ""):
                yield


def _over_vectors(emitter: Emitter) -> AbstractContextManager[None]:
    assert emitter.lane is not None
    vectors = vectors_of(emitter.kernel, emitter.kernel.targets())
    begin, step = (f"cuda.{block} * cuda.blockDim.x * {vectors.points}" for block in ("blockIdx.x", "gridDim.x"))
    return over_vectors(emitter, vectors, begin, emitter.extent(emitter.lane), "cuda.blockDim.x", step)


@contextmanager
def _over_columns(emitter: Emitter) -> Iterator[None]:
    """The lane axis, a block's width at a time; threads beyond its end are idle, but reach the barriers of reductions."""
    assert emitter.lane is not None
    extent = emitter.extent(emitter.lane)
    emitter.text.line(f"first = cuda.blockIdx.x * {WARP}")
    with emitter.text.block(f"while first < {extent}:"), emitter.bound([emitter.lane]):
        emitter.text.line(f"{emitter.index[emitter.lane]} = first + cuda.threadIdx.x")
        yield
        emitter.text.line(f"first += cuda.gridDim.x * {WARP}")


class TeamLoop(NamedTuple):
    """A team's loop: its axes and variable, a thread's first point, the step, the grid's dimension that splits it."""

    axes: list[int]
    variable: str
    start: str
    step: int
    layer: str


def _width(emitter: Emitter) -> int:
    """The threads along the lanes: a warp per point of other reduced axes, or the whole team."""
    return emitter.team.threads if emitter.team.kind == "block" and len(emitter.reduced) == 1 else WARP


def _loops(emitter: Emitter, vectors: PointsPerThread) -> list[TeamLoop]:
    """Rows of threads cover the outer axes, the threads of a row the lanes: adjacent threads read adjacent elements."""
    lane = [a for a in emitter.reduced if a == emitter.kernel.lane]
    outer = [a for a in emitter.reduced if a not in lane]
    name = "point" if len(outer) > 1 else "".join(map(emitter.letter, outer))
    loops = [TeamLoop(outer, name, "cuda.threadIdx.y", emitter.warps, "z")] if outer else []
    step = _width(emitter) * vectors.points
    return loops + [TeamLoop([a], emitter.letter(a), "cuda.threadIdx.x", step, "y") for a in lane]


def layers(emitter: Emitter) -> list[str]:
    """The dimensions of the grid over which teams share a point."""
    return sorted(loop.layer for loop in _loops(emitter, SINGLE))


def begin_shares(emitter: Emitter) -> None:
    """The team's range of each loop, in the only pass."""
    for axes, variable, _, step, layer in _loops(emitter, vectors_of(emitter.kernel, emitter.kernel.targets())):
        share = f"share_of({emitter.count(axes)}, {step}, cuda.blockIdx.{layer}, cuda.gridDim.{layer})"
        emitter.text.line(f"{variable}_begin, {variable}_end = {share}")


def pass_over(emitter: Emitter, targets: Sequence[int], body: Callable[[], None]) -> None:
    """Loops that bind the reduced axes around `body`; what `targets` need is computed as far out as possible."""
    needed = emitter.kernel.needed(targets)

    def innermost() -> None:
        emitter.values.hoist(needed)
        body()

    # A warp's outer axes are loops of each thread, so that its threads stay together along the lanes; a block spreads its warps
    # over the outer axes.
    vectors = vectors_of(emitter.kernel, targets)
    if emitter.team.kind == "thread" or not emitter.reduced:
        _nest(emitter, emitter.reduced, needed, innermost)
    elif emitter.team.kind == "warp":
        outer = [a for a in emitter.reduced if a != emitter.kernel.lane]
        _nest(emitter, outer, needed, lambda: _spread(emitter, _loops(emitter, vectors)[-1:], vectors, needed, innermost))
    else:
        _spread(emitter, _loops(emitter, vectors), vectors, needed, innermost)


def _nest(emitter: Emitter, axes: Sequence[int], needed: Sequence[int], body: Callable[[], None]) -> None:
    """Loops of one thread over `axes`, outermost first."""
    if not axes:
        body()
        return
    with emitter.over(axes[:1], "0", "1", ""):
        emitter.values.hoist(needed)
        _nest(emitter, axes[1:], needed, body)


def _spread(
    emitter: Emitter, loops: Sequence[TeamLoop], vectors: PointsPerThread, needed: Sequence[int], body: Callable[[], None]
) -> None:
    """Loops of all threads of a team, outermost first."""
    if not loops:
        body()
        return
    axes, variable, start, step, _ = loops[0]
    begin, end = (f"{variable}_begin", f"{variable}_end") if emitter.team.shared else ("0", emitter.count(axes))
    if axes == [emitter.kernel.lane] and vectors.points > 1:
        with over_vectors(emitter, vectors, begin, end, _width(emitter), step):
            body()
        return
    with emitter.over(axes, start if begin == "0" else f"{begin} + {start}", str(step), variable, end):
        emitter.values.hoist(needed)
        _spread(emitter, loops[1:], vectors, needed, body)
