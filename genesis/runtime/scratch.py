"""Memory for temporaries of the host's programs."""

from __future__ import annotations

from genesis.runtime.memory import Buffer

__all__ = ["scratch"]


class _Scratch:
    """The host's memory for temporaries of programs that run one at a time: one buffer for all that want little."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._buffer = Buffer(0)

    def buffer(self, nbytes: int) -> Buffer:
        """At least `nbytes` bytes, whatever is in them, until the next call."""
        if nbytes > self.most:
            return Buffer(nbytes)
        if nbytes > self._buffer.nbytes:
            self._buffer = Buffer(nbytes)
        return self._buffer


scratch = _Scratch(4 << 20)
