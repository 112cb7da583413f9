"""Counts in results of a known shape: rows that the host computes, for the functions in `genesis.functions`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, int64, uint64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.conversion import stop_gradient
from genesis.ops.registry import Reference, composite, primitive


def _each(count: Callable[..., np.ndarray]) -> Reference:
    """`count(attrs, *arrays)` of each example, where there are leading axes beyond the inputs' own ranks."""

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


def _mode_places(attrs: Attributes, row: np.ndarray) -> np.ndarray:
    moved = np.moveaxis(row, attrs["along"], -1)
    found = np.empty((*moved.shape[:-1], 1), np.int64)
    for place in np.ndindex(moved.shape[:-1]):
        kinds, counts = np.unique(moved[place], return_counts=True)
        found[place] = np.flatnonzero(moved[place] == kinds[counts.argmax()])[-1]
    return np.moveaxis(found, -1, attrs["along"])


def _nonzero_places(attrs: Attributes, x: np.ndarray) -> np.ndarray:
    found = np.argwhere(x)[: attrs["size"]]
    places = np.full((attrs["size"], x.ndim), attrs["fill"], np.int64)
    places[: len(found)] = found
    return places


def _histogram(attrs: Attributes, x: np.ndarray, *more: np.ndarray) -> np.ndarray:
    """The counts, then the edges."""
    given = dict(zip(attrs["more"], more, strict=True))
    values, between = x.reshape(-1).astype(np.float64), attrs["range"]
    if between is not None and between[0] == between[1]:
        low, high = (values.min(), values.max()) if values.size else between
        between = (low - 1, high + 1) if low == high else (low, high)
    edges = given["edges"].astype(np.float64) if "edges" in given else attrs["bins"]
    weights = given["weight"].reshape(-1).astype(np.float64) if "weight" in given else None
    return np.concatenate(np.histogram(values, edges, between, attrs["density"], weights))


def _xor(attrs: Attributes, x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x).reshape(x.shape).view(np.uint64)
    return np.asarray(np.bitwise_xor.reduce(bits, axis=attrs["over"], keepdims=attrs["keepdim"]))


primitive("bits_xor", "host", reference=_each(_xor))
primitive("mode_places", "host", reference=_each(_mode_places))
primitive("nonzero_places", "host", reference=_each(_nonzero_places))
primitive("histogram_values", "host", reference=_each(_histogram))


@composite("bits_xor", method=False, public=False)
def bits_xor(input: Value, over: Sequence[int], keepdim: bool) -> Value:
    """The exclusive or of 64-bit elements over axes, uint64."""
    shape = tuple([1 if axis in over else e for axis, e in enumerate(input.shape) if keepdim or axis not in over])
    return _node("bits_xor", [input], shape, uint64, over=tuple([axis - input.ndim for axis in over]), keepdim=keepdim)


@composite("mode_places", method=False, public=False)
def mode_places(input: Value, dim: int) -> Value:
    """The last places of the most frequent elements along `dim`, which is kept: those of the least one, of several."""
    shape = (*input.shape[:dim], 1, *input.shape[dim + 1 :])
    return _node("mode_places", [input], shape, int64, along=dim - input.ndim)


@composite("nonzero_places", method=False, public=False)
def nonzero_places(input: Value, size: int, fill: int) -> Value:
    """The places of the first `size` elements that are not zero; rows of `fill` where there are fewer."""
    return _node("nonzero_places", [input], (size, input.ndim), int64, size=size, fill=fill)


@composite("histogram_values", 3, method=False, public=False)
def histogram_values(
    input: Value, edges: Value | None, weight: Value | None, bins: int, between: Sequence[float] | None, density: bool
) -> Value:
    """(2 bins + 1): the counts, or weights, in `bins` bins, then the edges, which are those given, if any.

    With no ends, or two equal ones, the bins are between those of the data.
    """
    more = {name: x for name, x in (("edges", edges), ("weight", weight)) if x is not None}
    ends = None if between is None else tuple(between)
    return _node("histogram_values", [input, *more.values()], (2 * bins + 1,), input.dtype, more=tuple(more), bins=bins,
                 range=ends, density=density)
