"""Packing: a matrix copied strip by strip, so that the tile's loop reads it from one end to the other.

A strip of `size` lines holds element k of each line side by side, for all k. A line is a row of A or a column of B: its
elements lie `1` apart and the lines far apart (then vectors of a line are turned into vectors across lines), or the other
way round. Lines beyond the last are whatever: nobody stores what they give.
"""

from __future__ import annotations

from llvmlite import ir

from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.product.tile import Tile, counted
from genesis.codegen.cpu.registers import I32, I64, POINTER, constants

__all__ = ["emit_packing", "strip_elements"]


def strip_elements(tile: Tile, size: int, k: ir.Value, builder: ir.IRBuilder) -> ir.Value:
    """The elements from one strip of length `k` to the next: whole vectors are written, also at its end."""
    rounded = builder.and_(builder.add(k, I64(tile.lanes - 1)), I64(-tile.lanes))
    return builder.add(builder.mul(rounded, I64(size)), I64(tile.lanes))


def emit_packing(module: ir.Module, tile: Tile, size: int, *, turned: bool) -> ir.Function:
    """`void (source, distance, lines, k, target)`: one strip. `distance` is from line to line if `turned`, else from one
    k to the next; of the strip's lines there are `lines`, at least 1.
    """
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64, I64, POINTER])
    function = ir.Function(module, kind, f"pack_{size}_{'turned' if turned else 'plain'}")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    lanes = Lanes(builder, tile.lanes)
    (_turned if turned else _plain)(builder, lanes, tile, size, *function.args)
    builder.ret_void()
    return function


def _plain(
    builder: ir.IRBuilder, lanes: Lanes, tile: Tile, size: int, source: ir.Value, distance: ir.Value, lines: ir.Value,
    k: ir.Value, target: ir.Value,
) -> None:
    firsts = range(0, size, tile.lanes)
    masks = [lanes.first_lanes(builder.sub(lines, I64(first))) for first in firsts]
    with counted(builder, I64(0), k) as at:
        for first, mask in zip(firsts, masks, strict=True):
            place = builder.add(builder.mul(at, distance), I64(first))
            value = lanes.load(lanes.element_pointer(source, place, tile.dtype), tile.dtype, mask)
            lanes.store(value, _within(builder, lanes, tile, size, target, at, first), tile.dtype)


def _turned(
    builder: ir.IRBuilder, lanes: Lanes, tile: Tile, size: int, source: ir.Value, distance: ir.Value, lines: ir.Value,
    k: ir.Value, target: ir.Value,
) -> None:
    width, last = tile.lanes, builder.sub(lines, I64(1))
    for first in (*range(0, size - width, width), max(size - width, 0)):
        starts = []
        for line in range(first, first + width):
            present = builder.select(builder.icmp_signed("<", I64(line), last), I64(line), last)
            starts.append(lanes.element_pointer(source, builder.mul(present, distance), tile.dtype))
        with counted(builder, I64(0), k, width) as at:
            mask = lanes.first_lanes(builder.sub(k, at))
            vectors = [lanes.load(lanes.element_pointer(start, at, tile.dtype), tile.dtype, mask) for start in starts]
            for n, vector in enumerate(_transposed(builder, vectors)):
                step = builder.add(at, I64(n))
                lanes.store(vector, _within(builder, lanes, tile, size, target, step, first), tile.dtype)


def _within(
    builder: ir.IRBuilder, lanes: Lanes, tile: Tile, size: int, target: ir.Value, at: ir.Value, first: int
) -> ir.Value:
    """Where lines from `first` on of element `at` are. A vector longer than the strip is wide reaches into the next element,
    which is written later."""
    return lanes.element_pointer(target, builder.add(builder.mul(at, I64(size)), I64(first)), tile.dtype)


def _transposed(builder: ir.IRBuilder, vectors: list[ir.Value]) -> list[ir.Value]:
    """A square of vectors turned: blocks of 1, 2, 4, .. are exchanged across the diagonal (Eklundh, 1972)."""
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
