"""Programs: flat tables of kernel launches that one native call runs, over our own team of threads.

A kernel is `void kernel(i64 lo, i64 hi, i64* words, i64 worker)`; a launch gives it argument blocks and items; a program is a
sequence of launches. Values that change between runs (base pointers, scalars) are slots: each run packs them, and native code
writes them into the argument blocks (`executor_ir` has the native side and its structures).

    program = NativeProgram([NativeLaunch(kernel, [Block((Slot(0), Slot(1, 64), n), items=n)], workers=2)], slot_format="QQ")
    program.run((source, destination))
"""

from __future__ import annotations

import functools
import itertools
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from genesis.ir.symbolic_sizes import Size
from genesis.ir.unguarded import maximum, minimum, over
from genesis.runtime import executor_ir
from genesis.runtime.builtin_function import METH_O, builtin
from genesis.runtime.completion import Completion, Fault
from genesis.runtime.counters import counts
from genesis.runtime.kernel_cache import KernelSource, get_or_compile, text_source
from genesis.runtime.team import team
from genesis.runtime.timeline import Launches, timeline


class Slot(NamedTuple):
    """An argument word that each run supplies: slot number `number` plus `offset`."""

    number: int
    offset: int = 0


class MovingSlot(NamedTuple):
    """An argument word of a launch that is repeated: slot `number` plus `offset`, and `stride` more each time."""

    number: int
    offset: int
    stride: int


class _FaultAddress:
    """The word that holds the address of the program's fault record."""

    def __repr__(self) -> str:
        return "FAULT"


FAULT = _FaultAddress()


class Symbol(NamedTuple):
    """The address of a function or of memory in an object file, by its name."""

    name: str


# A tuple is a nested argument block, the word its address; symbols are for object files alone.
BlockWord = int | Slot | MovingSlot | _FaultAddress | Symbol | tuple


Addresses = Mapping[str, int | Symbol]  # of functions, by name


class Block(NamedTuple):
    """The arguments of `items` items."""

    words: Sequence[BlockWord]
    items: int


class NativeLaunch(NamedTuple):
    """One kernel over the items of its blocks, laid end to end and divided evenly among `workers`.

    With `numbered` (and a single block) the items are divided into so many chunks, whatever the workers are. The kernel is
    called once for each, be its range empty, with the chunk's number instead of the worker's.
    """

    kernel: int | Symbol
    blocks: Sequence[Block]
    workers: int = 1
    numbered: int = 0


class Repeat(NamedTuple):
    """Launches that run in order, `times` times."""

    launches: Sequence[NativeLaunch]
    times: int

    @property
    def workers(self) -> int:
        return functools.reduce(maximum, [launch.workers for launch in self.launches], 1)


Launch = NativeLaunch | Repeat


def run_source() -> KernelSource:
    """The source of the executor."""
    return text_source("genesis_run", executor_ir.run_ir())


@functools.cache
def _native_run() -> Callable[[int], int]:
    """The native `run`: program's address -> flag of its fault record.

    A builtin function made of machine code: a call through ctypes converts its arguments in Python first, and leaves room for
    an interrupt between the call and what follows.
    """
    # Measured: 250 to 130 ns a call, a compiled sum 8.5 to 7.9 us.
    [address] = get_or_compile([run_source()])
    return builtin(b"genesis_run", address, METH_O)


class NativeProgram:
    """Launches to run in order, and the argument blocks they read.

    `slot_format` has one struct character for each slot: q and Q for 64-bit integers and addresses, d for a double.
    `keep` lives as long as the program: ctypes callbacks whose addresses it launches, memory its words point to.
    """

    sources: Sequence[str] = ()
    refused = ""

    __slots__ = (
        "_clock", "_is_prepared", "_keep", "_pack_into", "_run", "_slot_format", "_words", "_workers", "address",
    )

    def __init__(self, launches: Sequence[Launch], slot_format: str = "", keep: Iterable[object] = ()) -> None:
        layout = ProgramLayout(len(slot_format))
        layout.end(launches)
        workers = max((launch.workers for launch in launches), default=1)
        self._begin(array("Q", layout.words), layout.pointers, len(launches), slot_format, workers, keep)

    def _begin(
        self, words: array[int], pointers: Sequence[int], launches: int, slot_format: str, workers: int, keep: Iterable[object]
    ) -> None:
        """Relocate the words to where they are."""
        self._words, self._clock = words, array("q", bytes(8 * (2 * launches + 2)))
        self.address, words[CLOCK] = words.buffer_info()[0], self._clock.buffer_info()[0]
        for index in pointers:
            words[index] = self.address + 8 * words[index]
        self._slot_format = slot_format
        self._pack_into = _packer(slot_format)
        self._run = _native_run()
        self._workers = workers
        self._keep = tuple(keep)
        self._is_prepared = False  # its slots are set for a run that has not ended

    def run(self, values: Sequence[int | float] = (), completion: Completion | None = None) -> Fault | None:
        """Run every launch with these slot values; return the fault that stopped it, if one did.

        One run at a time is active in the process; `completion` is set when this one is complete. If it takes long, signal
        handlers run between two launches. If one raises, the run is suspended: with the same `completion` and slot values it
        is continued.
        """
        if completion is None:
            completion = Completion()
        # One run at a time, as the team serves one launch, and slots are written into the program.
        with team.lock:
            if self._workers > team.size:
                team.grow(self._workers)
            interrupted = self._words[:] if self._is_prepared else None  # by a signal handler that runs it, too
            self._is_prepared = True
            self._pack_into(self._words, SLOTS_OFFSET, completion.address, *values)
            counts["native_calls"] += 1
            began = timeline.spans is not None and timeline.start()
            try:
                flagged = self._run(self.address)
                return Fault(*_FAULT.unpack_from(self._words, FAULT_OFFSET)) if flagged else None
            finally:
                self._is_prepared = False
                if began:
                    timeline.note("run", began, Launches(self._clock[:], team.take_logs()))
                if interrupted is not None:
                    self._words[:], self._is_prepared = interrupted, True

    def slots(self) -> Iterator[tuple[int, str]]:
        """The address and the struct character of each slot, for who fills them without `run`. The first is for the address
        of a `Completion`.
        """
        return zip(itertools.count(self.address + SLOTS_OFFSET, 8), "Q" + self._slot_format)

    @property
    def copied(self) -> Callable[[], bytes]:
        """A C function that copies the program's words: no other thread fills slots between what was filled and the copy."""
        return self._words.tobytes

    def filled(self, words: bytes) -> tuple[int | float, ...]:
        """The values of the slots in a copy of the words."""
        return struct.unpack_from("=" + self._slot_format, words, SLOTS_OFFSET + 8 * RUN_SLOTS)

    def seconds(self) -> list[float]:
        """The seconds of each launch in the latest run."""
        times = [second + 1e-9 * nanosecond for second, nanosecond in zip(*[iter(self._clock)] * 2, strict=True)]
        return [after - before for before, after in itertools.pairwise(times)]


class SymbolicProgram:
    """A program of symbolic sizes: `varying` are the number of its workers and the words that depend on them."""

    __slots__ = ("_fixed", "_keep", "_places", "_words", "varying")

    def __init__(self, launches: Sequence[Launch], slot_format: str = "", keep: Iterable[object] = ()) -> None:
        layout = ProgramLayout(len(slot_format))
        layout.end(launches)
        self._places = [place for place, word in enumerate(layout.words) if type(word) is Size]
        self.varying = [functools.reduce(maximum, [launch.workers for launch in launches], 1)]
        self.varying += [layout.words[place] for place in self._places]
        self._words = array("Q", [0 if type(word) is Size else word for word in layout.words])
        self._fixed, self._keep = (layout.pointers, len(launches), slot_format), tuple(keep)

    def filled(self, varying: Sequence[int], keep: Iterable[object]) -> NativeProgram:
        """The program with these numbers in place of `varying`, and memory that words point to."""
        workers, *values = varying
        words = self._words[:]
        for place, value in zip(self._places, values, strict=True):
            words[place] = value & _MASK
        program = NativeProgram.__new__(NativeProgram)
        program._begin(words, *self._fixed, workers, (*self._keep, *keep))
        return program


@functools.lru_cache(256)
def _packer(slot_format: str) -> Callable[..., None]:
    return struct.Struct("=Q" + slot_format).pack_into  # the run's own slot comes first


_HEADER_WORDS = 8
CLOCK = 7
FAULT_OFFSET = 8 * _HEADER_WORDS
SLOTS_OFFSET = FAULT_OFFSET + 8 * executor_ir.FAULT_WORDS
_FAULT = struct.Struct(f"={executor_ir.FAULT_WORDS}q")
RUN_SLOTS = 1
_MASK = (1 << 64) - 1
# This needs the placement of workers (`system_ir`), else caller and worker alternate on one processor.
_CHUNKS = 4  # per worker: a fast worker takes more of them
_WANTED = "an int, a Slot that slot_format has, FAULT, or a tuple of words"


class ProgramLayout:
    """A program's words: header, fault, slots, argument blocks and their tables, launches, relocations.

    Attributes:
        words: numbers; words at `pointers` are indices of words, replaced by addresses at the end; words at `symbols` are 0.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self.symbols: dict[int, str] = {}
        self.words = [0] * (SLOTS_OFFSET // 8 + RUN_SLOTS + slots)
        self.pointers: list[int] = []  # words that hold other words' indices: addresses once the array exists
        self.relocations: list[tuple[int, int, int]] = []  # word, slot, byte offset
        self._moving: list[tuple[int, int, int, int]] = []  # of the launches being repeated: these and the stride

    def _point_to(self, index: int) -> None:
        self.pointers.append(len(self.words))
        self.words.append(index)

    def block(self, arguments: Sequence[BlockWord]) -> int:
        """The index of an argument block's first word; nested blocks follow it."""
        words = self.words
        start, nested = len(words), []
        for word in arguments:
            if type(word) is int or type(word) is Size:
                words.append(_bits(word))
            elif type(word) is Slot and 0 <= word.number < self._slots:
                self.relocations.append((len(words), word.number + RUN_SLOTS, _bits(word.offset)))
                words.append(0)
            elif type(word) is MovingSlot and 0 <= word.number < self._slots:
                self._moving.append((len(words), word.number + RUN_SLOTS, _bits(word.offset), _bits(word.stride)))
                words.append(0)
            elif type(word) is Symbol:
                self.symbols[len(words)] = word.name
                words.append(0)
            elif type(word) is tuple:
                nested.append((len(words), word))
                self._point_to(0)
            elif word is FAULT:
                self._point_to(FAULT_OFFSET // 8)
            else:
                raise ValueError(f"NativeProgram: word {len(words) - start} is {word!r}; want {_WANTED}")
        # Nested blocks follow this one: each block is contiguous, as kernels read it.
        for position, block in nested:
            words[position] = self.block(block)
        return start

    def table(self, blocks: Sequence[Block]) -> int:
        """The index of a launch's table: each block's address and its items."""
        starts = [self.block(block.words) for block in blocks]
        table = len(self.words)
        for start, block in zip(starts, blocks, strict=True):
            self._point_to(start)
            self.words.append(block.items)
        return table

    def launches(self, launches: Sequence[Launch]) -> int:
        """The index of the launches' table, which follows what they consist of."""
        words = self.words
        records = [self._repeated(launch) if isinstance(launch, Repeat) else
                   (launch.kernel, len(launch.blocks), self.table(launch.blocks), *_chunks(launch)) for launch in launches]
        launches_at = len(words)
        for kernel, count, table, *division in records:
            if isinstance(kernel, Symbol):
                self.symbols[len(words)] = kernel.name
            words += (0 if isinstance(kernel, Symbol) else kernel, count)
            self._point_to(table)
            words += division
        return launches_at

    def _repeated(self, repeat: Repeat) -> tuple[int, ...]:
        """The words of a repeat; the third is the index of the launches, which the words that move follow."""
        inside, moving = self.launches(repeat.launches), self._moving
        self._moving = []
        for word, *rest in moving:
            self._point_to(word)
            self.words += rest
        return 0, len(repeat.launches), inside, repeat.times, len(moving), 0, 0

    def end(self, launches: Sequence[Launch]) -> None:
        """Lay out the launches, tables and relocations."""
        words, launches_at = self.words, self.launches(launches)
        relocations_at = len(words)
        for word, slot, offset in self.relocations:
            self._point_to(word)
            words += (slot, offset)
        words[:_HEADER_WORDS] = (
            *(len(launches), launches_at, len(self.relocations), relocations_at),
            *(SLOTS_OFFSET // 8, FAULT_OFFSET // 8, team.address, 0),
        )
        self.pointers += (1, 3, 4, 5)


def _bits(word: int) -> int:
    return word & _MASK if type(word) is int else word  # a symbolic one's are taken when it is known


def _chunks(launch: NativeLaunch) -> tuple[int, int, int, bool]:
    """The division of a launch: its items, workers and chunks, and whether chunks are numbered."""
    if launch.numbered and len(launch.blocks) != 1:
        raise ValueError(f"NativeLaunch: numbered chunks need exactly one block, not {len(launch.blocks)}")
    total = sum(block.items for block in launch.blocks)
    workers = maximum(1, minimum(launch.workers, launch.numbered or total))
    chunks = launch.numbered or over(workers, 1, minimum(_CHUNKS * workers, total), 1)
    return total, workers, chunks, bool(launch.numbered)
