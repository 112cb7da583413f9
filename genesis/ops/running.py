"""Cumulative maxima, minima and logsumexp. The primitives are host operations, which kernels compute by scans."""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.complex_primitives import log_add_exp
from genesis.ops.elementwise import exp, log, where
from genesis.ops.indexing import scatter_value
from genesis.ops.joining import cat
from genesis.ops.ordering import moved, recurrence
from genesis.ops.registry import Operation, Reference, composite, expand, primitive, rounded_once
from genesis.ops.results import Sorted
from genesis.ops.source import iota
from genesis.ops.views import flip_value, reshape_value, slice_value


# ---- extremes ----
def _extremes(name: str, x: Value, dim: int) -> Value:
    return x.graph.add(name, (x,), x.shape, x.dtype, {"dim": dim})


def _positions(y: Value, x: Value) -> Value:
    """The index of each extreme so far `y` of `x`, the last of equal ones; once NaN, always NaN."""
    dim = y.node.attrs["dim"]
    index = reshape_value(iota(x.graph, x.shape[dim]), (x.shape[dim], *(1,) * (x.ndim - dim - 1)))
    return _extremes("running_max", where((x == y) | (x != x), index, 0), dim)


def _extremes_grad(g: Value, y: Value, x: Value) -> Value:
    zeros = expand(g.graph.constant(0, g.dtype), g.shape)
    return scatter_value(zeros, _positions(y, x), g, y.node.attrs["dim"], "add")


def _extremes_reference(extreme: np.ufunc) -> Reference:
    def reference(node: Node, x: np.ndarray) -> np.ndarray:
        """The elements at `_positions`: of zeros with different signs, NumPy accumulates either."""
        dim = node.attrs["dim"]
        index = np.arange(x.shape[dim]).reshape(-1, *(1,) * (x.ndim - dim - 1))
        reached = (x == extreme.accumulate(x, dim)) | (x != x)
        return np.take_along_axis(x, np.maximum.accumulate(np.where(reached, index, 0), dim), dim)

    return reference


for _name, _extreme in ("running_max", np.maximum), ("running_min", np.minimum):
    primitive(_name, "host", grad=_extremes_grad, reference=_extremes_reference(_extreme))


def _running(name: str, what: str, found: str) -> Operation:
    def define(input: Value, dim: int) -> Sorted:
        axis = normalize_axis(name, dim, input.ndim)
        if not input.ndim:
            return Sorted(input, input.graph.constant(0, int64))
        values = _extremes(name.replace("cum", "running_"), input, axis)
        return Sorted(values, _positions(values, input))

    define.__doc__ = f"""(values, indices) of the {what} element up to each index of `dim`: of equal ones the last; NaN wins.

    >>> genesis.{name}(genesis.tensor([1, 3, 2]), 0).values
    tensor({found})
    """
    return composite(name)(define)


cummax, cummin = _running("cummax", "greatest", "[1, 3, 3]"), _running("cummin", "least", "[1, 1, 1]")


# ---- sums of exponentials ----
def _sums(x: Value, dim: int) -> Value:
    return x.graph.add("logcumsumexp", (x,), x.shape, x.dtype, {"dim": dim})


def _sums_grad(g: Value, y: Value, x: Value) -> Value:
    """sum over j >= i of g_j exp(x_i - y_j): a sum from the end; each step multiplies by exp(y_i - y_{i+1}) <= 1."""
    dim = y.node.attrs["dim"]
    following = _following(y, dim)
    kept = where(y == following, 1, exp(y - following))
    total = flip_value(recurrence(flip_value(kept, dim), flip_value(g, dim), dim), dim)
    return total * where(x == y, 1, exp(x - y))


def _following(x: Value, dim: int) -> Value:
    """Each element's successor along `dim`; the last is kept."""
    extent = x.shape[dim]
    return cat.define([slice_value(x, dim, 1, extent), slice_value(x, dim, extent - 1, extent)], dim) if extent else x


def _sums_reference(node: Node, x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, node.attrs["dim"])
    result = x.copy()
    rows = np.moveaxis(result, node.attrs["dim"], 0)
    for i in range(1, len(rows)):
        rows[i] = log_add_exp(rows[i - 1], rows[i])
    return result


def _sums_formula(node: Node, x: Value) -> Value:
    """Sums relative to the greatest number so far, by which the next step rescales them: all exponents are <= 0.

    The greatest number's own term, 1, is not among them, as they may be far smaller; a new greatest number adds the former's.
    """
    dim = node.attrs["dim"]
    greatest = _extremes("running_max", x, dim)
    before = moved(greatest, dim, 1, float("-inf"))
    rescaled = where(before == greatest, 1, exp(before - greatest))
    others = recurrence(rescaled, where(x == greatest, rescaled, exp(x - greatest)), dim)
    near = others + 1  # rounded; what that loses is added: `log1p` without its ends, in half the time
    return greatest + (log(near) + (others - (near - 1)) / near)


primitive("logcumsumexp", "host", grad=_sums_grad, reference=_sums_reference, formula=_sums_formula)


@composite("logcumsumexp", takes_complex=True)
@rounded_once
def logcumsumexp(input: Value, dim: int) -> Value:
    """The logarithms of the sums of exp(x) up to each index of `dim`, without overflow.

    >>> genesis.logcumsumexp(genesis.zeros(2), 0)
    tensor([0.0000, 0.6931])
    """
    axis = normalize_axis("logcumsumexp", dim, input.ndim)
    return _sums(input, axis) if input.ndim else input
