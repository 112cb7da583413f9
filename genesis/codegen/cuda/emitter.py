"""The state of a kernel's text while it is written: lines, bound positions, the team of a point, the values computed so far.

Each value is a variable, computed once, in the loop that has bound its axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from genesis.codegen.cuda.arithmetic import Accumulator, Arithmetic, converted, loaded, register_type, stored
from genesis.codegen.cuda.signature import Signature, Text
from genesis.codegen.cuda.target import THREADS, WARP
from genesis.lower.kernel import REDUCTIONS, Access, Instruction, Kernel
from genesis.ops.registry import PRIMITIVES


class Values:
    """The values that are computed where code is being written; value `n` is the variable `vn`."""

    def __init__(self, signature: Signature, text: Text, index: Mapping[int, str]) -> None:
        self.signature, self.text, self.index = signature, text, index
        self.instructions = signature.kernel.instructions
        self.scopes: list[set[int]] = [set()]
        self.near: dict[int, str] = {}  # instruction -> its element at the current point, where that was loaded ahead

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Values computed inside are valid only inside."""
        self.scopes.append(set())
        yield
        self.scopes.pop()

    def is_computed(self, n: int) -> bool:
        return any(n in scope for scope in self.scopes)

    def define(self, n: int, expression: str) -> None:
        self.text.line(f"v{n} = {expression}")
        self.scopes[-1].add(n)

    def hoist(self, needed: Sequence[int]) -> None:
        """Compute here the needed values that vary over no inner loop."""
        bound = self.index.keys()
        for n in needed:
            i = self.instructions[n]
            ready = i.varies <= bound and not self.is_computed(n) and all(map(self.is_computed, i.args))
            if ready and i.name not in REDUCTIONS:
                self.define(n, self._expression(n, i))

    # ---- one value ----
    def _expression(self, n: int, i: Instruction) -> str:
        args = [f"v{a}" for a in i.args]
        dtype = i.dtype.name
        if i.name == "word":
            (word,) = self._words(i)
            double = self.signature.kernel.words[int(i.attr("words")[1:])].is_double
            return converted(word, "float64" if double else "int64", dtype)
        if i.name in ("load", "load_at"):
            return loaded(self.element(n), dtype)
        if i.name == "index":
            return converted(self._flat(i), "int64", dtype)
        if i.name in ("uniform", "normal"):
            return f"{i.name}_{dtype}({args[0]}, {args[1]} + {self._flat(i)})"
        if i.name == "cast":
            return converted(args[0], i.attr("source"), dtype)
        if i.name == "check_index":
            check = "wrapped_index" if i.attr("wrap") else "checked_index"
            return f"{check}({', '.join([args[0], *self._words(i)])})"
        if i.name == "check_divisor":
            return f"{register_type(dtype)}(checked_divisor({', '.join([args[0], *self._words(i)])}))"
        return Arithmetic(dtype, dict(i.attrs).get("operand")).apply(i.name, PRIMITIVES[i.name].emit, args)

    def _words(self, i: Instruction) -> list[str]:
        return [self.signature.name(w) for w in i.attr("words").split(",")]

    def _offset(self, access: Access) -> str:
        """The offset of an access' element at the current point from its pointer."""
        terms = []
        for axis, stride in enumerate(access.strides):
            if stride != 0 and self.index[axis] != "0":
                step = self.signature.name(stride) if isinstance(stride, str) else str(stride)
                terms.append(self.index[axis] if stride == 1 else f"{self.index[axis]} * {step}")
        return " + ".join(terms)

    def _flat(self, i: Instruction) -> str:
        """The element's number, of a value that is not in memory."""
        assert i.access is not None
        return " + ".join(filter(None, (self.signature.name(i.access.pointer), self._offset(i.access))))

    def location(self, n: int) -> tuple[str, str]:
        """The element of instruction `n` at the current point: a pointer, and the offset from it."""
        i = self.instructions[n]
        assert i.access is not None
        along = dict(i.attrs).get("along")  # of an element that another value indexes
        indirect = along and (f"v{i.args[0]}" if along == 1 else f"v{i.args[0]} * {self.signature.name(along)}")
        offset = " + ".join(filter(None, (indirect, self._offset(i.access)))) or "0"
        return self.signature.name(i.access.pointer), offset

    def element(self, n: int) -> str:
        return self.near.get(n) or "{}[{}]".format(*self.location(n))

    # ---- effects ----
    def store(self, n: int, value: str) -> None:
        self.text.line(f"{self.element(n)} = {stored(value, self.instructions[n].dtype.name)}")

    def effect(self, n: int) -> None:
        i, line = self.instructions[n], self.text.line
        value, dtype = f"v{i.args[-1]}", i.dtype.name
        # Atomic where threads may meet; another scatter is in one thread, in order, so that the last value wins.
        if i.name == "scatter" and self.signature.is_atomic:
            line(f"cuda.atomic.add({', '.join(self.location(n))}, {value})")
            return
        if i.name == "scatter" and (mode := i.attr("mode")) != "set":
            line(f"total = {loaded(self.element(n), dtype)}")
            value = Arithmetic(dtype).apply(mode, PRIMITIVES[mode].emit, ["total", value])
        self.store(n, value)


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
        return " * ".join(self.extent(a) for a in axes) or "1"

    def accumulator(self, n: int) -> Accumulator:
        i = self.kernel.instructions[n]
        source = self.kernel.instructions[i.args[0]]
        name = i.attr("mode") if i.name == "scan" else i.name
        return Accumulator("sum" if name == "recurrence" else name, n, source.dtype.name, i.dtype.name)

    def letter(self, axis: int) -> str:
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
        for n, axis in enumerate(axes):
            inner = self.count(axes[n + 1 :])
            divided = name if n == len(axes) - 1 else f"{name} // ({inner})" if " " in inner else f"{name} // {inner}"
            self.text.line(f"{self.index[axis]} = {divided}" + ("" if n == 0 else f" % {self.extent(axis)}"))

    def body(self) -> str:
        return "".join(f"    {name} = {array}\n" for name, array in self.arrays.items()) + str(self.text)

    def position(self, axes: Sequence[int]) -> str:
        """The number of the current point on some axes."""
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
