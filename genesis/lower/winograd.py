"""Convolutions with kernels of 3 x 3 in a third of the multiplications (Winograd's minimal filtering; Lavin & Gray, 2015).

Before: a simplified graph. After: products with windows of 3 x 3, each a step from the next, are products of transformed tiles:
16 for two by two results, which take 36 multiplications otherwise, or 46 for four by four, which take 144, by points among the
complex numbers (Meng & Brothers, 2019). So are the sums of a weight gradient. All factors of the transforms are powers of two,
so that sums of small integers stay exact, and rounding errors are those of sums: four by four results of 36 real products would
have ten times as large ones. Numbers of 16 bits are transformed and multiplied as float32; bfloat16 ones are not where products
of pairs are as fast.

Of volumes, planes are transformed each on its own, and the products sum over the taps along the first axis, too.

Tiles come in groups, of several images or of some rows of one: transforms and products of a group are a point of a loop
(see `fuse_tiles.py`), so that transformed tiles, three or four times as many numbers as an image has, stay in cache.

    result = A' [(G w G') * (B' x B)] A          for each tile x, two wider than its results, which are next to one another's
    gradient by w = G' [sum (A dy A') * (B' x B)] G
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import NamedTuple

from genesis.ir.dtypes import float32
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.lower.fuse_tiles import CACHE
from genesis.lower.rewriting import Rewriting, Simplified, with_replaced, without_dead
from genesis.lower.winograd_transforms import (
    Row, both, factors, factors_of_gradient, interleaved, part, products_of, results_of, stacked, sums_of_products,
    transform_gradient, transform_kernel, transform_tile, unstacked, weights_of,
)
from genesis.lower.winograd_windows import LANES, Form, Windows, fills_vectors, form_of, total_of
from genesis.ops.layout import Layout
from genesis.ops.registry import cast
from genesis.ops.views import assembled, put_value, reshape_value

# The least tiles of a group, for products and for sums over tiles, which add to a result each time: so fewer only where those
# of both sides stay in a second-level cache. Of 32 and 64 channels of 16 x 16, sums take 5.3 to 6.3 ms so, and 7.7 to 8.7.
GROUP, FEW_TERMS, TERMS = 96, 128, 256
# Of four by four results, where rows fill vectors or few tiles read the kernels of all channels from such a cache, or rows of
# four from the next one. Zen 4, 64 channels, sums: of 16 images of 32 x 32, 32 tiles 7.1 ms, 64 8.8; of 8 of 56 x 56, 28 tiles
# 8.9, 98 15.1; of 32 of 8 x 8 with both gradients, 32 tiles 2.6 ms, 128 3.5; 256 channels of these, 128 tiles 36 ms, 32 41. Of
# 32 of 16 x 16, forward, 128 channels 32 tiles 9.8, 128 11.9, 256 channels 44.1 and 41.4.
GROUP_OF_FOUR = 24


def winograd(graph: Simplified, pairs: bool = False) -> Simplified:
    """The graph with products of windows of 3 x 3 of many channels as products of transformed tiles; of bfloat16 only if the
    target does not multiply `pairs`."""
    nodes = graph.nodes
    products = {index: found for index, node in enumerate(nodes) if (found := form_of(nodes, index, pairs)) is not None}
    if not products:
        return graph
    readers = graph.readers
    forms: dict[int, Form] = {}
    for index, form in products.items():
        if not form.summed:
            forms[index] = form
        elif index not in graph.outputs and (total := total_of(nodes, readers[index])) is not None:
            forms[total] = form
    if not forms:
        return graph

    def transformed(form: Form, result: Rewriting, node: Node) -> Value:
        left, source = (cast(result.value(result.new_index[i]), float32)
                        for i in (nodes[form.product].inputs[0], form.windows.source))
        replace = _weights if form.summed else _convolved if form.windows.depth == 1 else _convolved_volumes
        return cast(replace(left, source, form.windows, node.shape), node.dtype)

    return without_dead(with_replaced(graph, {index: partial(transformed, form) for index, form in forms.items()}))


# ---- replacement ----
class _Groups(NamedTuple):
    """Tiles of `side` by `side` results in groups: `images` images, and `rows` rows of tiles of each."""

    windows: Windows
    side: int
    images: int
    rows: int

    @property
    def number(self) -> int:
        return numel(self.outer)

    @property
    def outer(self) -> Shape:
        """The groups: of images, and of rows."""
        return self.windows.images // self.images, self.windows.height // self.side // self.rows

    @property
    def columns(self) -> int:
        return self.windows.width // self.side

    @property
    def is_wide(self) -> bool:
        """Whether tiles of rows fill vectors."""
        return fills_vectors(self.side, self.columns)

    @property
    def inner(self) -> Shape:
        """The extents of a group, in memory order."""
        return self._ordered((self.images, self.rows, self.columns))

    @property
    def tiles(self) -> int:
        return numel(self.inner)

    def strides(self, image: int, row: int, column: int) -> tuple[Shape, Shape]:
        """The strides between groups and within a group, from those of images, rows and columns."""
        row, column = self.side * row, self.side * column
        return (self.images * image, self.rows * row), self._ordered((image, row, column))

    def _ordered(self, axes: tuple[int, int, int]) -> Shape:
        """Images, rows and columns in the order that fills vectors."""
        image, row, column = axes
        return (image, row, column) if self.is_wide else (row, column, image)


def _groups(windows: Windows, out: int, least: int) -> _Groups:
    """Groups of `least` tiles or slightly more, with full vectors; a single group if images do not divide into such."""
    side = windows.side
    rows, columns = windows.height // side, windows.width // side
    room = inf if columns >= LANES else 8 * CACHE if fills_vectors(side, columns) else 2 * CACHE
    if side == 4 and 4 * 46 * out * windows.channels <= room:
        least = GROUP_OF_FOUR
    if rows * columns >= least:
        return _Groups(windows, side, 1, next(r for r in range(1, rows + 1) if rows % r == 0 and r * columns >= least))
    least_images = max(-(-least // (rows * columns)), 1 if fills_vectors(side, columns) else LANES)
    wanted = range(min(least_images, windows.images), windows.images + 1)
    return _Groups(windows, side, next(n for n in wanted if windows.images % n == 0), rows)


def _convolved(weights: Value, source: Value, windows: Windows, shape: Shape) -> Value:
    """The product of weights (.., out, channels * 9) with windows, of `shape`."""
    if windows.rounded(windows.side) != (windows.height, windows.width):
        whole, around = _rounded(source, windows)
        y = _convolved(weights, around, whole, (*shape[:-1], whole.positions))
        rows = contiguous_strides((*shape[:-1], whole.height, whole.width))
        inside = part(y, (*shape[:-1], windows.height, windows.width), rows, 0)
        return assembled([(inside, Layout(inside.shape, contiguous_strides(inside.shape), 0))], shape)
    out, channels, positions = shape[-2], windows.channels, windows.positions
    groups = _groups(windows, out, GROUP)
    kernel = [[part(weights, (out, channels), (9 * channels, 9), 3 * i + j) for j in range(3)] for i in range(3)]
    left = stacked(factors(both(kernel, transform_kernel(groups.side))), 0, times=groups.number)
    y = _product(left, _tiles(source, groups, "result"))
    outer, inner = groups.strides(positions * out, windows.width, 1)
    products = products_of(unstacked(y, (*groups.outer, out, *groups.inner)))
    return interleaved(both(products, results_of), (*outer, positions, *inner), windows.width, shape)


def _rounded(source: Value, windows: Windows) -> tuple[Windows, Value]:
    """Windows in whole tiles, and their source: the images of `windows`, with zeros below and to the right."""
    height, width = windows.rounded(windows.side)
    shape = (windows.images, windows.channels, height + 2, width + 2)
    image, channel, row, column = contiguous_strides(shape)
    seen = part(source, (*shape[:2], windows.height + 2, windows.width + 2), windows.strides, windows.offset)
    around = put_value(None, seen, Layout(seen.shape, (image, channel, row, column), 0), shape)
    return windows._replace(offset=0, strides=(image, channel, row, column), height=height, width=width), around


def _convolved_volumes(weights: Value, source: Value, windows: Windows, shape: Shape) -> Value:
    """The product of weights (.., out, channels * taps * 9) with windows of volumes, of `shape`.

    Each plane is transformed once. The products read planes as windows: terms go through taps and channels.
    """
    out, channels, taps, depth = shape[-2], windows.channels, windows.taps, windows.depth
    images, rows, columns = windows.images, windows.height // 2, windows.width // 2
    strides: Shape = (windows.terms, 9, 9 * taps)
    kernel = [[part(weights, (out, taps, channels), strides, 3 * i + j) for j in range(3)] for i in range(3)]
    left = stacked(factors(both(kernel, transform_kernel(2))), 0, times=images)
    image, channel, row, column = windows.strides
    tiles = (images, depth + taps - 1, channels, rows, columns)
    strides = image, windows.plane, channel, 2 * row, 2 * column
    here = _TileOrigins(_in_memory(source, "result"), windows.offset, strides, row, column)
    planes = stacked(factors(both(here.parts(tiles, 4), transform_tile)), 2)
    image, plane, matrix, channel, tile = contiguous_strides((*tiles[:2], 16, channels, rows * columns))
    right = part(planes, (images, 16, taps, channels, depth, rows * columns), (image, matrix, plane, channel, plane, tile), 0)
    y = _product(left, reshape_value(right, (images, 16, taps * channels, depth * rows * columns)))
    positions = windows.positions
    strides = positions * out, 0, positions, positions // depth, 2 * windows.width, 2
    products = products_of(unstacked(y, (images, 1, out, depth, rows, columns)))
    return interleaved(both(products, results_of), strides, windows.width, shape)


def _weights(gradient: Value, source: Value, windows: Windows, shape: Shape) -> Value:
    """Of `shape`, the sum over images of gradient (images, 1, out, positions) @ windows (images, 1, positions, terms)."""
    if windows.rounded(windows.side) != (windows.height, windows.width):
        lead = gradient.shape[:-1]
        windows, source, inside = *_rounded(source, windows), reshape_value(gradient, (*lead, windows.height, windows.width))
        rows = contiguous_strides((*lead, windows.height, windows.width))
        gradient = put_value(None, inside, Layout(inside.shape, rows, 0), (*lead, windows.positions))
    out, channels, positions = shape[-2], windows.channels, windows.positions
    groups = _groups(windows, out, FEW_TERMS if 16 * 4 * (out + channels) * FEW_TERMS <= 2 * CACHE else TERMS)
    here = _tile_origins(gradient, groups, out, (positions * out, positions, windows.width, 1), 0, "gradient", 0)
    given = here.parts((*groups.outer, out, *groups.inner), groups.side)
    left = stacked(factors_of_gradient(both(given, transform_gradient)), 2)
    right = _tiles(source, groups, "gradient", transposed=True)
    y = _product(left, right)
    y = y.graph.add("sum", (y,), (1, *y.shape[1:]), y.dtype, {"axes": (0,)}) if groups.number > 1 else y
    sums = sums_of_products(unstacked(y, (out, channels)))
    return interleaved(both(sums, weights_of), (9 * channels, 9), 3, shape)


def _product(left: Value, right: Value) -> Value:
    """The products of each group, kept in separate matrices."""
    shape = (*left.shape[:-1], right.shape[-1])
    return left.graph.add("matmul", (left, right), shape, left.dtype, {"keeps_batch": True})


def _tiles(source: Value, groups: _Groups, reader: str, *, transposed: bool = False) -> Value:
    """B' x B of all tiles: (groups, matrices, channels, tiles), or the last two axes swapped if `transposed`."""
    windows = groups.windows
    here = _tile_origins(source, groups, windows.channels, windows.strides, windows.offset, reader, 2)
    tiles = here.parts((*groups.outer, windows.channels, *groups.inner), groups.side + 2)
    return stacked(factors(both(tiles, transform_tile)), 2, transposed=transposed)


class _TileOrigins(NamedTuple):
    """The offsets at which tiles begin in a value, by `offset` and `strides`; `row` and `column` are a tile's strides."""

    value: Value
    offset: int
    strides: Shape
    row: int
    column: int

    def parts(self, shape: Shape, side: int) -> list[Row]:
        """[i][j]: element (i, j) of all tiles, as a view of `shape`, for `side` rows and columns."""
        return [[part(self.value, shape, self.strides, self.offset + i * self.row + j * self.column) for j in range(side)]
                for i in range(side)]


def _tile_origins(
    x: Value, groups: _Groups, channels: int, strides: Shape, offset: int, reader: str, beyond: int
) -> _TileOrigins:
    """The origins of the tiles of `x`, given the strides of images, channels, rows and columns; the last tiles reach `beyond`
    more rows and columns. Narrow images, across which vectors go, are copied first."""
    image, channel, row, column = strides
    outer, inner = groups.strides(image, row, column)
    if groups.is_wide:
        return _TileOrigins(_in_memory(x, reader), offset, (*outer, channel, *inner), row, column)
    rows, columns, images = groups.inner
    shape = (*groups.outer, channels, groups.side * rows + beyond, groups.side * columns + beyond, images)
    apart = part(x, shape, (*outer, channel, row, column, image), offset)
    apart = x.graph.add("clone", (apart,), shape, x.dtype, {"materialize": True, "reader": reader})
    *lie, row, column, image = contiguous_strides(shape)
    return _TileOrigins(apart, 0, (*lie, groups.side * row, groups.side * column, image), row, column)


def _in_memory(x: Value, reader: str) -> Value:
    """`x` in memory, so that readers do not recompute it.

    Each `reader` transforms its own tiles: kept for backward, they are four times as many numbers as the image.
    """
    return x.graph.add("clone", (x,), x.shape, x.dtype, {"operands": "materialize", "reader": reader})
