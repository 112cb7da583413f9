"""Locks that a forked child can rely on.

A child of `fork` has one thread, but inherits every lock in the state in which the parent's other threads left it.
The locks made here are taken just before a fork, so that no other thread is inside what they guard, and are free
again on both sides.
"""

from __future__ import annotations

import os
import threading
from typing import Any

LONGEST_WAIT = 5.0  # seconds a fork waits for another thread's run or compile to end before it goes ahead without


def fork_safe_lock(longest_wait: float = LONGEST_WAIT) -> Any:
    """A reentrant lock that is free in a forked child, whoever held it in the parent. It lives as long as the process.

    longest_wait: seconds that a fork waits for its holder; 0 if a child may meet what it guards in any state.

    >>> lock = fork_safe_lock()
    >>> with lock:
    ...     pass
    """
    lock = threading.RLock()
    taken = False

    def before() -> None:
        nonlocal taken
        taken = lock.acquire(timeout=longest_wait)

    def after_in_parent() -> None:
        if taken:
            lock.release()

    def after_in_child() -> None:
        if taken:
            lock.release()
        else:
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # as the standard library's own modules do

    os.register_at_fork(before=before, after_in_parent=after_in_parent, after_in_child=after_in_child)
    return lock
