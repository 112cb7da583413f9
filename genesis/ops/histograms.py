"""Counts with results of a known shape, on the host; histograms: counts in the cells of a grid, and its edges.

Between even edges they are kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, float64, int64, uint64
from genesis.ir.errors import ArgumentError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.conversion import stop_gradient
from genesis.ops.elementwise import clamp, where
from genesis.ops.indexing import gather_value, scatter_value
from genesis.ops.joining import cat
from genesis.ops.reduction import amax, amin, sum as sum_of
from genesis.ops.registry import Reference, cast, composite, expand, primitive
from genesis.ops.rows import checked
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, slice_value


def each(count: Callable[..., np.ndarray]) -> Reference:
    """`count(attrs, *arrays)` for each example, if there are leading axes beyond the inputs' own ranks."""

    def reference(node: Node, *arrays: np.ndarray) -> np.ndarray:
        own = [a.shape[a.ndim - rank :] for a, rank in zip(arrays, node.attrs["ranks"], strict=True)]
        many = numel(arrays[0].shape[: arrays[0].ndim - len(own[0])])
        examples = zip(*[a.reshape(many, *shape) for a, shape in zip(arrays, own, strict=True)], strict=True)
        found = [count(node.attrs, *example) for example in examples]
        return np.asarray(found, node.dtype.numpy).reshape(node.shape)

    return reference


def node_of(name: str, inputs: Sequence[Value], shape: Shape, dtype: DType, **attrs: object) -> Value:
    given = [stop_gradient(x) for x in inputs]
    return given[0].graph.add(name, given, shape, dtype, {"ranks": tuple([x.ndim for x in given]), **attrs})


def _nonzero_indices(attrs: Attributes, x: np.ndarray) -> np.ndarray:
    found = np.argwhere(x)[: attrs["size"]]
    positions = np.full((attrs["size"], x.ndim), attrs["fill"], np.int64)
    positions[: len(found)] = found
    return positions


def _xor(attrs: Attributes, x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x).reshape(x.shape).view(np.uint64)
    return np.asarray(np.bitwise_xor.reduce(bits, axis=attrs["over"], keepdims=attrs["keepdim"]))


primitive("bits_xor", "host", reference=each(_xor))
primitive("nonzero_indices", "host", reference=each(_nonzero_indices), contiguous=True)


@composite("bits_xor", method=False, public=False)
def bits_xor(input: Value, over: Sequence[int], keepdim: bool) -> Value:
    """The exclusive or of 64-bit elements over axes, uint64."""
    shape = tuple([1 if axis in over else e for axis, e in enumerate(input.shape) if keepdim or axis not in over])
    return node_of("bits_xor", [input], shape, uint64, over=tuple([axis - input.ndim for axis in over]), keepdim=keepdim)


@composite("nonzero_indices", method=False, public=False, takes_complex=True)
def nonzero_indices(input: Value, size: int, fill: int) -> Value:
    """The positions of the first `size` elements that are not zero; rows of `fill` where there are fewer."""
    return node_of("nonzero_indices", [input], (size, input.ndim), int64, size=size, fill=fill)


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


# ---- the same by other primitives ----
def _formula(node: Node, x: Value, *more: Value) -> Value | None:
    attrs, bins = node.attrs, node.attrs["bins"]
    given = dict(zip(attrs["more"], more, strict=True))
    if "edges" in given or x.ndim != attrs["ranks"][0] or not numel(x.shape):
        return None
    graph, n = x.graph, numel(x.shape) // len(bins)
    points, cells, edges = reshape_value(x, (n, len(bins))), graph.constant(0, int64), []
    weight = cast(reshape_value(given["weight"], (n,)), float64) if "weight" in given else graph.constant(1.0, float64)
    for axis, count in enumerate(bins):
        numbers = cast(reshape_value(slice_value(points, 1, axis, axis + 1), (n,)), float64)
        between = _edges_between(*_ends(numbers, attrs["range"][2 * axis : 2 * axis + 2]), count)
        edges.append(cast(cast(between, x.dtype), float64) if x.dtype.is_floating_point else between)
        inside, bin = _even_bin(edges[-1], numbers)
        cells, weight = cells * count + bin, where(inside, weight, 0.0)
    zeros = expand(graph.constant(0.0, float64), (numel(bins),))
    counts = reshape_value(scatter_value(zeros, cells, weight, 0, "add"), bins)
    if attrs["density"]:
        total = sum_of(counts)
        counts = counts / total
        for axis, (between, count) in enumerate(zip(edges, bins, strict=True)):
            shape = tuple([count if a == axis else 1 for a in range(len(bins))])
            counts = counts / reshape_value(slice_value(between, 0, 1, None) - slice_value(between, 0, 0, count), shape)
    return cast(cat([reshape_value(counts, (numel(bins),)), *edges]), node.dtype)


def _ends(numbers: Value, given: tuple[float, ...]) -> tuple[Value, Value]:
    """The ends of an axis, or those of its numbers, half apart from equal ones."""
    low, high = [numbers.graph.constant(end, numbers.dtype) for end in given] or [amin(numbers), amax(numbers)]
    if not given:
        finite = (abs(low) < float("inf")) & (abs(high) < float("inf"))  # a NaN is either end
        are = checked(finite, "histogram: the numbers that the bins are to be between are not finite; give a range")
        low, high = where(are, low, 0.0), where(are, high, 0.0)
    same = where(low == high, 0.5, 0.0)
    return low - same, high + same


def _edges_between(low: Value, high: Value, count: int) -> Value:
    """As `_even_edges`."""
    steps = cast(iota(low.graph, count + 1), float64)
    width = (high - low) / count
    return where(steps * 2 <= count, low + width * steps, high - width * (count - steps))


def _even_bin(edges: Value, numbers: Value) -> tuple[Value, Value]:
    """Whether each number is between the edges, and its bin: by a division, which rounding may take to a neighbour."""
    count = edges.shape[0] - 1
    first, last = (reshape_value(slice_value(edges, 0, at, at + 1), ()) for at in (0, count))
    bin = clamp(cast((numbers - first) * (count / (last - first)), int64), 0, count - 1)
    bin = clamp(bin - cast(numbers < gather_value(edges, bin, 0), int64), 0)
    bin = clamp(bin + cast(numbers >= gather_value(edges, bin + 1, 0), int64), None, count - 1)
    return (first <= numbers) & (numbers <= last), bin


primitive("histogram_values", "host", reference=each(_histogram), formula=_formula)


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
    return node_of("histogram_values", [input, *more.values()], (numel(counts) + sum(counts) + len(counts),), input.dtype,
                 more=tuple(more), bins=counts, range=tuple(between or ()), density=density)


@composite("even_histogram", method=False, public=False)
def even_histogram(input: Value, bins: int, between: Sequence[float] | None) -> Value:
    """The counts of floats in bins of one width. A division in the input's precision finds the bin, as in PyTorch's `histc`."""
    numbers = stop_gradient(reshape_value(input, (numel(input.shape),)))
    low, high = _ends(numbers, tuple(between or ()))
    inside = (low <= numbers) & (numbers <= high)
    bin = cast((where(inside, numbers, low) - low) * float(bins) / (high - low), int64)
    zeros = expand(input.graph.constant(0.0, float64), (bins,))  # a float32 would not count beyond 2**24
    return cast(scatter_value(zeros, clamp(bin, 0, bins - 1), cast(inside, float64), 0, "add"), input.dtype)
