"""Counting with results of a known shape: host operations that `genesis.functions` uses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, int64, uint64
from genesis.ir.errors import ArgumentError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.conversion import stop_gradient
from genesis.ops.registry import Reference, composite, primitive


def _each(count: Callable[..., np.ndarray]) -> Reference:
    """`count(attrs, *arrays)` for each example, if there are leading axes beyond the inputs' own ranks."""

    def reference(node: Node, *arrays: np.ndarray) -> np.ndarray:
        own = [a.shape[a.ndim - rank :] for a, rank in zip(arrays, node.attrs["ranks"], strict=True)]
        many = numel(arrays[0].shape[: arrays[0].ndim - len(own[0])])
        examples = zip(*[a.reshape(many, *shape) for a, shape in zip(arrays, own, strict=True)], strict=True)
        found = [count(node.attrs, *example) for example in examples]
        return np.asarray(found, node.dtype.numpy).reshape(node.shape)

    return reference


def _node(name: str, inputs: Sequence[Value], shape: Shape, dtype: DType, **attrs: object) -> Value:
    given = [stop_gradient(x) for x in inputs]
    return given[0].graph.add(name, given, shape, dtype, {"ranks": tuple([x.ndim for x in given]), **attrs})


def _nonzero_indices(attrs: Attributes, x: np.ndarray) -> np.ndarray:
    found = np.argwhere(x)[: attrs["size"]]
    positions = np.full((attrs["size"], x.ndim), attrs["fill"], np.int64)
    positions[: len(found)] = found
    return positions


def _histogram(attrs: Attributes, x: np.ndarray, *more: np.ndarray) -> np.ndarray:
    """The counts of all cells, then the edges of each axis."""
    given, bins = dict(zip(attrs["more"], more, strict=True)), attrs["bins"]
    points = x.reshape(-1, len(bins))
    if "edges" in given:
        edges = np.split(given["edges"].astype(np.float64), np.cumsum([count + 1 for count in bins])[:-1])
    else:
        ends = [attrs["range"][2 * axis : 2 * axis + 2] for axis in range(len(bins))]
        edges = [*map(_even_edges, ends, bins, points.T)]
    weights = given["weight"].reshape(-1) if "weight" in given else None
    counts = np.zeros(numel(bins))
    for start in range(0, len(points), _BLOCK):
        here = slice(start, start + _BLOCK)
        counts += _counts(edges, points[here].T.astype(np.float64), None if weights is None else weights[here])
    counts = counts.reshape(bins)
    if attrs["density"]:
        with np.errstate(divide="ignore", invalid="ignore"):
            counts = functools.reduce(np.divide, np.ix_(*map(np.diff, edges)), counts / counts.sum())
    return np.concatenate([counts.reshape(-1), *edges])


_BLOCK = 1 << 15  # points at a time: their cells stay in a cache, 3 times as fast as all at once


def _counts(edges: Sequence[np.ndarray], points: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The counts, or weights, of points (d, n) in the cells."""
    inside = np.logical_and.reduce([(e[0] <= numbers) & (numbers <= e[-1]) for e, numbers in zip(edges, points, strict=True)])
    cells: np.ndarray | int = 0
    for between, numbers in zip(edges, points, strict=True):
        found = _bins(between, numbers[inside])
        cells = found if isinstance(cells, int) else cells * (len(between) - 1) + found
    shape = [len(between) - 1 for between in edges]
    return np.bincount(cells, None if weights is None else weights[inside].astype(np.float64), numel(shape))


@np.errstate(invalid="ignore")
def _bins(edges: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The bin of each number; the last bin includes both edges. Evenly spaced bins are found by a division."""
    last = len(edges) - 2
    width = (edges[-1] - edges[0]) / (last + 1)
    if (np.abs(edges - (edges[0] + width * np.arange(last + 2))) < width / 4).all():
        found = np.minimum(((numbers - edges[0]) * (1 / width)).astype(np.int64), last)
        found -= numbers < edges[found]
        found += numbers >= edges[found + 1]
    else:
        found = _edges_passed(edges, numbers) - 1
    return np.minimum(found, last)


def _even_edges(ends: tuple[float, ...], count: int, numbers: np.ndarray) -> np.ndarray:
    """The edges of bins of one width between `ends`, or those of the data, rounded as the data are; symmetric, as PyTorch's."""
    low, high = ends or ((float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0))
    if not np.isfinite([low, high]).all():
        raise ArgumentError(f"histogram: the bins are to be between {low} and {high}; want finite numbers there")
    if low == high:
        low, high = low - 0.5, high + 0.5
    steps, width = np.arange(count + 1), (high - low) / count
    edges = np.where(2 * steps <= count, low + width * steps, high - width * (count - steps))
    return edges if numbers.dtype.kind in "biu" else edges.astype(numbers.dtype).astype(np.float64)


def _edges_passed(edges: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The number of edges <= each number; for unsorted edges, the result of C++'s `std::upper_bound`."""
    if (edges[1:] >= edges[:-1]).all():
        return np.searchsorted(edges, numbers, "right")
    first, length = np.zeros(len(numbers), np.int64), np.full(len(numbers), len(edges))
    while length.any():
        half = length // 2
        passed = (length > 0) & ~(numbers < edges[np.minimum(first + half, len(edges) - 1)])
        first, length = np.where(passed, first + half + 1, first), np.where(passed, length - half - 1, half)
    return first


def _xor(attrs: Attributes, x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x).reshape(x.shape).view(np.uint64)
    return np.asarray(np.bitwise_xor.reduce(bits, axis=attrs["over"], keepdims=attrs["keepdim"]))


primitive("bits_xor", "host", reference=_each(_xor))
primitive("nonzero_indices", "host", reference=_each(_nonzero_indices), contiguous=True)
primitive("histogram_values", "host", reference=_each(_histogram))


@composite("bits_xor", method=False, public=False)
def bits_xor(input: Value, over: Sequence[int], keepdim: bool) -> Value:
    """The exclusive or of 64-bit elements over axes, uint64."""
    shape = tuple([1 if axis in over else e for axis, e in enumerate(input.shape) if keepdim or axis not in over])
    return _node("bits_xor", [input], shape, uint64, over=tuple([axis - input.ndim for axis in over]), keepdim=keepdim)


@composite("nonzero_indices", method=False, public=False, takes_complex=True)
def nonzero_indices(input: Value, size: int, fill: int) -> Value:
    """The positions of the first `size` elements that are not zero; rows of `fill` where there are fewer."""
    return _node("nonzero_indices", [input], (size, input.ndim), int64, size=size, fill=fill)


@composite("histogram_values", 3, method=False, public=False)
def histogram_values(
    input: Value, edges: Value | None, weight: Value | None, bins: Sequence[int], between: Sequence[float] | None, density: bool
) -> Value:
    """The counts, or weights, of points (.., d) in the cells of a grid, then the edges of each axis, one after the other.

    `bins` are the bins of each axis. The edges are those given, end to end; or else even ones, between the ends of each axis
    in `between`, or between those of the data. The points of a grid of one axis may have any shape.
    """
    more = {name: x for name, x in (("edges", edges), ("weight", weight)) if x is not None}
    counts = tuple(bins)
    return _node("histogram_values", [input, *more.values()], (numel(counts) + sum(counts) + len(counts),), input.dtype,
                 more=tuple(more), bins=counts, range=tuple(between or ()), density=density)
