"""A pass over the reduced axes of one point: loops of one thread, of a team's threads, or of the teams that share the point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from genesis.codegen.cuda.emitter import Emitter
from genesis.codegen.cuda.target import WARP
from genesis.codegen.cuda.vectors import SINGLE, PointsPerThread, over_vectors, vectors_of

__all__ = ["begin_shares", "layers", "pass_over"]


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
