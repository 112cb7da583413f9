"""Indices from the user's data, a team's share of a loop, and vectorized access to a thread's adjacent elements."""

from __future__ import annotations

from genesis.codegen.cuda.toolchain import Elements, aligned, device as cuda, device_function, set_once


@device_function
def checked_index(index: int, extent: int, site: int, fault: Elements) -> int:
    """An index in [0, extent). One out of range is replaced by 0 and, if it is the first, written to the fault record."""
    if 0 <= index < extent:
        return index
    # One thread alone writes it: no message is of two faults.
    if set_once(fault) == 0:
        fault[1], fault[2], fault[3] = site, index, extent
    return index - index


@device_function
def wrapped_index(index: int, extent: int, site: int, fault: Elements) -> int:
    """As `checked_index`, for indices that may count from the end."""
    if -extent <= index < 0:
        return index + extent
    return checked_index(index, extent, site, fault)


@device_function
def checked_divisor(divisor: int, extent: int, site: int, fault: Elements) -> int:
    """A divisor that is not 0: instead of 0 it is 1, and the first such fault is recorded."""
    if divisor != 0:
        return divisor
    if set_once(fault) == 0:
        fault[1], fault[2], fault[3] = site, 0, extent
    return divisor + 1


@device_function
def share_of(extent: int, step: int, number: int, count: int) -> tuple[int, int]:
    """The begin and end of share `number` of `count`: equal numbers of whole steps; the last shares may be empty."""
    size = ((extent + step - 1) // step + count - 1) // count * step
    return min(number * size, extent), min((number + 1) * size, extent)


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
