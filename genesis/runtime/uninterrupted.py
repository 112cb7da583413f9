"""Work that no interrupt may cut short: importing, compiling and linking leave libraries in an inconsistent state.

Python runs signal handlers in the main thread only, so another thread does the work.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def uninterrupted(function: Callable[..., T], *arguments: Any) -> T:
    """The result of `function`. An interrupt in the meantime is raised when it has ended.

    >>> uninterrupted(max, 1, 2)
    2
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    results: list[T] = []
    failures: list[BaseException] = []
    ended: list[bool] = []
    bell = threading.Lock()
    bell.acquire()

    def work() -> None:
        try:
            results.append(function(*arguments))
        except BaseException as failure:
            failures.append(failure)
        finally:
            ended.append(True)
            bell.release()

    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # no more threads
        return function(*arguments)
    except BaseException as interruption:  # right after the start
        failures.append(interruption)
    while not ended:
        try:
            while not ended:
                bell.acquire(timeout=1)
        except BaseException as interruption:
            failures.append(interruption)
    if failures:
        raise failures[0]
    return results[0]
