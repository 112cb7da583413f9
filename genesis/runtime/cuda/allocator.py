"""A caching allocator: a GPU's memory is kept in segments, split into blocks and merged again for later requests.

A GPU has one stream, so a block that the host has freed may be given out at once: work submitted later runs after the work that
used it, and nobody waits. Small and large blocks have segments of their own, so that small ones do not fragment large ones.
"""

from __future__ import annotations

import bisect
import math

from genesis.ir.errors import OutOfMemoryError
from genesis.runtime.cuda.gpu import Gpu

QUANTUM = 512  # bytes: the alignment of blocks, as of the driver's own allocations
SMALL = 1 << 20  # requests up to this size come out of segments of
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20  # and those that are larger, up to half of this, out of these; others have a segment to themselves
LARGE_QUANTUM = 2 << 20


class _Block:
    """A piece of a segment, with its neighbours there."""

    __slots__ = ("address", "after", "before", "is_free", "is_small", "size")

    def __init__(self, address: int, size: int, is_small: bool) -> None:
        self.address = address
        self.size = size
        self.is_small = is_small
        self.is_free = True
        self.before: _Block | None = None
        self.after: _Block | None = None


class Allocator:
    """Blocks of a GPU's memory, by best fit. One thread at a time may call.

    Attributes:
        held: bytes in blocks in use.
        peak: their maximum.
        reserved: bytes in segments, in use or not.
        peak_reserved: their maximum.
        blocks, segments: their numbers.
        retries, shortages: requests repeated after idle segments were released; requests refused.
        limit: the most bytes in segments.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._blocks: dict[int, _Block] = {}
        self._free: dict[bool, list[tuple[int, int]]] = {True: [], False: []}  # (size, address), sorted; small ones and large
        self.held = self.peak = self.reserved = self.peak_reserved = 0
        self.blocks = self.segments = self.retries = self.shortages = 0
        self.limit = math.inf

    def take(self, nbytes: int) -> int:
        """The address of a block of at least `nbytes` bytes. Raises OutOfMemoryError."""
        size = max(QUANTUM, -(-nbytes // QUANTUM) * QUANTUM)
        is_small = size <= SMALL
        block = self._best(size, is_small) or self._segment(size, is_small, nbytes)
        # A rest too small for its kind stays with the block: splinters of large segments would serve nobody.
        rest = block.size - size
        if rest >= (QUANTUM if is_small else SMALL):
            self._split(block, size)
        block.is_free = False
        self.blocks += 1
        self.held += block.size
        self.peak = max(self.peak, self.held)
        return block.address

    def give(self, address: int) -> None:
        block = self._blocks[address]
        self.blocks -= 1
        self.held -= block.size
        # Merged with free neighbours at once, so that no two free blocks are adjacent.
        block.is_free = True
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.is_free:
                self._unlist(neighbour)
                block = self._merge(*sorted((block, neighbour), key=lambda b: b.address))
        bisect.insort(self._free[block.is_small], (block.size, block.address))

    def trim(self) -> int:
        """Release segments without blocks in use, once the GPU is idle; returns their bytes."""
        # A free block without neighbours is a whole segment.
        whole = [b for free in self._free.values() for _, a in free if (b := self._blocks[a]).before is b.after is None]
        if whole:
            self._gpu.synchronize()
        for block in whole:
            self._unlist(block)
            del self._blocks[block.address]
            self._gpu.release(block.address)
            self.segments -= 1
            self.reserved -= block.size
        return sum(block.size for block in whole)

    def _best(self, size: int, is_small: bool) -> _Block | None:
        free = self._free[is_small]
        index = bisect.bisect_left(free, (size, 0))
        return self._blocks[free.pop(index)[1]] if index < len(free) else None

    def _segment(self, size: int, is_small: bool, wanted: int) -> _Block:
        """A new segment that a block of `size` fits into."""
        whole = SMALL_SEGMENT if is_small else LARGE_SEGMENT if size <= LARGE_SEGMENT // 2 else (
            -(-size // LARGE_QUANTUM) * LARGE_QUANTUM)
        address = self._allocate(whole)
        # Before an error: idle segments go back and the request is repeated, then the segment is made no larger than needed.
        if not address and self.trim():
            self.retries += 1
            address = self._allocate(whole)
        if not address and size < whole:
            whole = size
            address = self._allocate(whole)
        if not address:
            self.shortages += 1
            raise OutOfMemoryError(self._shortage(wanted))
        self.segments += 1
        self.reserved += whole
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        block = self._blocks[address] = _Block(address, whole, is_small)
        return block

    def _allocate(self, nbytes: int) -> int:
        """The address of a new segment; 0 if there is no memory for it."""
        return 0 if self.reserved + nbytes > self.limit else self._gpu.allocate(nbytes)

    def _shortage(self, wanted: int) -> str:
        free, total = self._gpu.free_and_total()
        return (
            f"out of memory on cuda:{self._gpu.index}: wanted {_bytes(wanted)}; of {_bytes(total)}, {_bytes(free)} are free, "
            f"{_bytes(self.held)} are held by tensors and programs of this process, and {_bytes(self.reserved - self.held)} "
            "kept for reuse, in pieces that are too small"
        )

    def _split(self, block: _Block, size: int) -> None:
        """Leave `size` bytes to a block; the rest is free."""
        rest = self._blocks[block.address + size] = _Block(block.address + size, block.size - size, block.is_small)
        rest.before, rest.after = block, block.after
        if block.after is not None:
            block.after.before = rest
        block.after, block.size = rest, size
        bisect.insort(self._free[rest.is_small], (rest.size, rest.address))

    def _merge(self, first: _Block, second: _Block) -> _Block:
        del self._blocks[second.address]
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        return first

    def _unlist(self, block: _Block) -> None:
        free = self._free[block.is_small]
        del free[bisect.bisect_left(free, (block.size, block.address))]


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} bytes"
