"""Python's collector of cycles, and when it has to wait."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection in the block: lowering makes thousands of objects that live on, which collections would scan in vain."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def grow_old() -> None:
    """Move all objects into the oldest generation without a scan.

    For the end of an import, whose objects live on: otherwise the first calls wait while the collector scans them.
    """
    if not gc.get_freeze_count():  # what others have frozen stays so
        gc.freeze()
        gc.unfreeze()
