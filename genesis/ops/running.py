"""Cumulative maxima, minima and logsumexp. The primitives are host operations, which kernels compute by scans."""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.complex_values import log_add_exp
from genesis.ops.elementwise import exp, log, where
from genesis.ops.indexing import scatter_value
from genesis.ops.joining import cat
from genesis.ops.ordering import recurrence
from genesis.ops.registry import Operation, composite, expand, primitive, rounded_once
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


for _name, _extreme in ("running_max", np.maximum), ("running_min", np.minimum):
    primitive(_name, "host", grad=_extremes_grad,
              reference=lambda node, x, extreme=_extreme: extreme.accumulate(x, node.attrs["dim"]))


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
    following = _neighbours(y, dim, 1)
    kept = where(y == following, 1, exp(y - following))
    total = flip_value(recurrence(flip_value(kept, dim), flip_value(g, dim), dim), dim)
    return total * where(x == y, 1, exp(x - y))


def _neighbours(x: Value, dim: int, step: int) -> Value:
    """Each element's successor along `dim`, or predecessor for a `step` of -1; the one at the end is kept."""
    extent = x.shape[dim]
    if not extent:
        return x
    inner = slice_value(x, dim, max(0, step), extent + min(0, step))
    end = slice_value(x, dim, extent - 1, extent) if step > 0 else slice_value(x, dim, 0, 1)
    return cat.define([inner, end] if step > 0 else [end, inner], dim)


def _sums_reference(node: Node, x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, node.attrs["dim"])
    result = x.copy()
    rows = np.moveaxis(result, node.attrs["dim"], 0)
    for i in range(1, len(rows)):
        rows[i] = log_add_exp(rows[i - 1], rows[i])
    return result


def _sums_formula(node: Node, x: Value) -> Value:
    """Sums relative to the greatest number so far, by which the next step rescales them: all exponents are <= 0."""
    dim = node.attrs["dim"]
    greatest = _extremes("running_max", x, dim)
    before = _neighbours(greatest, dim, -1)
    rescaled, term = (where(y == greatest, 1, exp(y - greatest)) for y in (before, x))
    return greatest + log(recurrence(rescaled, term, dim))


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
