"""Sums, norms and softmax of sparse tensors; `genesis.masked` of these: reductions over what a mask selects, its zeros too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from genesis.functions.creation import full
from genesis.functions.from_data import as_tensor
from genesis.functions.methods.conversion import values_of
from genesis.functions.methods.table import functions_of
from genesis.ir.dtypes import DType, int64
from genesis.ir.errors import ArgumentError
from genesis.ir.named_layouts import sparse_coo
from genesis.ir.shapes import normalize_axis, numel
from genesis.masked import IDENTITIES, Axes
from genesis.ops.registry import OPERATIONS
from genesis.sparse.elementwise import rule
from genesis.sparse.sparse_tensor import SparseTensor, by_element, coalesced, flat_positions, in_layout, sparse, stack, summed
from genesis.tensor.composite import NotDenseError
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

cat, where = functions_of("cat", "where")


@rule("sum")
def sum_of(input: SparseTensor, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Over all axes, or `dim`: sparse, where a sparse axis is left."""
    elements = input._elements if dtype is None else input._elements.to(dtype)
    if dtype is None and input.dtype.category < 2:
        elements = elements.to(int64)
    axes = len(input.extents)
    given = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {normalize_axis("sum", d, input.ndim) for d in given}
    within = tuple([axis - axes + 1 for axis in sorted(gone) if axis >= axes])
    elements = elements.sum(within, keepdim) if within else elements
    kept = [axis for axis in range(axes) if axis not in gone]
    if not kept:
        total = elements.sum(0)
        return total.reshape((1,) * axes + tuple(total.shape)) if keepdim else total
    if len(kept) == axes:
        return in_layout(input, sparse_coo).with_elements(elements)
    return _reduced("sum", input, dim, keepdim, dtype, None)


@rule("mean")
def mean(input: SparseTensor, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over the number of all elements, the zeros among them."""
    given = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    count = numel([input.shape[axis] for axis in given])
    return sum_of(input, dim, keepdim, dtype=dtype) / count


@rule("any")
def any_of(input: SparseTensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether an element is not zero."""
    if dim is not None or keepdim:
        raise NotDenseError(input, "any along an axis, or with kept axes")
    return coalesced(input)._elements.any()


@rule("norm", "vector_norm")
def norm(input: SparseTensor, p: float | str | None = "fro", dim: Axes = None, keepdim: bool = False,
         dtype: DType | None = None) -> Tensor:
    """The norm of all elements, of an order above zero."""
    if dim is not None or keepdim or (isinstance(p, int | float) and p <= 0):
        raise NotDenseError(input, "norm along an axis, with kept axes or of this order")
    return call(OPERATIONS["norm"], (coalesced(input)._elements, p), {"dtype": dtype})  # type: ignore[no-any-return]


# ---- softmax ----
def _groups(x: SparseTensor, axis: int) -> tuple[Tensor, int]:
    """The group of each element, whose members differ only along `axis`, and the number of groups."""
    others = [a for a in range(len(x.extents)) if a != axis]
    extents = tuple([x.shape[a] for a in others])
    rows = [x._positions[a] for a in others]
    groups = flat_positions(stack(rows), extents) if rows else x._positions.new_zeros(x._positions.shape[1])
    return groups, numel(extents)


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """exp(x) over its sum along `dim`, of the elements that a sparse tensor has; the others count as -infinity.

    >>> x = genesis.tensor([[0.0, 2.0, 2.0], [3.0, 0.0, 0.0]]).to_sparse()
    >>> genesis.sparse.softmax(x, 1).to_dense()
    tensor([[0.0000, 0.5000, 0.5000],
            [1.0000, 0.0000, 0.0000]])
    """
    return _softmax(input, dim, dtype, False)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """The logarithm of `softmax`, of the elements that a sparse tensor has."""
    return _softmax(input, dim, dtype, True)


@rule("softmax", "log_softmax")
def _not_by_name(input: SparseTensor, *arguments: object, **attributes: object) -> Tensor:
    raise NotDenseError(input, "softmax, whose zeros count; sparse.softmax takes what is there alone")


def _softmax(input: Tensor, dim: int, dtype: DType | None, is_log: bool) -> Tensor:
    name = "log_softmax" if is_log else "softmax"
    if not isinstance(input, SparseTensor):
        return call(OPERATIONS[name], (input, dim), {"dtype": dtype})  # type: ignore[no-any-return]
    x, axis = by_element(input), normalize_axis(name, dim, input.ndim)
    x = coalesced(x if dtype is None else x.to(dtype))
    elements, axes = x._elements, len(x.extents)
    if axis >= axes:
        return x.with_elements(call(OPERATIONS[name], (elements, axis - axes + 1)))
    groups, count = _groups(x, axis)
    shifted = elements - reduced_rows("amax", elements.detach(), groups, count)[groups]
    powers = shifted.exp()
    totals = summed(elements.new_zeros(count, *elements.shape[1:]), groups, powers)[groups]
    return x.with_elements(shifted - totals.log() if is_log else powers / totals)


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


def reduced_rows(name: str, elements: Tensor, groups: Tensor, count: int) -> Tensor:
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
    found = reduced_rows(name, elements, as_tensor(groups, device=x.device), count)
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
