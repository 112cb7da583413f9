"""By how much a process grows while it repeats a step."""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from genesis.runtime.memory import memory_stats
from tests.collector import without_collector

WINDOWS = 4
FREE_TUPLES, FREE_LENGTHS = 2000, 20  # CPython keeps so many freed tuples of each length up to 20


class Growth(NamedTuple):
    """What each window of steps has added at least, and how many of the steps a window has.

    Resident memory also grows now and then as allocators take another page: what leaks, leaks in every window.
    """

    resident: int  # bytes of the process
    buffers: int  # bytes that tensors hold
    objects: int  # small blocks of CPython's allocator, which are counted one by one
    steps: int

    def is_flat(self) -> bool:
        """Nothing of a step stays: the fewest bytes that each could leave are an object's."""
        return self.resident < 256 * self.steps and self.buffers <= 0 and self.objects < self.steps // 2


def growth(step: Callable[[], object], warm: int = 200, steps: int = 800) -> Growth:
    """What `steps` steps add, in windows, without the collector: reference counts alone must free everything."""
    with without_collector():
        _fill_the_free_lists()
        for _ in range(warm):
            step()
        counted, states = steps // WINDOWS, [_state()]
        for _ in range(WINDOWS):
            for _ in range(counted):
                step()
            states.append(_state())
    added = [[after - before for before, after in zip(*pair, strict=True)] for pair in itertools.pairwise(states)]
    return Growth(*map(min, zip(*added, strict=True)), counted)


def _state() -> tuple[int, int, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096, memory_stats().held, sys.getallocatedblocks()


def _fill_the_free_lists() -> None:
    """Tuples that are freed in another length than they were made in would seem to leak, until as many are free as are kept."""
    for length in range(1, FREE_LENGTHS + 1):
        _ = [(None,) * number for number in [length] * FREE_TUPLES]
