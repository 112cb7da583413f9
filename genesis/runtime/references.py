"""Reference counts: whether an object has owners unknown to the caller; and pausing the garbage collector.

What counting itself adds depends on how an interpreter passes local variables (Python 3.14 borrows them), and is measured once,
at import.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from sys import getrefcount
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")


reference_count = getrefcount  # by `map` over a list it is IN_LIST, and one for every other owner

(IN_LIST,) = map(reference_count, [object()])


def is_sole_owner(objects: Sequence[object], owners: int = 0) -> bool:
    """Whether each of `objects` has exactly `owners` owners beside the given list.

    >>> thing = object()
    >>> is_sole_owner([thing]), is_sole_owner([thing], 1), is_sole_owner([object()])
    (False, True, True)
    """
    return [*map(reference_count, objects)] == [IN_LIST + owners] * len(objects)


_alone = 0  # the highest count that `owned_elsewhere` meets of an object that the list alone owns


def owned_elsewhere(objects: Sequence[T]) -> list[T]:
    """The objects that have an owner beside the given list.

    >>> thing = "".join(["a", "b"])
    >>> owned_elsewhere([thing, "".join(["c", "d"])])
    ['ab']
    """
    found = []
    for thing in objects:
        if reference_count(thing) > _alone:
            found.append(thing)
    return found


while owned_elsewhere([object(), object()]):  # measured by the very code that compares with it
    _alone += 1


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


@contextmanager
def made_to_last(bytes_held: Callable[[], int]) -> Iterator[None]:
    """No collection in the block, and what it makes does not ask for one later: plans live on, and would be scanned in vain.

    What was made before is collected here: Python itself begins anew to count towards a full collection whenever objects
    are frozen, and so would never find garbage that has met a block.
    """
    # Measured: of 80 steps at random lengths, full collections took 1.1 of 7.6 s.
    lasts = gc.isenabled() and gc.get_threshold()[0] > 0 and not _frozen[0]
    if lasts:
        _collect(bytes_held)
    with collector_paused():
        try:
            yield
        finally:
            if lasts:
                grow_old()


def kept_long(bytes_held: Callable[[], int]) -> None:
    """As `made_to_last`, for what has been made, once there is enough of it that a scan of more than the youngest is near."""
    if gc.get_count()[1] + 1 >= gc.get_threshold()[1]:
        with made_to_last(bytes_held):
            pass


FULL_SHARE = 50  # times as long as a full collection takes, no other one follows; nor within a second
MOST_MORE = 1 << 28  # bytes of tensors: if more are held than twice those after the last full one, another follows at once

_full_due = [inf, inf]  # the time, and the bytes held, from which on the next collection is full; the first one is not


def _collect(bytes_held: Callable[[], int]) -> None:
    began, (due, most) = perf_counter(), _full_due
    is_full = began >= due or bytes_held() > most
    try:
        gc.collect(2 if is_full else 1)
    finally:  # a signal handler that raises comes as the collection ends
        if is_full or due == inf:
            _full_due[:] = began + max(FULL_SHARE * (perf_counter() - began), 1), 2 * bytes_held() + MOST_MORE


_frozen = [False]  # whether others were met that freeze objects: to count these takes long


def grow_old() -> None:
    """Move all objects into the oldest generation without a scan.

    For the end of an import, whose objects live on: otherwise the first calls wait while the collector scans them.
    """
    # Measured: 72 to 58 ms of a GPT's first step, outside its programs.
    _frozen[0] = gc.get_freeze_count() > 0
    if not _frozen[0]:  # what others have frozen stays so
        gc.freeze()
        gc.unfreeze()
