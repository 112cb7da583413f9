"""Counting with results of a known shape: host operations that `genesis.functions` uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from genesis.ir.annotations import Attributes
from genesis.ir.dtypes import DType, int64, uint64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.conversion import stop_gradient
from genesis.ops.registry import Reference, composite, primitive


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
