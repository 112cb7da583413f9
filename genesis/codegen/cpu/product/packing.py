"""Packing: a matrix copied strip by strip, so that the tile's loop reads it sequentially.

A strip of `size` lines holds element k of all its lines side by side, for every k. A line is a row of A or a column of B.
Either its elements are adjacent (then vectors along lines are transposed into vectors across lines; runs of A's rows are
copied unchanged), or lines are. Lines beyond the last hold arbitrary values, whose results are never stored.
"""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import I64, POINTER
from genesis.codegen.cpu.tiling import RegisterTile
from genesis.codegen.cpu.vectors import counted, transposed


def strip_elements(tile: RegisterTile, size: int, k: ir.Value, builder: ir.IRBuilder) -> ir.Value:
    """The elements from one strip of length `k` to the next: the last vector is written whole."""
    rounded = builder.and_(builder.add(k, I64(tile.lanes - 1)), I64(-tile.lanes))
    return builder.add(builder.mul(rounded, I64(size)), I64(tile.lanes))


def firsts(tile: RegisterTile, size: int) -> tuple[int, ...]:
    """The first lines of a strip's vectors: the last vector overlaps the one before, or is longer than the strip."""
    return (*range(0, size - tile.lanes, tile.lanes), max(size - tile.lanes, 0))


def emit_copy(module: ir.Module, tile: RegisterTile) -> ir.Function:
    """`void (source, distance, lines, k, target, pitch)`: `k` elements of each line, at `target` `pitch` apart."""
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64, POINTER, I64])
    function = ir.Function(module, kind, "copy_lines")
    function.linkage = "internal"
    source, distance, lines, k, target, pitch = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    lanes = Lanes(builder, tile.lanes)
    with counted(builder, I64(0), lines) as line:
        start, there = (lanes.element_pointer(pointer, builder.mul(line, apart), tile.dtype)
                        for pointer, apart in ((source, distance), (target, pitch)))
        with counted(builder, I64(0), k, tile.lanes) as at:
            mask = lanes.first_lanes(builder.sub(k, at))
            vector = lanes.load(lanes.element_pointer(start, at, tile.dtype), tile.dtype, mask)
            lanes.store(vector, lanes.element_pointer(there, at, tile.dtype), tile.dtype)
    builder.ret_void()
    return function


def emit_packing(module: ir.Module, tile: RegisterTile, size: int) -> ir.Function:
    """`void (source, distance, lines, k, target)`: a strip of `size` adjacent lines, of which there are `lines`; from one k to
    the next it is `distance`.
    """
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64, POINTER])
    function = ir.Function(module, kind, f"pack_{size}")
    function.linkage = "internal"
    source, distance, lines, k, target = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    lanes = Lanes(builder, tile.lanes)
    masks = [(first, lanes.first_lanes(builder.sub(lines, I64(first)))) for first in firsts(tile, size)]
    with counted(builder, I64(0), k) as at:
        start, packed = builder.mul(at, distance), builder.mul(at, I64(size))
        for first, mask in masks:  # all of a cache line at once: lines a page apart, of which few fit, would be read again
            at_source, at_target = (lanes.element_pointer(pointer, builder.add(index, I64(first)), tile.dtype)
                                    for pointer, index in ((source, start), (target, packed)))
            # The excess of a long vector is overwritten by the next element's.
            lanes.store(lanes.load(at_source, tile.dtype, mask), at_target, tile.dtype)
            lanes.prefetch(lanes.element_pointer(at_source, I64(size), tile.dtype))  # of the next strip
    builder.ret_void()
    return function


def emit_transposing(module: ir.Module, tile: RegisterTile) -> ir.Function:
    """`void (source, distance, lines, first, k, target, size)`: one vector of lines, from `first` on, of a strip of `size`
    lines, of which there are `lines`, `distance` apart.
    """
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64, I64, POINTER, I64])
    function = ir.Function(module, kind, "pack_transposed")
    function.linkage = "internal"
    source, distance, lines, first, k, target, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    lanes = Lanes(builder, tile.lanes)
    starts, last = [], builder.sub(lines, I64(1))
    for n in range(tile.lanes):
        line = builder.add(first, I64(n))
        present = builder.select(builder.icmp_signed("<", line, last), line, last)
        starts.append(lanes.element_pointer(source, builder.mul(present, distance), tile.dtype))
    with counted(builder, I64(0), k, tile.lanes) as at:
        mask = lanes.first_lanes(builder.sub(k, at))
        vectors = [lanes.load(lanes.element_pointer(start, at, tile.dtype), tile.dtype, mask) for start in starts]
        for n, vector in enumerate(transposed(builder, vectors)):
            offset = builder.add(builder.mul(builder.add(at, I64(n)), size), first)
            lanes.store(vector, lanes.element_pointer(target, offset, tile.dtype), tile.dtype)
    builder.ret_void()
    return function
