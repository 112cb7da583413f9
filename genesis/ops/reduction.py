"""Reductions over axes: sum, prod, max, min, any, all, argmax, argmin; mean, var and others are composed of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType, bool_, int8, int64, uint8
from genesis.ir.errors import EmptyError
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axes, normalize_axis, numel, reduced_shape
from genesis.ops.complex_primitives import real_value, squared_modulus
from genesis.ops.elementwise import maximum, minimum, sqrt, where
from genesis.ops.layout import contiguous_layout
from genesis.ops.registry import Gradient, Operation, Reference, cast, composite, expand, primitive, widened
from genesis.ops.results import Extremum
from genesis.ops.source import iota
from genesis.ops.views import reshape_value, view_node

Axes = int | Sequence[int] | None


def reduce_value(op: str, x: Value, axes: tuple[int, ...], keepdim: bool = False, dtype: DType | None = None) -> Value:
    """The node that reduces `x` over `axes`; with `keepdim` they stay with extent 1."""
    if axes or op in ("argmax", "argmin"):
        y = x.graph.add(op, (x,), reduced_shape(x.shape, axes), dtype or x.dtype, {"axes": axes})
    else:
        y = cast(x, dtype or x.dtype)
        y = view_node(y, contiguous_layout(y.shape), op)
    return reshape_value(y, reduced_shape(x.shape, axes, True)) if keepdim else y


def _spread_like(g: Value, y: Value, x: Value) -> Value:
    """`g`, shaped like the reduction `y`, broadcast to the input's shape."""
    return expand(reshape_value(g, reduced_shape(x.shape, y.node.attrs["axes"], True)), x.shape)


def _row(name: str, ref: Reference, grad: Gradient | None = None) -> None:
    def reference(node: Node, x: np.ndarray) -> np.ndarray:
        wide = x.astype(node.dtype.compute.numpy) if node.dtype.compute is not node.dtype else x
        return np.asarray(ref(wide, axis=node.attrs["axes"])).astype(node.dtype.numpy)

    primitive(name, "reduce", grad=grad, reference=reference)


def _prod_grad(g: Value, y: Value, x: Value) -> Value:
    """Each element's gradient is the product of the others: of the nonzero ones times that of the zeros.

    At most two zeros matter, the second one only for a second derivative.
    """
    axes, zero = y.node.attrs["axes"], x == 0

    def over(op: str, values: Value) -> Value:
        return _spread_like(reduce_value(op, values, axes), y, x)

    zeros, safe = over("sum", cast(zero, int64)), where(zero, 1, x)
    other_zeros = where(zeros == 1, 1, where(zeros == 2, over("sum", where(zero, x, 0)) - x, 0))
    return _spread_like(g, y, x) * over("prod", safe) * where(zero, other_zeros, over("prod", where(zero, x, 1)) / safe)


def _extremum_grad(g: Value, y: Value, x: Value) -> Value:
    """The gradient is shared equally among the elements that attain the extremum, or is the first one's."""
    if "first" in y.node.attrs:
        narrow = int8 if x.shape[-1] <= 128 else int64
        at = reduce_value("argmax", x, y.node.attrs["axes"], True, narrow)
        return where(iota(x.graph, x.shape[-1], narrow) == at, _spread_like(g, y, x), 0)
    at = x == _spread_like(y, y, x)
    axes = y.node.attrs["axes"]
    if len(axes) == x.ndim:  # as in PyTorch, NaN shares it here, and makes a row's gradient NaN (0 / 0)
        at = at | (x != x)
    at = cast(at, g.dtype)
    return at * _spread_like(g / reduce_value("sum", at, axes), y, x)


def first_greatest(rows: Value) -> Value:
    """The greatest element along the last axis, whose first position gets the gradient; NaN wins.

    The position is computed by backward alone: kept for it, it would be twice as many bytes as the elements.
    """
    attrs = {"axes": (rows.ndim - 1,), "first": True}
    return rows.graph.add("max", (rows,), rows.shape[:-1], rows.dtype, attrs)


_row("sum", np.sum, grad=lambda g, y, x: _spread_like(g, y, x))
_row("prod", np.prod, grad=_prod_grad)
_row("max", np.max, grad=_extremum_grad)
_row("min", np.min, grad=_extremum_grad)
_row("any", np.any)
_row("all", np.all)


primitive("argmax", "reduce", reference=lambda node, x: np.argmax(x, axis=node.attrs["axes"][0]).astype(node.dtype.numpy))
primitive("argmin", "reduce", reference=lambda node, x: np.argmin(x, axis=node.attrs["axes"][0]))


# ---- the operations ----
@composite("sum", ref=np.sum, autocast="float32", takes_complex=True)
def sum(input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Value:
    """The sum over `dim` (all axes, if None). Integers and bools sum to int64.

    `dim` is an axis or several; with `keepdim` they stay with extent 1. `input` is converted to `dtype`, if given. An empty
    sum is 0. Raises IndexError for an axis out of range.

    >>> genesis.sum(genesis.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """
    wanted = dtype or (int64 if input.dtype.category < 2 else input.dtype)
    return reduce_value("sum", cast(input, wanted), normalize_axes("sum", dim, input.ndim), keepdim)


@composite("sum_to_size", takes_complex=True, shares=lambda input, *size: (
    (input, []) if input.ndim and input.shape in (size, *size) else None))
def sum_to_size(input: Value, *size: int | Sequence[int]) -> Value:
    """`input` summed to `size`, a shape that broadcasts to its own. Raises ValueError for a shape that does not.

    >>> genesis.ones(2, 3).sum_to_size((3,))
    tensor([2., 2., 2.])
    """
    extents = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    shape = tuple([int(extent) for extent in extents])  # type: ignore[arg-type, union-attr]
    lead = input.ndim - len(shape)
    if lead < 0 or False in [e in (1, full) for e, full in zip(shape, input.shape[lead:], strict=True)]:
        raise ValueError(f"sum_to_size: shape {input.shape} cannot be summed to {shape}, which does not broadcast to it")
    if not input.ndim and input.dtype.category < 2:  # as in PyTorch, which sums over no axes
        return cast(input, int64)
    axes = [axis for axis, extent in enumerate(input.shape) if axis < lead or shape[axis - lead] != extent]
    return reshape_value(sum.define(input, tuple(axes)), shape) if axes else input


@composite("prod", ref=np.prod, autocast="float32", takes_complex=True)
def prod(input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Value:
    """The product over `dim` (all axes, if None). Integers and bools multiply to int64.

    Arguments and errors as in `sum`; an empty product is 1.

    >>> genesis.prod(genesis.tensor([[1, 2], [3, 4]]), dim=1)
    tensor([ 2, 12])
    """
    wanted = dtype or (int64 if input.dtype.category < 2 else input.dtype)
    return reduce_value("prod", cast(input, wanted), normalize_axes("prod", dim, input.ndim), keepdim)


@composite("mean", ref=np.mean, takes_complex=True)
def mean(input: Value, dim: Axes = None, keepdim: bool = False, *, dtype: DType | None = None) -> Value:
    """The mean over `dim` (all axes, if None) of a floating tensor.

    Axes and `dtype` as in `sum`; the mean of no elements is NaN. Raises TypeError for integers without a `dtype`.

    >>> genesis.mean(genesis.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1, keepdim=True)
    tensor([[1.5000],
            [3.5000]])
    """
    dtype = dtype or input.dtype
    if dtype.category < 2:
        raise TypeError(f"mean: wants a floating tensor, got {dtype.name}; convert first or give dtype=genesis.float32")
    axes = normalize_axes("mean", dim, input.ndim)
    count = numel(input.shape[a] for a in axes)
    total = reduce_value("sum", widened(cast(input, dtype)), axes, keepdim)
    return cast(total / count if count else total * float("nan"), dtype)


def _extremum(name: str, op: str) -> Callable[..., Value]:
    def define(input: Value, dim: Axes = None, keepdim: bool = False) -> Value:
        axes = normalize_axes(name, dim, input.ndim)
        if numel(input.shape[a] for a in axes) == 0:
            raise EmptyError(f"{name}: shape {input.shape} has no elements along dim {dim}; an extremum wants one at least")
        return reduce_value(op, input, axes, keepdim)

    which, found = ("greatest", [4, 3]) if op == "max" else ("least", [1, 2])
    define.__doc__ = f"""The {which} element over `dim` (all axes, if None); NaN wins.

    `dim` is an axis or several; with `keepdim` they stay, with extent 1. The gradient is shared equally among the elements
    that attain the result. Raises ValueError where there are no elements.

    >>> genesis.{name}(genesis.tensor([[1, 4], [3, 2]]), dim=1)
    tensor({found})
    """
    return define


amax = composite("amax", ref=np.max)(_extremum("amax", "max"))
amin = composite("amin", ref=np.min)(_extremum("amin", "min"))


def _arg(name: str) -> Callable[..., Value]:
    def define(input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        x = input if dim is not None else reshape_value(input, (numel(input.shape),))
        axis = normalize_axis(name, 0 if dim is None else dim, x.ndim)
        if x.ndim == 0:
            return cast(x.graph.constant(0, int64), int64)
        if x.shape[axis] == 0:
            raise EmptyError(f"{name}: shape {input.shape} has no elements along dim {dim}; want one at least")
        y = reduce_value(name, x, (axis,), keepdim and dim is not None, int64)
        return reshape_value(y, (1,) * input.ndim) if keepdim and dim is None else y

    which, found = ("greatest", 1) if name == "argmax" else ("least", 2)
    define.__doc__ = f"""The position of the first {which} element along `dim`, int64; NaN wins.

    Without `dim`, the position among all elements, row by row. Raises ValueError where there are no elements.

    >>> genesis.{name}(genesis.tensor([2, 3, 1, 3]), dim=0)
    tensor({found})
    """
    return define


argmax = composite("argmax", ref=np.argmax)(_arg("argmax"))
argmin = composite("argmin", ref=np.argmin)(_arg("argmin"))


def _extremum_at(name: str) -> AnyFunction:
    def define(input: Value, dim: int | Value | None = None, keepdim: bool = False) -> Value | Extremum:
        if dim is None:
            return _extremum(name, name)(input)
        if isinstance(dim, Value):
            return (maximum if name == "max" else minimum)(input, dim)
        axis = normalize_axis(name, dim, input.ndim)
        if input.ndim == 0:
            return Extremum(input, input.graph.constant(0, int64))
        at = _arg("arg" + name)(input, axis, True)
        values = input.graph.add("gather", (input, at), at.shape, input.dtype, {"dim": axis})
        if not keepdim:
            shape = reduced_shape(input.shape, (axis,))
            values, at = reshape_value(values, shape), reshape_value(at, shape)
        return Extremum(values, at)

    which = "greatest" if name == "max" else "least"
    define.__doc__ = f"The {which} element; with `dim`, (values, indices) along it; with a tensor, elementwise."
    return define


composite("max", ref=np.max, keywords={"other": "dim"})(_extremum_at("max"))
composite("min", ref=np.min, keywords={"other": "dim"})(_extremum_at("min"))


def _truth(name: str, ref: Reference, what: str, example: str) -> Operation:
    def define(input: Value, dim: Axes = None, keepdim: bool = False) -> Value:
        axes = () if dim in ((), []) else normalize_axes(name, dim, input.ndim)  # none are none here, as in PyTorch
        y = reduce_value(name, cast(input, bool_), axes, keepdim)
        return cast(y, uint8) if input.dtype is uint8 else y  # as in PyTorch

    define.__doc__ = f"""Whether {what} true.

    >>> genesis.{name}(genesis.tensor({example}), dim=1)
    tensor([ True, False])
    """
    return composite(name, ref=ref, takes_complex=True)(define)


any = _truth("any", np.any, "any element over `dim` is", "[[0, 2], [0, 0]]")
all = _truth("all", np.all, "all elements over `dim` are", "[[1, 2], [3, 0]]")


def corrected(name: str, dim: Axes, unbiased: bool | None, correction: float | None) -> tuple[Axes, float]:
    """The axes and the correction of a variance. Raises TypeError if the correction is given twice."""
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{name}: got dim={dim} and unbiased={unbiased}; want axes for dim")
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name}: got unbiased {unbiased} and correction {correction}; want one")
    return dim, correction if correction is not None else int(unbiased is not False)


@composite("var", ref=lambda x, dim=None, correction=1, keepdim=False: np.var(x, axis=dim, ddof=correction, keepdims=keepdim),
           takes_complex=True)
def var(
    input: Value, dim: Axes = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> Value:
    """The variance over `dim`: squares over n - `correction` (two passes: mean, then squares).

    `dim` and `keepdim` as in `sum`. Complex numbers have a real variance, of squared moduli. `unbiased` is PyTorch's older
    form of a correction of 1, which is the default, or 0;
    it may be passed as `dim`. If n <= `correction` the variance is NaN. Raises TypeError unless `input` is floating, and for
    both a correction and `unbiased`.

    >>> x = genesis.tensor([1.0, 2.0, 3.0, 4.0])
    >>> genesis.var(x), genesis.var(x, correction=0), genesis.var(x, False)
    (tensor(1.6667), tensor(1.2500), tensor(1.2500))
    """
    dim, correction = corrected("var", dim, unbiased, correction)
    if input.dtype.category < 2:
        raise TypeError(f"var: wants a floating tensor, got {input.dtype.name}; convert with .to(genesis.float32)")
    axes, x = normalize_axes("var", dim, input.ndim), widened(input)
    centred = x - mean(x, axes, True) if axes else x * 0
    freedom = numel(input.shape[a] for a in axes) - correction
    squares = squared_modulus(centred) if numel(x.shape) else real_value(x)
    total = reduce_value("sum", squares, axes, keepdim)  # of no elements, there is no mean either
    if freedom <= 0 and not numel(x.shape):
        return cast(total + float("nan"), input.dtype.real)
    return cast(total / freedom if freedom > 0 else total * float("nan"), input.dtype.real)


@composite("std", ref=lambda x, dim=None, correction=1, keepdim=False: np.std(x, axis=dim, ddof=correction, keepdims=keepdim),
           takes_complex=True)
def std(
    input: Value, dim: Axes = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> Value:
    """The standard deviation over `dim`, as in `var`. Where all elements are equal its gradient is 0."""
    variance = var(widened(input), dim, unbiased, keepdim, correction=correction)
    flat = variance == 0
    return cast(where(flat, 0, sqrt(where(flat, 1, variance))), input.dtype.real)
