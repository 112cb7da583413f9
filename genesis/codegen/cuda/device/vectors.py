"""Vectorized access to a thread's adjacent elements where rows are aligned."""

from __future__ import annotations

from genesis.codegen.cuda.toolchain import Elements, aligned, device_function, is_aligned
from genesis.codegen.cuda.toolchain import device as cuda

__all__ = ["is_aligned", "points_of_thread", "read_beside", "write_beside"]


@device_function
def points_of_thread(are_vectors: bool, threads: int, points: int, end: int) -> tuple[int, int, int]:
    """A thread's first point, the distance between its points, and the last start of a whole vector.

    A thread's points are adjacent if rows are aligned; else they are a row of threads apart, so that a warp's loads coalesce.
    """
    if are_vectors:
        return cuda.threadIdx.x * points, 1, end - points
    return cuda.threadIdx.x, threads, -1


@device_function
def read_beside(near: Elements, memory: Elements, row: int, first: int, apart: int, end: int, reach: int, nbytes: int) -> None:
    """Read the points of a row from `first` on into `near`; up to `reach` as one vector, aligned to `nbytes`."""
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
def write_beside(near: Elements, memory: Elements, row: int, first: int, apart: int, end: int, reach: int, nbytes: int) -> None:
    """Write them from `near` to the row."""
    if first <= reach:
        vector = aligned(memory, row + first, nbytes)
        for part in range(near.size):
            vector[part] = near[part]
    else:
        for part in range(near.size):
            i = first + part * apart
            if i < end:
                memory[row + i] = near[part]
