"""A pass over the reduced axes of one point: loops of one thread, or of a team's threads and of several teams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from genesis.codegen.cuda.target import WARP

if TYPE_CHECKING:
    from genesis.codegen.cuda.emit import Emitter

__all__ = ["begin_shares", "layers", "pass_over"]


class Loop(NamedTuple):
    """A team's loop: its axes and variable, a thread's first point, the step, the grid's dimension in which teams share it."""

    axes: list[int]
    variable: str
    start: str
    step: int
    layer: str


def _loops(emitter: Emitter) -> list[Loop]:
    """Rows of threads go over the outer axes, the threads of each along the lanes; of one axis alone, all of a block."""
    lane = [a for a in emitter.reduced if a == emitter.kernel.lane]
    outer = [a for a in emitter.reduced if a not in lane]
    name = "point" if len(outer) > 1 else "".join(map(emitter.letter, outer))
    loops = [Loop(outer, name, "cuda.threadIdx.y", emitter.warps, "z")] if outer else []
    width = WARP if outer or emitter.team.kind == "warp" else emitter.team.threads
    return loops + [Loop([a], emitter.letter(a), "cuda.threadIdx.x", width, "y") for a in lane]


def layers(emitter: Emitter) -> list[str]:
    """The dimensions of the grid in which teams share a point."""
    return sorted(loop.layer for loop in _loops(emitter))


def begin_shares(emitter: Emitter) -> None:
    """Which points of each loop are the team's."""
    for axes, variable, _, step, layer in _loops(emitter):
        share = f"share_of({emitter.count(axes)}, {step}, cuda.blockIdx.{layer}, cuda.gridDim.{layer})"
        emitter.text.line(f"{variable}_begin, {variable}_end = {share}")


def pass_over(emitter: Emitter, needed: Sequence[int], body: Callable[[], None]) -> None:
    """Loops that bind the reduced axes, with `needed` computed as far out as it can be, around `body`."""
    def innermost() -> None:
        emitter.values.hoist(needed)
        body()

    if emitter.team.kind == "thread" or not emitter.reduced:
        _nest(emitter, emitter.reduced, needed, innermost)
    elif emitter.team.kind == "warp":
        outer = [a for a in emitter.reduced if a != emitter.kernel.lane]
        _nest(emitter, outer, needed, lambda: _spread(emitter, _loops(emitter)[-1:], needed, innermost))
    else:
        _spread(emitter, _loops(emitter), needed, innermost)


def _nest(emitter: Emitter, axes: Sequence[int], needed: Sequence[int], body: Callable[[], None]) -> None:
    """Loops of one thread over `axes`, outermost first."""
    if not axes:
        body()
        return
    with emitter.over(axes[:1], "0", "1", ""):
        emitter.values.hoist(needed)
        _nest(emitter, axes[1:], needed, body)


def _spread(emitter: Emitter, loops: Sequence[Loop], needed: Sequence[int], body: Callable[[], None]) -> None:
    """Loops of all threads of a team, outermost first."""
    if not loops:
        body()
        return
    axes, variable, start, step, _ = loops[0]
    end = ""
    if emitter.team.shared:
        start, end = f"{variable}_begin + {start}", f"{variable}_end"
    with emitter.over(axes, start, str(step), variable, end):
        emitter.values.hoist(needed)
        _spread(emitter, loops[1:], needed, body)
