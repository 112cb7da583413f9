"""Which process compiles which kernel, where several that share a directory need the same ones.

A claim is a lock on a byte of one file, at an offset that the kernel's name decides. It belongs to the open file, so it ends
with its holder, however that ends. It is taken or refused at once. Claims only save work: where there can be none (no
directory, a read-only one, a file system without locks) every process compiles what it needs.
"""

from __future__ import annotations

import contextlib
import os
import weakref

from genesis.runtime.private_directory import PrivateDirectory
from genesis.runtime.system import HAS_FILE_LOCKS, at_fork, is_byte_free, lock_byte, unlock_byte

NAME = "claims"  # the file: empty, for locks may lie past its end
_OFFSETS = (1 << 62) - 1


class CompileClaims:
    """The claims of one batch of kernels, by the kernels' names; all end with the `with` block."""

    def __init__(self, directory: PrivateDirectory | None) -> None:
        self._fd: int | None = None
        if directory is not None and HAS_FILE_LOCKS:
            with contextlib.suppress(OSError):  # read-only
                self._fd = directory.open_shared(NAME)
                _open.add(self)

    def __enter__(self) -> CompileClaims:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End all claims."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    @property
    def are_shared(self) -> bool:
        """Whether other processes can see them."""
        return self._fd is not None

    def take(self, name: str) -> bool:
        """Whether the kernel is to be compiled here: nobody else has a claim to it, or no claim can be made."""
        return self._fd is None or lock_byte(self._fd, _offset(name))

    def let_go(self, name: str) -> None:
        if self._fd is not None:
            unlock_byte(self._fd, _offset(name))

    def is_free(self, name: str) -> bool:
        """Whether nobody else has a claim to the kernel now."""
        return self._fd is None or is_byte_free(self._fd, _offset(name))


def _offset(name: str) -> int:
    return int(name, 16) & _OFFSETS


_open: weakref.WeakSet[CompileClaims] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """In a forked child: close the parent's open file, which would keep its claims alive."""
    for claims in list(_open):
        claims.end()


at_fork(after_in_child=_leave_to_parent)
