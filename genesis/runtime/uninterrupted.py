"""Work that no interrupt may cut short: importing, compiling and linking would leave libraries in an inconsistent state.

Python runs signal handlers only in the main thread. So another thread does the work, while the main thread waits in native
code, where no handler runs: one would find libraries in that state, and wait for locks that the main thread holds. (Locks that
the main thread holds, as in a handler, are lent to the other thread.) The collector is paused as well, as it would run
finalizers in the other thread. No profiler sees the work: that of a recorded call would guard each function of a compiler that
is imported.
"""

from __future__ import annotations

import _thread
import operator
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from genesis.runtime.fork import held_locks
from genesis.runtime.profile_hook import unprofiled
from genesis.runtime.references import collector_paused
from genesis.runtime.system import python

T = TypeVar("T")


def uninterrupted(function: Callable[..., T], *arguments: Any) -> T:
    """The result of `function`. An interrupt in the meantime is raised when it has ended.

    >>> uninterrupted(max, 1, 2)
    2
    """
    if threading.current_thread() is not threading.main_thread():
        with collector_paused():
            return unprofiled(function, *arguments)
    given: list[Any] = [function, *arguments]
    results: list[T] = []
    failures: list[BaseException] = []
    over: list[bool] = []
    gate, called_off = threading.Lock(), False
    gate.acquire()
    ended = python.PyThread_allocate_lock()
    wait = partial(python.PyThread_acquire_lock, ended, 1)
    wait()

    def work() -> None:
        gate.acquire()
        try:
            if not called_off:
                with collector_paused():
                    results.append(operator.call(*given))
        except BaseException as failure:
            failures.append(failure)
        finally:
            given.clear()  # what the other thread holds a moment longer would seem to be in use
            over.append(True)
            python.PyThread_release_lock(ended)

    lent: list[Callable[[], None]] = []
    take_back = map(operator.call, lent)  # prepared here, as `finally` must be a single C call before a handler may run
    try:
        try:
            _thread.start_new_thread(work, ())
        except RuntimeError:  # no more threads
            with collector_paused():
                return unprofiled(function, *arguments)
        locks = held_locks()
        states: Iterator[Any] = map(operator.call, [lock._release_save for lock in locks])
        lent += map(partial, [lock._acquire_restore for lock in locks], states)
        together: list[Callable[[], object]] = [gate.release, wait]
        deque(map(operator.call, together), 0)  # one C call, so no handler runs between the two
    except BaseException:
        if not over:
            called_off = True
            gate.release()
        raise
    finally:
        deque(take_back, 0)
    python.PyThread_free_lock(ended)
    # Take them out of the lists, which the other thread may keep alive a moment longer.
    if failures:
        raise failures.pop(0)
    return results.pop()


def is_of_handler(problem: BaseException) -> bool:
    """Whether a signal handler raised `problem`: Python gives it the frame that it interrupts, as nobody else does."""
    at = problem.__traceback__
    while at is not None and at.tb_next is not None:
        for given in at.tb_next.tb_frame.f_locals.values():
            if given is at.tb_frame or (isinstance(given, tuple) and any([part is at.tb_frame for part in given])):
                return True
        at = at.tb_next
    return False
