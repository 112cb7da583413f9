"""Tile access: which elements of values a call touches at each of its points, and so whether calls may run tile by tile.

A point is an index of a call's leading axes (a product's batch and rows, a kernel's outer axes), e of E. A call may run on a
subset of the points if each takes equally many of its items, in order. It may follow calls that have written values if at point
e it touches only the e-th of E equal tiles of each such value: then no point depends on another one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.build import KernelCall
from genesis.lower.index_map import digits_of
from genesis.lower.kernel import Access, Kernel, of_code
from genesis.lower.stages import Product
from genesis.lower.target import SequentialTiles


class TileAccess(NamedTuple):
    """A call's access to a value: the strides along its outer axes, and the first and the last element of its first item."""

    value: int
    outer: tuple[int, ...]
    first: int
    last: int


class AccessPattern(NamedTuple):
    """The outer axes of a call, in the order of its items, and its accesses."""

    extents: tuple[int, ...]
    accesses: tuple[TileAccess, ...]


def _access(value: int, offset: int, outer: tuple[int, ...], inner: Iterable[tuple[int, int]]) -> TileAccess:
    """The access at an offset, with (extent, stride) of its inner axes."""
    steps = [(extent - 1) * stride for extent, stride in inner]
    first, last = (offset + sum([end(0, step) for step in steps]) for end in (min, max))
    return TileAccess(value, outer, first, last)


def stays_in_tiles(nodes: Sequence[Node], pattern: AccessPattern, values: Collection[int], points: int) -> bool:
    """Whether a call can run point by point, within its own tiles of what it touches of `values`."""
    if not may_stay_in_tiles(nodes, pattern, values, points):
        return False
    items = numel(pattern.extents)
    parted = _split(pattern.extents, points) if points and items and not items % points else None
    return parted is not None and all([_within_tiles(nodes[access.value].numel, parted, access, points)
                                       for access in pattern.accesses if access.value in values])


def may_stay_in_tiles(nodes: Sequence[Node], pattern: AccessPattern, values: Collection[int], points: int) -> bool:
    """What `stays_in_tiles` can tell without dividing: no item touches more than a tile, and a first axis that is longer than
    the number of points, which only its parts can be, goes through the tiles in order.
    """
    touched = [(access, nodes[access.value].numel) for access in pattern.accesses if access.value in values]
    if any([(access.last - access.first) * points >= size for access, size in touched]):
        return False
    first = pattern.extents[0]
    return all([access.outer[0] * first == size for access, size in touched]) or not first > points > 1


Parted = tuple[tuple[int, int], ...]  # each axis as (extent over points, extent within a point)


def _split(extents: tuple[int, ...], points: int) -> Parted | None:
    """Each outer axis as (extent over points, extent within a point); None if the axes cannot be divided so."""
    result = []
    for extent in extents:
        if points % extent == 0:
            result.append((extent, 1))
            points //= extent
        elif extent % points == 0:
            result.append((points, extent // points))
            points = 1
        else:
            return None
    return tuple(result) if points == 1 else None


def _within_tiles(size: int, parted: Parted, access: TileAccess, points: int) -> bool:
    """Whether at point e an access stays within the e-th of `points` equal tiles of a value of `size` elements."""
    if size % points:
        return False
    # Each axis has a part over points and a part within a point. The former must step exactly one tile at a time; the latter
    # must stay within the first tile.
    tile = step = size // points
    _, outer, low, high = access
    for (lead, rest), stride in zip(reversed(parted), reversed(outer), strict=True):
        if lead > 1 and stride * rest != step:
            return False
        step *= lead
        low, high = low + min(0, (rest - 1) * stride), high + max(0, (rest - 1) * stride)
    return low >= 0 and high < tile


def point_axes(call: KernelCall | Product, points: int) -> Parted:
    """The outer axes of a call that runs point by point, each as (extent over points, extent within a point)."""
    pattern = access_pattern(call)
    parted = _split(pattern.extents, points) if pattern is not None else None
    assert parted is not None, "a call that runs point by point"
    return parted


def access_pattern(call: object) -> AccessPattern | None:
    if isinstance(call, Product):
        return product_pattern(call)
    return kernel_pattern(call) if isinstance(call, KernelCall) else None


def product_pattern(call: Product) -> AccessPattern:
    a, b, c = call.a, call.b, call.c
    (rows, a_terms), (b_terms, columns) = (digits_of(x.layout, x.axis_groups) for x in (a, b))
    if call.summed:
        rows, a_terms = (), (*rows, *a_terms)
    heights, a_rows = [extent for extent, _ in rows], [stride for _, stride in rows]
    reads = [_access(a.value, a.layout.offset, (*a.steps, *a_rows), a_terms),
             _access(b.value, b.layout.offset, (*b.steps, *(0 for _ in rows)), (*b_terms, *columns))]
    c_rows = [c.layout.strides[-2] * step for step in contiguous_strides(tuple(heights))]
    written = [] if call.summed else [_access(c.value, c.layout.offset, (*c.steps, *c_rows), ((call.extents[1], 1),))]
    return AccessPattern((*call.batch, *heights), (*reads, *written))


def items_of(kernel: Kernel) -> list[int]:
    """The axes of a kernel's items."""
    return kernel.outer or ([kernel.lane] if kernel.lane is not None and not kernel.lane_is_reduced else [])


def kernel_pattern(call: KernelCall) -> AccessPattern | None:
    """The pattern of a kernel; None if partial results are combined at the end, if an index decides what is written, and for
    sums of products and tiled kernels, whose items are blocks."""
    kernel, extents = call.kernel, call.extents
    found = _tileable(kernel)
    if found is None:
        return None
    outer, inner, reading = found
    accesses = []
    for access, reads_anywhere in reading:
        pointer = kernel.words[access.pointer]
        strides = kernel.strides(access)
        offset = -1 if reads_anywhere else pointer.extra // access.dtype.itemsize  # -1 is in no tile
        accesses.append(_access(pointer.value, offset, tuple([strides[a] for a in outer]),
                                [(extents[a], strides[a]) for a in inner]))
    return AccessPattern(tuple([extents[a] for a in outer]), tuple(accesses))


@of_code
def _tileable(kernel: Kernel) -> tuple[Sequence[int], Sequence[int], Sequence[tuple[Access, bool]]] | None:
    """The axes of a kernel's items, the other axes, and the accesses to values, each with whether it may be anywhere; None if
    the kernel has no pattern."""
    outer = items_of(kernel)
    if kernel.has_totals or not outer or kernel.is_product or kernel.tiled is not None:
        return None
    touching = [i for i in kernel.instructions if i.access is not None and kernel.words[i.access.pointer].kind == "pointer"]
    if any(i.name in ("scatter", "scan") for i in touching):
        return None
    accesses = [(i.access, i.name == "load_at") for i in touching if i.access is not None]
    return outer, [a for a in range(len(kernel.axes)) if a not in outer], accesses


# ---- sequential tiles ----
def sequential_tile(
    calls: Sequence[KernelCall | Product], points: int, nbytes: int, limits: SequentialTiles
) -> tuple[int, int] | None:
    """The points of a tile and of a stretch, for calls with `nbytes` between them.

    A tile takes the target's bytes; more if its products would otherwise not fill the machine, or if the loop had too many
    calls. None if all points are one tile, or if a single one takes too much.
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
    # A tile is whole units, each of all axes inside some axis: so it is a box in every call's axes. The tiles of a stretch are
    # as even as units allow.
    unit = max(end for end in ends if end <= wanted)
    stretch = min(end for end in ends if end > unit)
    tiles = -(-stretch // (wanted // unit * unit))
    return -(-stretch // (unit * tiles)) * unit, stretch


def _ends(calls: Sequence[KernelCall | Product], points: int) -> list[int]:
    """The numbers of points that an axis of some call covers with all axes inside it, ascending from 1 to `points`."""
    found = {1}
    for call in calls:
        leads = [lead for lead, _ in point_axes(call, points)]
        found.update(itertools.accumulate(reversed(leads), int.__mul__))
    return sorted(found)
