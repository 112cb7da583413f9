"""Selecting and writing by masks and index tensors: nonzero, masked_select, index_put, index_add and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from genesis.functions.counting import runs, without_gradient
from genesis.functions.creation import full
from genesis.functions.indexing import is_few, mask_of_bytes, nonzero_of, positions_of
from genesis.functions.methods.conversion import values_of
from genesis.functions.overrides import overridable, overridable_method
from genesis.ir.dtypes import bool_, int64, refuse_number, uint8
from genesis.ir.errors import ArgumentError, ArgumentTypeError, FormOfAxesError
from genesis.ir.shapes import broadcast_shapes, normalize_axis
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Operand, Tensor, from_values, method
from genesis.tensor.in_place import in_place_form
from genesis.tensor.views import view


@overridable_method
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements, one row each; with `as_tuple`, a tensor per axis.

    >>> genesis.nonzero(genesis.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero_of(input if input.ndim else input.reshape(1)).unbind(1) if as_tuple else nonzero_of(input)


@overridable_method
def argwhere(input: Tensor) -> Tensor:
    """The indices of the nonzero elements, one row each.

    >>> genesis.argwhere(genesis.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero(input)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Operand, other: Operand) -> Tensor: ...
@overridable
def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Tensor | tuple[Tensor, ...]:
    """`input` where `condition` holds and `other` elsewhere; with `condition` alone, the indices where it holds.

    >>> x = genesis.arange(4)
    >>> genesis.where(x > 1, x, -1), genesis.where(x > 1)
    (tensor([-1, -1,  2,  3]), (tensor([2, 3]),))
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return call(OPERATIONS["where"], (condition, input, other))


def _where(self: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """The tensor where `condition` holds and `other` elsewhere."""
    return where(condition, self, other)


method(_where, "where")


@overridable_method
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, as a vector; both broadcast.

    >>> x = genesis.arange(4)
    >>> genesis.masked_select(x, x > 1)
    tensor([2, 3])
    """
    if mask.dtype.name not in ("bool", "uint8"):
        raise ArgumentTypeError(f"masked_select: mask must be bool, got {mask.dtype.name}")
    shape = broadcast_shapes("masked_select", input.shape, mask.shape)
    return view(input, "expand", shape)[view(mask, "expand", shape)]


@overridable_method
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at flat indices.

    >>> genesis.take(genesis.tensor([[1, 2], [3, 4]]), genesis.tensor([0, 3]))
    tensor([1, 4])
    """
    return input.reshape(-1)[index.reshape(-1)].reshape(index.shape)  # flattened: a 0-d index would be read as a number


@overridable_method
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `source` written (added, with `accumulate`) at the flat indices `index`.

    Raises ValueError unless `index` and `source` have the same number of elements, TypeError for another dtype.

    >>> genesis.put(genesis.zeros(2, 2), genesis.tensor([3, 0]), genesis.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 1.]])
    """
    if index.numel() != source.numel():
        raise ValueError(f"put: index has shape {index.shape}, source {source.shape}; want as many elements")
    arguments = (input.reshape(-1), source.reshape(-1), (0,), accumulate, "put", True, index.reshape(-1))
    return call(OPERATIONS["index_put"], arguments).reshape(input.shape)


@overridable_method
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` indices of `nonzero`, padded with rows of `fill_value`.

    >>> genesis.nonzero_static(genesis.tensor([0, 1, 0, 1]), size=3).tolist()
    [[1], [3], [-1]]
    """
    if size < 0:
        raise ArgumentError(f"nonzero_static: size is {size}; want 0 or more")
    return call(OPERATIONS["nonzero_indices"], (input, size, fill_value))


@overridable_method
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct elements (slices along `dim`), sorted; on request the inverse indices and the counts.

    >>> genesis.unique(genesis.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None and input.dtype.category < 3 and not is_few(input) and input.numel():
        values, order = call(OPERATIONS["sort"], (input.detach().reshape(-1),))
        results = runs(values, return_inverse, return_counts)
        if return_inverse:
            results[1] = results[1].scatter(0, order, results[1]).reshape(input.shape)
        return without_gradient("unique", results, input)
    unique_of: Callable[..., Any] = np.unique  # NumPy's overloads need literal flags
    found = unique_of(values_of(input), return_inverse=return_inverse, return_counts=return_counts, axis=dim, equal_nan=False)
    values, *more = found if return_inverse or return_counts else (found,)
    if return_inverse:
        more[0] = more[0].reshape(input.shape if dim is None else -1)
    results = [from_values(values, input.dtype, input.device), *[from_values(one, int64, input.device) for one in more]]
    return without_gradient("unique", results, input)


@overridable_method
def index_put(input: Tensor, indices: Sequence[Tensor], values: Operand, accumulate: bool = False) -> Tensor:
    """`input` with `values` written (added, with `accumulate`) at `input[indices]`.

    >>> genesis.index_put(genesis.zeros(3), (genesis.tensor([0, 2]),), genesis.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    axes, positions = positions_of(input, list(_spread(indices)))
    values = values if isinstance(values, Tensor) else full((), values, dtype=input.dtype, device=input.device)
    return call(OPERATIONS["index_put"], (input, values, axes, accumulate, "index_put", True, *positions))


def _spread(indices: Sequence[Tensor]) -> Iterator[tuple[int, Tensor]]:
    axis = 0
    for index in indices:
        if not isinstance(index, Tensor):
            raise TypeError(f"index_put: wants a tensor for each index; got {type(index).__name__}")
        index = mask_of_bytes(index) if index.dtype is uint8 else index
        yield axis, index
        axis += index.ndim if index.dtype is bool_ else 1


def _along(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, accumulate: bool, wrap: bool = False) -> Tensor:
    """`input` with `source` written or added at the positions `index` along `dim`; `wrap` allows negative ones."""
    index = index if index.ndim else index.reshape(1)
    extents, places = input._array.node.shape, index._array.node.shape
    if not extents:
        source = source.reshape(1) if source.numel() == 1 else source
        return _along(name, input.reshape(1), dim, index, source, accumulate, wrap).reshape(())
    axis = normalize_axis(name, dim, len(extents))
    if len(places) > 1:
        raise FormOfAxesError(f"{name}: index must be 1-d, got shape {places}")
    want = (*extents[:axis], *places, *extents[axis + 1 :])
    if source._array.node.shape not in (want, ()):
        raise ArgumentError(f"{name}: source has shape {source.shape}; want {want}")
    return call(OPERATIONS["index_put"], (input, source, (axis,), accumulate, name, wrap, index))


@overridable_method
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """`input` with `alpha * source` added at the positions `index` along `dim`.

    Raises ValueError for other shapes and, when evaluated, IndexError for an index that is negative or too large.

    >>> genesis.index_add(genesis.zeros(3), 0, genesis.tensor([0, 0]), genesis.ones(2))
    tensor([2., 0., 0.])
    """
    refuse_number("index_add", alpha, input.dtype)
    factor = alpha if input.dtype.category > 1 else int(alpha)
    return _along("index_add", input, dim, index, source if factor == 1 else source * factor, True)


@overridable_method
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with `source` written at the positions `index` along `dim`. Raises as `index_add` does.

    >>> genesis.index_copy(genesis.zeros(3), 0, genesis.tensor([0, 2]), genesis.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    return _along("index_copy", input, dim, index, source, False)


@overridable_method
def index_fill(input: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    """`input` with `value` at the positions `index` along `dim`.

    >>> genesis.index_fill(genesis.zeros(3), 0, genesis.tensor([0, 2]), 1.0)
    tensor([1., 0., 1.])
    """
    if not isinstance(value, Tensor) or not value.requires_grad:
        return _along("index_fill", input, dim, index, full((), value, dtype=input.dtype, device=input.device), False, True)
    # Each element counts once in the gradient of `value`, even if its index occurs twice.
    axis = normalize_axis("index_fill", dim, input.ndim)
    hit = _along("index_fill", full((input.shape[axis] if input.ndim else 1,), False), 0, index, full((), True), False, True)
    mask = hit.reshape([-1 if a == axis else 1 for a in range(input.ndim)]).to(input.device)
    return call(OPERATIONS["where"], (mask, value.to(input.dtype), input))


for _function in (index_add, index_copy, index_fill, index_put, put):
    method(in_place_form(_function))
