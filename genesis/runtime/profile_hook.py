"""Restoring this thread's profiler after another one.

`sys.setprofile` puts Python functions back. The profilers of cProfile and others are functions of C, each with an object that
`sys.getprofile` returns; the function is read where the thread's state has it.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_WORDS = 32  # of a thread's state, among which its profiler lies: looked at in CPython 3.9 to 3.13
_set_profile = ctypes.pythonapi.PyEval_SetProfile
_set_profile.argtypes, _set_profile.restype = [ctypes.c_void_p, ctypes.py_object], None
_thread_state = ctypes.pythonapi.PyThreadState_Get
_thread_state.restype = ctypes.c_void_p


def profile_hook() -> Callable[[], None]:
    """A function that restores this thread's present profiler. Profilers see neither it nor what it calls.

    Raises RuntimeError for a profiler in C if this Python's thread state is not laid out as expected.

    >>> put_back = profile_hook()
    >>> sys.setprofile(lambda frame, event, argument: None)
    >>> put_back()
    >>> sys.getprofile()
    """
    hook = sys.getprofile()
    if hook is None or isinstance(hook, Callable):  # type: ignore[arg-type]
        return functools.partial(sys.setprofile, hook)
    if (index := _hook_index()) is None:
        raise RuntimeError(f"{type(hook).__name__}, a profiler of C, cannot be put back by this Python: record first")
    return functools.partial(_set_profile, _words()[index], hook)


def unprofiled(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `function`, of which this thread's profiler sees nothing, unless it is one of C.

    >>> sys.setprofile(lambda frame, event, argument: None)
    >>> unprofiled(sys.getprofile), sys.getprofile() is None
    (None, False)
    >>> sys.setprofile(None)
    """
    hook: object = sys.getprofile()
    if not callable(hook):
        return function(*args, **kwargs)
    try:  # first of all: an interrupt may come as the profiler is gone
        sys.setprofile(None)
        return function(*args, **kwargs)
    finally:
        sys.setprofile(hook)


def _words() -> ctypes.Array[ctypes.c_size_t]:
    return (ctypes.c_size_t * _WORDS).from_address(_thread_state())


@functools.cache
def _hook_index() -> int | None:
    """The index of the profiler's function among the words of a thread's state: two before the profiler's object."""
    found: list[int] = []

    def probe(frame: object, event: str, argument: object) -> None: ...

    def look() -> None:
        sys.setprofile(probe)
        found.extend(index for index, word in enumerate(_words()) if word == id(probe) and _words()[index - 2])
        sys.setprofile(None)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0] - 2 if len(found) == 1 else None
