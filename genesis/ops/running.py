"""Cumulative extremes and cumulative logsumexp. The primitives are host operations."""

from __future__ import annotations

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.graph import Node, Value
from genesis.ir.shapes import normalize_axis
from genesis.ops.elementwise import exp, log, where
from genesis.ops.indexing import gather_value
from genesis.ops.registry import Operation, Reference, composite, primitive, rounded_once
from genesis.ops.results import Sorted
from genesis.ops.views import flip_value


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


# ---- sums of exponentials ----
def _sums(x: Value, dim: int) -> Value:
    return x.graph.add("logcumsumexp", (x,), x.shape, x.dtype, {"dim": dim})


def _sums_grad(g: Value, y: Value, x: Value) -> Value:
    """sum over j >= i of g_j exp(x_i - y_j), by logarithms, of positive and of negative g apart."""
    dim = y.node.attrs["dim"]

    def part(size: Value) -> Value:
        there = size > 0
        terms = where(there, log(where(there, size, 1)) - where(there, y, 0), float("-inf"))
        return exp(flip_value(_sums(flip_value(terms, dim), dim), dim) + x)

    return part(g) - part(-g)


primitive("logcumsumexp", "host", grad=_sums_grad, reference=lambda node, x: np.logaddexp.accumulate(x, node.attrs["dim"]))


@composite("logcumsumexp")
@rounded_once
def logcumsumexp(input: Value, dim: int) -> Value:
    """The logarithms of the sums of exp(x) up to each place along `dim`, without overflow.

    >>> genesis.logcumsumexp(genesis.zeros(2), 0)
    tensor([0.0000, 0.6931])
    """
    axis = normalize_axis("logcumsumexp", dim, input.ndim)
    return _sums(input, axis) if input.ndim else input
