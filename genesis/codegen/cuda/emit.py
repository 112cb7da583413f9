"""From a Kernel to functions of the device, as text: what a person who knows CUDA would write by hand.

Kept points of the nest are shared out over the grid. Who works on one of them is a *team*: one thread, a warp, a whole block
or, where lanes are kept, the threads of a block that have one x. A team makes as many passes over the reduced axes as the
kernel's reductions are deep, and a value is computed in the outermost loop that has bound all it varies over.

A point that has much to reduce may be *shared* by teams in several layers of the grid (y and z), if one pass does it: each
reduces its share, and what depends on the result is computed by the finishing function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Literal, NamedTuple

from genesis.codegen.cuda import parts, passes
from genesis.codegen.cuda.reductions import Accumulator
from genesis.codegen.cuda.signature import Function, Signature
from genesis.codegen.cuda.target import THREADS, WARP
from genesis.codegen.cuda.text import Text
from genesis.codegen.cuda.values import Values
from genesis.codegen.cuda.vectors import over_vectors, points_at_a_time, vectors_of
from genesis.lower.kernel import REDUCTIONS, Kernel

__all__ = ["Emitter", "Team", "emit_finish", "emit_kernel"]

AXES = "ijklmpqr"
FIRST = {"warp": "cuda.threadIdx.x == 0", "block": "cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0",
           "column": "cuda.threadIdx.y == 0"}  # the one of a team that writes what is common to it


class Team(NamedTuple):
    """Who works on one kept point of a kernel, how many threads a block has, whether several teams share a point."""

    kind: Literal["thread", "warp", "block", "column"]
    threads: int = THREADS
    shared: bool = False


def emit_kernel(kernel: Kernel, team: Team, many: bool = False) -> Function:
    """A kernel's main function; with `many`, the one that serves a call for each layer of the grid."""
    function = Emitter(kernel, team).main(many)
    return function if team.threads == THREADS else function._replace(threads=team.threads)


def emit_finish(kernel: Kernel, team: Team) -> Function:
    """The function that joins the parts of several blocks, and computes what depends on the results."""
    function = parts.finish(Emitter(kernel, team if team.shared else Team("thread")))
    return function._replace(threads=team.threads) if team.shared and team.threads != THREADS else function


class Emitter:
    def __init__(self, kernel: Kernel, team: Team) -> None:
        self.kernel = kernel
        self.team = team
        self.warps = team.threads // WARP  # of a block
        self.text = Text()
        self.text.depth = 1
        self.signature = Signature(kernel)
        self.index: dict[int, str] = {}  # axis -> its position
        self.values = Values(self)
        self.arrays: dict[str, str] = {}  # name -> the array of the block or of the thread that it is
        self.rows = [n for n, i in enumerate(kernel.instructions) if i.name in REDUCTIONS and i.level == "row"]
        self.finals = [n for n, i in enumerate(kernel.instructions) if i.name in REDUCTIONS and i.level == "final"]
        everywhere = self.signature.is_atomic  # each point has a thread of its own
        self.kept = [a for a, (_, reduced) in enumerate(kernel.axes) if everywhere or not reduced]
        self.reduced = [a for a in range(len(kernel.axes)) if a not in self.kept]
        self.lane = kernel.lane if kernel.lane in self.kept else None
        self.outer = [a for a in self.kept if a != self.lane]

    def extent(self, axis: int) -> str:
        return self.signature.name(self.kernel.axes[axis][0])

    def count(self, axes: Sequence[int]) -> str:
        """How many points some axes have."""
        return " * ".join(self.extent(a) for a in axes) or "1"

    def accumulator(self, n: int) -> Accumulator:
        i = self.kernel.instructions[n]
        source = self.kernel.instructions[i.args[0]]
        return Accumulator("sum" if i.name == "scan" else i.name, n, source.dtype.name, i.dtype.name)

    def letter(self, axis: int) -> str:
        """The name of the position on an axis."""
        return AXES[axis] if axis < len(AXES) else f"i{axis}"

    # ---- loops ----

    @contextmanager
    def bound(self, axes: Sequence[int]) -> Iterator[None]:
        """Inside, the positions on `axes` are known."""
        for axis in axes:
            self.index[axis] = self.letter(axis)
        with self.values.scope():
            yield
        for axis in axes:
            del self.index[axis]

    @contextmanager
    def over(self, axes: Sequence[int], start: str, step: str, name: str, end: str = "") -> Iterator[None]:
        """A loop over the points of `axes`, from the point numbered `start` on, every `step`-th; one axis is its own number."""
        variable = name if len(axes) > 1 else self.letter(axes[0])
        count = end or self.count(axes)
        grid = step.startswith("cuda.")  # known to the launch alone: a loop of which nothing is computed beforehand
        if grid:
            self.text.line(f"{variable} = {start}")
            header = f"while {variable} < {count}:"
        else:
            header = f"for {variable} in range({count if step == '1' else f'{start}, {count}, {step}'}):"
        with self.text.block(header), self.bound(axes):
            if len(axes) > 1:
                self._decode(axes, name)
            yield
            if grid:
                self.text.line(f"{variable} += {step}")

    def _decode(self, axes: Sequence[int], name: str) -> None:
        """The positions on `axes` of the point numbered `name`."""
        for place, axis in enumerate(axes):
            inner = self.count(axes[place + 1 :])
            divided = name if place == len(axes) - 1 else f"{name} // ({inner})" if " " in inner else f"{name} // {inner}"
            self.text.line(f"{self.index[axis]} = {divided}" + ("" if place == 0 else f" % {self.extent(axis)}"))

    # ---- the main function ----

    def main(self, many: bool) -> Function:
        for n in self.finals:
            self.text.line(self.accumulator(n).begin())
        if self.team.shared:
            passes.begin_shares(self)
        with self.items(self.kernel.needed(self.kernel.targets())):
            self._passes()
            if not self.team.shared:
                self._after()
        parts.store_totals(self)
        make = self.signature.by_table if many else self.signature.by_value
        return make(self.kernel.name + "_many" * many, self.body())

    def body(self) -> str:
        """What is written, below the arrays that it uses."""
        return "".join(f"    {name} = {array}\n" for name, array in self.arrays.items()) + str(self.text)

    @contextmanager
    def items(self, needed: Sequence[int]) -> Iterator[None]:
        """Loops that bind the kept axes, each point of them for one team; `needed` is computed as far out as it can be."""
        x, x_step, y, y_step = "cuda.grid(1)", "cuda.gridsize(1)", "", ""
        if self.team.kind == "warp":
            x, x_step = f"cuda.blockIdx.x * {self.warps} + cuda.threadIdx.y", f"cuda.gridDim.x * {self.warps}"
        elif self.team.kind == "block":
            x, x_step = "cuda.blockIdx.x", "cuda.gridDim.x"
        elif self.team.kind == "column":
            y, y_step = "cuda.blockIdx.y", "cuda.gridDim.y"
        elif self.lane is not None and self.outer:
            self.text.line("x, y = cuda.grid(2)")
            x, x_step = "x", "cuda.gridDim.x * cuda.blockDim.x"
            y, y_step = "y", "cuda.gridDim.y * cuda.blockDim.y"
        self.values.hoist(needed)
        if not self.kept:
            alone = {"thread": "cuda.grid(1) == 0", "warp": f"{x} == 0", "block": f"{x} == 0"}[self.team.kind]
            with self.text.block(f"if {alone}:"), self.values.scope():
                yield
        elif self.lane is None:
            with self.over(self.outer, x, x_step, "row"):
                yield
        else:
            with self.over(self.outer, y, y_step, "row") if self.outer else nullcontext():
                self.values.hoist(needed)
                several = self.team.kind == "thread" and points_at_a_time(self.kernel) > 1
                with self._columns() if self.team.kind == "column" else self._vectors() if several else \
                        self.over([self.lane], x, x_step, ""):
                    yield

    def _vectors(self) -> AbstractContextManager[None]:
        """The lane axis, of which a thread has several points at a time."""
        assert self.lane is not None
        vectors = vectors_of(self.kernel, self.kernel.targets())
        begin, step = (f"cuda.{block} * cuda.blockDim.x * {vectors.points}" for block in ("blockIdx.x", "gridDim.x"))
        return over_vectors(self, vectors, begin, self.extent(self.lane), "cuda.blockDim.x", step)

    @contextmanager
    def _columns(self) -> Iterator[None]:
        """The lane axis a block's width at a time: at its end some threads are idle, but join in the folds."""
        assert self.lane is not None
        extent = self.extent(self.lane)
        self.text.line(f"first = cuda.blockIdx.x * {WARP}")
        with self.text.block(f"while first < {extent}:"), self.bound([self.lane]):
            self.text.line(f"{self.index[self.lane]} = first + cuda.threadIdx.x")
            yield
            self.text.line(f"first += cuda.gridDim.x * {WARP}")

    @contextmanager
    def guard(self, *conditions: str) -> Iterator[None]:
        """What only threads with a point, and of which the conditions hold, do."""
        if self.team.kind == "column" and self.lane is not None and self.lane in self.index:
            conditions = (f"{self.index[self.lane]} < {self.extent(self.lane)}", *conditions)
        if not conditions:
            yield
            return
        with self.text.block(f"if {' and '.join(conditions)}:"), self.values.scope():
            yield

    @contextmanager
    def first(self, of: str) -> Iterator[None]:
        """What one thread does for all of a team or of a block."""
        with self.guard(*[] if of == "thread" else [FIRST[of]]):
            yield

    def _passes(self) -> None:
        """One kept point: the passes over the reduced axes, and what they reduce to."""
        kernel = self.kernel
        for step in kernel.steps:
            targets = kernel.targets(step)
            needed = kernel.needed(targets)
            held = [self.accumulator(n) for n in targets if kernel.instructions[n].level == "row"]
            for accumulator in [*held, *[self.accumulator(n) for n in targets if kernel.instructions[n].name == "scan"]]:
                self.text.line(accumulator.begin())
            with self.guard():
                self.values.hoist(needed)
                passes.pass_over(self, targets, partial(self._targets, targets))
            if self.team.shared:
                parts.store_shares(self)
                return
            for accumulator in held:
                over = None if self.team.kind == "thread" else self.team.kind
                self.values.define(accumulator.number, accumulator.folded(over, self.arrays, self.team.threads))

    def _targets(self, targets: Sequence[int]) -> None:
        """Reductions take in the values at hand, and effects happen."""
        for n in targets:
            i = self.kernel.instructions[n]
            if i.name in REDUCTIONS or i.name == "scan":
                self.text.line(self.accumulator(n).take(f"v{i.args[0]}", self.position(self.reduced)))
            if i.name == "scan":
                self.values.store(n, self.accumulator(n).folded(None, {}, 0))
            elif i.name not in REDUCTIONS:
                self.values.effect(n)

    def position(self, axes: Sequence[int]) -> str:
        """The number of the point on some axes."""
        position = ""
        for axis in axes:
            position = f"({position}) * {self.extent(axis)} + {self.index[axis]}" if position else self.index[axis]
        return position

    def _after(self) -> None:
        """What depends on the passes, once for each kept point."""
        kernel = self.kernel
        stores = [n for n, i in enumerate(kernel.instructions) if i.name == "store" and i.level in ("row", "uniform")]
        added = [n for n in self.finals if kernel.instructions[n].attr("over") == "row"]
        if not stores and not added:
            return
        if stores and self.team.kind != "thread" and any(i.name == "load" and i.level == "row" for i in kernel.instructions):
            barrier = "cuda.syncwarp()" if self.team.kind == "warp" else "cuda.syncthreads()"
            self.text.line(f"{barrier}  # all have read: a result may lie over an input")
        with self.first(self.team.kind):
            self.values.hoist(kernel.needed([*stores, *added]))
            for n in stores:
                self.values.effect(n)
            for n in added:
                self.text.line(self.accumulator(n).take(f"v{kernel.instructions[n].args[0]}", ""))
