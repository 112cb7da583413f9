"""Rounding to a number of decimals, and quotients that are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.ir.graph import Value
from genesis.ops.conversion import rewritten
from genesis.ops.elementwise import div as quotient
from genesis.ops.elementwise import floor, floor_divide, trunc, where
from genesis.ops.elementwise import round as nearest
from genesis.ops.registry import as_values, broadcast, cast, composite, promoted, widened

__all__: list[str] = []


@composite("round", 1, ref=np.round, namespace="special", in_place=True)
def round(input: Value, *, decimals: int = 0) -> Value:
    """`input` rounded to so many `decimals`, ties to even; negative ones round to tens, hundreds, and so on.

    Raises TypeError for integers with decimals.

    >>> import genesis
    >>> genesis.round(genesis.tensor([0.5, 1.5, -1.234]))
    tensor([ 0.,  2., -1.])
    >>> genesis.round(genesis.tensor([0.125, -1.234]), decimals=2)
    tensor([ 0.1200, -1.2300])
    """
    if not decimals:
        return nearest(input)
    (x,) = as_values(input)
    if not x.dtype.is_floating_point:
        raise TypeError(f"round: {x.dtype.name} has no decimals; leave `decimals` out")
    power, wide = 10.0 ** abs(decimals), widened(x)
    return cast(nearest(wide * power) / power if decimals > 0 else nearest(wide / power) * power, x.dtype)


@composite("div", 2, operator="truediv", ref=np.true_divide, aliases=("divide", "true_divide"), in_place=True)
def div(input: Value, other: Value, *, rounding_mode: str | None = None) -> Value:
    """`input / other`, of integers as well; with a `rounding_mode` rounded, to an integer for integers: "trunc" towards zero,
    as C does, "floor" downwards, as Python's `//` does.

    Raises ValueError for another mode.

    >>> import genesis
    >>> x = genesis.tensor([-7, 7])
    >>> genesis.div(x, 2), genesis.div(x, 2, rounding_mode="trunc"), genesis.div(x, 2, rounding_mode="floor")
    (tensor([-3.5000,  3.5000]), tensor([-3,  3]), tensor([-4,  3]))
    """
    if rounding_mode is None:
        return quotient(input, other)
    if rounding_mode not in ("trunc", "floor"):
        raise ValueError(f'div: rounding_mode must be None, "trunc" or "floor", got {rounding_mode!r}')
    x, y = broadcast("div", *promoted(input, other))
    if not x.dtype.is_floating_point:
        return floor_divide(x, y) if rounding_mode == "floor" else _truncated(x, y)
    if rounding_mode == "trunc":
        return trunc(quotient(x, y))
    return rewritten(floor(quotient(x, y)), floor_divide(x, y))


def _truncated(x: Value, y: Value) -> Any:
    """The quotient of integers, towards zero."""
    down = floor_divide(x, y)
    return where((down < 0) & (down * y != x), down + 1, down)
