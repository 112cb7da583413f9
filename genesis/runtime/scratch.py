"""Memory for temporaries of programs."""

from __future__ import annotations

from genesis.runtime.devices import CPU, Device
from genesis.runtime.memory import Buffer, host_pool


class _Scratch:
    """Memory for temporaries of programs. Programs on the host run one at a time, so small requests share one buffer.

    A GPU's programs are queued, and its own pool returns the same memory again.

    Attributes:
        shared: that buffer, as large as the largest request so far.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._block = host_pool.exchange(0)
        self.shared = Buffer.outside(self._block[0], 0, CPU, self)

    def buffer(self, nbytes: int, device: Device = CPU) -> Buffer:
        """At least `nbytes` uninitialized bytes, valid until the next call."""
        if nbytes > self.most or not device.memory.is_host:
            return Buffer(nbytes, device)
        if nbytes > self.shared.nbytes:
            self._block = host_pool.exchange(nbytes, *self._block)
            self.shared = Buffer.outside(self._block[0], nbytes, CPU, self)
        return self.shared

    def is_shared(self, buffer: Buffer) -> bool:
        """Whether later calls reuse the memory of `buffer`, which came from here."""
        return buffer._owner is self


scratch = _Scratch(4 << 20)
