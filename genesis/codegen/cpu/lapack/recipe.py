"""The steps of a stage under construction: places in memory, copies, calls of routines, and what their codes are."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.codegen.cpu.lapack.kernel import ALL, STEPS
from genesis.codegen.cpu.lapack.routines import ARGUMENTS, LETTERS, address, workspace
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.stages import HostCall
from genesis.runtime.native import BlockWord, Slot

ALIGNED = 64  # bytes
INT = 4


class Place(NamedTuple):
    """Memory of each matrix of a batch, or of each worker: the first one's, and the bytes from one to the next."""

    base: BlockWord
    by_item: int = 0
    by_worker: int = 0

    def at(self, nbytes: int) -> Place:
        assert isinstance(self.base, Slot)
        return self._replace(base=self.base._replace(offset=self.base.offset + nbytes))

    @property
    def words(self) -> tuple[BlockWord, ...]:
        return self.base, self.by_item, self.by_worker


class Room(NamedTuple):
    """Memory that a routine says how much it wants of: `reals`, `integers`, or the dtype's numbers; or its size."""

    kind: str
    is_size: bool = False


WORK, LWORK = Room("numbers"), Room("numbers", True)
RWORK, LRWORK = Room("reals"), Room("reals", True)
IWORK, LIWORK = Room("integers"), Room("integers", True)
Argument = Place | Room | int | float | str


Part = list[tuple[BlockWord, ...]]  # steps, one after the other


class Recipe:
    """What is done for each matrix of a call: stages, one after the other, of parts that threads share."""

    def __init__(self, nodes: Sequence[Node], call: HostCall, slots: SlotMap, workers: int) -> None:
        self.node, self.slots, self.workers = nodes[call.node], slots, workers
        self.batch = numel(self.node.shape[: self.node.attrs["dim"]])
        self.dtype = nodes[call.operands[0][0]].dtype
        self.size = self.dtype.itemsize
        self.real_size = self.size // (1 + self.dtype.is_complex)
        self.operands: list[Place] = []
        for value, layout in call.operands:
            start = slots.address(value, layout.offset * self.size)
            self.operands.append(Place(start, numel(layout.shape) // self.batch * self.size))
        self.out = Place(slots.address(call.node), self.node.nbytes // self.batch)
        self.stages: list[list[Part]] = [[[]]]
        self._taken = 0

    def part(self, *, beside: bool = False) -> None:
        """What follows begins when all before has ended; or runs `beside` the part before, on another thread."""
        if not beside:
            self.stages.append([])
        self.stages[-1].append([])

    # ---- memory ----

    def scratch(self, count: int, size: int = 0) -> Place:
        """Memory of each worker for so many of the dtype's numbers, or elements of another size."""
        share = -(-max(count, 1) * (size or self.size) // ALIGNED) * ALIGNED
        start, self._taken = self._taken, self._taken + share * self.workers
        whole = self.slots.workspace(self._taken)
        return Place(whole._replace(offset=whole.offset + start), 0, share)

    def shared(self, count: int) -> Place:
        """Memory for so many numbers that all workers see: of a call for one matrix."""
        assert self.batch == 1
        start, self._taken = self._taken, self._taken + -(-count * self.size // ALIGNED) * ALIGNED
        whole = self.slots.workspace(self._taken)
        return Place(whole._replace(offset=whole.offset + start))

    def integers(self, count: int = 1) -> Place:
        return self.scratch(count, INT)

    def reals(self, count: int) -> Place:
        return self.scratch(count, self.real_size)

    def constant(self, value: int | float | str) -> Place:
        """A number of LAPACK's: an int32, a letter, or a number of the dtype."""
        data = self._bytes(value)
        content = np.frombuffer(data.ljust(16, b"\0"), np.uint8)  # of a complex number, the imaginary part is 0
        return Place(self.slots.once(("lapack", data), lambda: self.slots.table(content)))

    def _bytes(self, value: int | float | str) -> bytes:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, int):
            return struct.pack("<i", value)
        return struct.pack("<f" if self.real_size == INT else "<d", value)

    # ---- steps ----

    def _step(self, kind: str, *words: Place | BlockWord) -> None:
        flat: list[BlockWord] = [STEPS.index(kind)]
        for word in words:
            flat += word.words if isinstance(word, Place) else (word,)
        self.stages[-1][-1].append(tuple(flat))

    def copy(
        self, source: Place, target: Place, shape: tuple[int, int], keep: int = ALL, *, transposes: bool = False, row: int = 0,
        from_row: int = 0,
    ) -> None:
        """Copy rows to rows, or to columns. `row`, `from_row`: the numbers from one of those to the next, and of these, if not
        all lies one behind the other."""
        rows, columns = shape
        size, down = self.size, (from_row or columns) * self.size
        between = (down, size, *((size, (row or rows) * size) if transposes else ((row or columns) * size, size)))
        if keep == ALL and (not transposes or 1 in shape) and not row and not from_row:
            rows, columns, between = 1, rows * columns, (0, size, 0, size)
        self._step("copy", source, target, rows, columns, *between, keep)

    def copy_columns(
        self, source: Place, target: Place, shape: tuple[int, int], keep: int = ALL, *, column: int = 0, row: int = 0
    ) -> None:
        """Copy a matrix whose columns are one after the other, `column` numbers from each to the next, to rows, which are
        `row` numbers apart."""
        rows, columns = shape
        size = self.size
        if keep == ALL and 1 in shape and (not column or columns == 1) and not row:
            self._step("copy", source, target, 1, rows * columns, 0, size, 0, size, keep)
        else:
            between = size, (column or rows) * size, (row or columns) * size, size
            self._step("copy", source, target, rows, columns, *between, keep)

    def zero(self, place: Place, nbytes: int) -> None:
        self._step("zero", place, nbytes)

    def numbers(self, source: Place, target: Place, count: int) -> None:
        """int32 as numbers of the dtype."""
        self._step("numbers", source, target, count)

    def widen(self, source: Place, target: Place, count: int) -> None:
        """Real numbers as numbers of the dtype."""
        self._step("reals", source, target, count)

    def tidy(self, place: Place, count: int) -> None:
        """-0 becomes 0."""
        self._step("tidy", place, count)

    def determinant(self, factors: Place, pivots: Place, n: int, row: int, logarithm: bool) -> None:
        self._step("logarithm" if logarithm else "product", factors, pivots, self.out, n, (row + 1) * self.size)

    def normalize(self, vector: Place, count: int, length: Place) -> None:
        """Divide a vector by its length, a real number which is stored."""
        self._step("normalize", vector, length, count * (1 + self.dtype.is_complex))

    def end_below(self, numbers: Sequence[Place], bound: Place) -> None:
        """End the work on the matrix if the product of four real numbers is less than the bound."""
        self._step("end_below", *numbers, bound)

    def tiled(self, name: str, *words: Place | BlockWord) -> None:
        """A step of elimination in rows; see `kernel`."""
        self._step(name, *words)

    def check(self, info: Place) -> None:
        """Fail where a routine has."""
        self._step("check", info)

    def call(self, name: str, *arguments: Argument) -> Place:
        """Call a routine, by its name without the letter of a dtype; where its code is, which is its last argument."""
        info = self.integers()
        self.blas(name, *arguments, info)
        return info

    def blas(self, name: str, *arguments: Argument) -> None:
        """Call a routine that has no code."""
        name = LETTERS[self.dtype.name] + name
        places = self._with_workspace(name, arguments)
        words: list[Any] = [*places, *[Place(0)] * (ARGUMENTS - len(places))]
        self._step("call", address(name), *words)

    def _with_workspace(self, name: str, arguments: Sequence[Argument]) -> list[Place]:
        kinds = {at: a.kind for at, a in enumerate(arguments) if isinstance(a, Room) and not a.is_size}
        sizes = workspace(name, [self._asking(a) for a in arguments], kinds) if kinds else {}
        element = {"numbers": self.size, "reals": self.real_size, "integers": INT}
        found: list[Place] = []
        for a in arguments:
            if isinstance(a, Room):
                found.append(self.constant(sizes[a.kind]) if a.is_size else self.scratch(sizes[a.kind], element[a.kind]))
            else:
                found.append(a if isinstance(a, Place) else self.constant(a))
        return found

    def _asking(self, argument: Argument) -> bytes:
        """An argument of a routine that is asked for workspace."""
        if isinstance(argument, Room):
            return self._bytes(-1) if argument.is_size else b""
        return b"" if isinstance(argument, Place) else self._bytes(argument)
