"""Slabs: where calls touch values as they go through their items, and whether they may do so point by point.

Point e of E is where a call's leading axes (rows of a product, its batch, outer axes of a kernel) stand. A call may run on
some of the points alone if each of them takes the same number of its items, in order; and it may follow calls that have
written values if of each such value it touches at point e nothing but the e-th of E equal slabs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.axis_groups import digits_of
from genesis.lower.build import KernelCall
from genesis.lower.kernel import Kernel
from genesis.lower.stages import Product

__all__ = ["AccessPattern", "TileAccess", "access_pattern", "fits", "items_of", "point_axes", "product_pattern"]


class TileAccess(NamedTuple):
    """How a call walks through a value's elements: strides along its outer axes, then all others."""

    value: int
    offset: int
    outer: tuple[int, ...]
    inner: tuple[tuple[int, int], ...]  # (extent, stride)


class AccessPattern(NamedTuple):
    """A call by its outer axes, in the order in which items run through them, and its accesses."""

    extents: tuple[int, ...]
    accesses: tuple[TileAccess, ...]


def fits(nodes: Sequence[Node], pattern: AccessPattern, writes: Sequence[int], written: set[int], points: int) -> bool:
    items = numel(pattern.extents)
    parted = _split(pattern.extents, points) if points and items and not items % points else None
    return parted is not None and all([
        _within_slabs(nodes[access.value].numel, parted, access, points) for access in pattern.accesses
        if access.value in written or access.value in writes])


def _split(extents: Sequence[int], points: int) -> list[tuple[int, int]] | None:
    """Each outer axis as (extent that belongs to the points, extent within a point), if the axes can be parted so."""
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
    return result if points == 1 else None


def _within_slabs(size: int, parted: Sequence[tuple[int, int]], access: TileAccess, points: int) -> bool:
    """Whether at point e the access stays in the e-th of `points` equal slabs of the value, which has `size` elements."""
    if size % points:
        return False
    slab = step = size // points
    low = high = access.offset
    for (lead, rest), stride in zip(reversed(parted), reversed(access.outer), strict=True):
        if lead > 1 and stride * rest != step:
            return False
        step *= lead
        low, high = low + min(0, (rest - 1) * stride), high + max(0, (rest - 1) * stride)
    for extent, stride in access.inner:
        low, high = low + min(0, (extent - 1) * stride), high + max(0, (extent - 1) * stride)
    return low >= 0 and high < slab


def point_axes(call: KernelCall | Product, points: int) -> list[tuple[int, int]]:
    """The outer axes of a call that runs point by point, each as (extent that belongs to the points, extent within a point)."""
    pattern = access_pattern(call)
    parted = _split(pattern.extents, points) if pattern is not None else None
    assert parted is not None, "a call that runs point by point"
    return parted


def access_pattern(call: object) -> AccessPattern | None:
    if isinstance(call, Product):
        return product_pattern(call)
    return kernel_pattern(call) if isinstance(call, KernelCall) else None


def product_pattern(call: Product) -> AccessPattern:
    (rows, a_terms), (b_terms, columns) = map(digits_of, (call.a_layout, call.b_layout), call.axis_groups)
    a, b, c = call.strides
    if call.summed:
        return AccessPattern(call.batch, (
            TileAccess(call.a, call.a_layout.offset, a, (*rows, *a_terms)),
            TileAccess(call.b, call.b_layout.offset, b, (*b_terms, *columns)),
        ))
    heights, a_rows = zip(*rows, strict=True)
    c_rows = (call.ldc * step for step in contiguous_strides(heights))
    return AccessPattern((*call.batch, *heights), (
        TileAccess(call.a, call.a_layout.offset, (*a, *a_rows), a_terms),
        TileAccess(call.b, call.b_layout.offset, (*b, *(0 for _ in rows)), (*b_terms, *columns)),
        TileAccess(call.node, call.first, (*c, *c_rows), ((call.extents[1], 1),)),
    ))


def items_of(kernel: Kernel) -> list[int]:
    """The axes that a kernel's items run through."""
    return kernel.outer or ([kernel.lane] if kernel.lane is not None and not kernel.lane_is_reduced else [])


def kernel_pattern(call: KernelCall) -> AccessPattern | None:
    """None for a kernel whose workers' results are joined at its end, or that writes wherever an index says; and for a
    matrix product of its own, whose blocks are no rows of items.
    """
    kernel = call.kernel
    outer = items_of(kernel)
    if kernel.has_totals or not outer or kernel.is_product:
        return None
    accesses = []
    for i in kernel.instructions:
        if i.access is None or kernel.words[i.access.pointer].kind != "pointer":
            continue
        if i.name in ("scatter", "scan"):
            return None
        pointer = kernel.words[i.access.pointer]
        strides = kernel.strides(i.access)
        offset = -1 if i.name == "load_at" else pointer.extra // i.access.dtype.itemsize  # it may read anywhere
        inner = tuple((call.extents[a], strides[a]) for a in range(len(strides)) if a not in outer)
        accesses.append(TileAccess(pointer.value, offset, tuple(strides[a] for a in outer), inner))
    return AccessPattern(tuple(call.extents[a] for a in outer), tuple(accesses))
