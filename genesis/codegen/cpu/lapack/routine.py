"""Builds the steps of a host call: pointers into memory, copies, and calls of LAPACK's routines."""

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


class BatchPointer(NamedTuple):
    """The address of the first matrix's data, and the bytes to the next matrix's and to the next worker's."""

    base: BlockWord
    item_stride: int = 0
    worker_stride: int = 0

    def at(self, nbytes: int) -> BatchPointer:
        assert isinstance(self.base, Slot)
        return self._replace(base=self.base._replace(offset=self.base.offset + nbytes))

    @property
    def words(self) -> tuple[BlockWord, ...]:
        return self.base, self.item_stride, self.worker_stride


class Workspace(NamedTuple):
    """A workspace argument, sized by a query: `reals`, `integers` or the dtype's numbers; or the argument with its size."""

    kind: str
    is_size: bool = False


WORK, LWORK = Workspace("numbers"), Workspace("numbers", True)
RWORK, LRWORK = Workspace("reals"), Workspace("reals", True)
IWORK, LIWORK = Workspace("integers"), Workspace("integers", True)
Argument = BatchPointer | Workspace | int | float | str


Part = list[tuple[BlockWord, ...]]  # steps, in order


class Routine:
    """The program that runs on each matrix of a call: stages in order, each of parts that run in parallel."""

    def __init__(self, nodes: Sequence[Node], call: HostCall, slots: SlotMap, workers: int) -> None:
        self.node, self.slots, self.workers = nodes[call.node], slots, workers
        self.batch = numel(self.node.shape[: self.node.attrs["dim"]])
        self.dtype = nodes[call.operands[0][0]].dtype
        self.size = self.dtype.itemsize
        self.real_size = self.size // (1 + self.dtype.is_complex)
        self.operands: list[BatchPointer] = []
        for value, layout in call.operands:
            start = slots.address(value, layout.offset * self.size)
            self.operands.append(BatchPointer(start, numel(layout.shape) // self.batch * self.size))
        self.out = BatchPointer(slots.address(call.node), self.node.nbytes // self.batch)
        self.stages: list[list[Part]] = [[[]]]
        self._taken = 0

    def part(self, *, concurrent: bool = False) -> None:
        """Begin a part: of a new stage, behind a barrier; if `concurrent`, of the present stage, on another thread. Of a batch,
        each thread does all parts of its matrices."""
        if self.batch > 1:
            return
        if not concurrent:
            self.stages.append([])
        self.stages[-1].append([])

    # ---- memory ----
    def scratch(self, count: int, size: int = 0) -> BatchPointer:
        """Memory of each worker for `count` numbers of the dtype, or elements of `size` bytes."""
        per_worker = -(-max(count, 1) * (size or self.size) // ALIGNED) * ALIGNED
        start, self._taken = self._taken, self._taken + per_worker * self.workers
        whole = self.slots.workspace(self._taken)
        return BatchPointer(whole._replace(offset=whole.offset + start), 0, per_worker)

    def shared(self, count: int) -> BatchPointer:
        """Memory for `count` numbers that all parts share."""
        if self.batch > 1:
            return self.scratch(count)
        start, self._taken = self._taken, self._taken + -(-count * self.size // ALIGNED) * ALIGNED
        whole = self.slots.workspace(self._taken)
        return BatchPointer(whole._replace(offset=whole.offset + start))

    def integers(self, count: int = 1) -> BatchPointer:
        return self.scratch(count, INT)

    def reals(self, count: int) -> BatchPointer:
        return self.scratch(count, self.real_size)

    def constant(self, value: int | float | str) -> BatchPointer:
        """A scalar argument in memory: an int32, a letter or a number of the dtype."""
        data = self._bytes(value)
        content = np.frombuffer(data.ljust(16, b"\0"), np.uint8)  # of a complex number, the imaginary part is 0
        return BatchPointer(self.slots.once(("lapack", data), lambda: self.slots.table(content)))

    def _bytes(self, value: int | float | str) -> bytes:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, float):
            return struct.pack("<f" if self.real_size == INT else "<d", value)
        return struct.pack("<i", value)

    # ---- steps ----
    def step(self, kind: str, *words: BatchPointer | BlockWord) -> None:
        """A step of the kernel's with these words; see `kernel`."""
        flat: list[BlockWord] = [STEPS.index(kind)]
        for word in words:
            flat += word.words if isinstance(word, BatchPointer) else (word,)
        self.stages[-1][-1].append(tuple(flat))

    def copy(
        self, source: BatchPointer, target: BatchPointer, shape: tuple[int, int], keep: int = ALL, *, transposes: bool = False,
        row: int = 0, from_row: int = 0,
    ) -> None:
        """Copy a row-major matrix, transposed if `transposes`. `row` and `from_row` are the leading dimensions of the target
        and of the source, 0 if dense."""
        rows, columns = shape
        size, down = self.size, (from_row or columns) * self.size
        between = (down, size, *((size, (row or rows) * size) if transposes else ((row or columns) * size, size)))
        if keep == ALL and (not transposes or 1 in shape) and not row and not from_row:
            rows, columns, between = 1, rows * columns, (0, size, 0, size)
        self.step("copy", source, target, rows, columns, *between, keep)

    def copy_columns(
        self, source: BatchPointer, target: BatchPointer, shape: tuple[int, int], keep: int = ALL, *, column: int = 0,
        row: int = 0,
    ) -> None:
        """Copy a column-major matrix to rows. `column` and `row` are the leading dimensions of the source and of the target,
        0 if dense."""
        rows, columns = shape
        size = self.size
        if keep == ALL and 1 in shape and (not column or columns == 1) and not row:
            self.step("copy", source, target, 1, rows * columns, 0, size, 0, size, keep)
        else:
            between = size, (column or rows) * size, (row or columns) * size, size
            self.step("copy", source, target, rows, columns, *between, keep)

    def call(self, name: str, *arguments: Argument) -> BatchPointer:
        """Call a routine, named without its dtype's letter; returns its status code, which is its last argument."""
        info = self.integers()
        self.blas(name, *arguments, info)
        return info

    def blas(self, name: str, *arguments: Argument) -> None:
        """Call a routine that has no status code."""
        name = LETTERS[self.dtype.name] + name
        pointers = self._with_workspace(name, arguments)
        words: list[Any] = [*pointers, *[BatchPointer(0)] * (ARGUMENTS - len(pointers))]
        self.step("call", address(name), *words)

    def _with_workspace(self, name: str, arguments: Sequence[Argument]) -> list[BatchPointer]:
        kinds = {index: a.kind for index, a in enumerate(arguments) if isinstance(a, Workspace) and not a.is_size}
        sizes = workspace(name, [self._query_argument(a) for a in arguments], kinds) if kinds else {}
        element = {"numbers": self.size, "reals": self.real_size, "integers": INT}
        pointers: list[BatchPointer] = []
        for a in arguments:
            if isinstance(a, Workspace):
                pointers.append(self.constant(sizes[a.kind]) if a.is_size else self.scratch(sizes[a.kind], element[a.kind]))
            else:
                pointers.append(a if isinstance(a, BatchPointer) else self.constant(a))
        return pointers

    def _query_argument(self, argument: Argument) -> bytes:
        """An argument of a workspace query."""
        if isinstance(argument, Workspace):
            return self._bytes(-1) if argument.is_size else b""
        return b"" if isinstance(argument, BatchPointer) else self._bytes(argument)
