"""Cumulative extremes and cumulative logsumexp. The primitives are host operations."""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.complex_values import log_add_exp
from genesis.ops.elementwise import exp, where
from genesis.ops.indexing import gather_value
from genesis.ops.joining import cat
from genesis.ops.registry import Operation, Reference, composite, expand, primitive, rounded_once
from genesis.ops.results import Sorted
from genesis.ops.views import flip_value, slice_value


def _places_of(extremes: np.ufunc) -> Reference:
    def reference(node: Node, x: np.ndarray) -> np.ndarray:
        """Where the extreme so far is, the last of equal ones; a NaN stays one."""
        axis = node.attrs["dim"]
        places = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
        reached = (x == extremes.accumulate(x, axis)) | (x != x)
        return np.maximum.accumulate(np.where(reached, places, 0), axis)

    return reference


primitive("cummax_places", "host", reference=_places_of(np.maximum))
primitive("cummin_places", "host", reference=_places_of(np.minimum))


def _running(name: str, what: str, found: str) -> Operation:
    def define(input: Value, dim: int) -> Sorted:
        axis = normalize_axis(name, dim, input.ndim)
        if not input.ndim:
            return Sorted(input, input.graph.constant(0, int64))
        places = input.graph.add(name + "_places", (input,), input.shape, int64, {"dim": axis})
        return Sorted(gather_value(input, places, axis), places)

    define.__doc__ = f"""(values, indices) of the {what} element up to each place along `dim`: of equal ones the last; NaN wins.

    >>> genesis.{name}(genesis.tensor([1, 3, 2]), 0).values
    tensor({found})
    """
    return composite(name)(define)


cummax, cummin = _running("cummax", "greatest", "[1, 3, 3]"), _running("cummin", "least", "[1, 1, 1]")


# ---- sums that shrink ----
def _recurrence(x: Value, kept: Value, dim: int) -> Value:
    """y_i = x_i + kept_i * y_{i-1} along `dim`; kept_0 is not read."""
    return x.graph.add("linear_recurrence", (x, kept), x.shape, x.dtype, {"dim": dim})


def _recurrence_reference(node: Node, x: np.ndarray, kept: np.ndarray) -> np.ndarray:
    result = np.array(np.broadcast_to(x, node.shape))
    rows, factors = np.moveaxis(result, node.attrs["dim"], 0), np.moveaxis(kept, node.attrs["dim"], 0)
    for i in range(1, len(rows)):
        rows[i] += factors[i] * rows[i - 1]
    return result


def _recurrence_grad(g: Value, y: Value, x: Value, kept: Value) -> tuple[Value, Value]:
    dim = y.node.attrs["dim"]
    to_x = flip_value(_recurrence(flip_value(g, dim), flip_value(_moved(kept, dim, -1), dim), dim), dim)
    return to_x, to_x * _moved(y, dim, 1, 0.0)


def _moved(x: Value, dim: int, by: int, edge: float | None = None) -> Value:
    """`x` moved by one place along `dim`; at the edge the number `edge`, or what stood there."""
    extent = x.shape[dim]
    if not extent:
        return x
    rest = slice_value(x, dim, 0, extent - 1) if by > 0 else slice_value(x, dim, 1, extent)
    last = slice_value(x, dim, 0, 1) if by > 0 else slice_value(x, dim, extent - 1, extent)
    last = last if edge is None else expand(x.graph.constant(edge, x.dtype), last.shape)
    return cat.define([last, rest] if by > 0 else [rest, last], dim)


primitive("linear_recurrence", "host", grad=_recurrence_grad, reference=_recurrence_reference)


# ---- sums of exponentials ----
def _sums(x: Value, dim: int) -> Value:
    return x.graph.add("logcumsumexp", (x,), x.shape, x.dtype, {"dim": dim})


def _sums_grad(g: Value, y: Value, x: Value) -> Value:
    """sum over j >= i of g_j exp(x_i - y_j): a sum from the end that shrinks by exp(y_i - y_{i+1}), which is 1 at most."""
    dim = y.node.attrs["dim"]
    following = _moved(y, dim, -1)
    kept = where(y == following, 1, exp(y - following))
    total = flip_value(_recurrence(flip_value(g, dim), flip_value(kept, dim), dim), dim)
    return total * where(x == y, 1, exp(x - y))


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
    """The logarithms of the sums of exp(x) up to each place along `dim`, without overflow.

    >>> genesis.logcumsumexp(genesis.zeros(2), 0)
    tensor([0.0000, 0.6931])
    """
    axis = normalize_axis("logcumsumexp", dim, input.ndim)
    return _sums(input, axis) if input.ndim else input
