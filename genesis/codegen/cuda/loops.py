"""A loop's calls on one tile: the same code on shorter axes, at an offset in memory.

Values private to the loop have memory for one tile, which all tiles share: the address is moved back by the tile's distance
from the first. Tiles run in order, so sums accumulate in place: the first tile writes, the others add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.build import KernelCall
from genesis.lower.index_map import digits_of
from genesis.lower.stages import Loop, Matrix, Product
from genesis.lower.tile_access import items_of, point_axes
from genesis.ops.layout import Layout

Box = Sequence[tuple[int, int]]  # for each axis its first index and the count


def tile_calls(nodes: Sequence[Node], loop: Loop) -> Iterator[tuple[KernelCall | Product, bool]]:
    """The calls of each tile in order, and whether they add to the sums of earlier tiles."""
    parted = [point_axes(call, loop.points) for call in loop.calls]
    for first, end in loop.spans():
        behind = {value: first * (nodes[value].numel // loop.points) for value in loop.private}
        for call, axes in zip(loop.calls, parted, strict=True):
            box = _box(axes, first, end - first)
            if isinstance(call, KernelCall):
                yield _kernel(call, box, behind), False
            else:
                adds = any(start for (start, _), step in zip(box, call.c.steps, strict=False) if not step)
                yield _promised(call, _product(call, box, behind), box, adds), adds


def _box(axes: Sequence[tuple[int, int]], first: int, points: int) -> Box:
    """The box of `points` points along axes, each given as (extent over the points, extent within a point)."""
    box, inside = [], 1
    for lead, rest in reversed(axes):
        box.append((first // inside % lead * rest, max(1, min(lead, points // inside)) * rest))
        inside *= lead
    assert numel(count for _, count in box) == points * numel(rest for _, rest in axes), "a tile is a box of every call's axes"
    return box[::-1]


def _kernel(call: KernelCall, box: Box, behind: Mapping[int, int]) -> KernelCall:
    kernel, axes = call.kernel, items_of(call.kernel)
    words, extents = list(kernel.words), list(call.extents)
    for axis, (_, extent) in zip(axes, box, strict=True):
        extents[axis] = extent
        words[kernel.axes[axis][0]] = words[kernel.axes[axis][0]]._replace(value=extent)
    for access in (i.access for i in kernel.instructions if i.access is not None):
        word, strides = words[access.pointer], kernel.strides(access)
        step = sum(start * strides[axis] for axis, (start, _) in zip(axes, box, strict=True))
        if word.kind == "pointer":
            word = word._replace(extra=word.extra + (step - behind.get(word.value, 0)) * access.dtype.itemsize)
        else:  # the number of the first element of a value that is not in memory
            word = word._replace(value=word.value + step)
        words[access.pointer] = word
    return call._replace(kernel=kernel.filled(words), extents=tuple(extents))


def _product(call: Product, box: Box, behind: Mapping[int, int]) -> Product:
    outer, rows = box[: len(call.batch)], box[len(call.batch) :]
    # Batch axes of which the tile has a single index vanish.
    longer = [axis for axis, (_, extent) in enumerate(outer) if extent > 1]
    a, c, (m, n, k) = call.a.layout, call.c.layout, call.extents
    a_at = c_at = 0
    if rows:
        digits, terms = digits_of(a, call.a.axis_groups)
        counts = contiguous_strides(tuple(extent for extent, _ in digits))
        for (start, _), (_, stride), count in zip(rows, digits, counts, strict=True):
            a_at, c_at = a_at + start * stride, c_at + start * count * c.strides[-2]
        m = numel(extent for _, extent in rows)
        a = a._replace(shape=(*a.shape[: -sum(call.a.axis_groups)], *(extent for _, extent in rows), *(e for e, _ in terms)))
        c = c._replace(shape=(*c.shape[:-2], m, n))

    def part(of: Matrix, layout: Layout, at: int) -> Matrix:
        at += sum(start * step for (start, _), step in zip(outer, of.steps, strict=True)) - behind.get(of.value, 0)
        return of._replace(layout=layout._replace(offset=layout.offset + at), steps=tuple(of.steps[axis] for axis in longer))

    return call._replace(
        a=part(call.a, a, a_at), b=part(call.b, call.b.layout, 0), c=part(call.c, c, c_at), extents=(m, n, k),
        batch=tuple(outer[axis][1] for axis in longer),
    )


def _promised(call: Product, part: Product, box: Box, adds: bool) -> Product:
    """`part` of a product without the terms that are promised to be zero, or without such results if these are added."""
    x = "k" if call.summed else "m"
    y = call.only.removesuffix("<=" + x)
    if y == call.only or not call.is_plain or not (adds or y == "k"):
        return part
    start, count = box[-1]
    end = (start + count) * (call.extents[2] if call.summed else 1)
    return part.resized(y, min(end, part.extents["mnk".index(y)]))
