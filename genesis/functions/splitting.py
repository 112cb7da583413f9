"""Splits of a tensor into views along an axis; broadcasting to a common shape."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate, pairwise

from genesis.functions.overrides import function, keywords, overridable, overridable_method
from genesis.ir.annotations import Tree
from genesis.ir.dtypes import int64
from genesis.ir.errors import ArgumentError, ArgumentTypeError, FormOfAxesError
from genesis.ir.shapes import broadcast_shapes, normalize_axis
from genesis.ops.joining import ranked
from genesis.tensor.handle import Tensor
from genesis.tensor.views import known_views, view


@function("unsafe_split")
@overridable_method
@keywords(split_size_or_sections="split_size", split_sizes="split_size", tensor="input")
def split(input: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of `split_size` along `dim` (the last may be smaller), or of the sizes in a list.

    Raises ValueError for sizes that do not add up to the extent.

    >>> genesis.split(genesis.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    axis = _axis("split", input, dim)
    extent = input.shape[axis]
    if isinstance(split_size, int):
        if split_size < 0 or (not split_size and extent):
            raise ArgumentError(f"split: split_size must be positive, got {split_size}")
        return _cut(input, axis, [*range(0, max(extent, 1), split_size.__index__() or 1), extent])
    sizes = [int(s) for s in split_size]
    if sum(sizes) != extent or any(s < 0 for s in sizes):
        raise ArgumentError(f"split: sizes {sizes} do not add up to extent {extent} of dim {dim}")
    return _cut(input, axis, [0, *accumulate(sizes)])


@function("unsafe_chunk")
@overridable_method
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal extent along `dim` (the last may be smaller).

    >>> genesis.chunk(genesis.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if chunks <= 0:
        raise ArgumentError(f"chunk: chunks must be positive, got {chunks}")
    axis = _axis("chunk", input, dim)
    if not input.shape[axis]:
        return _cut(input, axis, [0] * (chunks + 1))
    extent = input.shape[axis]
    return _cut(input, axis, [*range(0, extent, -(-extent // int(chunks))), extent])


@overridable_method
@keywords(sections="indices_or_sections", indices="indices_or_sections")
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views along `dim`: a number of nearly equal ones, or cut before the indices in a list.

    >>> genesis.tensor_split(genesis.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    axis = _axis("tensor_split", input, dim)
    extent = input.shape[axis]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dtype is not int64 or indices_or_sections.ndim > 1:
            kind = f"{indices_or_sections.dtype.name} of shape {indices_or_sections.shape}"
            raise ArgumentTypeError(f"tensor_split: the tensor of indices is {kind}; want int64, 0-d or 1-d")
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections <= 0:
            raise ArgumentError(f"tensor_split: sections must be positive, got {sections}")
        size, larger = divmod(extent, sections)
        edges = [i * size + min(i, larger) for i in range(sections + 1)]
    else:
        starts = [slice(operator.index(i), None).indices(extent)[0] for i in indices_or_sections]
        edges = [0, *starts, extent]
    return _cut(input, axis, edges)


@overridable_method
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, as views.

    >>> genesis.unbind(genesis.eye(2))
    (tensor([1., 0.]), tensor([0., 1.]))
    """
    axis = _axis("unbind", input, dim)
    return tuple([known_views.call(input, "select", (axis, i)) for i in range(input.shape[axis])])


@overridable
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors as views of their common shape.

    >>> [x.shape for x in genesis.broadcast_tensors(genesis.ones(2, 1), genesis.ones(3))]
    [(2, 3), (2, 3)]
    """
    shape = broadcast_shapes("broadcast_tensors", *(t.shape for t in tensors))
    return tuple([view(t, "expand", shape) for t in tensors])


def _axis(name: str, input: Tensor, dim: int) -> int:
    if not input.shape:
        raise FormOfAxesError(f"{name}: a 0-d tensor has no axis to cut along")
    return normalize_axis(name, dim, len(input.shape))


def _cut(input: Tensor, axis: int, edges: Sequence[int]) -> tuple[Tensor, ...]:
    return tuple([known_views.call(input, "narrow", (axis, start, max(end - start, 0))) for start, end in pairwise(edges)])


@function("unsafe_split_with_sizes")
@overridable_method
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the given sizes along `dim`.

    >>> genesis.split_with_sizes(genesis.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    return split(input, tuple(split_sizes), dim)


def _even(name: str, input: Tensor, sections: int | Sequence[int], least: int, dim: int) -> tuple[Tensor, ...]:
    """`tensor_split` along `dim` into equal parts or at indices; raises for fewer than `least` axes."""
    if input.ndim < least:
        raise ArgumentError(f"{name}: shape {input.shape} has {input.ndim} axes; want {least} at least")
    if isinstance(sections, int) and (sections <= 0 or input.shape[dim] % sections):
        raise ArgumentError(f"{name}: extent {input.shape[dim]} of dim {dim} is not divisible by {sections}; use tensor_split")
    return tensor_split(input, sections, dim)


@overridable_method
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Views along axis 1 (0 for a vector): a number of equal ones, or cut before indices.

    >>> genesis.hsplit(genesis.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _even("hsplit", input, indices_or_sections, 1, 0 if input.ndim == 1 else 1)


@overridable_method
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Views along axis 0 of at least two: a number of equal ones, or cut before indices.

    >>> genesis.vsplit(genesis.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _even("vsplit", input, indices_or_sections, 2, 0)


@overridable_method
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Views along axis 2 of at least three: a number of equal ones, or cut before indices.

    >>> [part.shape for part in genesis.dsplit(genesis.zeros(1, 2, 4), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _even("dsplit", input, indices_or_sections, 3, 2)


def _with_axes(rank: int, tensors: Sequence[Tree]) -> Tree:
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        return tuple([_with_axes(rank, [x]) for x in tensors[0]])
    if len(tensors) != 1:
        return tuple([_with_axes(rank, [x]) for x in tensors])
    (x,) = tensors
    return x if x.ndim >= rank else view(x, "reshape", ranked(x.shape, rank))


@overridable
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tree:
    """The tensors with at least one axis.

    >>> genesis.atleast_1d(genesis.tensor(2.0))
    tensor([2.])
    """
    return _with_axes(1, tensors)


@overridable
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tree:
    """The tensors with at least two axes: a vector is a row.

    >>> genesis.atleast_2d(genesis.tensor([1, 2])).shape
    (1, 2)
    """
    return _with_axes(2, tensors)


@overridable
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tree:
    """The tensors with at least three axes: a matrix gets a last axis, a vector one on each side.

    >>> genesis.atleast_3d(genesis.tensor([1, 2])).shape
    (1, 2, 1)
    """
    return _with_axes(3, tensors)
