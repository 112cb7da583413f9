"""Products with windows of 3 x 3 that Winograd's filtering pays for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.ir.dtypes import bfloat16, float32
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape
from genesis.lower.index_map import grouped_layout

# Channels on both sides from which the multiplications that are saved outweigh transforms, and tiles from which they outweigh
# transforming the weights.
LEAST_CHANNELS, LEAST_TILES = 32, 64
LEAST_ODD = 5  # an odd extent, whose last tile is computed whole: 5 x 5 take 0.64 of the multiplications, 3 x 3 would 0.79
# Products for four by four results are at most so many of those for two by two; the last tiles may reach beyond the images.
# Zen 4, 8 images of 64 channels: of 30 x 30 (0.82) 3.3 to 2.5 ms; of 26 x 26 (0.83) 2.2 to 2.4.
SAVING = 0.82
MOST_PLANES = 1 << 24  # numbers of transformed planes, which lie in memory as a whole: 64 MB, and as many of their products
LANES = 6  # a row of fewer tiles does not fill vectors: then neighbours are the same tile of the next image


class Windows(NamedTuple):
    """All windows of 3 x 3 of images: the strides of images, channels, rows and columns in the value `source`.

    Windows of volumes have `taps` along a first axis with stride `plane`, and `depth` positions there.
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
    def positions(self) -> int:
        return self.depth * self.height * self.width

    @property
    def side(self) -> int:
        """The results along a tile's side: two, or four where rows of such tiles fill vectors and their last ones pay.

        So do rows of two such tiles: images go across vectors, as for the four tiles of two by two results.
        """
        # Zen 4, one thread, both gradients, too, of 8 x 8: 32 images of 64, 256 and 512 channels 3.1, 40.5 and 140 to 2.6, 36
        # and 119 ms, 8 of 256 10.2 as before. Single tiles do not repay transforming weights: 512 channels of 4 x 4 41 to 44.
        (height, width), (high, wide) = self.rounded(2), self.rounded(4)
        fills = fills_vectors(4, wide // 4) or (width // 2 < LANES and wide > 4)
        return 4 if fills and 46 * high * wide <= SAVING * 64 * height * width else 2

    def rounded(self, side: int) -> Shape:
        """The height and width in whole tiles."""
        return -(-self.height // side) * side, -(-self.width // side) * side


def fills_vectors(side: int, columns: int) -> bool:
    """Whether vectors are filled by the tiles of a row, or by rows of four of four by four results."""
    return columns >= LANES or (side, columns) == (4, 4)


class Form(NamedTuple):
    """A product with windows: its node, and whether windows are summed over, as the gradient by weights does."""

    product: int
    windows: Windows
    summed: bool


def form_of(nodes: Sequence[Node], index: int, pairs: bool = False) -> Form | None:
    """The product at `index`, if it is one with windows that pays; of bfloat16 it does not if there are products of pairs."""
    node = nodes[index]
    if node.op != "matmul" or node.dtype.compute is not float32 or "only" in node.attrs:
        return None
    if len(node.shape) != 4 or node.shape[1] != 1:
        return None
    left, right = (nodes[i] for i in node.inputs)
    # Zen 4, 8 images of 256 channels of 14 x 14 11.6 ms and so 10.0; 64 of 56 x 56 10.1 and 10.7.
    if left.dtype.compute is not float32 or (pairs and left.dtype is bfloat16) or right.op != "view":
        return None
    windows = _windows(nodes, right.inputs[0])
    if windows is None or min(windows.channels, node.shape[-2]) < LEAST_CHANNELS:
        return None
    images, terms, positions = windows.images, windows.terms, windows.positions
    if right.attrs["offset"] or right.shape[0] != images or images * positions < 4 * LEAST_TILES:
        return None
    if windows.depth > 1 and 4 * positions * images * max(windows.channels, node.shape[-2]) > MOST_PLANES:
        return None
    if (*right.shape[2:], *right.attrs["strides"][2:]) == (terms, positions, positions, 1):
        weights = grouped_layout(nodes, node.inputs[0])
        same = images == 1 or (weights is not None and not weights[0].strides[0])
        return Form(index, windows, False) if same else None
    if (*right.shape[2:], *right.attrs["strides"][2:]) == (positions, terms, 1, positions) and windows.depth == 1:
        return Form(index, windows, True)
    return None


def _windows(nodes: Sequence[Node], index: int) -> Windows | None:
    """The windows that a value views, if it is (images, channels, 3, 3, height, width), each even or from LEAST_ODD on; for
    volumes, of even ones, with axes for the taps and the positions along a first axis."""
    node = nodes[index]
    axes = 3 if len(node.shape) > 7 else 2
    if node.op != "view" or len(node.shape) - 2 * axes not in (2, 3) or (len(node.shape) % 2 and node.shape[1] != 1):
        return None
    images, channels = node.shape[0], node.shape[-2 * axes - 1]
    sizes, (*depth, height, width) = node.shape[-2 * axes : -axes], node.shape[-axes:]
    strides = node.attrs["strides"]
    *plane, row, column = strides[-axes:]
    if sizes[-2:] != (3, 3) or strides[-2 * axes : -axes] != strides[-axes:] or min(strides[-axes:]) <= 0:
        return None
    if any(extent % 2 and (depth or extent < LEAST_ODD) for extent in (height, width)):
        return None
    apart = strides[0], strides[-2 * axes - 1], row, column
    found = Windows(node.inputs[0], node.attrs["offset"], apart, images, channels, height, width)
    return found._replace(taps=sizes[0], depth=depth[0], plane=plane[0]) if depth else found


def total_of(nodes: Sequence[Node], readers: Sequence[int]) -> int | None:
    """The sum over images that is a product's only reader."""
    [first, *others] = readers
    node = nodes[first]
    return first if not others and node.op == "sum" and node.attrs["axes"] == (0,) and len(node.shape) == 3 else None
