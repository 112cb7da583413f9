"""Files that are replaced as a whole, so that an interrupted save, or one of tensors mapped from the file, does no harm."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` at the context's end, unless an exception ends it.

    It has the former file's permissions, group and, where the system allows it, owner. Tensors mapped from the former file keep
    their values, and so do its hard links. Pipes and devices are written directly. A file in a folder that may not be written
    is overwritten at the end. Raises PermissionError if the former file, or the folder of a new one, may not be written.
    """
    former = os.stat(path) if os.path.exists(path) else None
    if former is not None and not stat.S_ISREG(former.st_mode):
        with open(path, "wb") as file:
            yield file
        return
    if former is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    # never readable by more than the former file
    mode = 0o666 if former is None else stat.S_IMODE(former.st_mode) | stat.S_IWUSR
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode)
    except OSError as problem:
        if former is None or not isinstance(problem, PermissionError):
            problem.filename = os.fspath(path)
            raise
        descriptor = -1
    if descriptor < 0:
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with open(target, "wb") as present:
                shutil.copyfileobj(file, present)
        return
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        if former is not None:
            for owner, group in ((-1, former.st_gid), (former.st_uid, -1)) if hasattr(os, "chown") else ():
                with contextlib.suppress(OSError):  # only root gives files away
                    os.chown(temporary, owner, group)
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
