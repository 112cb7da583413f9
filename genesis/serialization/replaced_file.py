"""Files that are replaced as a whole, so that an interrupted save, or one of tensors mapped from the file, does no harm."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` at the context's end, unless an exception ends it.

    Tensors mapped from the former file keep their values. Pipes and devices are written directly.
    """
    target = os.path.realpath(path)
    if os.path.lexists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:
            yield file
        return
    temporary = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
        with contextlib.suppress(FileNotFoundError):  # no former file
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
