"""Indices from the user's data, checked, and the share of a loop that one team has."""

from __future__ import annotations

from genesis.codegen.cuda.toolchain import Elements, device_function, set_once

__all__ = ["checked_index", "share_of", "wrapped_index"]


@device_function
def checked_index(index: int, extent: int, site: int, fault: Elements) -> int:
    """An index in [0, extent). One out of range is replaced by 0 and, if it is the first, written to the fault record."""
    if 0 <= index < extent:
        return index
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
def share_of(extent: int, step: int, number: int, count: int) -> tuple[int, int]:
    """The begin and end of share `number` of `count`: equal numbers of whole steps; the last shares may be empty."""
    size = ((extent + step - 1) // step + count - 1) // count * step
    return min(number * size, extent), min((number + 1) * size, extent)
