"""Shared memory: an unnamed file that several processes map."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref


class SharedFile:
    """`nbytes` bytes of zeros at `address`, or those of the open file `fd`, which is closed with it."""

    def __init__(self, nbytes: int, fd: int | None = None) -> None:
        size = max(nbytes, 1)  # an empty file cannot be mapped
        self.nbytes, self.fd = nbytes, _nameless() if fd is None else fd
        weakref.finalize(self, os.close, self.fd)
        if fd is None:
            os.ftruncate(self.fd, size)
        self._map = mmap.mmap(self.fd, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("genesis", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
