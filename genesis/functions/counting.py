"""Counting, on the host. It is immediate where result shapes depend on the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from genesis.functions.creation import full
from genesis.functions.indexing import nonzero_of
from genesis.functions.methods.conversion import values_of
from genesis.functions.overrides import overridable, overridable_method
from genesis.ir.dtypes import DType, float32, float64, int32, int64
from genesis.ir.errors import ArgumentError, ArgumentTypeError, OutOfRangeError, UnsupportedTypeError
from genesis.ir.shapes import normalize_axis
from genesis.ops.derive import NotDifferentiableError
from genesis.ops.registry import OPERATIONS
from genesis.runtime.deferred import deferred
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor, from_values
from genesis.tensor.return_types import named
from genesis.tracing.recording_hooks import is_recording

if TYPE_CHECKING:
    from genesis.autograd.function import barred
else:
    barred = deferred("genesis.autograd.function", "barred")


@overridable_method
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The number of occurrences of 0, 1, .. among the ints `input` (n,); with `weights` (n,), their sums in float64.

    >>> genesis.bincount(genesis.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    if input.ndim != 1 or input.dtype.category != 1:
        raise ArgumentError(f"bincount: wants a vector of ints, 0 or more, got {input.dtype.name} of shape {input.shape}")
    if weights is not None and weights.shape != input.shape:
        raise ArgumentError(f"bincount: weights have shape {weights.shape}; want {input.shape}")
    if minlength < 0:
        raise ArgumentError(f"bincount: minlength is {minlength}; want 0 or more")
    kind = int64 if weights is None else weights.dtype if weights.dtype is float32 else float64
    if is_recording() and input.numel():
        return _counted(input.detach(), None if weights is None else weights.detach(), minlength, kind)
    factors = None if weights is None else values_of(weights.detach().to(kind))
    try:
        counts = np.bincount(values_of(input).astype(np.int64, copy=False), factors, minlength)
    except ValueError:
        raise ArgumentError("bincount: wants ints of 0 or more, got a negative one") from None
    return from_values(counts, kind, input.device)


def _counted(input: Tensor, weights: Tensor | None, minlength: int, kind: DType) -> Tensor:
    """`bincount` as programs; the host reads only whether an int is negative, and the greatest one."""
    greatest, negative = input.amax(), (input < 0).any()
    if negative:
        raise ArgumentError("bincount: wants ints of 0 or more, got a negative one")
    bins = max(int(greatest) + 1, minlength)
    wide = kind if weights is None else float64  # sums of floats are rounded once
    each = full(input.shape, 1, dtype=wide, device=input.device) if weights is None else weights.to(wide)
    return _sums_at("bincount", input, each, bins).to(kind)


def _sums_at(name: str, index: Tensor, values: Tensor, extent: int) -> Tensor:
    """A vector of so many elements, each the sum of the values at its index; errors use `name`."""
    zeros = full((extent,), 0, dtype=values.dtype, device=index.device)
    return call(OPERATIONS["index_put"], (zeros, values, (0,), True, name, False, index))  # type: ignore[no-any-return]


@overridable_method
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The counts of elements in `bins` bins of equal width between `min` and `max` (the data's, if equal).

    >>> genesis.histc(genesis.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if not -math.inf < min <= max < math.inf or bins < 1:
        raise ArgumentError(f"histc: {bins} bins from {min} to {max}; want one at least, and max to be greater and finite")
    if input.dtype.is_complex:
        raise UnsupportedTypeError("histc: takes real numbers, got complex ones; take their real or imag, abs() or angle()")
    between = None if min == max else (min, max)
    if input.dtype in (float32, float64) and input.numel():
        return call(OPERATIONS["even_histogram"], (input, bins, between))  # type: ignore[no-any-return]
    return call(OPERATIONS["histogram_values"], (input, None, None, (bins,), between, False))[:bins]


class Histogram(NamedTuple):
    """The result of `histogram`."""

    hist: Tensor
    bin_edges: Tensor


@overridable_method
def histogram(
    input: Tensor, bins: int | Tensor, *, range: tuple[float, float] | None = None, weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """(hist, bin_edges): the counts, or weights, of elements in `bins` bins, or between the edges in a tensor.

    Arguments as in `histogramdd`, for one axis.

    >>> genesis.histogram(genesis.tensor([1.0, 2.0, 2.5]), bins=2)
    genesis.return_types.histogram(
    hist=tensor([1., 2.]),
    bin_edges=tensor([1.0000, 1.7500, 2.5000]))
    """
    if (isinstance(bins, Tensor) and bins.ndim != 1) or (weight is not None and weight.shape != input.shape):
        met = f"edges {bins.shape if isinstance(bins, Tensor) else None} and weight {None if weight is None else weight.shape}"
        raise ArgumentError(f"histogram: {met} for input {input.shape}; want (n,) and the input's shape")
    counts, (edges,) = _in_cells("histogram", input, [bins], range, weight, density)
    return named("histogram", Histogram(counts, edges))


def _in_cells(
    name: str, input: Tensor, bins: Sequence[int | Tensor], range: Sequence[float] | None, weight: Tensor | None, density: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The counts in the cells of a grid, and the edges of each axis. Raises unless `bins` are counts or edges."""
    given = [b for b in bins if isinstance(b, Tensor)]
    counts = [b.numel() - 1 if isinstance(b, Tensor) else b for b in bins]
    if len(given) not in (0, len(counts)) or min(counts, default=0) < 1:
        raise ArgumentError(f"{name}: bins are {bins}; want one at least of each axis, or two edges of each in tensors")
    if range is not None and any([not -math.inf < low <= high < math.inf
                                  for low, high in zip(range[::2], range[1::2], strict=True)]):
        raise ArgumentError(f"{name}: range is {range}; want the lower end of each axis before its upper end, both finite")
    if not input.dtype.is_floating_point:
        raise ArgumentTypeError(f"{name}: wants floats, got {input.dtype.name}")
    edges = call(OPERATIONS["cat"], ([b.reshape(-1) for b in given],)) if given else None
    found = call(OPERATIONS["histogram_values"], (input, edges, weight, tuple(counts), range, density))
    cells, *ends = found.split([math.prod(counts), *[count + 1 for count in counts]])
    return cells.reshape(tuple(counts)), tuple(ends)


class HistogramDD(NamedTuple):
    """The result of `histogramdd`."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


@overridable
def histogramdd(
    input: Tensor, bins: int | Sequence[int | Tensor], *, range: Sequence[float] | None = None,
    weight: Tensor | None = None, density: bool = False,
) -> HistogramDD:
    """(hist, bin_edges): the counts, or weights, of points `input` (.., d) in the cells of a grid of d axes.

    Args:
        input: (.., d) floats, one point per row.
        bins: the number of bins of all axes, or of each; or the edges of each, as tensors.
        range: the least and the greatest edge of each axis, 2 d numbers; the data's extremes if None.
        weight: (..), the weight of each point; 1 if None.
        density: divide by the total weight and by the cells' volumes.

    Unsorted edges are searched by bisection, as in PyTorch. Raises ValueError for other shapes.

    >>> points = genesis.tensor([[0.0, 0.0], [1.0, 0.25], [0.9, 1.0]])
    >>> genesis.histogramdd(points, [2, 2]).hist
    tensor([[1., 0.],
            [1., 1.]])
    """
    if input.ndim < 2:
        raise ArgumentError(f"histogramdd: wants points (.., d), got shape {input.shape}")
    axes = input.shape[-1]
    given = [bins] * axes if isinstance(bins, int) else list(bins)
    if len(given) != axes or (range is not None and len(range) != 2 * axes):
        met = f"{len(given)} bins and range {range} of shape {input.shape}"
        raise ArgumentError(f"histogramdd: {met}; want {axes} bins, and twice as many ends")
    if weight is not None and weight.shape != input.shape[:-1]:
        raise ArgumentError(f"histogramdd: weight has shape {weight.shape}; want {input.shape[:-1]}")
    return named("histogramdd", HistogramDD(*_in_cells("histogramdd", input, given, range, weight, density)))


class Mode(NamedTuple):
    """The result of `mode`."""

    values: Tensor
    indices: Tensor


@overridable_method
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Mode:
    """(values, indices) of the most frequent element along `dim`: the least of equally frequent ones, and its last index.

    >>> genesis.mode(genesis.tensor([3, 1, 3, 2])).values
    tensor(3)
    """
    axis = normalize_axis("mode", dim, input.ndim)
    if not input.ndim:
        return named("mode", Mode(input.clone(), from_data(0, device=input.device)))
    if not input.shape[axis]:
        raise OutOfRangeError(f"mode: shape {input.shape} has no elements along dim {dim}; want one at least")
    at = call(OPERATIONS["mode_index"], (input, axis))
    values = call(OPERATIONS["gather"], (input, axis, at))
    return named("mode", Mode(values, at) if keepdim else Mode(values.squeeze(axis), at.squeeze(axis)))


def runs(values: Tensor, return_inverse: bool, return_counts: bool) -> list[Tensor]:
    """The first of each run of equal elements of `values` (n, ..); on request, each element's run and the runs' lengths."""
    n = values.shape[0]
    end = full((min(n, 1),), n, dtype=int64, device=values.device)
    differs = values[1:] != values[:-1]
    differs = differs.flatten(1).any(1) if values.ndim > 1 else differs
    begins = call(OPERATIONS["cat"], ([end > 0, differs],))
    starts = nonzero_of(begins).reshape(-1)
    results = [values[starts]]
    if return_inverse:
        results.append(begins.cumsum(0) - 1)
    if return_counts:
        results.append(call(OPERATIONS["cat"], ([starts[1:], end],)) - starts)
    return results


@overridable_method
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements (slices along `dim`) without consecutive duplicates; on request, the inverse indices and the counts.

    >>> genesis.unique_consecutive(genesis.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    axis = 0 if dim is None else normalize_axis("unique_consecutive", dim, input.ndim)
    rows = input.detach().reshape(-1) if dim is None else input.detach().movedim(axis, 0)
    results = runs(rows, return_inverse, return_counts)
    results[0] = results[0].movedim(0, axis)
    if return_inverse and dim is None:
        results[1] = results[1].reshape(input.shape)
    return without_gradient("unique_consecutive", results, input)


def without_gradient(name: str, results: list[Tensor], input: Tensor) -> Any:
    """The results, or the only one, of a function of `input`; differentiation of these raises NotDifferentiableError."""
    if input.requires_grad:
        problem = NotDifferentiableError(f"{name} has no gradient; detach its input, or take another operation")
        results = [barred(problem, x, input) if x.dtype.category >= 2 else x for x in results]
    return results[0] if len(results) == 1 else tuple(results)


def _repeated(repeats: Tensor, like: Tensor) -> Tensor:
    """Each index repeated `repeats` (n,) times."""
    if repeats.dtype.category != 1 or repeats.ndim != 1:
        kind = f"{repeats.dtype.name} of shape {repeats.shape}"
        raise UnsupportedTypeError(f"repeat_interleave: repeats are {kind}; want integers, one for each element")
    is_few = not is_recording() or not repeats.numel()
    if ((values_of(repeats) if is_few else repeats) < 0).any():
        raise ArgumentError("repeat_interleave: wants counts of 0 or more, got a negative one")
    if is_few:
        return from_data(np.repeat(np.arange(repeats.numel()), values_of(repeats)), device=like.device)
    ends, count = repeats.cumsum(0), int(repeats.sum())
    each = full(repeats.shape, 1, dtype=int64, device=like.device)
    begun = _sums_at("repeat_interleave", ends, each, count + 1)  # how many indices have ended there
    return begun.cumsum(0)[:count]


@overridable_method
def repeat_interleave(
    input: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element (slice along `dim`) repeated; with `repeats` alone, each index repeated by its count.

    `repeats` is a count, or a tensor with one for each. Raises ValueError for an `output_size` other than the result's extent.

    >>> genesis.repeat_interleave(genesis.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if output_size is not None:
        result = repeat_interleave(input, repeats, dim)
        if result.shape[dim or 0] != output_size:
            raise ArgumentError(f"repeat_interleave: output_size is {output_size}; want {result.shape[dim or 0]}")
        return result
    if repeats is None:
        return _repeated(input, input).to(int32 if input.dtype is int32 else int64)
    x = input.reshape(-1) if dim is None else input
    axis = normalize_axis("repeat_interleave", dim or 0, x.ndim)
    if isinstance(repeats, Tensor) and repeats.numel() != 1:
        if repeats.shape != (x.shape[axis],):
            raise ArgumentError(f"repeat_interleave: repeats have shape {repeats.shape}; want one count, or ({x.shape[axis]},)")
        return call(OPERATIONS["index_select"], (x, axis, _repeated(repeats, x)))
    count = int(repeats)
    if count < 0:
        raise ArgumentError(f"repeat_interleave: repeats is {count}; want 0 or more")
    spread = x.unsqueeze(axis + 1).expand(*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    result = spread.reshape(*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :])
    return result if result._base is None else result.clone()  # a copy, not a view
