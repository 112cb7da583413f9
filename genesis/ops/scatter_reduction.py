"""Scatter by masks, and with a reduction: means from sums and counts, others fold with a two-element primitive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from genesis.ir.dtypes import DType, bool_
from genesis.ir.errors import ArgumentTypeError, UnsupportedTypeError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import broadcast_shapes, normalize_axis, numel
from genesis.ops.elementwise import clamp, where, zeros_like
from genesis.ops.indexing import along, gather_value, scatter_value, scattered
from genesis.ops.ordering import cumsum
from genesis.ops.registry import alike, cast, composite, expand, primitive
from genesis.ops.rows import checked
from genesis.ops.views import reshape_value

_FOLDS = {"prod": "mul", "amax": "maximum", "amin": "minimum"}  # -> the primitive that folds two elements
_REFERENCES = {"mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def _fold_reference(node: Node, base: np.ndarray, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    result = np.array(base)
    _REFERENCES[node.attrs["mode"]].at(result, along(node, index), source)
    return result


def _fold_grad(g: Value, y: Value, base: Value, index: Value, source: Value) -> tuple[Value | None, ...]:
    """Extremes share the gradient among the elements that attain them; a product's gradient is the product of the others."""
    dim, mode = y.node.attrs["dim"], y.node.attrs["mode"]

    def there(x: Value) -> Value:
        return gather_value(x, index, dim)

    if mode != "mul":
        of_base, of_source = [cast(where(x != x, True, x == found), g.dtype) for x, found in ((base, y), (source, there(y)))]
        share = g / scatter_value(of_base, index, of_source, dim, "add")
        return of_base * share, None, of_source * there(share)
    zero, zero_base = source == 0, base == 0
    zeros = scatter_value(cast(zero_base, g.dtype), index, cast(zero, g.dtype), dim, "add")
    whole = _fold(where(zero_base, 1, base), index, where(zero, 1, source), dim, "mul")
    vanishing = scatter_value(where(zero_base, base, 0), index, where(zero, source, 0), dim, "add")

    def others(x: Value, is_zero: Value, of: Callable[[Value], Value]) -> Value:
        # With two zeros, each one's derivative is the other: add a sum that is 0 but has that derivative.
        count, rest = of(zeros), of(whole)
        beside = where(count == 1, rest, where(count == 2, rest * (of(vanishing) - x), 0))
        return where(is_zero, beside, of(y) / where(is_zero, 1, x))

    return g * others(base, zero_base, lambda x: x), None, there(g) * others(source, zero, there)


primitive("scatter_fold", "scatter", grad=_fold_grad, reference=_fold_reference)


def _fold(base: Value, index: Value, source: Value, dim: int, mode: str) -> Value:
    return base.graph.add("scatter_fold", (base, index, source), base.shape, base.dtype, {"dim": dim, "mode": mode})


def _neutral(reduce: str, dtype: DType) -> float:
    """The fold's neutral element."""
    if reduce in ("sum", "mean", "prod"):
        return reduce == "prod" if dtype is bool_ else int(reduce == "prod")
    if dtype.is_floating_point:
        return float("-inf") if reduce == "amax" else float("inf")
    if dtype is bool_:
        return reduce == "amin"
    info = np.iinfo(dtype.numpy)
    return int(info.min if reduce == "amax" else info.max)


def _reduced(name: str, input: Value, axis: int, index: Value, src: Value, reduce: str, include_self: bool) -> Value:
    if reduce not in ("sum", "mean", *_FOLDS):
        raise ValueError(f"{name}: reduce is {reduce!r}; want 'sum', 'prod', 'mean', 'amax' or 'amin'")
    if reduce in ("amax", "amin") and input.dtype.is_complex:
        raise UnsupportedTypeError(f"{name}: {reduce} takes real numbers, got {input.dtype.name}")
    if reduce == "mean" and input.dtype is bool_:
        raise TypeError(f"{name}: a mean wants numbers, got bool; convert with .to(genesis.float32)")
    once = expand(input.graph.constant(1, input.dtype), index.shape)
    base = input
    if not include_self:
        met = scatter_value(zeros_like(input), index, once, axis, "set") != 0
        base = where(met, input.graph.constant(_neutral(reduce, input.dtype), input.dtype), input)
    if reduce in _FOLDS:
        return _fold(base, index, src, axis, _FOLDS[reduce])
    total = scatter_value(base, index, src, axis, "add")
    if reduce == "sum":
        return total
    self = expand(input.graph.constant(int(include_self), input.dtype), input.shape)
    count = scatter_value(self, index, once, axis, "add")
    count = where(count == 0, 1, count)
    return total / count if input.dtype.category > 1 else total // count


@composite("scatter_reduce", (0, 2, 3), in_place=True, takes_complex=True)
def scatter_reduce(input: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True) -> Value:
    """`input` with `src[i]` folded into it at `index[i]` along `dim`, by "sum", "prod", "mean", "amax" or "amin".

    Without `include_self` the elements of `input` are replaced. Other arguments and errors as in `scatter_add`.

    >>> x, at = genesis.tensor([1.0, 5.0]), genesis.tensor([0, 0, 1])
    >>> genesis.scatter_reduce(x, 0, at, genesis.tensor([3.0, 2.0, 4.0]), "amax")
    tensor([3., 5.])
    """
    axis, index, src = scattered("scatter_reduce", input, dim, index, src)
    if not input.ndim:
        return reshape_value(_reduced("scatter_reduce", reshape_value(input, (1,)), axis, index, src, reduce, include_self), ())
    return _reduced("scatter_reduce", input, axis, index, src, reduce, include_self)


@composite("index_reduce", (0, 2, 3), in_place=True, takes_complex=True)
def index_reduce(input: Value, dim: int, index: Value, source: Value, reduce: str, *, include_self: bool = True) -> Value:
    """`input` with the slices of `source` folded into those at the positions `index` (1-d) along `dim`."""
    if not input.ndim:
        one = [reshape_value(v, (1,)) if not v.ndim else v for v in (input, index, source)]
        return reshape_value(index_reduce.define(one[0], dim, one[1], one[2], reduce, include_self=include_self), ())
    axis = normalize_axis("index_reduce", dim, input.ndim)
    want = (*input.shape[:axis], numel(index.shape), *input.shape[axis + 1 :])
    if index.ndim > 1 or source.shape != want:
        raise ValueError(f"index_reduce: index has shape {index.shape}, source {source.shape}; want (n,) and {want}")
    index = expand(reshape_value(index, tuple(want[axis] if a == axis else 1 for a in range(len(want)))), want)
    axis, index, source = scattered("index_reduce", input, axis, index, source)
    return _reduced("index_reduce", input, axis, index, source, reduce, include_self)


@composite("masked_scatter", 3, in_place=True, takes_complex=True)
def masked_scatter(input: Value, mask: Value, source: Value) -> Value:
    """`input` with the elements of `source`, in order, where `mask` holds.

    Raises TypeError for other dtypes and, when evaluated, ValueError if `source` has too few elements.

    >>> genesis.masked_scatter(genesis.zeros(3), genesis.tensor([True, False, True]), genesis.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    alike("masked_scatter", input, source)
    if mask.dtype is not bool_:
        raise ArgumentTypeError(f"masked_scatter: mask must be bool, got {mask.dtype.name}")
    shape, count = broadcast_shapes("masked_scatter", input.shape, mask.shape), numel(source.shape)
    mask = expand(mask, shape)
    position = cumsum(reshape_value(mask, (numel(shape),)), 0) - 1
    refusal = f"masked_scatter: source has {count} elements, fewer than the mask has that are true"
    taken = checked(~reshape_value(mask, position.shape) | (position < count), refusal)
    elements = reshape_value(source, (count,)) if count else expand(input.graph.constant(0, input.dtype), (1,))
    found = gather_value(elements, where(taken, clamp(position, 0, max(count - 1, 0)), 0), 0)
    return where(mask, reshape_value(found, shape), expand(input, shape))
