"""Positions of elements as numbers, and what is added up at them."""

from __future__ import annotations

from genesis.functions.methods.table import functions_of
from genesis.ir.dtypes import bool_, int64
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import Shape, numel
from genesis.tensor.handle import Tensor

(stack,) = functions_of("stack")


def flat_positions(positions: Tensor, extents: Shape) -> Tensor:
    """The flat index of each position, in row-major order. Raises ValueError past 2^63 of them."""
    if numel(extents) >= 1 << 63:
        raise ArgumentError(f"sparse tensors: sparse axes of extents {tuple(extents)} have more elements than 2^63 - 1")
    if not extents:
        return positions.new_zeros(positions.shape[1])
    flat = positions[0]
    for axis in range(1, len(extents)):
        flat = flat * extents[axis] + positions[axis]
    return flat


def positions_of(flat: Tensor, extents: Shape) -> Tensor:
    """The inverse of `flat_positions`."""
    rows: list[Tensor] = []
    for axis in range(len(extents) - 1, -1, -1):
        rows.insert(0, flat % extents[axis] if axis else flat)
        flat = flat // max(extents[axis], 1)
    return stack(rows) if rows else flat.new_zeros(0, flat.shape[0])


def summed(base: Tensor, indices: Tensor, elements: Tensor) -> Tensor:
    """`base` with elements added at indices along its first axis; for bools, whether any is true."""
    if base.dtype is bool_:
        return summed(base.to(int64), indices, elements.to(int64)) != 0
    return base.index_add(0, indices, elements)


def rows_of(pointers: Tensor, count: int) -> Tensor:
    """The row of each of `count` elements in order, from where rows begin."""
    begins = pointers.new_zeros(count + 1).index_add(0, pointers[1:-1], pointers.new_ones(max(len(pointers) - 2, 0)))
    return begins.cumsum(0)[:count]


def pointers_of(rows: Tensor, extent: int) -> Tensor:
    """The start of each row among elements in order."""
    return rows.new_zeros(extent + 1).index_add(0, rows + 1, rows.new_ones(rows.shape)).cumsum(0)
