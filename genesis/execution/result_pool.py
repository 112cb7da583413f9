"""The memory that programs compute into: one mechanism for flushes and replays, on every device, for results of any size.

A pool keeps the last two runs of one program. A small result reuses the memory of the last run's result if nobody owns that
any more, because it is in caches; otherwise that of the run before. A large result is written over an array that dies with the
run, if the program can do so and nobody else owns it (`reusable`); otherwise it gets fresh memory, which the run does not keep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import cycle
from operator import attrgetter, ne, sub
from typing import NamedTuple, Protocol

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape
from genesis.ops.layout import Layout
from genesis.runtime.completion import Completion
from genesis.runtime.devices import Device
from genesis.runtime.memory import Buffer
from genesis.runtime.references import IN_LIST, reference_count
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array, Trace

# Bytes. The pool keeps the host's results up to SMALL. A recorded call will run again, so its pool keeps all results if each
# takes up to REPLAYED_SMALL: kept memory is 1 us cheaper than writing over an input. It also keeps them if together they take
# up to REPLAYED_TOGETHER: fresh memory costs 10 us, as much as copying 256 x 256 numbers; or up to REPLAYED_ALONE, if the
# program overwrites nothing: after a kernel that has emptied the caches, fresh memory costs 25 us.
SMALL, REPLAYED_SMALL, REPLAYED_TOGETHER, REPLAYED_ALONE = 16 << 10, 64 << 10, 1 << 20, 8 << 20
_RUNS = 2  # that a pool keeps: a result usually lives until the next run has made its successor

_memory, _buffer = attrgetter("memory"), attrgetter("buffer")


class Output(NamedTuple):
    """The location of a program's value: in one of its inputs or buffers, from byte `start` on."""

    is_input: bool
    number: int
    layout: Layout
    dtype: DType
    start: int
    strides: Shape | None  # those that a kernel reads


class ResultBuffer(NamedTuple):
    """Buffer `number` of a program, of `size` bytes, and the first value in it; the rest as in `Output`."""

    number: int
    value: int
    size: int
    layout: Layout
    start: int
    strides: Shape | None


class Computation(Protocol):
    """Computes a flush's values: a plan, or the NumPy references of a trace."""

    @property
    def keeps(self) -> bool: ...

    @property
    def saved(self) -> Sequence[int]: ...

    @property
    def number_of(self) -> Mapping[int, int]: ...

    @property
    def read_collectives(self) -> Collection[int]: ...


class Run:
    """The memory of one run of a program, running or completed.

    Attributes:
        memories: the memory of each value; None where there is none yet.
        arrays: the same as arrays, if the pool has handles for them.
        addresses: those of the program's buffers.
        kept: small results as arrays (if the pool has handles), as memories and as buffers.
        unowned: the reference counts of `kept` while nobody else owns them.
        completion: true once the program has completed.
        pool, plan, handles, arena: during a flush: the run's pool, the computation, the handles that it computes, and the
            memory of temporaries.
        overwriting: during a flush that writes over inputs: the slots of its programs, and the numbers of the buffers there.
    """

    __slots__ = (
        "addresses", "arena", "arrays", "completion", "device", "handles", "kept", "memories", "overwriting",
        "plan", "pool", "unowned",
    )

    def __init__(self, device: Device, values: int = 0, buffers: int = 0) -> None:
        self.device = device
        self.memories: list[Memory] = [None] * values  # type: ignore[list-item]
        self.arrays: list[Array] = [None] * values  # type: ignore[list-item]
        self.addresses = [0] * buffers
        self.completion = Completion()
        self.pool: ResultPool | None = None
        self.plan: Computation | None = None
        self.handles: Sequence[Array] = ()
        self.arena: Buffer | None = None
        self.overwriting: tuple[list[int | float], list[int]] | None = None
        self.kept: list[Array | Memory | Buffer] = []
        self.unowned: list[int] | None = None

    def place_views(self, views: Iterable[tuple[int, Output]], owners: Sequence[int], inputs: Sequence[Array]) -> None:
        """Set the memory of values inside inputs, or inside others' buffers, whose first values are `owners`."""
        memories = self.memories
        for value, (is_input, number, layout, dtype, start, strides) in views:
            if is_input:
                memories[value] = inputs[number].memory.at(layout, dtype, dtype)  # type: ignore[union-attr]
            else:
                memories[value] = Memory.laid(memories[owners[number]].buffer, layout, start, strides)


class ResultPool:
    """The runs of one program.

    Attributes:
        donations: (input, buffer) pairs: the program may write this large result over this input.
        donors, sizes: these inputs, and the sizes of the results.
        kept_bytes: a run keeps results up to this size. On a GPU it keeps none: the GPU's own pool returns the same memory
            again, where graphs of launches expect it.
        selected: the small values that tensors get.
        passing: the values that a run does not keep.
        handles: (trace, position, node) of the arrays as which its runs hold results; none if these are memories alone.
        kept_count: the number of objects that a run keeps: see `Run.kept`.
        has_large: whether there are results that do not stay with a run.
    """

    __slots__ = (
        "_buffers", "_large", "_small", "_values", "donated", "donations", "donors", "handles", "has_large", "idle",
        "kept_bytes", "kept_count", "passing", "selected", "sizes",
    )

    def __init__(
        self, buffers: Sequence[ResultBuffer], values: int, donations: Sequence[tuple[int, int]], kept_bytes: int,
        handles: Sequence[tuple[Trace | None, int, Node]] = (),
    ) -> None:
        self._buffers = buffers
        self.donations = [pair for pair in donations if buffers[pair[1]].size > kept_bytes]
        self.donors = [k for k, _ in self.donations]
        self.donated = [number for _, number in self.donations]
        self.sizes = [buffers[number].size for number in self.donated]
        self.kept_bytes = kept_bytes
        self.idle: list[Run] = []  # that came to their end, the oldest first
        self.selected: Sequence[int] = ()
        self.handles = handles
        self._values = values
        self._large = [buffer for buffer in buffers if buffer.size > kept_bytes]
        self._small = [buffer.value for buffer in buffers if buffer.size <= kept_bytes]
        self.passing = sorted({*range(values)}.difference(self._small))
        self.kept_count, self.has_large = len(self._small) * (3 if handles else 2), bool(self._large)

    def keeping_large(self) -> ResultPool:
        """Another pool, of a recorded call that changes no tensor: its runs keep larger results."""
        return self.for_replays(self.handles, REPLAYED_ALONE)

    def for_replays(
        self, handles: Sequence[tuple[Trace | None, int, Node]] = (), together: int | None = None
    ) -> ResultPool:
        """Another pool of the program, which keeps all results if each takes up to REPLAYED_SMALL, or all `together` so many
        bytes, by default REPLAYED_TOGETHER."""
        sizes = [buffer.size for buffer in self._buffers]
        largest, most = max(sizes, default=0), REPLAYED_TOGETHER if together is None else together
        keeps_all = self.kept_bytes > 0 and (largest <= REPLAYED_SMALL or sum(sizes) <= most)
        kept_bytes = max(largest, self.kept_bytes) if keeps_all else self.kept_bytes
        return ResultPool(self._buffers, self._values, self.donations, kept_bytes, handles)

    def take(self, device: Device, reused: Mapping[int, Array]) -> Run:
        """A run with memory, see `provide`: the last one if nobody owns what it keeps, else the oldest that is idle, or a new
        one.
        """
        idle = self.idle
        run = idle.pop() if idle else self.new_run(device)
        counts = [*map(reference_count, run.kept)]  # a signal handler no longer finds it, and so takes none of it
        if counts != run.unowned and run.kept:
            idle.append(run)
            run = idle.pop(0) if len(idle) >= _RUNS else self.new_run(device)
            counts = [*map(reference_count, run.kept)]
        if run.device is not device:
            run, counts = self.new_run(device), []
        self.provide(run, counts, reused)
        return run

    def new_run(self, device: Device) -> Run:
        """A run that nobody else takes."""
        return Run(device, self._values, len(self._buffers))

    def provide(self, run: Run, counts: Sequence[int], reused: Mapping[int, Array]) -> None:
        """Set the memory of all buffers, given the reference counts of what the run has kept; `reused`: buffer number -> the
        memory that it is written over."""
        if counts != run.unowned:
            self._replace(run, counts, reused)
        elif self._large:
            self._make(run, self._large, reused)
        if not self.handles:  # what once saw this memory does no more, and no backward asks for it
            for buffer in run.kept[len(self._small) :]:
                buffer.origin = buffer._owner = None  # type: ignore[union-attr]

    def _replace(self, run: Run, counts: Sequence[int], reused: Mapping[int, Array]) -> None:
        """Replace kept memory that somebody owns; all of it at the first run, and after an interrupt within this function."""
        kept, small, memories = run.kept, self._small, run.memories
        unowned, run.unowned = run.unowned, None
        for value, is_owned in zip(cycle(small), map(ne, counts, unowned) if unowned else [True] * len(small), strict=False):
            if is_owned:
                memories[value] = None  # type: ignore[call-overload]
        kept.clear()
        self._make(run, self._buffers, reused)
        own = [memories[value] for value in small]
        if self.handles:
            kept += [run.arrays[value] for value in small]
        kept += own
        kept += map(_buffer, own)
        del own
        run.unowned = unowned or [*map(reference_count, kept)]  # right here nobody else can know of them

    def _make(self, run: Run, buffers: Sequence[ResultBuffer], reused: Mapping[int, Array]) -> None:
        """Allocate memory for values that have none."""
        memories, addresses, handles, device, laid = run.memories, run.addresses, self.handles, run.device, Memory.laid
        for number, value, size, layout, start, strides in buffers:
            if memories[value] is not None:
                continue
            array = reused.get(number)
            if array is None:
                memory = laid(Buffer(size, device), layout, start, strides)
            else:
                memory = array.memory  # type: ignore[assignment]
                if memory.layout is not layout:
                    memory, array = laid(memory.buffer, layout, start, strides), None
            memories[value] = memory
            addresses[number] = memory.buffer.ptr
            if handles:
                run.arrays[value] = array or Array(*handles[value], memory)

    def give_back(self, run: Run) -> None:
        """Keep a run whose program has completed, with its small results only."""
        run.pool, run.plan, run.handles = None, None, ()
        run.arena = run.overwriting = None
        if self.passing:
            self.drop_passing(run)
        self.idle.append(run)

    def drop_passing(self, run: Run) -> None:
        """Drop what a run does not keep."""
        memories, arrays = run.memories, run.arrays
        for value in self.passing:
            memories[value] = arrays[value] = None  # type: ignore[call-overload]


def reusable(arrays: Sequence[Array], owners: Sequence[int], sizes: Sequence[int]) -> list[bool]:
    """Which realized arrays may be overwritten: those without owners besides `arrays` and as many others as `owners` says, in
    whole unshared buffers of these sizes.

    `lower.donations` proves which outputs a program may write over which inputs; this decides for each run whether it does.
    """
    memories = [*map(_memory, arrays)]
    buffers = [*map(_buffer, memories)]
    once = IN_LIST + 1
    of_arrays, of_memories = [*map(sub, map(reference_count, arrays), owners)], [*map(reference_count, memories)]
    of_buffers = [*map(reference_count, buffers)]  # all counts are there before a loop's variables become owners
    return [
        of_array == IN_LIST and of_memory == once and of_buffer == once and buffer.nbytes == size and buffer._owner is None
        and not memory.layout.offset
        for of_array, of_memory, of_buffer, memory, buffer, size in zip(
            of_arrays, of_memories, of_buffers, memories, buffers, sizes, strict=True)
    ]
