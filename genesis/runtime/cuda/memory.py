"""A GPU's memory as buffers want it: blocks that come back when their owners die, and copies to and from the host."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from genesis.runtime.cuda.allocator import Allocator
from genesis.runtime.cuda.gpu import Gpu
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.memory import Loan

__all__ = ["GpuMemory"]

CHUNK = 4 << 20  # bytes of a pinned buffer: copies of more go through two of them in turn
DIRECT = 64 << 10  # what is no larger the driver puts into its own buffer


class GpuMemory:
    """Blocks of a GPU's memory for owners. See `runtime.memory.DeviceMemory`.

    As in the host's pool, the death of an owner only puts its loan into a queue, which is emptied by whoever comes next.
    """

    is_host = False

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.lock = fork_safe_lock()
        self._allocator = Allocator(gpu)
        self._loans: dict[int, Loan] = {}
        self._ended: deque[Loan] = deque()
        self._chunks: deque[tuple[np.ndarray, Any]] = deque()  # two pinned buffers, each with the mark behind its copy

    # ---- blocks ----

    def lend(self, owner: Any, nbytes: int) -> int:
        """The address of a block that comes back when `owner` dies. Raises OutOfMemoryError."""
        with self.lock:
            self._collect()
            address = self._allocator.take(nbytes)
            self._loans[address] = loan = Loan(owner, self._ended.append)
            loan.address, loan.size = address, nbytes
            return address

    def statistics(self) -> dict[str, int]:
        """Bytes in buffers and in segments, now and at most: held, peak, reserved, peak_reserved."""
        with self.lock:
            self._collect()
            return {name: getattr(self._allocator, name) for name in ("held", "peak", "reserved", "peak_reserved")}

    def reset_peak(self) -> None:
        """Forget the most bytes there were; start again from now."""
        with self.lock:
            self._collect()
            self._allocator.peak, self._allocator.peak_reserved = self._allocator.held, self._allocator.reserved

    def trim(self) -> None:
        """Give what is in no buffer back to the GPU."""
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
        """Copy from the GPU over a contiguous array, once all work asked for so far is done."""
        if not values.nbytes:
            return
        flat = values.reshape(-1).view(np.uint8)
        with self.lock:
            waiting: deque[tuple[np.ndarray, np.ndarray, Any]] = deque()
            for start in range(0, flat.nbytes, CHUNK):
                if len(waiting) == 2:
                    self._received(*waiting.popleft())
                part = flat[start : start + CHUNK]
                pinned = self._chunk()[: part.nbytes]
                self.gpu.copy_out(pinned, address + start)
                waiting.append((part, pinned, self._marked()))
            for arrival in waiting:
                self._received(*arrival)

    def write(self, address: int, values: np.ndarray) -> None:
        """Copy a contiguous array to the GPU. It may be changed as soon as this returns."""
        if not values.nbytes:
            return
        flat = values.reshape(-1).view(np.uint8)
        with self.lock:
            if flat.nbytes <= DIRECT:
                self.gpu.copy_in(address, flat)
                return
            for start in range(0, flat.nbytes, CHUNK):
                part = flat[start : start + CHUNK]
                pinned = self._chunk()[: part.nbytes]
                pinned[:] = part
                self.gpu.copy_in(address + start, pinned)
                self._marked()

    def copy(self, address: int, source: int, nbytes: int) -> None:
        """Copy within the GPU."""
        if nbytes:
            self.gpu.copy(address, source, nbytes)

    def _chunk(self) -> np.ndarray:
        """The pinned buffer whose turn it is, once the last copy of it is done."""
        if len(self._chunks) < 2:
            self._chunks.appendleft((self.gpu.pinned(CHUNK), None))
        else:
            self._chunks.rotate()
        pinned, mark = self._chunks[0]
        if mark is not None:
            self.gpu.wait(mark)
        return pinned

    def _marked(self) -> Any:
        """A mark behind the copy of the buffer whose turn it is."""
        mark = self.gpu.mark()
        self._chunks[0] = self._chunks[0][0], mark
        return mark

    def _received(self, part: np.ndarray, pinned: np.ndarray, mark: Any) -> None:
        self.gpu.wait(mark)
        part[:] = pinned
