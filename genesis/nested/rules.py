"""Rules of operations for nested tensors: on all sequences at once, one by one, along the ragged axis; and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.functions.creation import full
from genesis.functions.random_draws import draws
from genesis.ir.dtypes import int64
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import normalize_axis, numel
from genesis.nested.nested_tensor import NestedTensor, Rule, cat, joined, stack
from genesis.ops.registry import OPERATIONS
from genesis.sparse.reductions import reduced_rows
from genesis.tensor.composite import NotDenseError
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

rule = NestedTensor.rule


def _some(x: NestedTensor, start: int, length: int) -> NestedTensor:
    """`length` of the sequences, from `start` on."""
    parts = x.unbind()[start if start >= 0 else start + len(x) :][:length]
    return _ragged_at(joined([part.movedim(x._ragged - 1, 0) for part in parts]), x._ragged)


def _ragged_at(x: NestedTensor, axis: int) -> NestedTensor:
    """Sequences whose ragged axis is the first, with it moved to `axis`."""
    return x if axis == 1 else x.with_whole(x._whole.movedim(1, axis), axis)


def axes_of(x: NestedTensor, name: str, dims: Any) -> list[int]:
    return [normalize_axis(name, dim, x.ndim) for dim in ([dims] if isinstance(dims, int) else dims)]


# ---- along dense axes ----
def within(name: str, changes_rank: int = 0) -> Rule:
    """An operation along a dense axis `dim`, its first argument."""

    def function(input: NestedTensor, *arguments: Any, **attributes: Any) -> Tensor:
        dim = attributes["dim"] if "dim" in attributes else arguments[0]
        axis = normalize_axis(name, dim, input.ndim + (name == "unsqueeze"))
        if name == "select" and axis == 0:
            return input.unbind()[attributes["index"] if "index" in attributes else arguments[-1]]
        if name == "narrow" and axis == 0:
            given = {**dict(zip(("dim", "start", "length"), arguments, strict=False)), **attributes}
            return _some(input, given["start"], given["length"])
        if axis == 0 or (axis == input._ragged and name != "unsqueeze"):
            raise NotDenseError(input, f"{name} along axis {axis}")
        whole = call(OPERATIONS[name], (input._whole, *arguments), attributes)
        return input.with_whole(whole, input._ragged + (changes_rank if axis <= input._ragged else 0))

    return function


for _name, _change in {
    "log_softmax": 0, "cumsum": 0, "narrow": 0, "select": -1, "unsqueeze": 1, "index_select": 0, "glu": 0, "flip": 0,
}.items():
    NestedTensor.rules[_name] = within(_name, _change)


def _normalized(name: str) -> Rule:
    """Over the last axes, behind the ragged one."""

    def function(input: NestedTensor, normalized_shape: Sequence[int], *arguments: Any, **attributes: Any) -> NestedTensor:
        if len(normalized_shape) > input.ndim - input._ragged - 1:
            raise NotDenseError(input, f"{name} over {len(normalized_shape)} axes, a ragged one among them,")
        return input.with_whole(call(OPERATIONS[name], (input._whole, normalized_shape, *arguments), attributes))

    return function


NestedTensor.rules["layer_norm"], NestedTensor.rules["rms_norm"] = _normalized("layer_norm"), _normalized("rms_norm")


@rule("linear")
def linear(input: NestedTensor, weight: Tensor, bias: Tensor | None = None) -> NestedTensor:
    """Over the last axis."""
    if input._ragged == input.ndim - 1:
        raise NotDenseError(input, "linear over a ragged axis")
    return input.with_whole(call(OPERATIONS["linear"], (input._whole, weight, bias)))


@rule("embedding")
def embedding(input: NestedTensor, weight: Tensor, *of_rows: Any) -> NestedTensor:
    """Rows of a table for each element."""
    return input.with_whole(call(OPERATIONS["embedding"], (input._whole, weight, *of_rows)))


@rule("transpose")
def transpose(input: NestedTensor, *dims: int, dim0: int = 0, dim1: int = 0) -> NestedTensor:
    """Two axes exchanged, neither of them the batch."""
    order = list(range(input.ndim))
    a, b = axes_of(input, "transpose", dims or (dim0, dim1))
    order[a], order[b] = order[b], order[a]
    return permute(input, order)


@rule("permute")
def permute(input: NestedTensor, *dims: Any) -> NestedTensor:
    """The axes in another order, the batch first."""
    order = axes_of(input, "permute", dims[0] if len(dims) == 1 else dims)
    if sorted(order) != list(range(input.ndim)) or order[0]:
        raise ArgumentError(f"permute: axes {order} of {input.described()}; want each once, the batch first")
    return input.with_whole(call(OPERATIONS["permute"], (input._whole, tuple(order))), order.index(input._ragged))


@rule("unflatten")
def unflatten(input: NestedTensor, dim: int, sizes: Sequence[int]) -> NestedTensor:
    """An axis as several."""
    axis = normalize_axis("unflatten", dim, input.ndim)
    if axis in (0, input._ragged):
        raise NotDenseError(input, f"unflatten of axis {axis}")
    whole = input._whole.unflatten(axis, tuple(sizes))
    return input.with_whole(whole, input._ragged + (len(sizes) - 1 if axis < input._ragged else 0))


@rule("flatten")
def flatten(input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    """Axes behind the ragged one, or before it, as one."""
    first, last = axes_of(input, "flatten", (start_dim, end_dim))
    if first == 0 or first <= input._ragged <= last:
        raise NotDenseError(input, "flatten of the batch or a ragged axis")
    return input.with_whole(input._whole.flatten(first, last), input._ragged - (last - first if last < input._ragged else 0))


@rule("squeeze")
def squeeze(input: NestedTensor, dim: Any = None) -> NestedTensor:
    """Without axes of extent 1, the batch and the ragged one apart."""
    given = range(1, input.ndim) if dim is None else axes_of(input, "squeeze", dim)
    gone = [axis for axis in given if axis not in (0, input._ragged) and input._whole.shape[axis] == 1]
    return input.with_whole(input._whole.squeeze(tuple(gone)), input._ragged - sum(axis < input._ragged for axis in gone))


@rule("reshape", "view")
def reshape(input: NestedTensor, *shape: Any) -> NestedTensor:
    """The axes behind the ragged one, which is -1, otherwise."""
    extents = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    if input._ragged != 1 or len(extents) < 2 or extents[0] not in (-1, len(input)) or (
        extents[1] not in (-1, input.shape[1])
    ):
        raise ArgumentError(f"reshape: {input.described()} to {extents}; want the batch, -1 and other axes behind these")
    return input.with_whole(input._whole.reshape(1, input._whole.shape[1], *extents[2:]))


@rule("expand")
def expand(input: NestedTensor, *shape: Any) -> NestedTensor:
    """Axes of extent 1 repeated."""
    extents = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    extents[0] = extents[input._ragged] = -1
    extents = [own if extent == -1 else extent for own, extent in zip(input._whole.shape, extents, strict=True)]
    return input.with_whole(input._whole.expand(tuple(extents)))


@rule("cat")
def concatenated(tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    """End to end along an axis that is neither the batch nor ragged; along the batch, more sequences."""
    first = tensors[0]
    axis = normalize_axis("cat", dim, first.ndim)
    if not all(isinstance(x, NestedTensor) and x._ragged == first._ragged for x in tensors):
        raise NotDenseError(next(x for x in tensors if isinstance(x, NestedTensor)), "cat with others")
    if axis == 0 and first._ragged == 1:
        return joined([part for x in tensors for part in x.unbind()])
    if axis in (0, first._ragged) or any(x._lengths != first._lengths for x in tensors):
        raise NotDenseError(first, f"cat along axis {axis} of such sequences")
    return first.with_whole(cat([x._whole for x in tensors], axis))


# ---- one by one ----
@rule("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of each sequence."""
    return matmul(input, mat2)


@rule("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of each sequence; with a matrix, of all at once."""
    if isinstance(input, NestedTensor) and not isinstance(other, NestedTensor) and other.ndim == 2 and (
        input._ragged < input.ndim - 1
    ):
        return input.with_whole(input._whole @ other)
    parts = [x.unbind() for x in (input, other)]
    products = [a @ b for a, b in zip(*parts, strict=True)]
    kind = input if isinstance(input, NestedTensor) else other
    assert isinstance(kind, NestedTensor)
    if isinstance(other, NestedTensor) and other._ragged == other.ndim - 1 and not (
        isinstance(input, NestedTensor) and input._ragged < input.ndim - 1
    ):
        return other.with_whole(cat(products, -1).unsqueeze(0), products[0].ndim)
    if not isinstance(input, NestedTensor) or input._ragged == input.ndim - 1:
        return _stacked(kind, products)
    return _again(input, products)


def _stacked(x: NestedTensor, products: Sequence[Tensor]) -> Tensor:
    if any(product.shape != products[0].shape for product in products):
        raise NotDenseError(x, "matmul whose results are of different shapes")
    return cat([product.unsqueeze(0) for product in products])


def _again(x: NestedTensor, parts: Sequence[Tensor]) -> NestedTensor:
    """Results as long as the sequences of `x`, as its ragged axis."""
    return x.with_whole(cat([*parts], x._ragged - 1).unsqueeze(0))


@rule("scaled_dot_product_attention")
def attention(
    query: NestedTensor, key: NestedTensor, value: NestedTensor, attn_mask: Tensor | None, dropout_p: float, *settings: Any
) -> NestedTensor:
    """Each sequence by itself: (batch, heads, ragged, ..), or (batch, ragged, ..)."""
    if attn_mask is not None or not all(isinstance(x, NestedTensor) for x in (query, key, value)):
        nested = next(x for x in (query, key, value) if isinstance(x, NestedTensor))
        raise NotDenseError(nested, "attention with a mask or of nested and dense ones")
    return _again(query, attention_of_each(query.unbind(), key.unbind(), value.unbind(), dropout_p, settings))


def attention_of_each(
    queries: Sequence[Tensor], keys: Sequence[Tensor], values: Sequence[Tensor], dropout_p: float, settings: Sequence[Any]
) -> list[Tensor]:
    """The attention of each sequence to its own, with its own random numbers."""
    found: list[Tensor] = []
    for q, k, v in zip(queries, keys, values, strict=True):
        random = draws(numel((*q.shape[:-1], k.shape[-2]))) if dropout_p else (0, 0)
        found.append(call(OPERATIONS["scaled_dot_product_attention"], (q, k, v, None, dropout_p, *settings, *random)))
    return found


@rule("embedding_bag")
def embedding_bag(
    input: NestedTensor, weight: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None, *settings: Any
) -> Tensor:
    """A bag of each sequence."""
    factors = per_sample_weights.values() if isinstance(per_sample_weights, NestedTensor) else per_sample_weights
    arguments = (input.values(), weight, input._starts[:-1], factors, *settings)
    return call(OPERATIONS["embedding_bag"], arguments)  # type: ignore[no-any-return]


@rule("full_like")
def full_like(input: NestedTensor, fill_value: float, *, layout: object = None, **settings: Any) -> NestedTensor:
    """One number everywhere, in sequences as long."""
    return input.with_whole(full(tuple(input._whole.shape), fill_value, **settings))


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
    if name not in ("sum", "mean"):
        rows = rows.to(int64) if name == "prod" and rows.dtype.category < 2 else rows
        return reduced_rows(name, rows, sequences, len(x))
    rows = rows.to(int64) if rows.dtype.category < 2 else rows
    total = rows.new_zeros(len(x), *rows.shape[1:]).index_add(0, sequences, rows)
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
