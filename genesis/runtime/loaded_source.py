"""The package's own source, as this process has loaded it: what a process stores has a digest of the source that made it.

Modules are loaded when they are first needed, and their files may be edited meanwhile. So a file is known to be what its
module was loaded from only if it was last changed before any was: before this module, which is the first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from genesis.runtime.digest import digest

PACKAGE = Path(__file__).parents[1]
_BEGAN = time.time_ns()
_PLACE = os.stat(PACKAGE)  # another folder may be moved here, or a link in its path be turned

_SECOND = 10**9  # nanoseconds
_TICK = _SECOND // 50  # by which the clock of file systems may be late: their time is that of the last timer interrupt


def are_as_loaded(files: Iterable[str | Path]) -> bool:
    """Whether nobody has changed files since the process began.

    The time of a file's status tells of copies that keep the time of its content. Windows has no such time.
    """
    try:
        return os.path.samestat(_PLACE, os.stat(PACKAGE)) and max(map(_last_changed, files)) < _BEGAN
    except OSError:  # one is gone
        return False


def digest_of(files: Iterable[Path]) -> str:
    """A digest of the contents of files; if they are no longer as loaded, one that no other process has."""
    paths, whole = sorted(map(str, files)), digest()
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            whole.update(file.read())
    return whole.hexdigest() if are_as_loaded(paths) else os.urandom(whole.digest_size).hex()


def _last_changed(path: str | Path) -> int:
    """The latest time at which a file can have been changed, in nanoseconds."""
    status = os.stat(path)
    stated = max(status.st_mtime_ns, status.st_ctime_ns)
    return stated + (_TICK if stated % _SECOND else 2 * _SECOND)  # some file systems have whole seconds, or every other one
