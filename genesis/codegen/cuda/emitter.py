"""What the functions that write a kernel share: the text so far, the positions that are known, who works on a point."""

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
           "column": "cuda.threadIdx.y == 0"}  # the one of a team that writes what is common to it


class Team(NamedTuple):
    """Who works on one kept point of a kernel, how many threads a block has, whether several teams share a point."""

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

    def body(self) -> str:
        """What is written, below the arrays that it uses."""
        return "".join(f"    {name} = {array}\n" for name, array in self.arrays.items()) + str(self.text)

    def position(self, axes: Sequence[int]) -> str:
        """The number of the point on some axes."""
        position = ""
        for axis in axes:
            position = f"({position}) * {self.extent(axis)} + {self.index[axis]}" if position else self.index[axis]
        return position

    # ---- conditions ----

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
