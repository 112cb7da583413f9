"""Memory: 64-byte-aligned buffers from a caching pool.

A dead buffer's block stays in the pool, so a step that allocates what the last step freed causes no page fault and no system
call. Blocks come in size classes, four per doubling; idle blocks take at most a share of the machine's memory. A block that
many steps have not used, such as a former model's, goes back to the system.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np

from genesis.ir.errors import OutOfMemoryError
from genesis.ir.graph import MOST_BYTES
from genesis.ir.shapes import contiguous_strides, reach
from genesis.runtime.devices import CPU, CPUS, Device
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.object_words import address_of
from genesis.runtime.system import allocate, free, machine_memory, want_huge_pages

ALIGNMENT = 64
# First touch takes 0.46 ms a MiB in small pages, 0.12 in large ones. Below 4 MiB large pages gained nothing.
HUGE_PAGE = 2 << 20
# A turn lends as many bytes as the pool has, so a step that repeats uses its blocks within one. A block that is given back too
# early is touched anew once in so many turns: 0.06 ms for each MiB lent.
TURNS, LEAST_TURN = 8, 64 << 20
IDLE_SHARE = 4  # the pool keeps at most this fraction (one in so many bytes) of the machine's memory idle


class MemoryStats(NamedTuple):
    """Bytes in buffers now, their peak, and idle bytes in the pool. Whole blocks are counted."""

    held: int
    peak: int
    idle: int


class DeviceMemory(Protocol):
    """The allocator of a device's buffers and, if `is_host` is false, the only access to their contents.

    `read` and `write` copy a contiguous array in order with the device's work; `copy` is from address to address.
    """

    is_host: bool

    def lend(self, owner: object, nbytes: int) -> int: ...

    def read(self, address: int, values: np.ndarray) -> None: ...

    def write(self, address: int, values: np.ndarray) -> None: ...

    def copy(self, address: int, source: int, nbytes: int) -> None: ...

    def usage(self) -> MemoryStats: ...

    def reset_peak(self, least: int = 0) -> None: ...

    def await_under_way(self) -> None: ...


class Loan(weakref.ref):
    """A block of memory, and a weak reference to its owner."""

    __slots__ = ("address", "size")
    address: int
    size: int


class _Pool:
    """Blocks of the host's memory by size class."""

    is_host = True

    def __init__(self, idle_limit: int) -> None:
        self._idle: dict[int, deque[tuple[int, int]]] = {}  # by size, (bytes lent until it became idle, address)
        self._idle_limit = idle_limit
        self._loans: dict[int, Loan] = {}
        # Loans whose owners have died, for the next caller to collect. The weak references' callback is `deque.append`, a C
        # function: an interrupt within a Python destructor would be lost, and the block with it.
        self._ended: deque[Loan] = deque()
        self._lock = fork_safe_lock()
        self.held = self.peak = self.idle = 0
        self._lent, self._next_look = 0, LEAST_TURN  # bytes lent so far, and those after which old blocks are looked for

    def lend(self, owner: object, nbytes: int) -> int:
        """The address of a block of at least `nbytes`, which returns when `owner` dies. Raises OutOfMemoryError."""
        size = _size_class(nbytes)
        with self._lock:
            if self._ended:
                self.collect()
            address = self.acquire(size)
            self._loans[address] = loan = Loan(owner, self._ended.append)
            loan.address, loan.size = address, size
            return address

    def owner(self, address: int) -> object | None:
        """The owner of the block at `address`; None if it is free."""
        loan = self._loans.get(address)
        return loan and loan()

    def collect(self) -> None:
        """Take back the blocks whose owners have died."""
        with self._lock:
            while self._ended:
                try:
                    loan = self._ended.popleft()
                except IndexError:  # a signal handler has taken the last one
                    return
                del self._loans[loan.address]
                self.release(loan.address, loan.size)

    def acquire(self, size: int) -> int:
        """The address of a block of `size` bytes, a size class; the caller has the lock. Raises OutOfMemoryError."""
        self._lent += size
        if self._lent > self._next_look:  # blocks that have been idle for TURNS turns go back
            turn = max(self.held + self.idle, LEAST_TURN)
            self._next_look = self._lent + turn
            self.trim(self._lent - TURNS * turn)
        if blocks := self._idle.get(size):
            _, address = blocks.pop()
            self.idle -= size
        else:
            address = self._allocate(size)
        self.held += size
        if self.held > self.peak:
            self.peak = self.held
        return address

    def release(self, address: int, size: int) -> None:
        """Take back a block of `acquire`; the caller has the lock."""
        self.held -= size
        # All at once: a program that outgrows the limit has changed its sizes, and no longer needs the old classes.
        if self.idle + size > self._idle_limit:
            self.trim()
        self.idle += size
        if (blocks := self._idle.get(size)) is None:
            blocks = self._idle[size] = deque()
        blocks.append((self._lent, address))

    def exchange(self, nbytes: int, address: int = 0, size: int = 0) -> tuple[int, int]:
        """Exchange a block for temporaries for a larger one: (address, size). It is not counted, as it has no value."""
        with self._lock:
            if size:
                self.held += size
                self.release(address, size)
            size, peak = _size_class(nbytes), self.peak
            address = self.acquire(size)
            self.held -= size
            self.peak = peak
            return address, size

    def usage(self) -> MemoryStats:
        self.collect()
        return MemoryStats(self.held, self.peak, self.idle)

    def reset_peak(self, least: int = 0) -> None:
        """Start the peak again from now, or from `least` if that is more."""
        self.collect()
        self.peak = max(self.held, least)

    def await_under_way(self) -> None:
        """Nothing: programs of the host are synchronous."""

    def trim(self, before: float = inf) -> None:
        """Give blocks back to the system: all idle ones, or those that were idle before so many bytes had been lent."""
        with self._lock:
            self.collect()
            for blocks in [*self._idle.values()]:
                while blocks and blocks[0][0] < before:
                    try:
                        _, address = blocks.popleft()
                    except IndexError:  # a signal handler has taken the last one
                        break
                    free(address)
            self.idle = sum([size * len(blocks) for size, blocks in self._idle.items()])

    def _allocate(self, size: int) -> int:
        huge = size >= 2 * HUGE_PAGE
        # A second attempt after freeing idle blocks.
        for attempt in range(2):
            # C's size_t would wrap a larger size.
            if size <= MOST_BYTES and (address := allocate(size, HUGE_PAGE if huge else ALIGNMENT)):
                break
            if attempt:
                raise OutOfMemoryError(f"cannot allocate {size:,} bytes; {self.held:,} bytes are in use")
            self.trim()
        if huge:
            want_huge_pages(address, size)
        return address


@functools.lru_cache(maxsize=4096)
def _size_class(nbytes: int) -> int:
    """The block size that serves `nbytes`: a multiple of 64 that wastes at most a quarter beyond that.

    >>> [_size_class(n) for n in (0, 1, 64, 65, 1024, 1025, 5 << 20)]
    [64, 64, 64, 128, 1024, 1280, 5242880]
    """
    if nbytes <= 256:
        return max(64, -(-nbytes // 64) * 64)
    # Four classes per doubling: a block of another step's shape is found again, and at most a quarter is wasted.
    step = 1 << ((nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


host_pool = _Pool(machine_memory() // IDLE_SHARE)
# The collector clears weak references to garbage, and so ends its loans, before it calls `__del__`, which may still read a
# tensor's values. What it does not track it leaves alone, to be freed with its last owner. A buffer refers to no owner of it.
_untrack = ctypes.pythonapi.PyObject_GC_UnTrack
_untrack.argtypes, _untrack.restype = [ctypes.py_object], None
for _device in CPUS:
    _device.memory = host_pool


class Buffer:
    """`nbytes` bytes of uninitialised memory on `device`, aligned to 64 bytes. Raises OutOfMemoryError.

    >>> buffer = Buffer(12)
    >>> ones = buffer.numpy(np.float32, (3,)); ones[:] = 1
    >>> buffer.shared, buffer.ptr % 64
    (True, 0)
    """

    __slots__ = ("__weakref__", "_flat", "_owner", "change", "device", "nbytes", "origin", "ptr", "version", "writeable")

    def __init__(self, nbytes: int, device: Device = CPU) -> None:
        self.device = device
        self.ptr = device.memory.lend(self, nbytes)
        _untrack(self)
        self.nbytes = nbytes
        self.writeable = True
        self.version = 0  # the number of in-place writes to its tensor
        self.change: Any = None  # the latest one
        self.origin: Any = None  # its value in backward: a weak reference to a trace, and a position
        self._flat: weakref.ref | None = None  # the array that outside views are views of
        self._owner: object = None

    @classmethod
    def wrap(cls, array: np.ndarray) -> Buffer:
        """The memory of an outside array, from its lowest element to its highest; the array is kept alive."""
        flags = array.flags
        low, nbytes = address_of(array), array.nbytes
        if not flags.c_contiguous:
            low, high = np.lib.array_utils.byte_bounds(array)
            nbytes = high - low
        buffer = cls.outside(low, nbytes, CPU, array)
        buffer.writeable = flags.writeable
        return buffer

    @classmethod
    def outside(cls, address: int, nbytes: int, device: Device, owner: object) -> Buffer:
        """Another library's memory, which is valid as long as `owner` lives."""
        buffer = cls.__new__(cls)
        buffer.device, buffer.ptr, buffer.nbytes, buffer.writeable = device, address, nbytes, True
        buffer.version, buffer.change, buffer.origin = 0, None, None
        buffer._flat, buffer._owner = None, owner
        return buffer

    def expose(self) -> None:
        """Count this memory as shared from now on, as others may see it for an unknown time."""
        if self._owner is None:
            self._owner = True

    def former(self) -> Buffer:
        """Another handle to this memory, with its present version, change and origin."""
        buffer = Buffer.__new__(Buffer)
        for name in ("device", "ptr", "nbytes", "writeable", "version", "change", "origin"):
            setattr(buffer, name, getattr(self, name))
        buffer._flat, buffer._owner = None, self
        return buffer

    @property
    def shared(self) -> bool:
        """Whether outside arrays see this memory: live views that `numpy` made, or a wrapped array."""
        return self._owner is not None or (self._flat is not None and self._flat() is not None)

    def numpy(self, dtype: Any, shape: Sequence[int], byte_strides: Sequence[int] | None = None, offset: int = 0) -> np.ndarray:
        """An array over this memory from byte `offset` on, in C order or as strided; it keeps the buffer alive.

        Of memory that is not the host's, a copy for reading. Raises TypeError or ValueError if it would reach outside.
        """
        if not self.device.memory.is_host:
            return fetched(self.device, self.ptr + offset, np.dtype(dtype), shape, byte_strides)
        return np.ndarray(shape, dtype, self.lent(), offset, byte_strides)

    def block(self) -> Any:
        """The host's memory as an array of bytes, which keeps the buffer alive."""
        block = _block_type(self.nbytes).from_address(self.ptr)
        block.buffer = self
        return block

    def lent(self) -> Any:
        """The object that outside views keep alive while they see this memory: of the host's, an array of its bytes."""
        flat = self._flat and self._flat()
        if flat is None:
            if not self.device.memory.is_host:
                flat = _Bytes(self)
            elif self._owner is None:
                flat = self.block()
            else:
                flat = np.asarray(_Bytes(self))
            self._flat = weakref.ref(flat)
        return flat


@functools.lru_cache(maxsize=4096)
def _block_type(nbytes: int) -> Any:
    """The type of the host's block with `nbytes`. NumPy makes views of it in half the time that an array interface takes."""
    return ctypes.c_ubyte * _size_class(nbytes)


class _Bytes:
    """A buffer's bytes in NumPy's array interface; arrays made from it hold on to it, and so to the buffer."""

    __slots__ = ("__array_interface__", "__weakref__", "buffer")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        data = buffer.ptr, not buffer.writeable
        self.__array_interface__ = {"data": data, "shape": (buffer.nbytes,), "typestr": "|u1", "version": 3}


def fetched(
    device: Device, address: int, dtype: np.dtype, shape: Sequence[int], byte_strides: Sequence[int] | None = None
) -> np.ndarray:
    """A copy, for reading, of an array in the memory of a device: the bytes from its first element to its last."""
    if device.type == "meta":
        device.memory.read(address, np.empty(0, np.uint8))  # which says that there is nothing to read
    strides = byte_strides or [stride * dtype.itemsize for stride in contiguous_strides(tuple(shape))]
    low, high = reach(shape, strides)
    flat = np.empty(high - low + (high > low) * (dtype.itemsize - 1), np.uint8)
    device.memory.read(address + low, flat)
    values = np.ndarray(shape, dtype, flat, -low, byte_strides)
    values.flags.writeable = False
    return values


memory_stats = host_pool.usage
reset_peak = host_pool.reset_peak
trim = host_pool.trim
