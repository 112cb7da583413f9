"""The state of a kernel's text while it is written: the lines so far, the positions that are bound, the team of a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from genesis.codegen.cuda.reductions import Accumulator
from genesis.codegen.cuda.signature import Signature
from genesis.codegen.cuda.target import THREADS, WARP
from genesis.codegen.cuda.text import Text
from genesis.codegen.cuda.values import Values
from genesis.lower.kernel import REDUCTIONS, Kernel

__all__ = ["Emitter", "Team"]

AXES = "ijklmpqr"
FIRST = {"warp": "cuda.threadIdx.x == 0", "block": "cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0",
           "column": "cuda.threadIdx.y == 0"}  # the thread that writes a team's results


class Team(NamedTuple):
    """The threads that compute one kept point, the threads of a block, whether multiple teams share a point."""

    kind: Literal["thread", "warp", "block", "column"]
    threads: int = THREADS
    shared: bool = False


class Emitter:
    """A function that is being written."""

    def __init__(self, kernel: Kernel, team: Team) -> None:
        self.kernel = kernel
        self.team = team
        self.warps = team.threads // WARP  # of a block
        self.text = Text()
        self.text.depth = 1
        self.signature = Signature(kernel)
        self.index: dict[int, str] = {}  # axis -> its position
        self.values = Values(self.signature, self.text, self.index)
        self.arrays: dict[str, str] = {}  # name -> the declaration of an array in shared or local memory
        self.rows = [n for n, i in enumerate(kernel.instructions) if i.name in REDUCTIONS and i.level == "row"]
        self.finals = [n for n, i in enumerate(kernel.instructions) if i.name in REDUCTIONS and i.level == "final"]
        # Atomic additions need no reduction: each point of all axes has its own thread.
        everywhere = self.signature.is_atomic
        self.kept = [a for a, (_, reduced) in enumerate(kernel.axes) if everywhere or not reduced]
        self.reduced = [a for a in range(len(kernel.axes)) if a not in self.kept]
        self.lane = kernel.lane if kernel.lane in self.kept else None
        self.outer = [a for a in self.kept if a != self.lane]

    def extent(self, axis: int) -> str:
        return self.signature.name(self.kernel.axes[axis][0])

    def count(self, axes: Sequence[int]) -> str:
        """The number of points of some axes."""
        return " * ".join(self.extent(a) for a in axes) or "1"

    def accumulator(self, n: int) -> Accumulator:
        i = self.kernel.instructions[n]
        source = self.kernel.instructions[i.args[0]]
        return Accumulator("sum" if i.name == "scan" else i.name, n, source.dtype.name, i.dtype.name)

    def letter(self, axis: int) -> str:
        """The name of an axis' position."""
        return AXES[axis] if axis < len(AXES) else f"i{axis}"

    # ---- loops ----

    @contextmanager
    def bound(self, axes: Sequence[int]) -> Iterator[None]:
        """Inside, the positions on `axes` are bound."""
        for axis in axes:
            self.index[axis] = self.letter(axis)
        with self.values.scope():
            yield
        for axis in axes:
            del self.index[axis]

    @contextmanager
    def over(self, axes: Sequence[int], start: str, step: str, name: str, end: str = "") -> Iterator[None]:
        """A loop over the points of `axes`, every `step`-th from number `start` on; a single axis is its own number."""
        variable = name if len(axes) > 1 else self.letter(axes[0])
        count = end or self.count(axes)
        # A step that the launch alone knows: numba would divide before a `range` loop to count its iterations.
        grid = step.startswith("cuda.")
        if grid:
            self.text.line(f"{variable} = {start}")
            header = f"while {variable} < {count}:"
        else:
            header = f"for {variable} in range({count if step == '1' else f'{start}, {count}, {step}'}):"
        # One number over all axes, decoded by divisions: nested loops would leave threads idle wherever an axis is short.
        with self.text.block(header), self.bound(axes):
            if len(axes) > 1:
                self._decode(axes, name)
            yield
            if grid:
                self.text.line(f"{variable} += {step}")

    def _decode(self, axes: Sequence[int], name: str) -> None:
        """Bind the positions on `axes` of the point numbered `name`."""
        for n, axis in enumerate(axes):
            inner = self.count(axes[n + 1 :])
            divided = name if n == len(axes) - 1 else f"{name} // ({inner})" if " " in inner else f"{name} // {inner}"
            self.text.line(f"{self.index[axis]} = {divided}" + ("" if n == 0 else f" % {self.extent(axis)}"))

    def body(self) -> str:
        """The declarations of arrays, and the lines."""
        return "".join(f"    {name} = {array}\n" for name, array in self.arrays.items()) + str(self.text)

    def position(self, axes: Sequence[int]) -> str:
        """The number of the point at hand on some axes."""
        position = ""
        for axis in axes:
            position = f"({position}) * {self.extent(axis)} + {self.index[axis]}" if position else self.index[axis]
        return position

    # ---- conditions ----

    @contextmanager
    def guard(self, *conditions: str) -> Iterator[None]:
        """Code for threads that have a point and for which the conditions hold."""
        if self.team.kind == "column" and self.lane is not None and self.lane in self.index:
            conditions = (f"{self.index[self.lane]} < {self.extent(self.lane)}", *conditions)
        if not conditions:
            yield
            return
        with self.text.block(f"if {' and '.join(conditions)}:"), self.values.scope():
            yield

    @contextmanager
    def first(self, of: str) -> Iterator[None]:
        """Code for one thread of a team or a block."""
        with self.guard(*[] if of == "thread" else [FIRST[of]]):
            yield
