"""This machine's speeds for the cost model: round numbers until `python -m genesis.tune` has measured them.

The measured numbers are in the cache directory, in a file for each processor. A process reads them once, before its first
plan: the same file gives the same plans.
"""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import NamedTuple

from genesis.runtime.digest import digest
from genesis.runtime.machine_code import target
from genesis.runtime.private_directory import PrivateDirectory, cache_directory
from genesis.runtime.system import available_processors


class Speeds(NamedTuple):
    """A machine's speeds per second, and its latencies.

    Attributes:
        memory: bytes that all threads together move to and from memory.
        cache: bytes that one thread moves to and from its cache.
        operations: simple operations on elements of float32 (multiplications, say) of one thread.
        products: floating-point operations of one thread in matrix products.
        launch: seconds of an empty stage.
        team: seconds more for a stage shared by the team.
        cached: bytes up to which a value is still in cache when it is read again.
    """

    memory: float
    cache: float
    operations: float
    products: float
    launch: float
    team: float
    cached: float


# 50e9 operations are 8 lanes, twice a cycle, at 3 GHz. With 20e9, GELU's exponential was kept, not recomputed: forward 0.91 ms
# instead of 0.60, backward 1.1 instead of 0.65.
ROUND = Speeds(memory=40e9, cache=20e9, operations=50e9, products=80e9, launch=2e-7, team=2e-6, cached=4e6)


@functools.cache
def speeds() -> Speeds:
    """This machine's speeds, measured or round."""
    if (path := _path()) is not None:
        with contextlib.suppress(OSError, ValueError, TypeError):  # none are stored, or the file is damaged
            lines = PrivateDirectory(path.parent).read(path.name, 1 << 16).decode().splitlines()
            measured = Speeds(**{name: float(number) for name, number in map(str.split, lines)})
            if all(number > 0 for number in measured):
                return measured
    return ROUND


def remember(measured: Speeds) -> Path | None:
    """Keep the numbers for the processes to come; returns where, or None if there is no cache directory."""
    if (path := _path()) is None:
        return None
    lines = [f"{name} {number!r}" for name, number in measured._asdict().items()]
    try:
        PrivateDirectory(path.parent).write(path.name, "\n".join(lines).encode())
    except OSError:  # it may be read-only
        return None
    return path


def _path() -> Path | None:
    directory = cache_directory("speeds")
    machine = f"{target()} {available_processors()}"
    return None if directory is None else directory / digest(machine.encode()).hexdigest()[:32]
