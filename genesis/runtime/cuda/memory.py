"""A GPU's memory: blocks that return when their owners die, and copies to and from the host."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np

from genesis.runtime.cuda.allocator import Allocator
from genesis.runtime.cuda.gpu import Gpu, Mark
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.memory import Loan, MemoryStats

CHUNK = 4 << 20  # bytes of a pinned buffer; larger copies alternate between two, so that host and GPU copy at the same time
ALIGNMENT = 64
SPIN, NAP = 0.001, 0.0001  # seconds of waiting without a pause, and of a pause then, where waits are watched
STATISTICS = ("held", "peak", "reserved", "peak_reserved", "blocks", "segments", "retries", "shortages")


class GpuMemory:
    """Blocks of a GPU's memory for owners. See `runtime.memory.DeviceMemory`.

    As in the host's pool, an owner's death only queues its loan: a destructor that ran Python could lose an interrupt.
    `watches` are called with the seconds waited while a thread waits, because work of other processes may never end.
    """

    is_host = False

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.lock = fork_safe_lock()
        self._allocator = Allocator(gpu)
        self._loans: dict[int, Loan] = {}
        self._ended: deque[Loan] = deque()
        self.watches: list[Callable[[float], None]] = []
        self.under_way: dict[object, Mark] = {}  # what communicates, and the mark behind it, until programs wait for it
        self._pinned = _Pinned(gpu, self.wait)

    # ---- blocks ----
    def lend(self, owner: object, nbytes: int) -> int:
        """The address of a block that is returned when `owner` dies. Raises OutOfMemoryError."""
        with self.lock:
            self._collect()
            address = self._allocator.take(nbytes)
            self._loans[address] = loan = Loan(owner, self._ended.append)
            loan.address, loan.size = address, nbytes
            return address

    def statistics(self) -> dict[str, int]:
        """The attributes of the allocator."""
        with self.lock:
            self._collect()
            return {name: getattr(self._allocator, name) for name in STATISTICS}

    def usage(self) -> MemoryStats:
        found = self.statistics()
        return MemoryStats(found["held"], found["peak"], found["reserved"] - found["held"])

    def reset_peak(self, least: int = 0) -> None:
        """Forget the most bytes held; start again from now, or from `least` if that is more."""
        with self.lock:
            self._collect()
            self._allocator.peak = max(self._allocator.held, least)

    def reset_peaks(self) -> None:
        with self.lock:
            self.reset_peak()
            self._allocator.peak_reserved = self._allocator.reserved

    def limit_to(self, nbytes: float) -> None:
        """Take at most so many bytes of the GPU's memory."""
        with self.lock:
            self._allocator.limit = nbytes

    def limit(self) -> float:
        """The most bytes that are taken of the GPU's memory."""
        return min(self._allocator.limit, self.gpu.free_and_total()[1])

    def reset_accumulated(self) -> None:
        with self.lock:
            self._allocator.retries = self._allocator.shortages = 0

    def trim(self) -> None:
        with self.lock:
            self._collect()
            self._allocator.trim()

    def _collect(self) -> None:
        while self._ended:
            loan = self._ended.popleft()
            del self._loans[loan.address]
            self._allocator.give(loan.address)

    # ---- copies ----
    def read(self, address: int, values: np.ndarray) -> None:
        """Copy from the GPU into a contiguous array, after all work submitted so far."""
        if not values.nbytes:
            return
        flat = values.reshape(-1).view(np.uint8)
        with self.lock:
            # Double buffering: the host copies one piece out while the GPU fills the other.
            waiting: deque[tuple[np.ndarray, np.ndarray, Mark]] = deque()
            for start in range(0, flat.nbytes, CHUNK):
                if len(waiting) == 2:
                    self._received(*waiting.popleft())
                part = flat[start : start + CHUNK]
                piece = self._pinned.piece(part.nbytes)
                self.gpu.copy_out(piece, address + start)
                waiting.append((part, piece, self.gpu.mark()))
            for arrival in waiting:
                self._received(*arrival)

    def write(self, address: int, values: np.ndarray) -> None:
        """Copy a contiguous array to the GPU. It may be changed as soon as this returns."""
        if not values.nbytes:
            return
        flat = values.reshape(-1).view(np.uint8)
        with self.lock:
            for start in range(0, flat.nbytes, CHUNK):
                part = flat[start : start + CHUNK]
                piece = self._pinned.piece(part.nbytes)
                piece[:] = part
                self.gpu.copy_in(address + start, piece)  # asynchronous: the piece is not reused before its mark

    def copy(self, address: int, source: int, nbytes: int) -> None:
        if nbytes:
            with self.lock:  # another thread may be capturing the stream into a graph, which would record this copy
                self.gpu.copy(address, source, nbytes)

    def synchronize(self) -> None:
        """Wait for all work submitted so far. Raises RuntimeError if some of it failed."""
        self.wait(self.mark())

    def wait(self, mark: Mark) -> None:
        """Wait until the work before a mark is done. Raises what `watches` raise."""
        if not self.watches:
            self.gpu.wait(mark)
            return
        began, waited = time.monotonic(), 0.0
        while True:
            for watch in self.watches:
                watch(waited)
            if self.gpu.has_passed(mark):
                return
            time.sleep(0 if waited < SPIN else NAP)
            waited = time.monotonic() - began

    def await_under_way(self, number: object = None) -> None:
        """Make later programs wait for the communication with this number, or for all of it."""
        with self.lock:
            for each in [*self.under_way] if number is None else [number]:
                if (mark := self.under_way.pop(each, None)) is not None:
                    self.gpu.hold(mark)

    def wait_for(self, stream: int) -> None:
        """Wait for another library's stream; not during a capture, which it would invalidate."""
        with self.lock:
            self.gpu.wait_for(stream)

    def mark(self, timed: bool = False, sleeping: bool = False) -> Mark:
        """A mark after all work submitted so far. See `Gpu.mark`."""
        with self.lock:
            return self.gpu.mark(timed, sleeping)

    def _received(self, part: np.ndarray, piece: np.ndarray, mark: Mark) -> None:
        self.wait(mark)
        part[:] = piece


class _Pinned:
    """Two pinned buffers of CHUNK bytes, handed out in pieces, one buffer after the other.

    From pageable memory the driver copies synchronously, after all earlier work, or from a staging buffer at its own time.
    """

    def __init__(self, gpu: Gpu, wait: Callable[[Mark], None]) -> None:
        self._gpu, self._wait = gpu, wait
        self._buffers: list[tuple[np.ndarray, Mark]] = []  # the buffer in use comes last; the mark is behind a buffer's copies
        self._used = CHUNK

    def piece(self, nbytes: int) -> np.ndarray:
        """Bytes that no copy uses any more, for one copy, which must be submitted before the next piece is taken."""
        if self._used + nbytes > CHUNK:
            self._turn()
        start, self._used = self._used, self._used + -(-nbytes // ALIGNMENT) * ALIGNMENT
        return self._buffers[-1][0][start : start + nbytes]

    def _turn(self) -> None:
        if self._buffers:
            self._buffers[-1] = self._buffers[-1][0], self._gpu.mark()
        if len(self._buffers) < 2:
            self._buffers.append((self._gpu.pinned(CHUNK), None))
        else:
            self._wait(self._buffers[0][1])
            self._buffers.reverse()
        self._used = 0
