"""Footprints: which elements of which values a launch touches. For the verifier, derived from the code that runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from genesis.ir.graph import Node
from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.build import KernelCall
from genesis.lower.kernel import EFFECTS, REDUCTIONS, Instruction, Kernel
from genesis.lower.rewriting import base_of
from genesis.lower.stages import Call, HostCall, Matrix, Product
from genesis.ops.registry import PRIMITIVES

Axes = tuple[tuple[int, int], ...]  # (extent, stride)


class Footprint(NamedTuple):
    """The elements of a value that a call reads or writes: `outer` are the axes of its items, `inner` the others; `anywhere` if
    an index decides. For a kernel, `instruction` is the number of the access, and `source` the value that it stores.
    """

    value: int
    writes: bool
    offset: int
    outer: Axes
    inner: Axes
    anywhere: bool = False
    instruction: int = -1
    source: int = -1

    @property
    def axes(self) -> Axes:
        return self.outer + self.inner

    @property
    def range(self) -> tuple[int, int]:
        """The first element and the one after the last."""
        low, high = reach(self.axes)
        return (self.offset + low, self.offset + high + 1) if numel(extent for extent, _ in self.axes) else (0, 0)

    def of_items(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last element of each item, in order."""
        starts = _offsets(self.offset, self.outer)
        low, high = reach(self.inner)
        return starts + low, starts + high


def reach(axes: Axes) -> tuple[int, int]:
    """The distances of an access's first and last element from its offset."""
    steps = [(extent - 1) * stride for extent, stride in axes]
    return sum([min(step, 0) for step in steps]), sum([max(step, 0) for step in steps])


def footprints(nodes: Sequence[Node], call: Call) -> list[Footprint]:
    """The footprints of a call; loops, and products with epilogues, are handled part by part."""
    if isinstance(call, KernelCall):
        return [*_of_kernel(call)]
    if isinstance(call, HostCall):
        reads = [Footprint(value, False, at.offset, (), tuple(zip(at.shape, at.strides, strict=True)))
                 for value, at in call.operands]
        written = 0 if call.phase == "start" else nodes[call.node].numel  # the collective owns the memory from its start on
        return [*reads, Footprint(call.node, True, 0, (), ((written, 1),))]
    assert isinstance(call, Product)
    return [*_of_product(call)]


def _of_kernel(call: KernelCall) -> Iterator[Footprint]:
    kernel = call.kernel
    items = kernel.outer or ([kernel.lane] if kernel.lane is not None and not kernel.lane_is_reduced else [])
    for number, i in enumerate(kernel.instructions):
        if i.access is None or kernel.words[i.access.pointer].kind != "pointer":
            continue
        word, strides = kernel.words[i.access.pointer], kernel.strides(i.access)
        run = _axes_of(kernel, i)
        outer = tuple([(call.extents[a], strides[a]) for a in items])
        inner = tuple([(call.extents[a], strides[a]) for a in run if a not in items])
        offset, anywhere = word.extra // i.access.dtype.itemsize, i.name in ("load_at", "scatter")
        if i.name not in EFFECTS:
            yield Footprint(word.value, False, offset, outer, inner, anywhere, number)
        else:
            source = kernel.origins[i.args[-1]]
            yield Footprint(word.value, True, offset, outer if set(items) <= set(run) else (), inner, anywhere, number, source)


def _axes_of(kernel: Kernel, i: Instruction) -> list[int]:
    """The axes that an instruction iterates over."""
    if i.level in ("final",):
        return []
    return [a for a, (_, reduced) in enumerate(kernel.axes) if i.level == "full" or reduced == (i.level == "column")]


def _of_product(call: Product) -> Iterator[Footprint]:
    m, n, _ = call.extents
    (rows, a_inner), (b_rows, b_inner) = (_digits(x) for x in (call.a, call.b))
    c_rows, below = [], m
    for extent, _ in rows:
        below //= max(extent, 1)
        c_rows.append((extent, below * call.c.layout.strides[-2]))

    def outer(x: Matrix) -> Axes:
        return tuple(zip(call.batch, x.steps, strict=True))

    alike = tuple((extent, 0) for extent, _ in rows)
    if call.summed:  # items are matrices
        rows, a_inner, alike, c_inner = (), rows + a_inner, (), (*c_rows, (n, 1))
    else:
        c_inner = ((n, call.c.layout.strides[-1]),)
    yield Footprint(call.a.value, False, call.a.layout.offset, outer(call.a) + rows, a_inner)
    yield Footprint(call.b.value, False, call.b.layout.offset, outer(call.b) + alike, b_rows + b_inner)
    written = () if call.summed else tuple(c_rows)
    yield Footprint(call.c.value, True, call.c.layout.offset, outer(call.c) + written, c_inner)


def _digits(x: Matrix) -> tuple[Axes, Axes]:
    """(extent, stride) along the rows and the columns of a matrix."""
    digits = tuple(zip(x.layout.shape, x.layout.strides, strict=True))
    rows, columns = x.axis_groups
    return digits[len(digits) - rows - columns : len(digits) - columns], digits[len(digits) - columns :]


def each_once(writes: Sequence[Footprint], size: int) -> bool:
    """Whether the footprints touch each of `size` elements exactly once."""
    if sum([numel(extent for extent, _ in write.axes) for write in writes]) != size:
        return False
    if len(writes) == 1:  # as many points as elements: nested strides touch each once
        step = 1
        for stride, extent in sorted((abs(stride), extent) for extent, stride in writes[0].axes if extent > 1):
            if stride != step:
                break
            step *= extent
        else:
            return writes[0].range == (0, size)
    times = np.zeros(size, np.uint8)
    for write in writes:
        low, high = write.range
        if not 0 <= low <= high <= size:
            return False
        times[_offsets(write.offset, write.axes)] += 1
    return bool((times == 1).all())


def covers(writes: Sequence[Footprint], read: Footprint) -> bool:
    """Whether every element that is read has been written."""
    written = [_offsets(write.offset, write.axes) for write in writes]
    return bool(written) and bool(np.isin(_offsets(read.offset, read.axes), np.concatenate(written)).all())


def same_elements(write: Footprint, offset: int, axes: Axes) -> bool:
    """Whether a footprint touches exactly the elements at `offset` along `axes`."""
    if not numel(extent for extent, _ in write.axes):
        return not numel(extent for extent, _ in axes)
    if _merged(write.offset, write.axes) == _merged(offset, axes):
        return True
    one, other = (_distinct(_offsets(*there)) for there in ((write.offset, write.axes), (offset, axes)))
    return np.array_equal(one, other)  # some strides merge in several ways


def _merged(offset: int, axes: Axes) -> tuple[int, Axes]:
    """The first element, and (extent, stride) of merged axes, the shortest stride first."""
    low, _ = reach(axes)
    found: list[tuple[int, int]] = []
    for stride, extent in sorted([(abs(stride), extent) for extent, stride in axes if extent != 1 and stride]):
        if found and found[-1][0] * found[-1][1] == stride:
            extent, stride = extent * found[-1][0], found.pop()[1]
        found.append((extent, stride))
    return offset + low, tuple(found)


def _offsets(offset: int, axes: Axes) -> np.ndarray:
    offsets = np.full((1,), offset, np.int64)
    for extent, stride in axes:
        offsets = (offsets[:, None] + np.arange(extent, dtype=np.int64) * stride).reshape(-1)
    return offsets


def _distinct(offsets: np.ndarray) -> np.ndarray:
    """The offsets sorted and unique. `numpy.unique` hashes them, which takes twenty times as long."""
    ordered = np.sort(offsets)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def writes_parts(nodes: Sequence[Node], value: int, writes: Sequence[Footprint]) -> bool:
    """Whether a copy of the base, and the writes into it, are those of the chain of `put`s that ends in `value`.

    For a `scatter`, which is one copy and one launch, whether it goes through all of its source.
    """
    whole, *into = writes
    at = value
    for write in reversed(into):
        node = nodes[at]
        if node.op == "put":
            there = tuple(zip(node.attrs["shape"], node.attrs["strides"], strict=True))
            same = same_elements(write, node.attrs["offset"], there) and write.source == base_of(nodes, node.inputs[1])
        else:
            shape = nodes[node.inputs[1]].shape
            axes = [*zip(shape, contiguous_strides(node.shape), strict=True)]
            axes[node.attrs["dim"]] = shape[node.attrs["dim"]], 0
            same = numel(extent for extent, _ in write.axes) == numel(shape) and same_elements(write, 0, tuple(axes))
        if not same or PRIMITIVES[node.op].kind not in ("put", "scatter"):
            return False
        at = node.inputs[0]
    return at != value and whole.source == base_of(nodes, at) and each_once([whole], nodes[value].numel)


def writes_each_part(nodes: Sequence[Node], value: int, writes: Sequence[Footprint]) -> bool:
    """Whether the writes are those of a chain of disjoint `put`s that ends in `value`, in any order.

    Elements that none of them writes are never read.
    """
    parts: list[tuple[int, Axes]] = []
    while "rest" in nodes[value].attrs:
        attrs = nodes[value].attrs
        parts.append((attrs["offset"], tuple(zip(attrs["shape"], attrs["strides"], strict=True))))
        value = nodes[value].inputs[0]
    offsets = [_offsets(*part) for part in parts]
    if len(_distinct(np.concatenate(offsets))) != sum(map(len, offsets)):
        return False
    wanted = {_distinct(part).tobytes() for part in offsets}
    return len(parts) == len(writes) and wanted == {_distinct(_offsets(write.offset, write.axes)).tobytes() for write in writes}


def has_all_terms(nodes: Sequence[Node], call: Call) -> bool:
    """Whether reductions cover all elements of their inputs, and products all terms."""
    if isinstance(call, Product) and nodes[call.node].op == "matmul":
        return numel((*call.batch, *call.extents)) == numel(nodes[nodes[call.node].inputs[0]].shape) * call.extents[1]
    if not isinstance(call, KernelCall):
        return True
    kernel = call.kernel
    rows = numel(extent for extent, (_, reduced) in zip(call.extents, kernel.axes, strict=True) if not reduced)
    points = {"full": numel(call.extents), "row": rows}
    return all(points[i.attr("over")] == nodes[nodes[origin].inputs[0]].numel
               for i, origin in zip(kernel.instructions, kernel.origins, strict=True) if i.name in REDUCTIONS)


class Tiles(NamedTuple):
    """The tiles of a loop: its number of points, the tile of each point, and the first point of each tile, then the end."""

    points: int
    tile_of: np.ndarray
    first: np.ndarray

    def of_items(self, items: int) -> np.ndarray | None:
        """The tile of each item of a footprint; None if items belong to no tile.

        An item belongs to a point or, if it sums all terms of a tile at once, to a tile.
        """
        if items % self.points == 0:
            return self.tile_of[np.arange(items) // (items // self.points)]
        return np.arange(items) if items == len(self.first) - 1 else None


def stays_in_tiles(touched: Footprint, size: int, tiles: Tiles) -> bool:
    """Whether each item touches only its own tile's elements of a value of `size` elements."""
    if touched.anywhere or size % tiles.points or not numel(extent for extent, _ in touched.outer):
        return not size
    while touched.outer and numel(extent for extent, _ in touched.outer[:-1]) % tiles.points == 0:
        # Items of one point are of one tile: together they touch a stretch, and need not be looked at one by one.
        touched = touched._replace(outer=touched.outer[:-1], inner=touched.outer[-1:] + touched.inner)
    low, high = touched.of_items()
    tile = tiles.of_items(len(low))
    each = size // tiles.points
    return tile is not None and bool((low >= tiles.first[tile] * each).all() and (high < tiles.first[tile + 1] * each).all())


def keeps_to_tiles(writes: Sequence[Footprint], touched: Sequence[Footprint], size: int, tiles: Tiles) -> bool:
    """Whether no tile touches an element, of a value of `size`, that another tile writes. Checks each element, for tiles that
    interleave as attention's heads do in a row.
    """
    owner = np.full(size, -1)
    for number, each in enumerate([*writes, *writes, *touched]):  # once to own, once to find double writes
        items = numel(extent for extent, _ in each.outer)
        tile = tiles.of_items(items) if items and not each.anywhere else None
        low, high = each.range
        if tile is None or not 0 <= low <= high <= size:
            return False
        offsets = _offsets(each.offset, each.axes).reshape(items, -1)
        if number < len(writes):
            owner[offsets] = tile[:, None]
        elif not ((owner[offsets] == tile[:, None]) | (owner[offsets] < 0)).all():
            return False
    return True


def goes_in_step(kernel: Kernel, read: Footprint, write: Footprint) -> bool:
    """Whether a kernel that overwrites what it reads, with equal strides, has read each element before it writes it.

    A target is a store or a reduction. Targets are computed at each point of their level: pass by pass, then those of rows,
    then those of the whole. A pass loads a value once a point; the next pass loads it again, as any target does a row's value.
    """
    if kernel.factors is not None:  # some points may be computed twice
        return False
    load, store = kernel.instructions[read.instruction], kernel.instructions[write.instruction]
    if load.name != "load" or store.name != "store":
        return False
    order = _targets(kernel)
    (phase,) = [phase for phase, n in order if n == write.instruction]
    index = order.index((phase, write.instruction))
    before = [p for p, n in order[: index + 1] if read.instruction in kernel.needed([n])]
    after = [p for p, n in order[index + 1 :] if read.instruction in kernel.needed([n])]
    if phase == _AT_THE_END:  # after all reads
        return True
    return not after or (load.level == "full" and {*after} == {phase} and phase in before)


_ROWS, _AT_THE_END = 1 << 20, 1 << 21


def _targets(kernel: Kernel) -> list[tuple[int, int]]:
    """(phase, number) of a kernel's stores and reductions, in order."""
    found = [(step, n) for step in kernel.steps for n in kernel.targets(step)]
    there = {n for _, n in found}
    for n, i in enumerate(kernel.instructions):
        if n not in there and (i.name in EFFECTS or i.name in REDUCTIONS):
            found.append((_AT_THE_END if i.level in ("final", "column") and i.name in EFFECTS else _ROWS, n))
    return sorted(found)
