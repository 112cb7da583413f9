"""Arithmetic of sparse tensors, and elementwise functions that keep zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.functions.comparison import result_type
from genesis.functions.creation import full
from genesis.functions.from_data import as_tensor
from genesis.functions.methods.conversion import values_of
from genesis.functions.methods.table import functions_of
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ir.named_layouts import SparseLayout, sparse_coo, strided
from genesis.ir.shapes import numel
from genesis.ops.registry import OPERATIONS
from genesis.sparse.sparse_tensor import (
    BLOCKWISE, RULES, SparseTensor, coalesced, flat_positions, in_layout, positions_of, sparse, summed,
)
from genesis.tensor.composite import NotDenseError
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Operand, Tensor

(cat,) = functions_of("cat")
Rule = Callable[..., Any]

LINEAR = ("neg", "positive", "deg2rad", "rad2deg", "real_parts", "imaginary_parts", "conjugates", "to_dtype", "stop_gradient")
ZERO_TO_ZERO = (  # they apply to sums: duplicate elements are added up first
    "abs", "sign", "sgn", "sqrt", "square", "expm1", "log1p", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh",
    "erf", "erfinv", "relu", "floor", "ceil", "trunc", "round", "frac", "isnan", "isinf", "isposinf", "isneginf", "signbit",
    "nan_to_num",
    "leaky_relu", "relu6", "hardtanh", "elu", "selu", "celu", "silu", "gelu", "mish", "softsign", "tanhshrink", "softshrink",
    "hardshrink", "angle",
)


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of these operations for sparse arguments."""

    def note(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return note


def _of_elements(name: str, is_linear: bool) -> Rule:
    def function(input: SparseTensor, *arguments: Any, **attributes: Any) -> SparseTensor:
        x = input if is_linear else coalesced(input)
        return x.with_elements(call(OPERATIONS[name], (x._elements, *arguments), attributes))

    return function


for _name in (*LINEAR, *ZERO_TO_ZERO):
    RULES[_name] = _of_elements(_name, _name in LINEAR)
BLOCKWISE.update((*LINEAR, *ZERO_TO_ZERO, "full_like"))


@rule("full_like")
def full_like(
    input: SparseTensor, fill_value: float, *, requires_grad: bool = False, layout: object = None, **settings: Any
) -> Tensor:
    """A tensor of zeros, without elements; a dense one if that is the layout."""
    if layout is strided:
        return full(input.shape, fill_value, requires_grad=requires_grad, **settings)
    if fill_value != 0:
        raise NotDenseError(input, "full_like of what is not zero")
    made: SparseTensor = input.zeros().to(**settings)
    if isinstance(layout, SparseLayout):
        made = in_layout(made, layout, made.block)
    made.requires_grad = requires_grad
    return made


def elements_at(x: Tensor, mask: SparseTensor) -> Tensor:
    """The elements of a dense tensor, which broadcasts to the shape of `mask`, at the mask's indices."""
    if x.ndim > mask.ndim or any(own not in (1, extent) for own, extent in zip(x.shape[::-1], mask.shape[::-1], strict=False)):
        raise ArgumentError(f"shape {x.shape} does not broadcast to that of the sparse tensor, {tuple(mask.shape)}")
    x = x.reshape((1,) * (mask.ndim - x.ndim) + tuple(x.shape))
    axes = len(mask.extents)
    varied = [axis for axis in range(axes) if x.shape[axis] != 1 or mask.shape[axis] == 1]
    kept = x.reshape(*[x.shape[axis] for axis in varied], *x.shape[axes:])
    if not varied:
        return kept.unsqueeze(0)
    return kept[tuple([mask._positions[axis] for axis in varied])]


def is_number(x: object) -> bool:
    """Whether it is a number or a 0-d dense tensor."""
    return not isinstance(x, Tensor) or (not isinstance(x, SparseTensor) and not x.shape)


def _sparse_one(*operands: object) -> SparseTensor:
    return next(x for x in operands if isinstance(x, SparseTensor))


# ---- products ----
@rule("mul")
def mul(input: Operand, other: Operand) -> SparseTensor:
    """The product: only elements that both factors have."""
    if not isinstance(input, SparseTensor):
        input, other = other, input
    assert isinstance(input, SparseTensor)
    if is_number(other):
        return input.with_elements(input._elements * other)
    if isinstance(other, SparseTensor):
        return _of_both(input, other)
    return input.with_elements(input._elements * elements_at(other, input))  # type: ignore[arg-type]


def _of_both(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The product of two sparse tensors: the elements that both have."""
    _same_shape("mul", x, y)
    if x._positions is y._positions and (x._is_coalesced or x._kind is not sparse_coo):
        return x.with_elements(x._elements * y._elements)
    a, b = coalesced(in_layout(x, sparse_coo)), coalesced(in_layout(y, sparse_coo))
    first, second = (values_of(flat_positions(part._positions, part.extents)) for part in (a, b))
    both, of_a, of_b = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    flat, at_a, at_b = (as_tensor(found.astype(np.int64), device=x.device) for found in (both, of_a, of_b))
    made = sparse(positions_of(flat, x.extents), a._elements[at_a] * b._elements[at_b], x._extents, True)
    return in_layout(made, x._kind)


@rule("div")
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> SparseTensor:
    """A sparse tensor over a number."""
    if not isinstance(input, SparseTensor) or not is_number(other):
        raise NotDenseError(_sparse_one(input, other), "div by what is not one number")
    x = input if rounding_mode is None else coalesced(input)
    return x.with_elements(call(OPERATIONS["div"], (x._elements, other), {"rounding_mode": rounding_mode}))


@rule("pow")
def power(input: Operand, exponent: Operand) -> SparseTensor:
    """A sparse tensor to the power of a number above zero."""
    if not isinstance(input, SparseTensor) or isinstance(exponent, Tensor) or not exponent > 0:  # type: ignore[operator]
        raise NotDenseError(_sparse_one(input, exponent), "pow")
    x = coalesced(input)
    return x.with_elements(x._elements**exponent)


# ---- sums ----
@rule("add")
def add(input: Operand, other: Operand, alpha: float = 1) -> Tensor:
    """The sum: sparse for two sparse tensors, dense for a sparse and a dense one."""
    if isinstance(input, SparseTensor) and isinstance(other, SparseTensor):
        return _sum(input, other if alpha == 1 else mul(other, alpha))
    x, rest = (input, other) if isinstance(input, SparseTensor) else (other, input)
    assert isinstance(x, SparseTensor)
    if not isinstance(rest, Tensor) or rest.shape != x.shape:
        raise NotDenseError(x, f"add of {'a number' if is_number(rest) else 'another shape'}")
    if alpha != 1:
        x, rest = (x, rest * alpha) if x is input else (mul(x, alpha), rest)
    dtype = result_type(x._elements, rest)
    base = rest.to(dtype).reshape(numel(x.extents), *x._elements.shape[1:])
    return summed(base, flat_positions(x._positions, x.extents), x._elements.to(dtype)).reshape(rest.shape)


@rule("sub")
def sub(input: Operand, other: Operand, alpha: float = 1) -> Tensor:
    """`add` of the negative."""
    return add(input, other, -alpha)


def _sum(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    _same_shape("add", x, y)
    if x._positions is y._positions and x._kind is y._kind:
        return x.with_elements(x._elements + y._elements)
    a, b = in_layout(x, sparse_coo), in_layout(y, sparse_coo)
    dtype: DType = result_type(a._elements, b._elements)
    elements = cat([a._elements.to(dtype), b._elements.to(dtype)])
    made = sparse(cat([a._positions, b._positions], 1), elements, x._extents)
    return in_layout(coalesced(made) if a._is_coalesced and b._is_coalesced else made, x._kind)


def _same_shape(name: str, x: SparseTensor, y: SparseTensor) -> None:
    if x.shape != y.shape or x._positions.shape[0] != y._positions.shape[0]:
        axes = x._positions.shape[0], y._positions.shape[0]
        raise ArgumentError(f"{name}: sparse tensors of shapes {tuple(x.shape)} and {tuple(y.shape)}, {axes} axes of them "
                            "sparse; want them the same")
