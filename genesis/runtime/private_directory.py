"""This user's directories of compiled kernels and lowered graphs, which are read only if no other user can write to them.

Whoever can write to a parent directory can replace it. So the directory is opened once, every directory above the opened one is
checked, and files are opened relative to it, wherever its path leads later.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from genesis.runtime.system import HAS_DIRECTORY_DESCRIPTORS

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class PrivateDirectory:
    """The files of one directory, by name. Every method may raise OSError.

    Raises PermissionError for a directory that another user could write to or replace.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._check()
        except BaseException:
            os.close(self._fd)
            raise

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # it was never opened, or the process is ending
            os.close(self._fd)

    def _check(self) -> None:
        status = os.fstat(self._fd)
        if not _is_ours(status) or status.st_mode & _OTHERS_MAY_WRITE:
            raise PermissionError(f"others can write to {self.path}")
        above = ".."
        while not os.path.samestat(parent := os.stat(above, dir_fd=self._fd), status):
            # In a sticky directory such as /tmp only a file's owner renames it.
            others = parent.st_mode & _OTHERS_MAY_WRITE and not parent.st_mode & stat.S_ISVTX
            if not _is_ours(parent) or (others and not _is_of_private_group(parent)):
                raise PermissionError(f"others can write to a directory above {self.path}")
            status, above = parent, os.path.join(above, "..")

    def read(self, name: str, most: int) -> bytes:
        """A file's content. Raises PermissionError for all but regular files, of this user or root, of at most `most` bytes."""
        # O_NONBLOCK, as opening a named pipe would block.
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._fd)
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            trusted = stat.S_ISREG(status.st_mode) and _is_ours(status) and not status.st_mode & _OTHERS_MAY_WRITE
            if not trusted or status.st_size > most:
                raise PermissionError(f"{self.path / name} is no private file of at most {most:,} bytes")
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file that readers see complete or not at all."""
        temporary = f"{os.urandom(8).hex()}.tmp"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._fd)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
            os.replace(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            self.remove(temporary)
            raise

    def create(self, name: str) -> None:
        """Make an empty file. Raises FileExistsError if it is there."""
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._fd))

    def open_shared(self, name: str) -> int:
        """A descriptor of a file, created if missing, to read and write."""
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=self._fd)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)

    def status(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def touch(self, name: str) -> None:
        os.utime(name, dir_fd=self._fd, follow_symlinks=False)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        for name in os.listdir(self._fd):
            with contextlib.suppress(OSError):  # another process removes files, too
                status = self.status(name)
                if stat.S_ISREG(status.st_mode):
                    yield name, status


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _is_of_private_group(status: os.stat_result) -> bool:
    """Whether the group that may write is the user's own: such groups have the user's number."""
    return not status.st_mode & stat.S_IWOTH and status.st_gid == status.st_uid == os.geteuid()


def cache_directory(name: str) -> Path | None:
    """The private directory `name` under $GENESIS_CACHE_DIR, $XDG_CACHE_HOME/genesis or ~/.cache/genesis.

    Made if need be. None if there can be none, or if others could write machine code into it. It may be read-only.
    """
    if not HAS_DIRECTORY_DESCRIPTORS:
        return None
    try:
        directory = _root() / name
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory if _is_private(directory) else None
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None


def _root() -> Path:
    if chosen := os.environ.get("GENESIS_CACHE_DIR"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "genesis"
    return Path.home() / ".cache" / "genesis"


def _is_private(directory: Path) -> bool:
    """Whether only this user or root can write here; a directory of our own is made so if it is not."""
    status = directory.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        directory.chmod(0o700)
        status = directory.stat()
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022
