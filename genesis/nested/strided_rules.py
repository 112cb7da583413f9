"""Rules of operations for nested tensors in the strided layout: per tensor, or for all rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.functions.creation import full
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import normalize_axis, numel
from genesis.nested.nested_tensor import Rule
from genesis.nested.rules import attention_of_each
from genesis.nested.strided_tensor import StridedNestedTensor, cat, refused, strided_nested, strided_of
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

Nested = StridedNestedTensor
rule = Nested.rule


def _inner(x: Nested, name: str, dim: int, more: int = 0) -> int:
    """An axis of the nested tensor as one of its tensors'."""
    axis = normalize_axis(name, dim, x.ndim + more)
    if axis == 0:
        raise refused(x, f"{name} along the batch")
    return axis - 1


# ---- each tensor by itself ----
def _along(name: str, more: int = 0) -> Rule:
    """An operation along `dim`, its first argument."""

    def function(input: Nested, *arguments: Any, **attributes: Any) -> Nested:
        dim, rest = (attributes.pop("dim"), arguments) if "dim" in attributes else (arguments[0], arguments[1:])
        axis = _inner(input, name, dim, more)
        return strided_of([_apply(name, part, axis, *rest, **attributes) for part in input.unbind()])

    return function


def _apply(name: str, part: Tensor, *arguments: Any, **attributes: Any) -> Any:
    """A function of one tensor: views are its methods."""
    method = getattr(part, name, None)
    return method(*arguments, **attributes) if method is not None else call(OPERATIONS[name], (part, *arguments), attributes)


for _name in ("softmax", "log_softmax", "cumsum", "flip", "unsqueeze", "index_select", "unflatten"):
    Nested.rules[_name] = _along(_name, _name == "unsqueeze")


@rule("select")
def select(input: Nested, dim: int, index: int) -> Tensor:
    """One tensor, or a position along another axis of each."""
    if normalize_axis("select", dim, input.ndim) == 0:
        return input.unbind()[index]
    return strided_of([part.select(_inner(input, "select", dim), index) for part in input.unbind()])


@rule("narrow")
def narrow(input: Nested, dim: int, start: int, length: int) -> Nested:
    """Some of the tensors, or a part of each along an axis."""
    if normalize_axis("narrow", dim, input.ndim) == 0:
        return strided_of(input.unbind()[start if start >= 0 else start + len(input) :][:length], input.dtype)
    return strided_of([part.narrow(_inner(input, "narrow", dim), start, length) for part in input.unbind()])


@rule("transpose")
def transpose(input: Nested, dim0: int, dim1: int) -> Nested:
    """Two axes exchanged, neither of them the batch."""
    axes = [_inner(input, "transpose", dim) for dim in (dim0, dim1)]
    return strided_of([part.transpose(*axes) for part in input.unbind()])


@rule("permute")
def permute(input: Nested, *dims: Any) -> Nested:
    """The axes in another order, the batch first."""
    order = [normalize_axis("permute", dim, input.ndim) for dim in (dims[0] if len(dims) == 1 else dims)]
    if sorted(order) != [*range(input.ndim)] or order[0]:
        raise ArgumentError(f"permute: axes {order} of {input.described()}; want each once, the batch first")
    return strided_of([part.permute([axis - 1 for axis in order[1:]]) for part in input.unbind()])


@rule("squeeze")
def squeeze(input: Nested, dim: Any = None) -> Nested:
    """Without axes of extent 1 that are named."""
    if dim is None:
        raise ArgumentError(f"squeeze: of {input.described()}; want dim")
    axes = tuple([_inner(input, "squeeze", axis) for axis in ([dim] if isinstance(dim, int) else dim)])
    return strided_of([part.squeeze(axes) for part in input.unbind()])


@rule("flatten")
def flatten(input: Nested, start_dim: int = 0, end_dim: int = -1) -> Nested:
    """Axes of each tensor as one."""
    axes = [_inner(input, "flatten", dim) for dim in (start_dim, end_dim)]
    return strided_of([part.flatten(*axes) for part in input.unbind()])


@rule("reshape", "view")
def reshape(input: Nested, *shape: Any) -> Nested:
    """Other extents for each tensor: -1 keeps the axis at this position, or is inferred from what is left."""
    first, *extents = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if first not in (-1, len(input)):
        raise ArgumentError(f"reshape: {input.described()} to {[first, *extents]}; want the batch first")
    parts = []
    for part, size in zip(input.unbind(), input._sizes, strict=True):
        kept = [size[at] if extent == -1 and at < len(size) else extent for at, extent in enumerate(extents)]
        parts.append(part.reshape(kept if -1 in kept or numel(tuple(kept)) == numel(size) else extents))
    return strided_of(parts)


@rule("cat")
def concatenated(tensors: Sequence[Tensor], dim: int = 0) -> Nested:
    """More tensors; or each tensor concatenated with those at the same position."""
    first = next(x for x in tensors if isinstance(x, Nested))
    if normalize_axis("cat", dim, first.ndim) == 0:
        return strided_of([part for x in tensors for part in x.unbind()])
    axis = _inner(first, "cat", dim)
    return strided_of([cat([*parts], axis) for parts in zip(*[x.unbind() for x in tensors], strict=True)])


@rule("matmul", "bmm")
def matmul(input: Tensor, other: Tensor) -> Nested:
    """The product of each pair; a dense matrix counts for all."""
    count = len(input if isinstance(input, Nested) else other)
    left, right = [x.unbind() if isinstance(x, Nested) or x.ndim > 2 else (x,) * count for x in (input, other)]
    return strided_of([a @ b for a, b in zip(left, right, strict=True)])


@rule("scaled_dot_product_attention")
def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, *settings: Any) -> Nested:
    """Each of the batch by itself."""
    given = query, key, value
    if attn_mask is not None or not all(isinstance(x, Nested) for x in given):
        raise refused(next(x for x in given if isinstance(x, Nested)), "attention with a mask or of nested and dense ones")
    return strided_of(attention_of_each(query.unbind(), key.unbind(), value.unbind(), dropout_p, settings))


# ---- rows of all tensors at once ----
def _rows(input: Nested, name: str, axes: int) -> Tensor:
    """The elements with the last `axes` axes, which are equal in all, apart."""
    return input._buffer.reshape(-1, *[input.size(axis) for axis in range(input.ndim - axes, input.ndim)])


def _normalized(name: str) -> Rule:
    def function(input: Nested, normalized_shape: Sequence[int], *arguments: Any, **attributes: Any) -> Nested:
        rows = _rows(input, name, len(normalized_shape))
        return input.with_elements(call(OPERATIONS[name], (rows, normalized_shape, *arguments), attributes).reshape(-1))

    return function


Nested.rules["layer_norm"], Nested.rules["rms_norm"] = _normalized("layer_norm"), _normalized("rms_norm")


@rule("linear")
def linear(input: Nested, weight: Tensor, bias: Tensor | None = None) -> Nested:
    """Over the last axis."""
    found = call(OPERATIONS["linear"], (_rows(input, "linear", 1), weight, bias))
    return strided_nested(found.reshape(-1), [(*size[:-1], weight.shape[0]) for size in input._sizes])


@rule("embedding")
def embedding(input: Nested, weight: Tensor, *of_rows: Any) -> Nested:
    """Rows of a table for each element."""
    found = call(OPERATIONS["embedding"], (input._buffer, weight, *of_rows))
    return strided_nested(found.reshape(-1), [(*size, weight.shape[1]) for size in input._sizes])


# ---- reductions ----
def _reduction(name: str) -> Rule:
    def function(input: Nested, dim: Any = None, keepdim: bool = False, **attributes: Any) -> Tensor:
        if dim is None:
            return call(OPERATIONS[name], (input._buffer,), attributes)  # type: ignore[no-any-return]
        axes = [_inner(input, name, axis) for axis in ([dim] if isinstance(dim, int) else dim)]
        axis = axes[0] if len(axes) == 1 else tuple(axes)
        return strided_of([call(OPERATIONS[name], (part, axis, keepdim), attributes) for part in input.unbind()])

    return function


for _name in ("sum", "mean", "amax", "amin", "prod", "any", "all"):
    Nested.rules[_name] = _reduction(_name)


@rule("full_like")
def full_like(input: Nested, fill_value: float, *, layout: object = None, **settings: Any) -> Nested:
    """One number everywhere, in tensors of the same sizes."""
    return input.with_elements(full(tuple(input._buffer.shape), fill_value, **settings))
