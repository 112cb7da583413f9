"""Multiple points per thread: sixteen bytes in one load and one store where a row is aligned.

numba-cuda assumes that a pointer is aligned to its elements only, so the compiler keeps four loads four; it merges those
through a pointer from `aligned`. The kernel tests the alignment where a row begins: no size and no view needs a kernel of its
own. In an unaligned row, and at a row's end, a thread's points are a row of threads apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from genesis.codegen.cuda.emitter import Emitter
from genesis.codegen.cuda.registers import memory_type
from genesis.lower.kernel import Kernel

__all__ = ["SINGLE", "PointsPerThread", "over_vectors", "points_at_a_time", "vectors_of"]

BYTES, MOST = 16, 8  # bytes of a load or store; points per thread
AHEAD = 128  # bytes that a thread loads ahead: 32 registers
# Simple operations on a point, and on all points of a thread, up to which the compiler unrolls the loop over points: the arrays
# of a loop that stays are in local memory in place of registers.
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
    """The stride of instruction `n` along the lanes."""
    access = kernel.instructions[n].access
    assert access is not None and kernel.lane is not None
    return access.strides[kernel.lane]


@contextmanager
def over_vectors(
    emitter: Emitter, vectors: PointsPerThread, begin: str, end: str, threads: str | int, step: str | int
) -> Iterator[None]:
    """A loop over the lanes from `begin` to `end` by a row of `threads`; all rows together advance by `step` points. Inside,
    one point is at hand.
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
    """Load what is not adjacent."""
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
    """A thread's local array of the elements of instruction `n`."""
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
