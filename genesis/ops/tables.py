"""Embedding bags (sums, means or maxima of rows of a table) and one-hot rows."""

from __future__ import annotations

from genesis.ir.dtypes import int64
from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, numel
from genesis.ops.elementwise import clamp, where
from genesis.ops.indexing import check_index, gather_value, scatter_value
from genesis.ops.ordering import cumsum
from genesis.ops.reduction import argmax, sum
from genesis.ops.registry import cast, composite, expand, widened
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, slice_value


@composite("one_hot", method=False)
def one_hot(input: Value, num_classes: int) -> Value:
    """A row of `num_classes` for each element of `input`, int64: 1 at its position, 0 elsewhere.

    Raises TypeError unless `input` has integers and, when evaluated, IndexError for one out of range.

    >>> genesis.nn.functional.one_hot(genesis.tensor([2, 0]), 3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    at = check_index("one_hot", reshape_value(input, (*input.shape, 1)), num_classes, wrap=False)
    return cast(at == iota(input.graph, num_classes), int64)


# ---- bags ----
def _bags(count: int, offsets: Value) -> Value:
    """The bag of each of `count` elements: the number of offsets at or before it, minus one."""
    starts = check_index("embedding_bag", offsets, count + 1, wrap=False)
    begin = expand(offsets.graph.constant(0, int64), (count + 1,))
    begins = scatter_value(begin, starts, expand(offsets.graph.constant(1, int64), offsets.shape), 0, "add")
    return check_index("embedding_bag", cumsum(slice_value(begins, 0, 0, count), 0) - 1, offsets.shape[0], wrap=False)


@composite("embedding_bag", (), method=False)
def embedding_bag(
    input: Value, weight: Value, offsets: Value | None = None, per_sample_weights: Value | None = None,
    scale_grad_by_freq: bool = False, mode: str = "mean", include_last_offset: bool = False, padding_idx: int | None = None,
) -> Value:
    """The sums, means or maxima of bags of rows of `weight`; see `nn.functional.embedding_bag`."""
    if scale_grad_by_freq and mode == "max":
        raise ValueError("embedding_bag: scale_grad_by_freq in mode 'max'; want 'sum' or 'mean'")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if weight.ndim != 2 or input.ndim not in (1, 2) or (offsets is None) != (input.ndim == 2):
        given = "no offsets" if offsets is None else f"offsets {offsets.shape}"
        raise ValueError(f"embedding_bag: input {input.shape}, weight {weight.shape}, {given}; want input (bags, n), or (n,) "
                         "with offsets, and weight (entries, width)")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        raise ValueError(f"embedding_bag: per_sample_weights {per_sample_weights.shape} in mode {mode!r}; want mode 'sum' and "
                         f"the shape of input, {input.shape}")
    entries, width = weight.shape
    if padding_idx is not None and not -entries <= padding_idx < entries:
        raise ValueError(f"embedding_bag: padding_idx {padding_idx} is outside a table of {entries} entries")
    if offsets is not None and include_last_offset:
        offsets = slice_value(offsets, 0, 0, offsets.shape[0] - 1)
    flat = check_index("embedding_bag", reshape_value(input, (numel(input.shape), 1)), entries, wrap=False)
    rows = widened(gather_value(weight, expand(flat, (flat.shape[0], width)), 0, shared=scale_grad_by_freq))
    counted = None if padding_idx is None else flat != padding_idx % entries
    if per_sample_weights is not None:
        rows = rows * reshape_value(per_sample_weights, flat.shape)
    if offsets is None:
        return cast(_rows_reduced(rows, input.shape, mode, counted), weight.dtype)
    return cast(_reduced(rows, _bags(input.shape[0], offsets), offsets.shape[0], mode, counted), weight.dtype)


def _rows_reduced(rows: Value, bags: Shape, mode: str, counted: Value | None) -> Value:
    """Bags of one size, (count, size): reductions along an axis."""
    (count, size), width = bags, rows.shape[1]
    rows = reshape_value(rows, (count, size, width))
    counted = None if counted is None else reshape_value(counted, (count, size, 1))
    if mode == "max" and size:
        seen = rows if counted is None else where(counted, rows, float("-inf"))
        found = reshape_value(gather_value(seen, argmax(seen, 1, True), 1), (count, width))
        return found if counted is None else where(sum(cast(counted, int64), 1) == 0, 0, found)
    total = sum(rows if counted is None else where(counted, rows, 0), 1)
    if mode != "mean":
        return total
    return total / (max(size, 1) if counted is None else clamp(sum(cast(counted, rows.dtype), 1), min=1))


def _reduced(rows: Value, bag: Value, count: int, mode: str, counted: Value | None) -> Value:
    if mode == "max":  # a (bags, rows) mask
        within = reshape_value(bag, (1, rows.shape[0], 1)) == reshape_value(iota(rows.graph, count), (count, 1, 1))
        within = within if counted is None else within & counted
        if not rows.shape[0]:
            return expand(rows.graph.constant(0, rows.dtype), (count, rows.shape[1]))
        seen = where(within, rows, float("-inf"))
        found = reshape_value(gather_value(seen, argmax(seen, 1, True), 1), (count, rows.shape[1]))
        return where(sum(cast(within, int64), 1) == 0, 0, found)
    rows = rows if counted is None else where(counted, rows, 0)
    nothing = rows.graph.constant(0, rows.dtype)
    index = expand(reshape_value(bag, (rows.shape[0], 1)), rows.shape)
    total = scatter_value(expand(nothing, (count, rows.shape[1])), index, rows, 0, "add")
    if mode == "sum":
        return total
    ones = expand(rows.graph.constant(1, rows.dtype), (rows.shape[0], 1))
    ones = ones if counted is None else cast(counted, rows.dtype)
    size = scatter_value(expand(nothing, (count, 1)), reshape_value(bag, (rows.shape[0], 1)), ones, 0, "add")
    return total / clamp(size, min=1)
