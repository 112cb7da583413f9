"""Memory held by tensors, now and at its peak."""

from __future__ import annotations

from typing import Self

from genesis.execution.flush import flush_all
from genesis.runtime.devices import DeviceLike, device_of
from genesis.runtime.installation import readable
from genesis.runtime.memory import DeviceMemory


class MemoryUse:
    """Bytes in buffers (`held`), the most there were (`peak`), and bytes kept for the next ones (`idle`).

    As a context, `peak` is that of the block. What is pending is computed at its ends, so that it counts where it was
    written; blocks may be nested.
    """

    __slots__ = ("_before", "_memory", "held", "idle", "peak")

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self.held, self.peak, self.idle = memory.usage()
        self._before = self.peak

    def __enter__(self) -> Self:
        flush_all()
        self._before = self._memory.usage().peak
        self._memory.reset_peak()
        self.held, self.peak, self.idle = self._memory.usage()
        return self

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        if kind is None:
            flush_all()
        self.held, self.peak, self.idle = self._memory.usage()
        self._memory.reset_peak(max(self._before, self.peak))

    def __repr__(self) -> str:
        return f"held {readable(self.held)}, peak {readable(self.peak)}, idle {readable(self.idle)}"


def memory(reset: bool = False, device: DeviceLike = None) -> MemoryUse:
    """The memory that tensors take now, and the most they took since the start; or, as a context, within a block.

    With `reset`, the peak begins anew afterwards. `device`, by default that of new tensors, is whose memory is meant; all
    devices of the CPU share theirs. Blocks are counted whole, as they are lent: up to a quarter more than the elements need.

    >>> import genesis
    >>> x = genesis.ones(1024, 1024)
    >>> with memory() as used:
    ...     total = (x + x.T).exp().sum().item()
    >>> used.peak - used.held < x.nbytes  # in one kernel: no sum, no exponential is ever in memory
    True
    """
    lender: DeviceMemory = device_of(device).memory
    found = MemoryUse(lender)
    if reset:
        lender.reset_peak()
    return found

