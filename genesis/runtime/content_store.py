"""Files named by what determines their content: object code, schedules, binaries of GPUs.

A file's name is a digest of the source, of the code that turns sources into LLVM IR, of the target and of the compilers'
versions. The file repeats the source and carries a digest of its content, so whatever is wrong with it - truncated, corrupt,
somebody else's, unreadable - it is a miss, never an error and never a wrong kernel.
"""

from __future__ import annotations

import contextlib
import functools
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from genesis.runtime import compile_claims
from genesis.runtime.compile_claims import CompileClaims
from genesis.runtime.digest import digest
from genesis.runtime.loaded_source import are_as_loaded
from genesis.runtime.logs import tell
from genesis.runtime.private_directory import PrivateDirectory
from genesis.runtime.toolchain import emitters, toolchain

SIZE_LIMIT = 512 << 20  # bytes on disk
SWEEP_INTERVAL = 3600.0  # seconds between two looks at the size
TOUCH_INTERVAL = 86400.0  # a file's time of last use is kept to this precision
POLL_INTERVAL = 0.003  # seconds between two polls for what another process makes: it compiles a kernel in 20 to 45 ms
LONGEST_WAIT = 5.0  # seconds without a result, after which it is made here, too

_STAMP = "swept"  # the file whose time is that of the last sweep
_OURS = (_STAMP, compile_claims.NAME)  # the files that are no contents
_MAGIC = b"genesis kernel 1"
_HEADER = struct.Struct("<16s32sQQ")  # magic, digest of the rest, length of the source, length of the content


class ContentStore:
    """A directory that processes share.

    `find_directory` is called when the first content is asked for; if it returns None, nothing is stored. Nor is anything
    once one of the files `makers()` was edited, by whose modules the content is made: they may be older or newer than the edit.
    """

    def __init__(
        self, find_directory: Callable[[], Path | None], size_limit: int = SIZE_LIMIT,
        makers: Callable[[], Sequence[Path]] = emitters,
    ) -> None:
        self._directory = functools.cache(lambda: _opened(find_directory()))
        self._size_limit, self._makers = size_limit, makers
        self._making: set[str] = set()  # the names in progress in `making`

    def kept(self, source: str, make: Callable[[], bytes]) -> bytes:
        """The result of `make` for a source: made once, then read from disk. For machine code that others load."""
        if (content := self.find(source)) is None:
            with self.making(source) as content:
                if content is None:
                    content = make()
                    self.keep(source, content)
        return content

    @contextlib.contextmanager
    def making(self, source: str) -> Iterator[bytes | None]:
        """A context in which only this process makes the content of a source; yields what another one has made meanwhile, if
        any.

        Another process may have been stopped: after a while the content is made here, too. A signal handler of this process
        makes it as well, as it would wait for what it interrupts.
        """
        name = name_of(source)
        if name in self._making:
            yield None
            return
        self._making.add(name)
        try:
            with CompileClaims(self._directory()) as claims:
                deadline = time.monotonic() + LONGEST_WAIT
                while not claims.take(name) and time.monotonic() < deadline:
                    time.sleep(POLL_INTERVAL)
                yield self.find(source, again=True) if claims.are_shared else None
        finally:
            self._making.discard(name)

    def keep(self, source: str, content: bytes) -> None:
        """Store content for `find`, in this process or another."""
        self.write(source, content)
        self.sweep()

    def _path(self, source: str) -> Path | None:
        directory = self._directory()
        return directory.path / name_of(source) if directory is not None else None

    def find(self, source: str, again: bool = False) -> bytes | None:
        """The stored bytes, if there is a valid file for exactly this source. A problem is not logged `again`."""
        if (directory := self._directory()) is None:
            return None
        name = name_of(source)
        try:
            content = directory.read(name, self._size_limit)
            magic, stated, source_length, object_length = _HEADER.unpack_from(content)
        except (OSError, struct.error):  # not there, or cut short
            return None
        body = content[_HEADER.size :]
        sound = (
            magic == _MAGIC and len(body) == source_length + object_length
            and body[:source_length] == source.encode() and digest(body).digest() == stated
        )
        if not sound:
            if not again:
                tell("cache", "%s is not the file that it should be, and is passed over", name)
            return None
        # Sweeps delete by time of use; updating it once a day is enough, so most reads write nothing.
        with contextlib.suppress(OSError):  # it may be read-only
            if directory.status(name).st_mtime < time.time() - TOUCH_INTERVAL:
                directory.touch(name)
        return body[source_length:]

    def write(self, source: str, content: bytes) -> None:
        """Store content, whole or not at all."""
        if (directory := self._directory()) is None:
            return
        if not are_as_loaded(self._makers()):
            tell("cache", "%s is kept in memory alone: genesis' files were changed after the start", name_of(source))
            return
        text = source.encode()
        body = text + content
        header = _HEADER.pack(_MAGIC, digest(body).digest(), len(text), len(content))
        with contextlib.suppress(OSError):  # read-only, or full
            directory.write(name_of(source), header + body)

    def sweep(self, interval: float = SWEEP_INTERVAL) -> None:
        """Once in `interval` seconds: if the files exceed the limit, delete the least recently used, down to three quarters."""
        if (directory := self._directory()) is None:
            return
        with contextlib.suppress(OSError):  # read-only
            if not _is_our_turn(directory, interval):
                return
            files = sorted((status.st_mtime, status.st_size, name) for name, status in directory.files() if name not in _OURS)
            excess = sum(size for _, size, _ in files) - self._size_limit
            if excess > 0:  # a quarter more, so that not every sweep deletes
                excess += self._size_limit // 4
            for used, size, name in files:
                abandoned = name.endswith(".tmp") and used < time.time() - SWEEP_INTERVAL
                if excess > 0 or abandoned:
                    directory.remove(name)
                    excess -= size


def _opened(path: Path | None) -> PrivateDirectory | None:
    try:
        return None if path is None else PrivateDirectory(path)
    except OSError as problem:  # it cannot be made, or is not ours
        tell("cache", "kernels are kept in memory alone: %s", problem)
        return None


def name_of(source: str) -> str:
    """The name of the file for a source: a digest of all that determines its content."""
    return digest(toolchain() + source.encode()).hexdigest()


def _is_our_turn(directory: PrivateDirectory, interval: float) -> bool:
    """Whether the stamp is older than `interval` seconds; renews it. Of concurrent processes, one gets True."""
    with contextlib.suppress(FileNotFoundError):
        if directory.status(_STAMP).st_mtime > time.time() - interval:
            return False
        directory.remove(_STAMP)
    try:
        directory.create(_STAMP)
    except FileExistsError:
        return False
    return True
