"""Convolutions with kernels of 3 x 3 in four ninths of the multiplications (Winograd's minimal filtering; Lavin & Gray, 2015).

Before: a simplified graph. After: products with windows of 3 x 3, each a step from the next, are sixteen products of as many
transformed tiles. Two by two results take 16 multiplications in place of 36, and so do the sums of a weight gradient. All
factors of the transforms are 1, -1, 1/2 and 1/4, so that sums of small integers stay exact.

Of volumes, planes are transformed each on its own, and the products sum over the taps along the first axis, too.

Tiles come in groups, of several images or of some rows of one: transforms and products of a group are a point of a loop
(see `fuse_tiles.py`), so that transformed tiles, four times as many numbers as an image has, stay in cache.

    result = A' [(G w G') * (B' x B)] A          for each tile x of 4 x 4, the next of which begins 2 further on
    gradient by w = G' [sum (A dy A') * (B' x B)] G
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from genesis.ir.dtypes import float32
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.lower.fuse_tiles import CACHE
from genesis.lower.index_map import grouped_layout
from genesis.lower.rewriting import Rewriting, Simplified, readers_of
from genesis.ops.layout import Layout
from genesis.ops.registry import expand
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, view_value

# Channels on both sides from which the multiplications that are saved outweigh transforms, and tiles from which they outweigh
# transforming the weights.
LEAST_CHANNELS, LEAST_TILES = 32, 64
MOST_PLANES = 1 << 24  # numbers of transformed planes, which lie in memory as a whole: 64 MB, and as many of their products
# Elements between the sixteen matrices, five cache lines: a power of two apart, their lines would meet in one set of a cache.
GAP = 80
LANES = 6  # a row of fewer tiles does not fill vectors: then neighbours are the same tile of the next image
# The least tiles of a group, for products and for sums over tiles, which add to a result each time: so fewer only where those
# of both sides stay in a second-level cache. Of 32 and 64 channels of 16 x 16, sums take 5.3 to 6.3 ms so, and 7.7 to 8.7.
GROUP, FEW_TERMS, TERMS = 96, 128, 256

Row = Sequence[Value]


class _Windows(NamedTuple):
    """All windows of 3 x 3 of images: how far images, channels, rows and columns are apart in the value `source`.

    Of volumes, windows have so many `taps` along a first axis, whose planes are `plane` apart, and are at `depth` places there.
    """

    source: int
    offset: int
    strides: Shape
    images: int
    channels: int
    height: int
    width: int
    taps: int = 1
    depth: int = 1
    plane: int = 0

    @property
    def terms(self) -> int:
        return 9 * self.channels * self.taps

    @property
    def places(self) -> int:
        return self.depth * self.height * self.width


class _Form(NamedTuple):
    """A product with windows: its node, and whether windows are summed over, as the gradient by weights does."""

    product: int
    windows: _Windows
    summed: bool


def winograd(graph: Simplified) -> Simplified:
    """The graph with products of windows of 3 x 3 of many channels as products of transformed tiles."""
    nodes = graph.nodes
    products = {index: found for index, node in enumerate(nodes) if (found := _form(nodes, index)) is not None}
    if not products:
        return graph
    readers = readers_of(enumerate(nodes))
    forms: dict[int, _Form] = {}
    for index, form in products.items():
        if not form.summed:
            forms[index] = form
        elif index not in graph.outputs and (total := _total(nodes, readers[index])) is not None:
            forms[total] = form
    if not forms:
        return graph
    replaced = {form.product for form in forms.values() if form.summed}
    result = Rewriting(graph)
    for index, node in enumerate(nodes):
        if index in forms:
            form = forms[index]
            moved = result.moved(nodes[form.product])
            source = result.value(result.place[form.windows.source])
            left = result.value(moved.inputs[0])
            replace = _weights if form.summed else _convolved if form.windows.depth == 1 else _convolved_volumes
            y = replace(left, source, form.windows, node)
            result.put(y.index)
        elif index in replaced:
            result.put(-1)  # its sum alone is read
        else:
            result.copy(node)
    return result.finished()


# ---- what is found ----


def _form(nodes: Sequence[Node], index: int) -> _Form | None:
    node = nodes[index]
    if node.op != "matmul" or node.dtype is not float32 or len(node.shape) != 4 or node.shape[1] != 1 or "only" in node.attrs:
        return None
    left, right = (nodes[i] for i in node.inputs)
    if left.dtype is not node.dtype or right.op != "view":
        return None
    windows = _windows(nodes, right.inputs[0])
    if windows is None or min(windows.channels, node.shape[-2]) < LEAST_CHANNELS:
        return None
    images, terms, places = windows.images, windows.terms, windows.places
    if right.attrs["offset"] or right.shape[0] != images or images * places < 4 * LEAST_TILES:
        return None
    if windows.depth > 1 and 4 * places * images * max(windows.channels, node.shape[-2]) > MOST_PLANES:
        return None
    if (*right.shape[2:], *right.attrs["strides"][2:]) == (terms, places, places, 1):
        weights = grouped_layout(nodes, node.inputs[0])
        same = images == 1 or (weights is not None and not weights[0].strides[0])
        return _Form(index, windows, False) if same else None
    if (*right.shape[2:], *right.attrs["strides"][2:]) == (places, terms, 1, places) and windows.depth == 1:
        return _Form(index, windows, True)
    return None


def _windows(nodes: Sequence[Node], index: int) -> _Windows | None:
    """The windows that a value is, if it is (images, channels, 3, 3, height, width) of them, of even height and width; or with
    axes for the taps and the places along a first axis of volumes."""
    node = nodes[index]
    axes = 3 if len(node.shape) > 7 else 2
    if node.op != "view" or len(node.shape) - 2 * axes not in (2, 3) or (len(node.shape) % 2 and node.shape[1] != 1):
        return None
    images, channels = node.shape[0], node.shape[-2 * axes - 1]
    sizes, (*depth, height, width) = node.shape[-2 * axes : -axes], node.shape[-axes:]
    strides = node.attrs["strides"]
    *plane, row, column = strides[-axes:]
    if sizes[-2:] != (3, 3) or strides[-2 * axes : -axes] != strides[-axes:] or height % 2 or width % 2:
        return None
    if min(strides[-axes:]) <= 0:
        return None
    apart = strides[0], strides[-2 * axes - 1], row, column
    found = _Windows(node.inputs[0], node.attrs["offset"], apart, images, channels, height, width)
    return found._replace(taps=sizes[0], depth=depth[0], plane=plane[0]) if depth else found


def _total(nodes: Sequence[Node], readers: Sequence[int]) -> int | None:
    """The sum over images that alone reads a product."""
    [first, *others] = readers
    node = nodes[first]
    return first if not others and node.op == "sum" and node.attrs["axes"] == (0,) and len(node.shape) == 3 else None


# ---- what takes its place ----


class _Groups(NamedTuple):
    """Tiles in groups of so many images, and so many rows of tiles of each."""

    windows: _Windows
    images: int
    rows: int

    @property
    def number(self) -> int:
        return numel(self.outer)

    @property
    def outer(self) -> Shape:
        """The groups: of images, and of rows."""
        return self.windows.images // self.images, self.windows.height // 2 // self.rows

    @property
    def is_wide(self) -> bool:
        """Whether a row's tiles fill vectors."""
        return self.windows.width // 2 >= LANES

    def inner(self, more: int = 0) -> Shape:
        """The extents of a group in its order, with so many rows and columns more."""
        return self._ordered((self.images, self.rows + more, self.windows.width // 2 + more))

    @property
    def tiles(self) -> int:
        return numel(self.inner())

    def strides(self, image: int, row: int, column: int) -> tuple[Shape, Shape]:
        """The strides between groups and within one, of what has images, rows and columns of tiles so far apart."""
        return (self.images * image, self.rows * row), self._ordered((image, row, column))

    def _ordered(self, axes: tuple[int, int, int]) -> Shape:
        """Images, rows and columns such that vectors are full."""
        image, row, column = axes
        return (image, row, column) if self.is_wide else (row, column, image)


def _groups(windows: _Windows, least: int) -> _Groups:
    """The groups of `least` tiles or a few more, of which vectors are full; one where images do not divide into such."""
    rows, columns = windows.height // 2, windows.width // 2
    if rows * columns >= least:
        return _Groups(windows, 1, next(r for r in range(1, rows + 1) if rows % r == 0 and r * columns >= least))
    least_images = max(-(-least // (rows * columns)), 1 if columns >= LANES else LANES)
    wanted = range(min(least_images, windows.images), windows.images + 1)
    return _Groups(windows, next(n for n in wanted if windows.images % n == 0), rows)


def _convolved(weights: Value, source: Value, windows: _Windows, node: Node) -> Value:
    """The product of weights (.., out, channels * 9) with windows, as `node` is."""
    out, channels, places = node.shape[-2], windows.channels, windows.height * windows.width
    groups = _groups(windows, GROUP)
    kernel = [[_part(weights, (out, channels), (9 * channels, 9), 3 * i + j) for j in range(3)] for i in range(3)]
    left, right = _stacked(_both(kernel, _of_kernel), 0, times=groups.number), _tiles(source, groups, "result")
    y = _product(left, right)
    outer, inner = groups.strides(places * out, 2 * windows.width, 2)
    rows = _results(y, (*groups.outer, out, *groups.inner()))
    return _laid([(row, Layout(row.shape, (*outer, places, *inner, 1), p * windows.width)) for p, row in enumerate(rows)],
                 node.shape)


def _convolved_volumes(weights: Value, source: Value, windows: _Windows, node: Node) -> Value:
    """The product of weights (.., out, channels * taps * 9) with windows of volumes, as `node` is.

    Each plane is transformed once. The products read planes as windows: terms go through taps and channels.
    """
    out, channels, taps, depth = node.shape[-2], windows.channels, windows.taps, windows.depth
    images, rows, columns = windows.images, windows.height // 2, windows.width // 2
    strides: Shape = (windows.terms, 9, 9 * taps)
    kernel = [[_part(weights, (out, taps, channels), strides, 3 * i + j) for j in range(3)] for i in range(3)]
    left = _stacked(_both(kernel, _of_kernel), 0, times=images)
    image, channel, row, column = windows.strides
    shape = (images, depth + taps - 1, channels, rows, columns)
    here = _Places(_in_memory(source), windows.offset, (image, windows.plane, channel, 2 * row, 2 * column), row, column)
    planes = _stacked(_both(here.parts(shape, 4), _of_tile), 2)
    image, plane, part, channel, tile = contiguous_strides((*shape[:2], 16, channels, rows * columns))
    right = _part(planes, (images, 16, taps, channels, depth, rows * columns), (image, part, plane, channel, plane, tile), 0)
    y = _product(left, reshape_value(right, (images, 16, taps * channels, depth * rows * columns)))
    places = windows.places
    strides = (places * out, 0, places, places // depth, 2 * windows.width, 2, 1)
    found = _results(y, (images, 1, out, depth, rows, columns))
    return _laid([(x, Layout(x.shape, strides, p * windows.width)) for p, x in enumerate(found)], node.shape)


def _weights(gradient: Value, source: Value, windows: _Windows, node: Node) -> Value:
    """The sum over images of gradient (images, 1, out, places) @ windows (images, 1, places, channels * 9), as `node` is."""
    out, channels, places = node.shape[-2], windows.channels, windows.height * windows.width
    groups = _groups(windows, FEW_TERMS if 16 * 4 * (out + channels) * FEW_TERMS <= 2 * CACHE else TERMS)
    here = _places(gradient, groups, out, (places * out, places, windows.width, 1), 0, "gradient", 0)
    given = here.parts((*groups.outer, out, *groups.inner()), 2)
    left, right = _stacked(_both(given, _of_gradient), 2), _tiles(source, groups, "gradient", turned=True)
    y = _product(left, right)
    y = y.graph.add("sum", (y,), (1, *y.shape[1:]), node.dtype, {"axes": (0,)}) if groups.number > 1 else y
    sums, strides, pitch = _unstacked(y, (out, channels))
    products = [[_part(sums, (out, channels), strides, (4 * i + j) * pitch) for j in range(4)] for i in range(4)]
    pieces = _both(products, _of_weights)
    return _put_together(pieces, (9 * channels, 9), 3, node.shape)


def _product(left: Value, right: Value) -> Value:
    """The sixteen products of each group, which stay apart."""
    shape = (*left.shape[:-1], right.shape[-1])
    return left.graph.add("matmul", (left, right), shape, left.dtype, {"apart": True})


def _tiles(source: Value, groups: _Groups, reader: str, *, turned: bool = False) -> Value:
    """B' x B of all tiles: (groups, 16, channels, tiles), or with the last two turned. Each reader has its own."""
    windows = groups.windows
    here = _places(source, groups, windows.channels, windows.strides, windows.offset, reader, 1)
    return _stacked(_both(here.parts((*groups.outer, windows.channels, *groups.inner()), 4), _of_tile), 2, turned=turned)


class _Places(NamedTuple):
    """Where tiles begin in a value: by `strides` from an `offset` on. Their rows and columns are `row` and `column` apart."""

    value: Value
    offset: int
    strides: Shape
    row: int
    column: int

    def parts(self, shape: Shape, side: int) -> list[Row]:
        """Of `side` rows and columns of tiles, the elements there: each those of all tiles, which have a shape."""
        return [[_part(self.value, shape, self.strides, self.offset + i * self.row + j * self.column) for j in range(side)]
                for i in range(side)]


def _places(
    x: Value, groups: _Groups, channels: int, strides: Shape, offset: int, reader: str, beyond: int
) -> _Places:
    """The places of the tiles of `x`, whose images, channels, rows and columns are `strides` apart; the last ones reach
    `beyond` the tile of two rows and columns by so many tiles. Of narrow images, which vectors go across, it is a copy."""
    image, channel, row, column = strides
    outer, inner = groups.strides(image, 2 * row, 2 * column)
    if groups.is_wide:
        return _Places(_in_memory(x), offset, (*outer, channel, *inner), row, column)
    rows, columns, images = groups.inner(beyond)
    shape = (*groups.outer, channels, 2 * rows, 2 * columns, images)
    apart = _part(x, shape, (*outer, channel, row, column, image), offset)
    apart = x.graph.add("clone", (apart,), shape, x.dtype, {"materialize": True, "reader": reader})
    *lie, row, column, image = contiguous_strides(shape)
    return _Places(apart, 0, (*lie, 2 * row, 2 * column, image), row, column)


def _in_memory(x: Value) -> Value:
    """`x`, which is not computed again for each place that reads it."""
    return x.graph.add("clone", (x,), x.shape, x.dtype, {"operands": "materialize"})


def _part(x: Value, shape: Shape, strides: Shape, offset: int) -> Value:
    return view_value(x, Layout(shape, strides, offset), "slice")


def _both(matrix: Sequence[Row], transform: Callable[[Row], Row]) -> list[Row]:
    """T X T' for the transform T of a column."""
    columns = [transform(column) for column in zip(*matrix, strict=True)]  # columns[j][i] = (T X)[i, j]
    return [transform(row) for row in zip(*columns, strict=True)]


def _of_tile(x: Row) -> Row:
    return x[0] - x[2], x[1] + x[2], x[2] - x[1], x[1] - x[3]


def _of_kernel(w: Row) -> Row:
    ends, middle = _half(w[0] + w[2]), _half(w[1])
    return w[0], ends + middle, ends - middle, w[2]


def _results(x: Value, shape: Shape) -> Row:
    """A' M A for products M (groups, 16, ..), each of a shape: two rows, in which a last axis goes through the two columns.

    A vector of tiles then has all columns at hand, and writes neighbours.
    """
    y, strides, pitch = _unstacked(x, shape)

    def column(k: int) -> Value:
        return _part(y, (*shape, 2), (*strides, pitch), k * pitch)

    ramp = iota(x.graph, 2, x.dtype)
    sign = expand(expand(x.graph.constant(1, x.dtype), (2,)) - (ramp + ramp), (*shape, 2))
    # A second column's terms are those of the first, moved by one: m0 + (m1 + m2), and m1 - (m2 + m3).
    m = [column(4 * i) + sign * (column(4 * i + 1) + column(4 * i + 2)) for i in range(4)]
    return m[0] + (m[1] + m[2]), (m[1] - m[2]) - m[3]


def _of_gradient(y: Row) -> Row:
    return y[0], y[0] + y[1], y[0] - y[1], -y[1]


def _of_weights(m: Row) -> Row:
    total = _half(m[1] + m[2])
    return m[0] + total, _half(m[1] - m[2]), total + m[3]


def _half(x: Value) -> Value:
    return x * expand(x.graph.constant(0.5, x.dtype), x.shape)


def _stacked(matrix: Sequence[Row], lead: int, *, times: int = 1, turned: bool = False) -> Value:
    """(all leading axes, 16, next axis, all others), so many `times`, or with the last two turned."""
    parts = [x for row in matrix for x in row]
    x = parts[0]
    groups, first, rest = (numel(extents) for extents in (x.shape[:lead], x.shape[lead : lead + 1], x.shape[lead + 1 :]))
    pitch = first * rest + GAP
    y = _laid([(reshape_value(x, (groups, first * rest)), Layout((groups, first * rest), (16 * pitch, 1), k * pitch))
               for k, x in enumerate(parts)], (groups, 16, pitch))
    shape, strides = ((rest, first), (1, rest)) if turned else ((first, rest), (rest, 1))
    return _part(y, (groups * times, 16, *shape), (16 * pitch * (groups > 1), pitch, *strides), 0)


def _unstacked(x: Value, shape: Shape) -> tuple[Value, Shape, int]:
    """A value that holds (groups, 16, ..): the strides of a part of a shape there, and how far parts are apart."""
    groups = x.shape[0]
    size = numel(shape) // groups
    pitch, lead = size + GAP, 2 if len(shape) > 2 else 0
    y = _laid([(reshape_value(x, (groups, 16, size)), Layout((groups, 16, size), (16 * pitch, pitch, 1), 0))],
              (groups, 16, pitch))
    strides = (*(16 * pitch * stride for stride in contiguous_strides(shape[:lead])), *contiguous_strides(shape[lead:]))
    return y, strides, pitch


def _put_together(pieces: Sequence[Row], strides: Shape, row: int, shape: Shape) -> Value:
    """The pieces, each with its elements so far apart, `row` apart and next to each other."""
    return _laid([(piece, Layout(piece.shape, strides, i * row + j))
                  for i, pieces_of_row in enumerate(pieces) for j, piece in enumerate(pieces_of_row)], shape)


def _laid(parts: Sequence[tuple[Value, Layout]], shape: Shape) -> Value:
    """A value of `shape` with parts at their places; nothing else of it is read."""
    first = parts[0][0]
    y = expand(first.graph.constant(0, first.dtype), shape)
    for part, at in parts:
        y = first.graph.add("put", (y, part), shape, first.dtype, {**at._asdict(), "rest": "unread"})
    return y
