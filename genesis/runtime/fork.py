"""Locks that a forked child can rely on.

A child of `fork` has one thread, but inherits every lock in the state in which the parent's other threads left it.
The locks made here are taken just before a fork, so that no other thread is inside what they guard, and are free
again on both sides.
"""

from __future__ import annotations

import time
from _thread import RLock
from collections import deque
from itertools import compress, repeat
from typing import Any, NamedTuple

from genesis.runtime.system import at_fork

LONGEST_WAIT = 5.0  # seconds a fork waits for another thread's run or compile to end before it goes ahead without


class _Guarded(NamedTuple):
    """A lock that is taken before a fork, and how long the fork waits for it."""

    lock: Any
    longest_wait: float
    outermost: bool


_guarded: list[_Guarded] = []  # outermost first: who holds one takes those after it, never one before it
_taken: list[Any] = []


def fork_safe_lock(longest_wait: float = LONGEST_WAIT, outermost: bool = False) -> Any:
    """A reentrant lock that is free in a forked child, whoever held it in the parent. It lives as long as the process.

    longest_wait: seconds that a fork waits for its holder; 0 if a child may meet what it guards in any state.
    outermost: it is taken before all others, so a fork has to take it first, too: a thread that holds it goes on to take
        the others, and would wait for the fork while the fork waits for it.

    >>> lock = fork_safe_lock()
    >>> with lock:
    ...     pass
    """
    return fork_safe(RLock(), longest_wait, outermost)


def fork_safe(lock: Any, longest_wait: float = LONGEST_WAIT, outermost: bool = False) -> Any:
    """`lock`, a library's reentrant one, made as `fork_safe_lock` makes them."""
    if not any([guarded.lock is lock for guarded in _guarded]):
        _guarded.insert(0 if outermost else len(_guarded), _Guarded(lock, longest_wait, outermost))
    return lock


def held_locks() -> list[Any]:
    """The locks that this thread holds, but for the outermost: what a thread that works for it may have to take."""
    return [lock for lock, _, outermost in _guarded if not outermost and lock._is_owned()]


def _before() -> None:
    end = time.monotonic() + LONGEST_WAIT  # of all waits together: who holds the first may hold those after it as well
    locks = [lock for lock, *_ in _guarded]
    waits = (max(0.0, min(wait, end - time.monotonic())) for _, wait, _ in _guarded)
    _taken.extend(compress(locks, map(RLock.acquire, locks, repeat(True), waits)))  # C: no handler parts a lock from its entry


def _after_in_parent() -> None:
    deque(map(RLock.release, map(_taken.pop, repeat(-1, len(_taken)))), 0)  # C as well


def _after_in_child() -> None:
    for lock, *_ in _guarded:
        if lock in _taken:
            lock.release()
        else:
            lock._at_fork_reinit()  # as the standard library's own modules do
    _taken.clear()


at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
