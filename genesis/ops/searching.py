"""Finding values among others: where they would stand in an order, whether they are there at all."""

from __future__ import annotations

from genesis.ir.dtypes import bool_, int32, int64
from genesis.ir.graph import Value
from genesis.ir.shapes import numel
from genesis.ops.elementwise import where
from genesis.ops.indexing import gather_value
from genesis.ops.ordering import sort
from genesis.ops.registry import as_values, cast, composite, expand, promoted
from genesis.ops.views import reshape_value

__all__ = ["isin", "searchsorted"]


@composite("searchsorted", 2, method=False)
def searchsorted(
    sorted_sequence: Value, input: Value, *, out_int32: bool = False, right: bool = False, side: str | None = None
) -> Value:
    """Where the elements of `input` would stand in `sorted_sequence`: before those that are equal, or behind them.

    Args:
        sorted_sequence: (n,), or (.., n) with the leading axes of `input`; ascending along its last axis.
        input: any shape, or (.., m).
        right, side: `right`, or side "right", is behind.

    By bisection, which all elements do together: no values are looked at by the host.

    >>> import genesis
    >>> genesis.searchsorted(genesis.tensor([1.0, 3.0, 5.0]), genesis.tensor([0.0, 3.0, 9.0]))
    tensor([0, 1, 3])
    """
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    sequence, x = as_values(sorted_sequence, input)
    if sequence.ndim != 1 and sequence.shape[:-1] != x.shape[:-1]:
        raise ValueError(f"searchsorted: sorted_sequence has shape {sequence.shape} and input {x.shape}; want (n,), or (.., n) "
                         "and (.., m)")
    found = _bisected(sequence, x, right or side == "right")
    return cast(found, int32) if out_int32 else found


def _bisected(sequence: Value, x: Value, right: bool) -> Value:
    shape, axis = x.shape, sequence.ndim - 1
    a, b = promoted(sequence, reshape_value(x, (numel(shape),)) if axis == 0 else x)
    extent = sequence.shape[-1]
    found = expand(a.graph.constant(0, int64), b.shape)
    step = 1 << extent.bit_length()
    while step := step >> 1:
        next = found + step  # so many stand before, if the last of them does
        last = gather_value(a, where(next > extent, 1, next) - 1, axis)
        found = where((next > extent) | ((last > b) if right else (last >= b)), found, next)
    return reshape_value(found, shape)


@composite("bucketize", 2)
def bucketize(input: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> Value:
    """Which of the buckets between ascending `boundaries` (n,) each element is in; with `right`, these begin a bucket."""
    if boundaries.ndim != 1:
        raise ValueError(f"bucketize: boundaries must be 1-d, got shape {boundaries.shape}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@composite("isin", 2, method=False)
def isin(elements: Value, test_elements: Value, *, assume_unique: bool = False, invert: bool = False) -> Value:
    """Whether each element is among `test_elements`.

    >>> import genesis
    >>> genesis.isin(genesis.tensor([1, 2, 3]), genesis.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    x, tests = promoted(elements, test_elements)
    count = numel(tests.shape)
    if not count:
        return expand(x.graph.constant(invert, bool_), x.shape)
    ordered = sort(reshape_value(tests, (count,))).values
    flat = reshape_value(x, (numel(x.shape),))
    at = _bisected(ordered, flat, False)
    there = gather_value(ordered, where(at == count, count - 1, at), 0) == flat
    return reshape_value(~there if invert else there, x.shape)
