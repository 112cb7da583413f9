"""How the lanes of a vector become one value: as a balanced tree, lane i with lane i + width/2; the same bits every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from llvmlite import ir

from genesis.codegen.cpu.registers import I32, constants, is_varying

if TYPE_CHECKING:
    from genesis.codegen.cpu.lanes import Lanes

__all__ = ["reduce_add", "reduce_and", "reduce_by", "reduce_maximum", "reduce_minimum", "reduce_multiply", "reduce_or"]


def reduce_add(lanes: Lanes, x: ir.Value) -> ir.Value:
    return reduce_by(lanes, lanes.add, x)


def reduce_multiply(lanes: Lanes, x: ir.Value) -> ir.Value:
    return reduce_by(lanes, lanes.multiply, x)


def reduce_minimum(lanes: Lanes, x: ir.Value, dtype: str | None = None) -> ir.Value:
    """The least; NaN if any is NaN."""
    return reduce_by(lanes, lambda a, b: lanes.minimum(a, b, dtype), x)


def reduce_maximum(lanes: Lanes, x: ir.Value, dtype: str | None = None) -> ir.Value:
    """The greatest; NaN if any is NaN."""
    return reduce_by(lanes, lambda a, b: lanes.maximum(a, b, dtype), x)


def reduce_and(lanes: Lanes, x: ir.Value) -> ir.Value:
    return reduce_by(lanes, lanes.logical_and, x)


def reduce_or(lanes: Lanes, x: ir.Value) -> ir.Value:
    return reduce_by(lanes, lanes.logical_or, x)


def reduce_by(lanes: Lanes, combine: Callable[[ir.Value, ir.Value], ir.Value], x: ir.Value) -> ir.Value:
    """What `combine` makes of all lanes."""
    while is_varying(x) and x.type.count > 1:
        half = x.type.count // 2
        lower = lanes.builder.shuffle_vector(x, x, constants(I32, range(half)))
        upper = lanes.builder.shuffle_vector(x, x, constants(I32, range(half, 2 * half)))
        x = combine(lower, upper)
    return lanes.extract(x, 0)
