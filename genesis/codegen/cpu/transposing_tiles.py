"""Transposing tiles: loads and stores that are contiguous along another axis than the lanes'.

A block of the tiled axis and of the lanes is transposed into a tile, from which lanes load contiguously; stores go to a tile,
which is transposed to memory. So both sides access whole cache lines, and the code between is the usual one. A tile stays in a
first-level cache, and the block's lines are on few pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.addressing import address
from genesis.codegen.cpu.nest import LINE, Nest
from genesis.codegen.cpu.registers import I64
from genesis.codegen.cpu.tiling import tile_pitch, tile_rows, tile_side
from genesis.codegen.cpu.transpose import FUNCTION
from genesis.lower.kernel import Instruction

_Matrix = tuple[ir.Value, ir.Value]  # an address, and a pitch in elements


def through_tiles(
    nest: Nest, first: ir.Value, last: ir.Value, accesses: Iterable[Instruction], body: Callable[[], None]
) -> None:
    """Run `body` at each index of the tiled axis in [first, last), at most a block, for the present lanes."""
    kernel, (start, end) = nest.kernel, nest.lane_range
    tiled, lane = kernel.tiled, kernel.lane
    assert tiled is not None and lane is not None
    transposed = [i for i in accesses if "tile" in dict(i.attrs)]
    nest.bind_here(tiled, first)
    if lane not in nest.bound:
        nest.bind_here(lane, start)
        nest.bound.discard(lane)
    nest.block_origin = first, start
    lanes, rows = end - start, last - first
    pitch = _pitch(nest)
    sides = {}
    for i in transposed:
        assert i.access is not None
        memory = address(nest, i.access), nest.named(i.access.strides[lane])
        outer, inner = sides[id(i)] = _upwards(nest, i, memory, (_base(nest, i), pitch), rows)
        if i.name == "load":
            _transpose(nest, i, outer, inner, (lanes, rows))
    with nest.loop(first, last) as position, nest.bind(tiled, position):
        body()
    for i in transposed:
        if i.name in ("store", "scan"):
            outer, inner = sides[id(i)]
            _transpose(nest, i, inner, outer, (rows, lanes))


def _upwards(nest: Nest, i: Instruction, memory: _Matrix, tile: _Matrix, rows: ir.Value) -> tuple[_Matrix, _Matrix]:
    """Memory and tile of an access, both from their last row on if the access goes backwards along the tiled axis."""
    assert i.access is not None and nest.kernel.tiled is not None
    stride, b = i.access.strides[nest.kernel.tiled], nest.builder
    if stride == 1:
        return memory, tile
    step = nest.named(stride)
    back = b.select(step < 0, rows - 1, I64(0))
    (start, distance), (base, pitch), name = memory, tile, i.dtype.name
    first = nest.lanes.element_pointer(start, 0 - back, name)
    return (first, distance), (nest.lanes.element_pointer(base, back * pitch, name), pitch * step)


def tile_address(nest: Nest, i: Instruction) -> ir.Value:
    """The address of the present lanes of load or store `i` in its tile."""
    tiled, lane = nest.kernel.tiled, nest.kernel.lane
    assert tiled is not None and lane is not None
    first, start = nest.block_origin
    base, pitch = _base(nest, i), _pitch(nest)

    def row() -> ir.Value:
        return nest.lanes.element_pointer(base, (nest.index[tiled] - first) * pitch, i.dtype.name)

    line = nest.once(nest.level[tiled], ("row of a tile", id(i)), row)
    return line if nest.index[lane] is start else nest.lanes.element_pointer(line, nest.index[lane] - start, i.dtype.name)


def prefetch_next_block(nest: Nest, i: Instruction, start: ir.Value) -> None:
    """If items are blocks: prefetch the lanes that the next item loads; `start` is the address of the current ones."""
    # A block's rows are short and far apart, which no hardware prefetcher predicts: a.t() + b of 2048 x 2048 1.39 to 0.88 ms.
    kernel, lanes = nest.kernel, nest.lanes
    if kernel.tiled not in kernel.outer or kernel.lane_is_reduced:
        return
    size = i.dtype.itemsize
    for element in range(0, lanes.width, max(1, LINE // size)):
        line = lanes.element_pointer(start, tile_side(kernel) + element, i.dtype.name)
        lanes.prefetch(line)


def _pitch(nest: Nest) -> ir.Value:
    """The elements from one row of a tile to the next."""
    kernel = nest.kernel
    assert kernel.lane is not None
    extent = nest.words[kernel.axes[kernel.lane][0]] if kernel.lane_is_reduced else I64(0)
    return nest.once(0, ("pitch",), lambda: extent + tile_pitch(kernel, nest.whole_width))


def _base(nest: Nest, i: Instruction) -> ir.Value:
    """This worker's tile of `i`."""
    pitch = _pitch(nest)

    def base() -> ir.Value:
        offset = nest.worker * (pitch * tile_rows(nest.kernel))
        return nest.lanes.element_pointer(nest.extra_words(i, "tile")[0], offset, i.dtype.name)

    return nest.once(0, ("tile", id(i)), base)


def _transpose(nest: Nest, i: Instruction, source: _Matrix, target: _Matrix, extents: tuple[ir.Value, ir.Value]) -> None:
    """Transpose `source` to `target`; `extents` are the source's."""
    assert i.access is not None
    streams = nest.streams.get(i.access.pointer, I64(0)) if i.name == "store" else I64(0)
    _, function = nest.extra_words(i, "tile")
    function.type = ir.FunctionPointer(FUNCTION)
    nest.builder.call(function, [*source, *target, *extents, streams])
