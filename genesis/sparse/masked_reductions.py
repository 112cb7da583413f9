"""`genesis.masked` for sparse tensors: reductions over the elements that a mask selects, including its zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from genesis.functions.creation import full
from genesis.functions.from_data import as_tensor
from genesis.functions.methods.conversion import values_of
from genesis.functions.methods.table import functions_of
from genesis.ir.dtypes import DType, int64
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import normalize_axis, numel
from genesis.ir.sparse_layouts import sparse_coo
from genesis.masked import IDENTITIES, Axes
from genesis.ops.registry import OPERATIONS
from genesis.sparse.elementwise import rule
from genesis.sparse.positions import flat_positions
from genesis.sparse.sparse_tensor import SparseTensor, coalesced, in_layout, sparse, stack
from genesis.tensor.composite import NotDenseError
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

cat, where = functions_of("cat", "where")


def _like(mask: Tensor, x: SparseTensor) -> SparseTensor:
    """A mask with the shape and number of sparse axes of `x`, in coalesced coordinates."""
    axes = len(x.extents)
    if isinstance(mask, SparseTensor) and mask.shape == x.shape and len(mask.extents) == axes:
        return coalesced(in_layout(mask, sparse_coo))
    whole = mask.to_dense() if isinstance(mask, SparseTensor) else mask
    return whole.expand(x.shape).to_sparse(axes)  # type: ignore[no-any-return]


def _left(name: str, x: SparseTensor, mask: Tensor) -> SparseTensor:
    """The elements where the mask is true; in elements with dense axes, masked parts become the identity."""
    flags = _like(mask, x)
    named = flags._elements.flatten(1).any(1) if flags._elements.ndim > 1 else flags._elements
    rows = as_tensor(np.flatnonzero(values_of(named)), device=x.device)
    positions, counted = flags._positions[:, rows], flags._elements[rows]
    known, wanted = (values_of(flat_positions(given, x.extents)) for given in (x._positions, positions))
    found = np.searchsorted(known, wanted)
    there = found < len(known)
    there[there] = known[found[there]] == wanted[there]
    rest = x._elements.shape[1:]
    zeros = x._elements.new_zeros(1, *rest)
    elements = cat([x._elements, zeros])[as_tensor(np.where(there, found, len(known)), device=x.device)]
    if rest:
        absent = as_tensor(~there, device=x.device).reshape(-1, *(1,) * len(rest))
        elements = where(counted | absent, elements, IDENTITIES[name](x.dtype))
    return sparse(positions, elements, x._extents, True)


def _gathered(name: str, elements: Tensor, groups: Tensor, count: int) -> Tensor:
    """`count` reductions of rows of `elements`: number k is over the rows with group k."""
    rest = elements.shape[1:]
    index = groups.reshape(-1, *(1,) * len(rest)).expand(elements.shape)
    begin = full((count, *rest), IDENTITIES[name](elements.dtype), dtype=elements.dtype, device=elements.device)
    settings = {"include_self": name != "mean"}
    return call(OPERATIONS["scatter_reduce"], (begin, 0, index, elements, name), settings)  # type: ignore[no-any-return]


def _reduced(
    name: str, input: SparseTensor, dim: Axes, keepdim: bool, dtype: DType | None, mask: Tensor | None
) -> SparseTensor:
    if mask is None and name != "sum":
        raise ArgumentError(f"masked.{name}: wants a mask, which says what counts, of {input.described()}")
    axes = len(input.extents)
    given: Sequence[int] = [dim] if isinstance(dim, int) else dim or range(input.ndim)
    gone = {normalize_axis(name, d, input.ndim) for d in given} if input.ndim else set[int]()
    x = coalesced(in_layout(input, sparse_coo))
    x = x if mask is None else _left(name, x, mask)
    wide = dtype or (int64 if name in ("sum", "prod") and x.dtype.category < 2 else x.dtype)
    elements = x._elements.to(wide)
    within = tuple([axis - axes + 1 for axis in sorted(gone) if axis >= axes])
    if within and name != "sum":
        raise NotDenseError(input, f"masked.{name} along an axis that is not sparse")
    elements = elements.sum(within, keepdim) if within else elements
    kept = [axis for axis in range(axes) if axis not in gone]
    rows = [x._positions[axis] for axis in kept]
    zeros = x._positions.new_zeros(len(elements))
    flat = flat_positions(stack(rows), tuple([x.shape[axis] for axis in kept])) if kept else zeros
    _, first, groups = np.unique(values_of(flat), return_index=True, return_inverse=True)
    count = len(first) if kept else 1  # also without elements
    found = _gathered(name, elements, as_tensor(groups, device=x.device), count)
    firsts = as_tensor(first, device=x.device)
    left = range(axes) if keepdim else kept
    coordinates = [x._positions[axis][firsts] if axis in kept else firsts.new_zeros(count) for axis in left]
    positions = stack(coordinates) if coordinates else firsts.new_zeros(0, count)
    extents = (*[x.shape[axis] if axis in kept else 1 for axis in left], *found.shape[1:])
    made = sparse(positions, found, extents, True)
    return in_layout(made, input._kind) if keepdim and numel(extents) else made


def _rule(name: str) -> Callable[..., SparseTensor]:
    def reduction(
        input: SparseTensor, dim: Axes = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
    ) -> SparseTensor:
        return _reduced(name, input, dim, keepdim, dtype, mask)

    return reduction


for _name in ("sum", "prod", "amax", "amin", "mean"):
    rule(f"masked.{_name}")(_rule(_name))
