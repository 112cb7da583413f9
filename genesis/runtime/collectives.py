"""Groups of processes and their collectives: which MPI function is called with which words.

This file is independent of the library: `genesis.distributed` registers each group with the addresses and handles of one. A
collective is a block of words for the kernel of `collective_ir`, which native programs launch and `Group.run` calls. A group
runs one collective at a time, in the order of their starts. After a failure none is started, as the state of other processes is
unknown.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from genesis.runtime import collective_ir as ir
from genesis.runtime.executor_ir import AGAIN
from genesis.runtime.groups import GROUPS, Collective, CollectiveError, Library
from genesis.runtime.kernel_cache import KernelSource, compiled, get_or_compile, text_source
from genesis.runtime.native import FAULT, BlockWord, Slot
from genesis.runtime.system import at_fork, available_processors, locked, make_condition, make_mutex, start_thread, wake_all
from genesis.runtime.team import team

SYMBOL = "genesis_collective"
PIECE = 1 << 21  # bytes: an all_reduce of 64 MB takes half the time in pieces of this size
MOST_ELEMENTS = (1 << 31) - 1  # MPI counts in 32 bits
Address = int | Slot
MEETING_WORDS = 6
# Takes a rank's words, or zeros. Returns the flag and the value of a fault, and the bits that are set on all ranks; of an
# exchange, which is between two, none.
Meeting = Callable[..., tuple[int, int, list[int]]]


class CollectiveLaunch(NamedTuple):
    """The arguments of a collective's launches: the group's state, the collective's entry in its queue, and the rest."""

    state: int
    entry: int
    rest: tuple[BlockWord, ...]

    def block(self, how: int) -> tuple[BlockWord, ...]:
        """The block of a launch that starts it, awaits it, or both."""
        return (self.state, how, self.entry, *self.rest)


class GpuEngine(Protocol):
    """The communication library of a group's GPUs; `problem` is its error message after a failure."""

    problem: str

    def close(self, is_broken: bool) -> None:
        """Shut it down."""


class Group:
    """Processes that communicate: their ranks in the whole job, which of them this one is, and MPI's handles.

    `neighbours` is the number of the job's ranks on this machine. `explain` describes a failure: (what failed, with the user's
    line; the flag; its value; the other rank of an exchange) -> the text. `gpu` is the engine of the ranks' GPUs, if any.
    """

    def __init__(
        self, number: int, rank: int, ranks: Sequence[int], library: Library, handle: int, comparing: int, timeout: float,
        neighbours: int, explain: Callable[[str, int, int, int | None], str],
    ) -> None:
        self.number, self.rank, self.ranks, self.size = number, rank, tuple(ranks), len(ranks)
        self.explain = explain
        self.gpu: GpuEngine | None = None
        self._library, self._handle = library, handle
        self._state = array("q", [0]) * ir.STATE_WORDS
        self._status = ctypes.create_string_buffer(library.status_bytes + 64)
        self._between: dict[int, int] = {}  # by its entry, the other rank of an exchange
        self._kept: list[object] = []  # memory that a broken collective may still write to
        state = self._state
        state[ir.STATUS], state[ir.TEST] = ctypes.addressof(self._status), library.functions["Test"]
        make_mutex(self._at(ir.MUTEX))
        make_condition(self._at(ir.CONDITION))
        state[ir.SPIN] = ir.LONG_SPIN if neighbours <= available_processors() else ir.SHORT_SPIN
        self._comparing = comparing
        self._is_attended = not library.is_shared
        self.timeout = timeout

    @property
    def timeout(self) -> float:
        """Seconds that a collective waits for other processes."""
        return self._state[ir.TIMEOUT] / 1e9

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._state[ir.TIMEOUT] = min(int(seconds * 1e9), 1 << 61)

    @property
    def is_usable(self) -> bool:
        """Whether nothing has failed yet, and the group is not closed."""
        return not self._state[ir.BROKEN]

    @property
    def is_busy(self) -> bool:
        """Whether a collective is in flight."""
        return self._state[ir.FIRST] != 0

    def awaited_ranks(self) -> tuple[Sequence[int], bool]:
        """The ranks of the first collective in the queue, if any, and whether all have arrived at it."""
        state = self._state
        with locked(self._at(ir.MUTEX)):
            if not state[ir.FIRST] or state[ir.BROKEN]:
                return (), False
            other = self._between.get(state[ir.FIRST])
            return self.ranks if other is None else (self.ranks[other],), state[ir.PHASE] != ir.COMPARING

    def give_up(self) -> None:
        """Mark all queued collectives as late, as a launch may await any of them."""
        with locked(self._at(ir.MUTEX)):
            entry = self._state[ir.FIRST]
            while entry:
                ctypes.c_int64.from_address(entry + 8 * ir.DEADLINE).value = 1
                entry = ctypes.c_int64.from_address(entry + 8 * ir.NEXT).value

    def close(self, flag: int = -1, *kept: object) -> None:
        """Start no more collectives; `kept` is memory that those in flight may still use."""
        self._kept += kept
        with locked(self._at(ir.MUTEX)):
            self._state[ir.BROKEN] = self._state[ir.BROKEN] or flag
            wake_all(self._at(ir.CONDITION))
        if self.gpu is not None:
            self.gpu.close(flag != -1)

    def leave_to_parent(self) -> None:
        """In a forked child: start no collectives, which would take the place of the parent's."""
        if self.size > 1:
            self._state[ir.BROKEN] = ir.UNUSABLE
            make_mutex(self._at(ir.MUTEX))  # another thread may have held it
            make_condition(self._at(ir.CONDITION))

    def abandon(self, *kept: object) -> None:
        """`close`, because the state of its collectives is unknown."""
        self.close(ir.UNUSABLE, *kept)

    def blocks(
        self, what: Collective, dtype: np.dtype, operand: Address, result: Address, nbytes: tuple[int, int], site: int,
        keep: list[object],
    ) -> list[CollectiveLaunch]:
        """The blocks of a collective, one after the other, on memory of `nbytes` (the operand's, the result's)."""
        return [
            self._launch(what, function, arguments, (result, operand, min(nbytes)) if copied else (), not number, site, keep)
            for number, (function, arguments, copied) in enumerate(self._calls(what, dtype, operand, result, keep))]

    def _launch(
        self, what: Collective, function: str, arguments: tuple[Address, ...], copy: tuple[Address, ...], compares: bool,
        site: int, keep: list[object],
    ) -> CollectiveLaunch:
        compared = self._compared(what) if compares else []
        entry = array("q", [0]) * ir.ENTRY_WORDS
        keep.append(entry)
        self._between.pop(entry.buffer_info()[0], None)  # of an earlier entry at this address
        if what.between is not None:
            self._between[entry.buffer_info()[0]] = what.between
        if not self._library.functions[function]:
            raise CollectiveError(f"{what.op}: this MPI has no MPI_{function}; want one of version 4")
        return CollectiveLaunch(self._at(0), entry.buffer_info()[0], (
            len(compared), site, FAULT, *(copy or (self._at(0), self._at(0), 0)), *self._call(function, arguments),
            *self._comparison(what, compared, keep)))

    def _call(self, function: str, arguments: tuple[Address, ...]) -> tuple[Address, ...]:
        """The words of a call: MPI's function, and its arguments with the request, of which there are always as many."""
        nothing = (0,) * (ir.ARGUMENTS - len(arguments) - 1)
        return self._library.functions[function], *arguments, self._at(ir.REQUEST), *nothing

    def meeting(self, what: Collective) -> Meeting:
        """A function that waits until all ranks of a collective are about to run it."""
        given, found = (array("q", [0]) * MEETING_WORDS for _ in range(2))
        keep: list[object] = [given, found]
        if what.op == "exchange":
            nothing = self._at(0), 0, self._library.dtypes["uint8"], what.root, _MOVING
            call: tuple[str, tuple[Address, ...]] = "Isendrecv", (*nothing, *nothing, self._comparing)
        else:
            buffers = given.buffer_info()[0], found.buffer_info()[0]
            kind, reduction = self._library.dtypes["int64"], self._library.reductions["band"]
            call = "Iallreduce", (*buffers, MEETING_WORDS, kind, reduction, self._handle)
        launched = self._launch(what, *call, (), True, 0, keep)

        def meet(words: Sequence[int] = ()) -> tuple[int, int, list[int]]:
            for index in range(MEETING_WORDS):
                given[index] = words[index] if words else 0
            return *self._done(launched, keep), found.tolist()

        return meet

    def attend(self) -> None:
        """Start a thread that drives MPI's progress while others compute, if MPI is thread-safe."""
        if not self._is_attended:
            self._is_attended = True
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._state))  # the thread outlives the interpreter
            start_thread(compiled("genesis_attendant", ir.attendant_ir()), self._at(0))

    def run(self, what: Collective, operand: np.ndarray, result: np.ndarray) -> None:
        """Run it now, on row-major arrays. Raises CollectiveError."""
        keep: list[object] = [operand, result]
        buffers = operand.ctypes.data, result.ctypes.data
        for each in self.blocks(what, operand.dtype, *buffers, (operand.nbytes, result.nbytes), 0, keep):
            flag, value = self._done(each, keep)
            if flag:
                raise self.failure(what, "", flag, value, keep)

    def _done(self, launched: CollectiveLaunch, keep: list[object]) -> tuple[int, int]:
        """Launch it and wait; returns the flag and the value of a fault."""
        fault = (ctypes.c_int64 * 4)()
        block, kernel = launched.block(ir.STARTS | ir.AWAITS), _kernel()
        words = array("q", [_signed(ctypes.addressof(fault) if word is FAULT else word) for word in block])  # type: ignore[arg-type]
        try:
            fault[0] = AGAIN
            while fault[0] == AGAIN:  # handlers of signals run in between
                fault[0] = 0
                with team.lock:
                    kernel(0, 1, words.buffer_info()[0], 0)
        except BaseException:
            self.close(ir.UNUSABLE, keep, words, fault)
            raise
        if fault[0]:
            self._kept += words, fault
        return fault[0], fault[2]

    def failure(self, what: Collective, line: str, flag: int, value: int, *kept: object) -> CollectiveError:
        """The error for a failed collective at the user's `line`. The group is unusable afterwards."""
        was_usable = self.is_usable
        self.close(flag, *kept)
        said = f"{what.op} {what.said}{line}".rstrip()
        if flag == ir.FAILED and self.gpu is not None:
            return CollectiveError(f"rank {self.ranks[self.rank]}: {said}: {self.gpu.problem}")
        return CollectiveError(self.explain(said, flag if was_usable else ir.UNUSABLE, value, what.between))

    def _compared(self, what: Collective) -> list[tuple[int, int]]:
        """The numbers that must be equal on all ranks that know them, each with its negative: a digest; for an all_to_all also
        what each rank sends to each, which those two know."""
        found = digest(f"{what.op} {what.said}")
        pairs = [(found, -found)]
        if what.op == "all_to_all":
            for source in range(self.size):
                for target in range(self.size):
                    if source == self.rank:
                        pairs.append((what.sends[target], -what.sends[target]))
                    elif target == self.rank:
                        pairs.append((what.receives[source], -what.receives[source]))
                    else:
                        pairs.append((_UNKNOWN, _UNKNOWN))
        return pairs

    def _comparison(self, what: Collective, compared: list[tuple[int, int]], keep: list[object]) -> tuple[Address, ...]:
        """The function that compares numbers among ranks, its arguments, and the address of its results."""
        gives, finds = (array("q", [signed for pair in compared for signed in pair] or [0]) for _ in range(2))
        keep += gives, finds
        given, found = gives.buffer_info()[0], finds.buffer_info()[0]
        kind = self._library.dtypes["int64"]
        if what.op == "exchange":
            of_one = (1, kind, what.root, _COMPARED)
            return *self._call("Isendrecv", (given, *of_one, found, *of_one, self._comparing)), found
        most = self._library.reductions["max"]
        return *self._call("Iallreduce", (given, found, 2 * len(compared), kind, most, self._comparing)), found

    def _at(self, word: int) -> int:
        return self._state.buffer_info()[0] + 8 * word

    def _calls(
        self, what: Collective, dtype: np.dtype, operand: Address, result: Address, keep: list[object]
    ) -> list[tuple[str, tuple[Address, ...], bool]]:
        """The functions to call and their arguments without the request; and whether the operand is copied first."""
        library, comm, root, own = self._library, self._handle, what.root, self.rank == what.root
        size = dtype.itemsize
        if max((*what.sends, *what.receives), default=0) > MOST_ELEMENTS or sum(what.receives) > MOST_ELEMENTS:
            raise CollectiveError(f"{what.op}: {sum(what.receives):,} elements; MPI moves at most {MOST_ELEMENTS:,} at once")
        if what.op == "barrier":
            return [("Ibarrier", (comm,), False)]
        if what.op in ("all_reduce", "reduce_to", "reduce_scatter"):
            kind, reduction = library.dtypes[dtype.name], library.reductions[what.reduce]
            if what.op == "reduce_to":
                return [("Ireduce", (operand, result, what.sends[0], kind, reduction, root, comm), not own)]
            if what.op == "reduce_scatter":
                return [("Ireduce_scatter", (operand, result, _ints(what.sends, keep), kind, reduction, comm), False)]
            (count,), step = what.sends, max(1, PIECE // size)
            return [
                ("Iallreduce", (_shifted(operand, n * size), _shifted(result, n * size), min(step, count - n), kind, reduction,
                                comm), False) for n in range(0, count, step)]
        kind = library.dtypes[_MOVED[size]]
        sends, receives = (_ints(counts, keep) for counts in (what.sends, what.receives))
        starts, offsets = (_ints([0, *accumulate(counts)], keep) for counts in (what.sends, what.receives))
        if what.op == "broadcast_from":
            return [("Ibcast", (operand if own else result, what.sends[0], kind, root, comm), own)]
        if what.op == "exchange":  # on a communicator without the program's own messages
            of = kind, root, _MOVING
            return [("Isendrecv", (operand, *what.sends, *of, result, *what.receives, *of, self._comparing), False)]
        if what.op == "all_gather":
            return [("Iallgatherv", (operand, what.sends[0], kind, result, receives, offsets, kind, comm), False)]
        if what.op == "gather_to":
            into = result if own else 0
            return [("Igatherv", (operand, what.sends[0], kind, into, receives, offsets, kind, root, comm), not own)]
        if what.op == "scatter_from":
            source = operand if own else 0
            return [("Iscatterv", (source, sends, starts, kind, result, what.receives[0], kind, root, comm), False)]
        return [("Ialltoallv", (operand, sends, starts, kind, result, receives, offsets, kind, comm), False)]


_COMPARED, _MOVING = 0, 1  # tags
_UNKNOWN = -(1 << 40)  # less than any count, and than its negative
_MOVED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}  # the dtype that elements of a size are moved as


@functools.cache
def _kernel() -> Callable[[int, int, int, int], None]:
    """The kernel; a call releases the GIL."""
    [address] = get_or_compile([collective_source()])
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(address)


@functools.cache
def collective_source() -> KernelSource:
    """The kernel of all collectives."""
    return text_source(SYMBOL, ir.collective_ir())


def digest(said: str) -> int:
    """A positive number that identifies a text."""
    return int.from_bytes(hashlib.blake2b(said.encode(), digest_size=8).digest(), "little") >> 2 | 1


def _shifted(address: Address, nbytes: int) -> Address:
    return Slot(address.number, address.offset + nbytes) if isinstance(address, Slot) else address + nbytes


def _ints(counts: Sequence[int], keep: list[object]) -> int:
    """The address of MPI's counts, which live as long as `keep`."""
    words = array("i", counts)
    keep.append(words)
    return words.buffer_info()[0]


def _signed(word: int) -> int:
    return (word + (1 << 63)) % (1 << 64) - (1 << 63)


def _leave_to_parent() -> None:
    for group in GROUPS.values():
        group.leave_to_parent()


at_fork(after_in_child=_leave_to_parent)
