"""Cumulative maxima, minima and logsumexp. The primitives are host operations."""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.complex_values import log_add_exp
from genesis.ops.elementwise import exp, where
from genesis.ops.indexing import gather_value
from genesis.ops.joining import cat
from genesis.ops.ordering import recurrence
from genesis.ops.registry import Operation, Reference, composite, primitive, rounded_once
from genesis.ops.results import Sorted
from genesis.ops.views import flip_value, slice_value


def _indices_of(extremes: np.ufunc) -> Reference:
    def reference(node: Node, x: np.ndarray) -> np.ndarray:
        """The index of the extreme so far, the last of equal ones; once NaN, always NaN."""
        axis = node.attrs["dim"]
        positions = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
        reached = (x == extremes.accumulate(x, axis)) | (x != x)
        return np.maximum.accumulate(np.where(reached, positions, 0), axis)

    return reference


primitive("cummax_indices", "host", reference=_indices_of(np.maximum))
primitive("cummin_indices", "host", reference=_indices_of(np.minimum))


def _running(name: str, what: str, found: str) -> Operation:
    def define(input: Value, dim: int) -> Sorted:
        axis = normalize_axis(name, dim, input.ndim)
        if not input.ndim:
            return Sorted(input, input.graph.constant(0, int64))
        positions = input.graph.add(name + "_indices", (input,), input.shape, int64, {"dim": axis})
        return Sorted(gather_value(input, positions, axis), positions)

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
    if not extent:
        return x
    return cat.define([slice_value(x, dim, 1, extent), slice_value(x, dim, extent - 1, extent)], dim)


def _sums_reference(node: Node, x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, node.attrs["dim"])
    result = x.copy()
    rows = np.moveaxis(result, node.attrs["dim"], 0)
    for i in range(1, len(rows)):
        rows[i] = log_add_exp(rows[i - 1], rows[i])
    return result


primitive("logcumsumexp", "host", grad=_sums_grad, reference=_sums_reference)


@composite("logcumsumexp", takes_complex=True)
@rounded_once
def logcumsumexp(input: Value, dim: int) -> Value:
    """The logarithms of the sums of exp(x) up to each index of `dim`, without overflow.

    >>> genesis.logcumsumexp(genesis.zeros(2), 0)
    tensor([0.0000, 0.6931])
    """
    axis = normalize_axis("logcumsumexp", dim, input.ndim)
    return _sums(input, axis) if input.ndim else input
