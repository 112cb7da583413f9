"""Axes of sparse tensors exchanged, added, dropped and joined; slices of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.functions.from_data import as_tensor
from genesis.functions.methods.conversion import values_of
from genesis.ir.errors import ArgumentError, OutOfRangeError
from genesis.ir.named_layouts import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from genesis.ir.shapes import normalize_axis
from genesis.sparse.elementwise import cat, rule
from genesis.sparse.sparse_tensor import BLOCKWISE, SparseTensor, in_layout, sparse, stack, summed
from genesis.tensor.composite import NotDenseError
from genesis.tensor.handle import Tensor

# ---- exchanged ----
_TRANSPOSED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}
BLOCKWISE.update(("permute", "transpose"))


@rule("permute")
def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """The axes in another order; sparse ones stay before dense ones."""
    order = [normalize_axis("permute", dim, input.ndim) for dim in (dims[0] if len(dims) == 1 else dims)]
    axes = len(input.extents)
    if sorted(order) != list(range(input.ndim)) or sorted(order[:axes]) != list(range(axes)):
        raise ArgumentError(f"permute: axes {order} of {input.described()}; want each once, and those that are sparse first")
    if order == list(range(input.ndim)):
        return input
    extents = tuple([input.shape[axis] for axis in order])
    lead = range(1 if input.block is None else 3)  # axes of elements that stay
    elements = input._elements.permute(*lead, *[axis - axes + len(lead) for axis in order[axes:]])
    if order[:axes] == list(range(axes)):
        return input.with_elements(elements)
    positions = stack([input._positions[axis] for axis in order[:axes]])
    other = _TRANSPOSED.get(input._kind, sparse_coo)
    elements = elements if input.block is None else elements.transpose(1, 2)
    return sparse(positions, elements, extents, False, other, input._pointers)


@rule("transpose")
def transpose(input: SparseTensor, *dims: int, dim0: int | None = None, dim1: int | None = None) -> SparseTensor:
    """Two axes exchanged."""
    order = list(range(input.ndim))
    a, b = (normalize_axis("transpose", dim, input.ndim) for dim in dims or (dim0, dim1))  # type: ignore[arg-type]
    order[a], order[b] = order[b], order[a]
    return permute(input, order)


# ---- added, dropped, joined ----
@rule("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """With a new axis of extent 1: a sparse one, unless it stands among the dense ones."""
    x, position = in_layout(input, sparse_coo), normalize_axis("unsqueeze", dim, input.ndim + 1)
    axes = len(x.extents)
    if position > axes:
        return x.with_elements(x._elements.unsqueeze(position - axes + 1))
    positions = x._positions
    zeros = positions.new_zeros(1, positions.shape[1])
    extents = (*x.shape[:position], 1, *x.shape[position:])
    return sparse(cat([positions[:position], zeros, positions[position:]]), x._elements, extents, x._is_coalesced)


@rule("squeeze")
def squeeze(input: SparseTensor, dim: Any = None) -> Tensor:
    """Without axes of extent 1 (all, or those in `dim`)."""
    given = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    chosen = {normalize_axis("squeeze", d, input.ndim) for d in given}
    gone = [axis for axis in chosen if input.shape[axis] == 1]
    x = in_layout(input, sparse_coo)
    axes = len(x.extents)
    kept = [axis for axis in range(axes) if axis not in gone]
    elements = x._elements.squeeze(tuple([axis - axes + 1 for axis in gone if axis >= axes]))
    if not kept:
        return elements.sum(0)
    extents = (*[x.shape[axis] for axis in kept], *elements.shape[1:])
    return sparse(stack([x._positions[axis] for axis in kept]), elements, extents, x._is_coalesced)


@rule("cat")
def joined(tensors: Sequence[SparseTensor], dim: int = 0) -> SparseTensor:
    """Sparse tensors laid end to end along `dim`."""
    parts = [in_layout(x, sparse_coo) if isinstance(x, SparseTensor) else x for x in tensors]
    first = next(x for x in parts if isinstance(x, SparseTensor))
    axis, axes = normalize_axis("cat", dim, first.ndim), len(first.extents)
    if not all(isinstance(x, SparseTensor) and len(x.extents) == axes for x in parts) or any(
        own != want for x in parts for a, (own, want) in enumerate(zip(x.shape, first.shape, strict=True)) if a != axis
    ):
        raise ArgumentError(f"cat: along {dim} of shapes {[tuple(x.shape) for x in parts]}; want sparse tensors of as many "
                            "sparse axes, the others equal")
    extents = tuple([sum(x.shape[a] for x in parts) if a == axis else extent for a, extent in enumerate(first.shape)])
    positions: list[Tensor] = []
    elements: list[Tensor] = []
    offset = 0
    for x in parts:
        if axis < axes:
            shift = np.zeros((axes, 1), np.int64)
            shift[axis] = offset
            positions.append(x._positions + as_tensor(shift, device=x.device))
            elements.append(x._elements)
        else:  # zeros before and after, along a dense axis
            lead = x._elements.shape[:1] + x._elements.shape[1 : axis - axes + 1]
            rest = x._elements.shape[axis - axes + 2 :]
            before = x._elements.new_zeros(*lead, offset, *rest)
            after = x._elements.new_zeros(*lead, extents[axis] - offset - x.shape[axis], *rest)
            positions.append(x._positions)
            elements.append(cat([before, x._elements, after], axis - axes + 1))
        offset += x.shape[axis]
    return sparse(cat(positions, 1), cat(elements), extents)


@rule("stack")
def stacked(tensors: Sequence[SparseTensor], dim: int = 0) -> SparseTensor:
    """Sparse tensors along a new axis."""
    return joined([unsqueeze(x, dim) for x in tensors], dim)


# ---- slices ----
def _taken(x: SparseTensor, axis: int, keep: np.ndarray, indices: Tensor, extents: tuple[int, ...]) -> SparseTensor:
    """The elements `keep`, which get the indices `indices` along `axis`."""
    chosen = as_tensor(keep, device=x.device)
    rows = [indices if a == axis else row[chosen] for a, row in enumerate(x._positions)]
    return sparse(stack(rows), x._elements[chosen], extents)


@rule("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The slices at the positions `index` along `dim`."""
    x, axis = in_layout(input, sparse_coo), normalize_axis("index_select", dim, input.ndim)
    axes = len(x.extents)
    if axis >= axes:
        return x.with_elements(x._elements.index_select(axis - axes + 1, index))
    wanted = values_of(index).reshape(-1)
    if len(wanted) and not (wanted.min() >= 0 and wanted.max() < x.shape[axis]):
        raise OutOfRangeError(f"index_select: indices {wanted.min()} to {wanted.max()} for extent {x.shape[axis]}")
    rows = values_of(x._positions[axis])
    order = np.argsort(rows, kind="stable")
    which, found = met(wanted, rows[order], x.shape[axis])
    extents = (*x.shape[:axis], len(wanted), *x.shape[axis + 1 :])
    return _taken(x, axis, order[found], as_tensor(which, device=x.device), extents)


def met(wanted: np.ndarray, rows: np.ndarray, extent: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of an index in `wanted` and an index in `rows`, which is sorted, with the same row."""
    begins = np.searchsorted(rows, np.arange(extent + 1))
    counts = np.diff(begins)[wanted]
    ends = counts.cumsum()
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(np.arange(len(wanted)), counts), np.repeat(begins[wanted], counts) + within


@rule("select")
def select(input: SparseTensor, dim: int, index: int) -> Tensor:
    """The slice at `index` along `dim`; dense, if no sparse axis is left."""
    x, axis = in_layout(input, sparse_coo), normalize_axis("select", dim, input.ndim)
    extent, axes = x.shape[axis], len(x.extents)
    if not -extent <= index < extent:
        raise OutOfRangeError(f"select: index {index} is out of range for axis {axis} with extent {extent}")
    if axis >= axes:
        return x.with_elements(x._elements.select(axis - axes + 1, index))
    keep = np.flatnonzero(values_of(x._positions[axis]) == index % extent)
    elements = x._elements[as_tensor(keep, device=x.device)]
    if axes == 1:
        return summed(elements.new_zeros(1, *elements.shape[1:]), x._positions.new_zeros(len(keep)), elements).squeeze(0)
    chosen = as_tensor(keep, device=x.device)
    rows = [row[chosen] for a, row in enumerate(x._positions) if a != axis]
    return sparse(stack(rows), elements, (*x.shape[:axis], *x.shape[axis + 1 :]), x._is_coalesced)


@rule("narrow", "narrow_copy")
def narrow(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """The slices from `start` on along `dim`, so many."""
    x, axis = in_layout(input, sparse_coo), normalize_axis("narrow", dim, input.ndim)
    extent, axes = x.shape[axis], len(x.extents)
    start = start + extent if start < 0 else start
    if not (start >= 0 and length >= 0 and start + length <= extent):
        raise OutOfRangeError(f"narrow: {length} from {start} on of extent {extent}")
    if axis >= axes:
        return x.with_elements(x._elements.narrow(axis - axes + 1, start, length))
    indices = values_of(x._positions[axis])
    keep = np.flatnonzero((indices >= start) & (indices < start + length))
    extents = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    found = _taken(x, axis, keep, x._positions[axis][as_tensor(keep, device=x.device)] - start, extents)
    found._is_coalesced = x._is_coalesced
    return found


@rule("subscript")
def subscript(input: SparseTensor, items: Sequence[Any]) -> Tensor:
    """x[..]: ints, slices without steps, new axes."""
    x: Tensor = input
    axis = 0
    for item in items:
        if item is None:
            x, axis = x.unsqueeze(axis), axis + 1
        elif isinstance(item, int):
            x = x.select(axis, item)
        else:
            start, stop, step = slice(*item).indices(x.shape[axis])
            if step != 1 and isinstance(x, SparseTensor):
                raise NotDenseError(x, "a slice with steps")
            if (start, stop) != (0, x.shape[axis]):
                x = x.narrow(axis, start, max(0, stop - start))
            axis += 1
    return x
