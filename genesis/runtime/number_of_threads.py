"""How many threads programs use, and how many processes share the processors."""

from __future__ import annotations

import functools
import os

from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.runtime.system import available_processors

MOST_WORKERS, _MOST_PER_PROCESSOR = 1024, 16
SHARING = [1]  # processes that share the processors, this one among them, and divide what they compile: see `compile_claims`
_SETTINGS = "GENESIS_NUM_THREADS", "OMP_NUM_THREADS"
_threads: int | None = None


def get_num_threads() -> int:
    """The number of workers that a launch may use: as set, else GENESIS_NUM_THREADS, OMP_NUM_THREADS or the processors.

    What the environment asks for is bounded by sixteen for each processor: workers cost scratch memory each.
    """
    return _threads or default_threads()


def set_num_threads(threads: int) -> None:
    """Let launches built from now on use up to `threads` workers, the calling thread among them.

    Raises ValueError for fewer than 1 and for more than 1024.
    """
    global _threads
    if not hasattr(threads, "__index__"):
        raise ArgumentTypeError(f"set_num_threads: got a {type(threads).__name__}; want an int")
    if not 1 <= threads <= MOST_WORKERS:
        raise ArgumentError(f"set_num_threads: {threads}; want {'1 or more' if threads < 1 else f'at most {MOST_WORKERS}'}")
    _threads = threads


def share_processors(processes: int) -> None:
    """Let launches and compile workers use this process's share of the processors, of `processes` processes.

    A number of threads that was set explicitly is kept.
    """
    global _threads
    SHARING[0] = processes
    if _threads is None and not any(os.environ.get(name) for name in _SETTINGS):
        _threads = max(1, available_processors() // processes)


@functools.cache  # the environment is read once
def default_threads() -> int:
    """The number where none has been set."""
    for name in _SETTINGS:
        value = os.environ.get(name, "").partition(",")[0].strip()  # OpenMP allows a list, a number per level
        if value.isdecimal() and int(value) > 0:
            return min(int(value), _MOST_PER_PROCESSOR * available_processors())
    return available_processors()
