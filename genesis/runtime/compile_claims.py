"""Which process compiles which kernel, where several that share a directory need the same ones.

A claim is a lock on a byte of one file, at an offset that the kernel's name decides. It belongs to the open file, so it ends
with its holder, however that ends. It is taken or refused at once. Claims only save work: where there can be none (no
directory, a read-only one, a file system without locks) every process compiles what it needs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import sys
import weakref

from genesis.runtime.private_directory import PrivateDirectory

NAME = "claims"  # the file: empty, for locks may lie past its end
_LOCK = struct.Struct("hhqqi4x")  # Linux' struct flock: type, whence, start, length, process
_HAS_LOCKS = sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK") and sys.maxsize > 1 << 32
_OFFSETS = (1 << 62) - 1


class CompileClaims:
    """The claims of one batch of kernels, by the kernels' names; all end with the `with` block."""

    def __init__(self, directory: PrivateDirectory | None) -> None:
        self._fd: int | None = None
        if directory is not None and _HAS_LOCKS:
            with contextlib.suppress(OSError):  # read-only
                self._fd = directory.open_shared(NAME)
                _open.add(self)

    def __enter__(self) -> CompileClaims:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Let go of everything."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    @property
    def are_shared(self) -> bool:
        """Whether other processes can see them."""
        return self._fd is not None

    def take(self, name: str) -> bool:
        """Whether the kernel is to be compiled here: nobody else has a claim to it, or no claim can be made."""
        return self._ask(fcntl.F_OFD_SETLK, name, fcntl.F_WRLCK) is not None

    def let_go(self, name: str) -> None:
        self._ask(fcntl.F_OFD_SETLK, name, fcntl.F_UNLCK)

    def is_free(self, name: str) -> bool:
        """Whether nobody else has a claim to the kernel now."""
        answer = self._ask(fcntl.F_OFD_GETLK, name, fcntl.F_WRLCK)
        return not answer or _LOCK.unpack(answer)[0] == fcntl.F_UNLCK

    def _ask(self, command: int, name: str, kind: int) -> bytes | None:
        """The answer to a command; None where somebody else has the lock, b"" where there are none."""
        if self._fd is None:
            return b""
        try:
            return fcntl.fcntl(self._fd, command, _LOCK.pack(kind, os.SEEK_SET, int(name, 16) & _OFFSETS, 1, 0))
        except OSError as problem:
            return None if problem.errno in (errno.EAGAIN, errno.EACCES) else b""


_open: weakref.WeakSet[CompileClaims] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """A forked child has the parent's open file, and would keep its claims alive."""
    for claims in list(_open):
        claims.end()


os.register_at_fork(after_in_child=_leave_to_parent)
