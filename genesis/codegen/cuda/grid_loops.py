"""Loops over the kept axes, whose points the grid covers; grid-stride loops, since a grid may be smaller than the points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from genesis.codegen.cuda.emitter import Emitter
from genesis.codegen.cuda.target import WARP
from genesis.codegen.cuda.vectors import over_vectors, points_at_a_time, vectors_of

__all__ = ["over_points"]


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
    """The lane axis, with multiple points per thread."""
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
