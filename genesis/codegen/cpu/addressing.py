"""Addresses of memory accesses: the first lane's element, and the stride between the lanes' elements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from llvmlite import ir

from genesis.codegen.cpu.nest import Nest
from genesis.codegen.cpu.registers import I64
from genesis.lower.kernel import Access

__all__ = ["address", "flat_index", "known_stride", "lane_offsets", "lane_stride"]


def address(nest: Nest, access: Access, without: Collection[int] = ()) -> ir.Value:
    """The address of the first lane's element; the axes `without` add nothing.

    Each loop's term is added where its index is bound, outside the loops within.
    """
    pointer = nest.words[access.pointer]
    terms: dict[int, list[tuple[ir.Value, int | str]]] = {}
    for axis, stride in enumerate(access.strides):
        if stride != 0 and axis not in without and (axis not in nest.point or axis in nest.block_start):
            index = nest.block_start[axis] if axis in nest.point else nest.index[axis]
            terms.setdefault(nest.level[axis], []).append((index, stride))
    for level in sorted(terms):
        pointer = nest.once(level, ("start", id(access)), partial(_moved, nest, pointer, terms[level], access))
    for axis, position in nest.point.items():
        stride = access.strides[axis]
        if position and stride != 0 and axis not in without:
            pointer = _moved(nest, pointer, [(I64(position), stride)], access)
    return pointer


def _moved(nest: Nest, pointer: ir.Value, terms: Sequence[tuple[ir.Value, int | str]], access: Access) -> ir.Value:
    """`pointer` moved on by index times stride for each of `terms`."""
    for index, stride in terms:
        offset = index
        if isinstance(index, ir.Constant):
            offset = nest.once(0, ("times", stride, index.constant), lambda: nest.builder.mul(nest.named(stride), index))  # noqa: B023
        elif stride != 1:
            offset = nest.builder.mul(index, nest.named(stride))
        pointer = nest.lanes.element_pointer(pointer, offset, access.dtype.name)
    return pointer


def lane_stride(nest: Nest, access: Access) -> int | str:
    """The stride between the lanes' elements: a number, or the name of the word that has it."""
    lane = nest.kernel.lane
    return 0 if lane is None or lane not in nest.bound else access.strides[lane]


def known_stride(nest: Nest, access: Access) -> int:
    """The stride between the lanes' elements, if it is known when the kernel is compiled; else 0."""
    stride = lane_stride(nest, access)
    return stride if isinstance(stride, int) else 0


def lane_offsets(nest: Nest, stride: int | str) -> ir.Value:
    return nest.lanes.multiply(nest.lanes.lane_index(), nest.named(stride))


def flat_index(nest: Nest, access: Access) -> ir.Value:
    """The element's number, for each lane."""
    first = nest.builder.add(nest.words[access.pointer], _offset(nest, access))
    stride = lane_stride(nest, access)
    return first if stride == 0 else nest.lanes.add(first, lane_offsets(nest, stride))


def _offset(nest: Nest, access: Access) -> ir.Value:
    """The part of the element's number that all lanes share."""
    b = nest.builder
    total: ir.Value | None = None
    for axis, stride in enumerate(access.strides):
        if stride == 0:
            continue
        term = nest.index[axis] if stride == 1 else b.mul(nest.index[axis], nest.named(stride))
        total = term if total is None else b.add(total, term)
    return I64(0) if total is None else total
