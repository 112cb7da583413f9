"""Sequential tiles: how many points of a loop the whole machine computes at a time, where one tile follows another.

A tile is a box of every call's own axes: the call runs on it as on the whole, with shorter axes. It is a number of units,
which never cross from one stretch of the points into the next; both end where axes of all calls do.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.stages import Product
from genesis.lower.target import SequentialTiles
from genesis.lower.tile_access import point_axes

__all__ = ["sequential_tile"]


def sequential_tile(
    calls: Sequence[KernelCall | Product], points: int, nbytes: int, limits: SequentialTiles
) -> tuple[int, int] | None:
    """The points of a tile and of a stretch, for calls between which `nbytes` lie.

    A tile has as much room as it should, or more if its products would not fill the machine that they fill as a whole, or if
    the loop came to too many calls. None if all points are one tile, or if a single one takes too much.
    """
    if not limits.nbytes < nbytes <= limits.nbytes * points:
        return None
    works = [numel((*call.batch, *call.extents)) for call in calls if isinstance(call, Product)]
    wanted = max(
        points * limits.nbytes // nbytes, -(-points * len(calls) // limits.calls),
        *(-(-points * limits.filling // work) for work in works if work >= limits.filling),
    )
    ends = _ends(calls, points)
    if wanted >= points or any(outer % inner for inner, outer in itertools.pairwise(ends)):
        return None
    # A tile is whole units, each of all axes inside some axis: so it is a box of every call's axes. The tiles of a stretch are
    # as even as units allow.
    unit = max(end for end in ends if end <= wanted)
    stretch = min(end for end in ends if end > unit)
    tiles = -(-stretch // (wanted // unit * unit))
    return -(-stretch // (unit * tiles)) * unit, stretch


def _ends(calls: Sequence[KernelCall | Product], points: int) -> list[int]:
    """How many points an axis of some call comes to, with all axes inside it; in order, from a single point to all."""
    found = {1}
    for call in calls:
        leads = [lead for lead, _ in point_axes(call, points)]
        found.update(itertools.accumulate(reversed(leads), int.__mul__))
    return sorted(found)
