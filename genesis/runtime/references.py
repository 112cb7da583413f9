"""Reference counts: whether an object has owners unknown to the caller; and pausing the garbage collector.

Objects are counted in a list, by C code that iterates over it. So counts do not depend on how an interpreter passes local
variables (Python 3.14 borrows them), and what counting itself adds is measured once, at import.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from sys import getrefcount
from typing import TypeVar

T = TypeVar("T")


reference_count = getrefcount  # only for `map` over a list: then it is IN_LIST, and one for every other owner

(IN_LIST,) = map(reference_count, [object()])


def is_sole_owner(objects: Sequence[object], owners: int = 0) -> bool:
    """Whether each of `objects` has exactly `owners` owners beside the given list.

    >>> thing = object()
    >>> is_sole_owner([thing]), is_sole_owner([thing], 1), is_sole_owner([object()])
    (False, True, True)
    """
    return [*map(reference_count, objects)] == [IN_LIST + owners] * len(objects)


def _count_among(objects: Sequence[object]) -> int:
    """The highest count that `owned_elsewhere` meets while it goes through these."""
    counts: list[int] = []
    any(compress(objects, map(counts.append, map(reference_count, objects))))
    return max(counts)


_is_owned = _count_among([object(), object()]).__lt__


def owned_elsewhere(objects: Sequence[T]) -> list[T]:
    """The objects that have an owner beside the given list.

    >>> thing = "".join(["a", "b"])
    >>> owned_elsewhere([thing, "".join(["c", "d"])])
    ['ab']
    """
    return [*compress(objects, map(_is_owned, map(reference_count, objects)))]


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection in the block: lowering makes thousands of long-lived objects, which collections would scan in vain."""
    # Measured: trace, derivation and lowering of a long chain 0.52 to 0.32 s.
    if not gc.isenabled():
        yield
        return
    try:
        gc.disable()  # an interrupt at its return is already within the block
        yield
    finally:
        gc.enable()


def grow_old() -> None:
    """Move all objects into the oldest generation without a scan.

    For the end of an import, whose objects live on: otherwise the first calls wait while the collector scans them.
    """
    # Measured: 72 to 58 ms of a GPT's first step, outside its programs.
    if not gc.get_freeze_count():  # what others have frozen stays so
        gc.freeze()
        gc.unfreeze()
