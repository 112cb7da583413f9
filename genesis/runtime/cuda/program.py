"""Programs of a GPU: launches bound to addresses; the first run submits them one by one, later runs as one graph."""

from __future__ import annotations

import struct
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from genesis.runtime.completion import Completion, Fault, UnfinishedError
from genesis.runtime.counters import count
from genesis.runtime.cuda.cublas import matmul
from genesis.runtime.cuda.gpu import Command, LaunchError, Loaded
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.native import Slot

_ENDLESS = 1 << 40  # elements: the extent of an array of which only the address is known


def item_bytes(name: str) -> int:
    """The bytes of an element that a type's name speaks of: of `float32*` and `float32[]` 4, of `float32**` 8.

    >>> [item_bytes(name) for name in ("float32*", "uint8[]", "int64", "float32**")]
    [4, 1, 8, 8]
    """
    if name.endswith("**"):
        return 8
    return int("".join(c for c in name if c.isdigit())) // 8


def raw_words(types: Sequence[str], arguments: Sequence[float]) -> array[int]:
    """The arguments as words of eight bytes; an array, `float32[]`, is seven: (0, 0, items, bytes of one, address, items,
    bytes of one).

    >>> raw_words(("int64", "float64", "float32[]"), (-1, 1.0, 4096)).tolist()[1:4]
    [4607182418800017408, 0, 0]
    """
    words: list[int] = []
    for name, value in zip(types, arguments, strict=True):
        if name == "float64":
            words.append(int.from_bytes(struct.pack("=d", value), "little"))
        elif name.endswith("[]"):
            size = item_bytes(name)
            words += 0, 0, _ENDLESS, size, int(value), _ENDLESS, size
        else:
            words.append(int(value) & 0xFFFFFFFFFFFFFFFF)
    return array("Q", words)


BOUND_LIMIT = 8  # sets of addresses that a program keeps bound
_FAULT_WORDS = 4


class Scalar(NamedTuple):
    """A word that is the address of a scalar."""

    number: int


class _FaultRecord:
    """The word that is the address of the program's fault record."""


FAULT = _FaultRecord()
CudaWord = int | float | Slot | Scalar | _FaultRecord


class CudaLaunch(NamedTuple):
    """A launch of a loaded function.

    A function for many calls takes only the address of a table in the GPU's memory, with a row of words for each call. `source`
    is its text.
    """

    function: Loaded
    blocks: Sequence[int]
    threads: Sequence[int]
    types: Sequence[str]
    words: Sequence[CudaWord]
    table: Sequence[Sequence[CudaWord]] = ()
    source: str = ""

    @property
    def can_fail(self) -> bool:
        return FAULT in self.words or any(FAULT in row for row in self.table)


class Bound:
    """A program's launches at one set of addresses, in two parts: up to the last that can fail, and the rest.

    The host checks for faults between the parts, since the second may overwrite inputs. Each part becomes a graph once both
    have run: what a library prepares at its first call cannot be captured.
    """

    def __init__(self, parts: Sequence[list[Command]], tables: Sequence[_Table]) -> None:
        self.parts = parts
        self.commands = [command for part in parts for command in part]
        self.tables = tables
        self.has_run = False
        self.graphs: Sequence[list[Command]] = ()


class _Table:
    __slots__ = ("__weakref__", "address")

    def __init__(self, memory: GpuMemory, values: np.ndarray) -> None:
        self.address = memory.lend(self, values.nbytes)
        memory.write(self.address, values)


def _packed(rows: Sequence[Sequence[float]]) -> np.ndarray:
    """Numbers of eight bytes each."""
    numbers = [number for row in rows for number in row]
    return np.frombuffer(b"".join([struct.pack("=d" if isinstance(n, float) else "=q", n) for n in numbers]), np.int64)


class CudaProgram:
    """Steps to run in order. The first `scalars_at` slots are addresses; the rest are scalars, a struct character each.

    `refused` is the reason why launches are submitted one by one, if they cannot be a graph.
    """

    def __init__(self, memory: GpuMemory, steps: Sequence[CudaLaunch], scalars_at: int, scalars: str) -> None:
        self._memory = memory
        self._steps = steps
        self._scalars_at = scalars_at
        self._pack = struct.Struct("=" + scalars).pack
        self._sent = b""
        self._record = _Table(memory, np.zeros(_FAULT_WORDS + len(scalars), np.int64))
        self._checked = max((k + 1 for k, step in enumerate(steps) if step.can_fail), default=0)
        self.sources = [step.source for step in steps]
        self.refused = ""
        self._clocks: Sequence[Callable[[], list[float]]] = ()
        self._is_watched = False
        self._bound: OrderedDict[tuple[float, ...], Bound] = OrderedDict()

    def run(self, values: Sequence[int | float], completion: Completion | None = None) -> Fault | None:
        """Run all launches with these slot values; the fault that a kernel reported, if one did.

        Raises RuntimeError if a launch fails: UnfinishedError if inputs may have been written over before.
        """
        memory, gpu = self._memory, self._memory.gpu
        with memory.lock:
            bound = self.bound(values)
            if bound.has_run and not bound.graphs:
                bound.graphs = [self._captured(part) for part in bound.parts]
            count("native_calls")
            checked, rest = bound.graphs or bound.parts
            # The first run submits launches one by one anyhow, as libraries prepare themselves at their first call.
            if is_timed := self._is_watched or not bound.has_run:
                (checked, first), (rest, second) = map(gpu.timed, bound.parts)
                self._clocks, self._is_watched = (first, second), False
            if bound.parts[0]:
                gpu.submit(checked)
                if (fault := self._fault()) is not None:
                    return fault
            # From here on inputs may be overwritten: the completion is noted in the same pass as the launches.
            try:
                gpu.submit(rest, int if completion is None else completion.note)
            except LaunchError as problem:
                launch = problem.failed // 2 if is_timed else problem.failed  # each has a mark before it, and the end has
                if launch or problem.in_part:
                    raise UnfinishedError(str(problem), min(self._checked + launch, len(self._steps) - 1)) from problem
                raise
            bound.has_run = True
        return None

    @property
    def can_fail(self) -> bool:
        """Whether a kernel may report a fault."""
        return self._checked > 0

    @property
    def is_watched(self) -> bool:
        """Whether the next run is to submit the launches one by one, with marks between them."""
        return self._is_watched

    def addresses(self, values: Sequence[int | float]) -> tuple[float, ...]:
        """The addresses that launches are bound to."""
        return *values[: self._scalars_at], matmul.allow_tf32  # which library calls are bound to as well

    def bound(self, values: Sequence[int | float]) -> Bound:
        """The launches at a run's addresses, whose scalars are copied to the GPU. The caller holds the memory's lock."""
        # Bindings are kept by address: a pool of results hands out the same ones in turn.
        addresses = self.addresses(values)
        found = self._bound.get(addresses)
        if found is None:
            found = self._bind(addresses)
        else:
            self._bound.move_to_end(addresses)
        # Scalars go to the GPU only when they change: a learning rate mostly does not.
        content = self._pack(*values[self._scalars_at :])
        if content != self._sent:
            self._memory.write(self._record.address + 8 * _FAULT_WORDS, np.frombuffer(content, np.uint8))
            self._sent = content
        return found

    def seconds(self) -> list[float]:
        """The seconds of each launch in the latest run that submitted them one by one; the next run does so again."""
        with self._memory.lock:
            self._is_watched = True
            return [second for clock in self._clocks for second in clock()]

    def _captured(self, commands: list[Command]) -> list[Command]:
        """The commands as one graph, or unchanged if the driver cannot capture one of them, as some library calls."""
        if not commands:
            return []
        try:
            graph = self._memory.gpu.captured(commands)
        except RuntimeError as problem:
            count("graphs_refused")
            self.refused = str(problem)
            return commands
        count("graphs_captured")
        return [graph]

    def _bind(self, addresses: tuple[float, ...]) -> Bound:
        tables: list[_Table] = []
        commands = []
        for step in self._steps:
            if step.table:
                rows = [[self._word(word, addresses) for word in row] for row in step.table]
                tables.append(_Table(self._memory, _packed(rows)))
                words: list[float] = [tables[-1].address] * len(step.types)
            else:
                words = [self._word(word, addresses) for word in step.words]
            commands.append(self._memory.gpu.command(step.function, step.blocks, step.threads, step.types, words))
        bound = self._bound[addresses] = Bound((commands[: self._checked], commands[self._checked :]), tables)
        if len(self._bound) > BOUND_LIMIT:
            self._bound.popitem(last=False)
        return bound

    def _word(self, word: CudaWord, addresses: tuple[float, ...]) -> float:
        if isinstance(word, Slot):
            return addresses[word.number] + word.offset
        if isinstance(word, Scalar):
            return self._record.address + 8 * (_FAULT_WORDS + word.number)
        return self._record.address if isinstance(word, _FaultRecord) else word

    def _fault(self) -> Fault | None:
        """The fault that kernels have reported, once they are done; the record is cleared."""
        record = np.empty(_FAULT_WORDS, np.int64)
        self._memory.read(self._record.address, record)
        if not record[0]:
            return None
        self._memory.gpu.clear(self._record.address, record.nbytes)
        return Fault(*record.tolist())
