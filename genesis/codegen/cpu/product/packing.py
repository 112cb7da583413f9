"""Packing: a matrix copied strip by strip, so that the tile's loop reads it sequentially.

A strip of `size` lines holds element k of all its lines side by side, for every k. A line is a row of A or a column of B.
Either its elements are adjacent (then vectors along lines are transposed into vectors across lines; rows of A are copied
unchanged), or lines are. Lines beyond the last hold arbitrary values, whose results are never stored.
"""

from __future__ import annotations

from llvmlite import ir

from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.product.tile import Tile, counted
from genesis.codegen.cpu.registers import I32, I64, POINTER, constants

__all__ = ["emit_copy", "emit_packing", "firsts", "strip_elements"]


def strip_elements(tile: Tile, size: int, k: ir.Value, builder: ir.IRBuilder) -> ir.Value:
    """The elements from one strip of length `k` to the next: the last vector is written whole."""
    rounded = builder.and_(builder.add(k, I64(tile.lanes - 1)), I64(-tile.lanes))
    return builder.add(builder.mul(rounded, I64(size)), I64(tile.lanes))


def firsts(tile: Tile, size: int) -> tuple[int, ...]:
    """The first lines of a strip's vectors: the last vector overlaps the one before, or is longer than the strip."""
    return (*range(0, size - tile.lanes, tile.lanes), max(size - tile.lanes, 0))


def emit_copy(module: ir.Module, tile: Tile) -> ir.Function:
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


def emit_packing(module: ir.Module, tile: Tile, *, turned: bool) -> ir.Function:
    """`void (source, distance, lines, first, k, target, size)`: one vector of lines, from `first` on, of a strip of `size`
    lines, of which there are `lines`. `distance` is from line to line if `turned`, else from one k to the next.
    """
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64, I64, POINTER, I64])
    function = ir.Function(module, kind, f"pack_{'turned' if turned else 'plain'}")
    function.linkage = "internal"
    source, distance, lines, first, k, target, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    lanes = Lanes(builder, tile.lanes)

    def store(value: ir.Value, at: ir.Value) -> None:  # the excess of a long vector is overwritten by the next element's
        lanes.store(value, lanes.element_pointer(target, builder.add(builder.mul(at, size), first), tile.dtype), tile.dtype)

    if turned:
        starts, last = [], builder.sub(lines, I64(1))
        for n in range(tile.lanes):
            line = builder.add(first, I64(n))
            present = builder.select(builder.icmp_signed("<", line, last), line, last)
            starts.append(lanes.element_pointer(source, builder.mul(present, distance), tile.dtype))
        with counted(builder, I64(0), k, tile.lanes) as at:
            mask = lanes.first_lanes(builder.sub(k, at))
            vectors = [lanes.load(lanes.element_pointer(start, at, tile.dtype), tile.dtype, mask) for start in starts]
            for n, vector in enumerate(_transposed(builder, vectors)):
                store(vector, builder.add(at, I64(n)))
    else:
        mask = lanes.first_lanes(builder.sub(lines, first))
        with counted(builder, I64(0), k) as at:
            place = builder.add(builder.mul(at, distance), first)
            store(lanes.load(lanes.element_pointer(source, place, tile.dtype), tile.dtype, mask), at)
    builder.ret_void()
    return function


def _transposed(builder: ir.IRBuilder, vectors: list[ir.Value]) -> list[ir.Value]:
    """The transpose of a square of vectors: blocks of 1, 2, 4, .. are exchanged across the diagonal (Eklundh, 1972)."""
    width, block = len(vectors), 1
    while block < width:
        turned = list(vectors)
        for n in range(width):
            if not n & block:
                first, second = vectors[n], vectors[n + block]
                low = [lane if not lane & block else width + lane - block for lane in range(width)]
                high = [lane + block if not lane & block else width + lane for lane in range(width)]
                turned[n] = builder.shuffle_vector(first, second, constants(I32, low))
                turned[n + block] = builder.shuffle_vector(first, second, constants(I32, high))
        vectors, block = turned, 2 * block
    return vectors
