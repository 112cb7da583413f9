"""Convolutions with kernels of 3 x 3 in four ninths of the multiplications (Winograd's minimal filtering; Lavin & Gray, 2015).

Before: a simplified graph. After: products with windows of 3 x 3, each a step from the next, are sixteen products of as many
transformed tiles. Two by two results take 16 multiplications in place of 36, and so do the sums of a weight gradient. All
factors of the transforms are 1, -1, 1/2 and 1/4, so that sums of small integers stay exact.

    result = A' [(G w G') * (B' x B)] A          for each tile x of 4 x 4, the next of which begins 2 further on
    gradient by w = G' [sum (A dy A') * (B' x B)] G
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from genesis.ir.dtypes import float32
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, contiguous_strides, numel
from genesis.lower.index_map import grouped_layout
from genesis.lower.rewriting import Rewriting, Simplified, readers_of
from genesis.ops.contraction import swapped
from genesis.ops.layout import Layout
from genesis.ops.registry import expand
from genesis.ops.views import reshape_value, view_value

# Channels on both sides from which the multiplications that are saved outweigh tiles written and read again, and tiles from
# which they outweigh transforming the weights. Zen 3, ms: 64 channels of 32x32 13.3 and 13.9 by windows, 128 of 16x16 10.4 and
# 14.2, 512 of 4x4 10.0 and 13.9, of which the weights are 1.5.
LEAST_CHANNELS, LEAST_TILES = 128, 64
# Elements between the sixteen matrices, five cache lines: a power of two apart, their lines would meet in one set of a cache.
GAP = 80
LANES = 8  # a row of fewer tiles does not fill vectors: then neighbours are the same tile of the next image

Row = Sequence[Value]


class _Windows(NamedTuple):
    """All windows of 3 x 3 of images: how far images, channels, rows and columns are apart in the value `source`."""

    source: int
    offset: int
    strides: Shape
    images: int
    channels: int
    height: int
    width: int


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
            y = (_weights if form.summed else _convolved)(left, source, form.windows, node)
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
    images, terms, places = windows.images, 9 * windows.channels, windows.height * windows.width
    if right.attrs["offset"] or right.shape[0] != images or images * places < 4 * LEAST_TILES:
        return None
    if (*right.shape[2:], *right.attrs["strides"][2:]) == (terms, places, places, 1):
        weights = grouped_layout(nodes, node.inputs[0])
        same = images == 1 or (weights is not None and not weights[0].strides[0])
        return _Form(index, windows, False) if same else None
    if (*right.shape[2:], *right.attrs["strides"][2:]) == (places, terms, 1, places):
        return _Form(index, windows, True)
    return None


def _windows(nodes: Sequence[Node], index: int) -> _Windows | None:
    """The windows that a value is, if it is (images, channels, 3, 3, height, width) of them, of even height and width."""
    node = nodes[index]
    if node.op != "view" or len(node.shape) not in (6, 7) or (len(node.shape) == 7 and node.shape[1] != 1):
        return None
    (images, channels, *sizes, height, width) = (node.shape[0], *node.shape[-5:])
    strides = node.attrs["strides"]
    row, column = strides[-2:]
    if sizes != [3, 3] or strides[-4:-2] != (row, column) or height % 2 or width % 2 or min(row, column) <= 0:
        return None
    apart = strides[0], strides[-5], row, column
    return _Windows(node.inputs[0], node.attrs["offset"], apart, images, channels, height, width)


def _total(nodes: Sequence[Node], readers: Sequence[int]) -> int | None:
    """The sum over images that alone reads a product."""
    [first, *others] = readers
    node = nodes[first]
    return first if not others and node.op == "sum" and node.attrs["axes"] == (0,) and len(node.shape) == 3 else None


# ---- what takes its place ----


def _convolved(weights: Value, source: Value, windows: _Windows, node: Node) -> Value:
    """The product of weights (.., out, channels * 9) with windows, as `node` is."""
    out, channels = node.shape[-2], windows.channels
    kernel = [[_part(weights, (out, channels), (9 * channels, 9), 3 * i + j) for j in range(3)] for i in range(3)]
    left = _stacked(_both(kernel, _of_kernel))
    right = _tiles(source, windows, "result")
    tiles, strides = _places(windows, (windows.height * windows.width * out, 2 * windows.width, 2))
    y = left.graph.add("matmul", (left, right), (16, out, numel(tiles)), node.dtype)
    products = _unstacked(y, (out, *tiles))
    pieces = _both(products, _of_products)
    return _put_together(pieces, (windows.height * windows.width, *strides), windows.width, node.shape)


def _weights(gradient: Value, source: Value, windows: _Windows, node: Node) -> Value:
    """The sum over images of gradient (images, 1, out, places) @ windows (images, 1, places, channels * 9), as `node` is."""
    out, channels, places = node.shape[-2], windows.channels, windows.height * windows.width
    tiles, strides = _places(windows, (places * out, 2 * windows.width, 2))
    given = [[_part(gradient, (out, *tiles), (places, *strides), p * windows.width + q) for q in range(2)] for p in range(2)]
    left = _stacked(_both(given, _of_gradient))
    right = swapped(_tiles(source, windows, "gradient"))
    y = left.graph.add("matmul", (left, right), (16, out, channels), node.dtype)
    pieces = _both(_unstacked(y, (out, channels)), _of_weights)
    return _put_together(pieces, (9 * channels, 9), 3, node.shape)


def _places(windows: _Windows, strides: Shape) -> tuple[Shape, Shape]:
    """The extents of images, rows and columns of tiles, and their strides, in the order in which tiles lie."""
    extents = windows.images, windows.height // 2, windows.width // 2
    order = _order(windows)
    return tuple(extents[axis] for axis in order), tuple(strides[axis] for axis in order)


def _order(windows: _Windows) -> tuple[int, int, int]:
    """Of images, rows and columns, such that vectors are full."""
    return (0, 1, 2) if windows.width // 2 >= LANES else (1, 2, 0)


def _tiles(source: Value, windows: _Windows, reader: str) -> Value:
    """B' x B of all tiles: (16, channels, tiles). They take four times the memory: each reader has its own."""
    image, channel, row, column = windows.strides
    order = _order(windows)
    extents = windows.images, windows.height // 2 + 1, windows.width // 2 + 1
    # Rows and columns of each parity apart: of these, a vector of tiles reads neighbours.
    steps = [(image, 2 * row, 2 * column)[axis] for axis in order]
    shape = (2, 2, windows.channels, *[extents[axis] for axis in order])
    apart = _part(source, shape, (row, column, channel, *steps), windows.offset)
    apart = source.graph.add("clone", (apart,), shape, source.dtype, {"materialize": True, "reader": reader})
    strides = contiguous_strides(shape)
    down, right = (strides[3 + order.index(axis)] for axis in (1, 2))
    counts, _ = _places(windows, (0, 0, 0))
    tile = [[_part(apart, (windows.channels, *counts), strides[2:],
                   i % 2 * strides[0] + j % 2 * strides[1] + i // 2 * down + j // 2 * right)
             for j in range(4)] for i in range(4)]
    return _stacked(_both(tile, _of_tile))


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


def _of_products(m: Row) -> Row:
    return m[0] + (m[1] + m[2]), (m[1] - m[2]) - m[3]


def _of_gradient(y: Row) -> Row:
    return y[0], y[0] + y[1], y[0] - y[1], -y[1]


def _of_weights(m: Row) -> Row:
    total = _half(m[1] + m[2])
    return m[0] + total, _half(m[1] - m[2]), total + m[3]


def _half(x: Value) -> Value:
    return x * expand(x.graph.constant(0.5, x.dtype), x.shape)


def _stacked(matrix: Sequence[Row]) -> Value:
    """(16, first axis, all others)."""
    parts = [x for row in matrix for x in row]
    size, (first, *rest) = parts[0].node.numel, parts[0].shape
    y = _laid([(reshape_value(x, (size,)), Layout((size,), (1,), k * (size + GAP))) for k, x in enumerate(parts)],
              (16, size + GAP))
    return _part(y, (16, first, numel(rest)), (size + GAP, numel(rest), 1), 0)


def _unstacked(x: Value, shape: Shape) -> list[Row]:
    """The parts of (16, ..), each of a shape."""
    size = numel(shape)
    y = _laid([(reshape_value(x, (16, size)), Layout((16, size), (size + GAP, 1), 0))], (16, size + GAP))
    return [[_part(y, shape, contiguous_strides(shape), (4 * i + j) * (size + GAP)) for j in range(4)] for i in range(4)]


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
