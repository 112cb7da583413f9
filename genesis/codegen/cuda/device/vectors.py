"""What lies side by side and is one thread's: as one vector where it is aligned as one, as far as vectors reach in a row."""

from __future__ import annotations

from typing import Any

from genesis.codegen.cuda.toolchain import aligned, device_function, is_aligned
from genesis.codegen.cuda.toolchain import device as cuda

__all__ = ["is_aligned", "points_of_thread", "read_beside", "write_beside"]


@device_function
def points_of_thread(are_vectors: Any, threads: Any, points: int, end: Any) -> Any:
    """The first of a thread's points, how far they are apart, and up to where it takes all as one vector.

    A row of threads has as many times `points`: each its own side by side, or all the first ones, then all the second ones.
    """
    if are_vectors:
        return cuda.threadIdx.x * points, 1, end - points
    return cuda.threadIdx.x, threads, -1


@device_function
def read_beside(
    near: Any, memory: Any, row: Any, first: Any, apart: Any, end: Any, reach: Any, nbytes: int
) -> None:
    """The points of a row from `first` on go to `near`; up to `reach` they are a vector, which is aligned to `nbytes`."""
    if first <= reach:
        vector = aligned(memory, row + first, nbytes)
        for part in range(near.size):
            near[part] = vector[part]
    else:
        for part in range(near.size):
            i = first + part * apart
            if i < end:
                near[part] = memory[row + i]


@device_function
def write_beside(
    near: Any, memory: Any, row: Any, first: Any, apart: Any, end: Any, reach: Any, nbytes: int
) -> None:
    """The other way round: from `near` to the row."""
    if first <= reach:
        vector = aligned(memory, row + first, nbytes)
        for part in range(near.size):
            vector[part] = near[part]
    else:
        for part in range(near.size):
            i = first + part * apart
            if i < end:
                memory[row + i] = near[part]
