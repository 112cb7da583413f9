"""Reductions of nested tensors: over everything, per sequence, or along other axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.functions.creation import full
from genesis.ir.dtypes import int64
from genesis.ir.shapes import normalize_axis
from genesis.nested.any_nested import Rule
from genesis.nested.nested_tensor import NestedTensor, stack
from genesis.nested.rules import axes_of, rule, within
from genesis.ops.registry import OPERATIONS
from genesis.tensor.composite import NotDenseError
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor


def _kept(x: NestedTensor, found: Tensor, keepdim: bool) -> Tensor:
    """Results per sequence, with `keepdim` an axis of extent 1 instead of the ragged one."""
    return found.unsqueeze(x._ragged) if keepdim else found


def _reduction(name: str) -> Rule:
    def function(input: NestedTensor, dim: Any = None, keepdim: bool = False, **attributes: Any) -> Tensor:
        if dim is None:
            return call(OPERATIONS[name], (input._whole,), attributes)  # type: ignore[no-any-return]
        axes = axes_of(input, name, dim)
        if 0 in axes and input._ragged in axes:  # over all sequences
            return _over(name, input._whole, axes, keepdim, attributes)
        if 0 in axes:
            raise NotDenseError(input, f"{name} over the batch alone")
        others = [axis for axis in axes if axis != input._ragged]
        if not others:
            return _kept(input, _along(name, input, **attributes), keepdim)
        if input._ragged in axes:
            rest: Any = function(input, others, True, **attributes)
            found = function(rest, input._ragged, True, **attributes)
            return found if keepdim else found.squeeze(tuple(axes))
        whole = _over(name, input._whole, axes, keepdim, attributes)
        return input.with_whole(whole, input._ragged - (0 if keepdim else sum(axis < input._ragged for axis in axes)))

    return function


def _over(name: str, whole: Tensor, axes: list[int], keepdim: bool, attributes: Any) -> Tensor:
    if name != "prod":
        return call(OPERATIONS[name], (whole, tuple(axes), keepdim), attributes)  # type: ignore[no-any-return]
    for axis in sorted(axes, reverse=True):  # one axis at a time
        whole = call(OPERATIONS[name], (whole, axis, keepdim), attributes)
    return whole


for _name in ("sum", "mean", "amax", "amin", "prod", "any", "all"):
    NestedTensor.rules[_name] = _reduction(_name)


def _along(name: str, x: NestedTensor, dtype: Any = None) -> Tensor:
    """The sums, means, products or extremes of each sequence: (batch, ..)."""
    rows, sequences = x.rows() if dtype is None else x.rows().to(dtype), x.row_numbers()
    if name == "any":
        return _along("sum", x.with_whole(x._whole != 0)) > 0
    if name == "all":
        return _along("sum", x.with_whole(x._whole == 0)) == 0
    shape = (len(x), *rows.shape[1:])
    if name not in ("sum", "mean"):
        rows = rows.to(int64) if name == "prod" and rows.dtype.category < 2 else rows
        start = {"amax": -float("inf"), "amin": float("inf"), "prod": 1.0}[name]
        base = full(shape, start if rows.dtype.category > 1 else int(start == 1), dtype=rows.dtype, device=rows.device)
        index = sequences.reshape(-1, *(1,) * (rows.ndim - 1)).expand(rows.shape)
        settings = {"include_self": rows.dtype.category > 1}
        return call(OPERATIONS["scatter_reduce"], (base, 0, index, rows, name), settings)  # type: ignore[no-any-return]
    rows = rows.to(int64) if rows.dtype.category < 2 else rows
    total = rows.new_zeros(shape).index_add(0, sequences, rows)
    if name == "sum":
        return total
    counts = (x._starts[1:] - x._starts[:-1]).to(total.dtype)
    return total / counts.reshape(-1, *(1,) * (total.ndim - 1))


def _place_of_extreme(name: str) -> Rule:
    """The greatest or least along one axis and where it is, counted within each sequence."""

    def function(input: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
        row = OPERATIONS[name]
        if isinstance(dim, Tensor):
            return call(OPERATIONS[f"{name}imum"], (input, dim))
        if dim is None:
            return call(row, (input._whole,))
        (axis,) = axes_of(input, name, dim)
        if axis == 0:
            raise NotDenseError(input, f"{name} over the batch")
        if axis == input._ragged:
            found = [call(row, (part, axis - 1, keepdim)) for part in input.unbind()]
            return _each(found, stack)
        ragged = input._ragged - (not keepdim and axis < input._ragged)
        return _each([call(row, (input._whole, axis, keepdim))], lambda whole: input.with_whole(whole[0], ragged))

    return function


def _each(found: list[Any], function: Callable[[list[Tensor]], Tensor]) -> Any:
    """A function of results, or of the first of all, the second of all, if there are several of each."""
    if isinstance(found[0], Tensor):
        return function(found)
    return type(found[0])(*[function([*members]) for members in zip(*found, strict=True)])


for _name in ("max", "min", "argmax", "argmin"):
    NestedTensor.rules[_name] = _place_of_extreme(_name)


@rule("softmax")
def softmax(input: NestedTensor, dim: int = -1, dtype: Any = None) -> NestedTensor:
    """softmax along any axis except the batch."""
    axis = normalize_axis("softmax", dim, input.ndim)
    if axis != input._ragged:
        return within("softmax")(input, axis, dtype)  # type: ignore[no-any-return]
    x = input if dtype is None else input.to(dtype)
    powers = (x - NestedTensor.rules["amax"](x.detach(), axis, True)).exp()
    return powers / NestedTensor.rules["sum"](powers, axis, True)  # type: ignore[no-any-return]
