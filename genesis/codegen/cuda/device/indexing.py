"""Indices that come from the user's data, and those that fall to one of several."""

from __future__ import annotations

from typing import Any

from genesis.codegen.cuda.toolchain import device_function, set_once

__all__ = ["checked_index", "share_of", "wrapped_index"]


@device_function
def checked_index(index: Any, extent: Any, site: Any, fault: Any) -> Any:
    """An index in [0, extent); another is noted in the fault record, if it is the first, and 0 taken for it."""
    if 0 <= index < extent:
        return index
    if set_once(fault) == 0:
        fault[1], fault[2], fault[3] = site, index, extent
    return index - index


@device_function
def wrapped_index(index: Any, extent: Any, site: Any, fault: Any) -> Any:
    """As `checked_index`, of indices that may count from the end."""
    if -extent <= index < 0:
        return index + extent
    return checked_index(index, extent, site, fault)


@device_function
def share_of(extent: Any, step: int, number: Any, count: Any) -> Any:
    """Where share `number` of `count` begins and ends: equal pieces of whole steps, as far as there is something left."""
    size = ((extent + step - 1) // step + count - 1) // count * step
    return min(number * size, extent), min((number + 1) * size, extent)
