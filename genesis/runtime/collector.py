"""Python's collector of cycles, and when it has to wait."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection in the block: it makes thousands of objects that live, which a collector would look through in vain."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def grow_old() -> None:
    """Put all objects there are among the old ones, unseen, as if the collector had found all of them alive.

    For the end of an import, whose objects live: else the first calls wait while they are looked through.
    """
    if not gc.get_freeze_count():  # what others have frozen stays so
        gc.freeze()
        gc.unfreeze()
