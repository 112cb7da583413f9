"""Packing: a matrix copied strip by strip, so that the tile's loop reads it sequentially.

A strip of `size` lines holds element k of all its lines side by side, for every k. A line is a row of A or a column of B.
Either its elements are adjacent (then vectors along lines are transposed into vectors across lines; runs of A's rows are
copied unchanged), or lines are. Lines beyond the last hold arbitrary values, whose results are never stored. An element may
be a pair of terms, of bfloat16: where lines are adjacent, two terms' are interleaved.
"""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import FLOAT, I32, I64, POINTER, constants, zero
from genesis.codegen.cpu.tiling import RegisterTile
from genesis.codegen.cpu.vectors import transposed

LINE = 64  # bytes


def strip_elements(tile: RegisterTile, size: int, k: ir.Value, builder: ir.IRBuilder) -> ir.Value:
    """The elements from one strip of length `k` to the next: the last vector is written whole."""
    rounded = (k + (tile.lanes - 1)) & -tile.lanes
    return rounded * size + tile.lanes


def firsts(tile: RegisterTile, size: int) -> tuple[int, ...]:
    """The first lines of a strip's vectors: the last vector overlaps the one before, or is longer than the strip."""
    return (*range(0, size - tile.lanes, tile.lanes), max(size - tile.lanes, 0))


def lines_at(
    lanes: Lanes, tile: RegisterTile, start: ir.Value, second: ir.Value, step: int = 1, count: ir.Value | None = None,
    is_pair: ir.Value | None = None,
) -> ir.Value:
    """A vector of elements `step` apart at `start`, the first `count` of them; nothing beyond these is read. Of pairs, the
    first terms are at `start`, the others at `second`, or 0 unless it `is_pair`.
    """
    if not tile.pairs:
        return _spaced(lanes, tile.term, start, step, count)
    b, wide = lanes.builder, ir.VectorType(I32, lanes.width)
    low, high = (b.zext(_spaced(lanes, tile.term, pointer, step, count), wide) for pointer in (start, second))
    high = high << constants(I32, [16] * lanes.width)
    high = high if is_pair is None else b.select(is_pair, high, zero(wide))
    return b.bitcast(low | high, ir.VectorType(FLOAT, lanes.width))


def terms_at(lanes: Lanes, tile: RegisterTile, start: ir.Value, step: int, count: ir.Value) -> ir.Value:
    """A vector of elements of one line, whose terms are `step` apart: the first `count`; nothing beyond these is read."""
    if not tile.pairs:
        return _spaced(lanes, tile.term, start, step, count)
    b = lanes.builder
    terms = _spaced(Lanes(b, 2 * lanes.width), tile.term, start, step, count << 1)
    return b.bitcast(terms, ir.VectorType(FLOAT, lanes.width))


def _spaced(lanes: Lanes, dtype: str, start: ir.Value, step: int, count: ir.Value | None) -> ir.Value:
    """A vector of numbers that are `step` apart, 1 or 2, the first `count` of them."""
    if step == 1:
        return lanes.load(start, dtype, None if count is None else lanes.first_lanes(count))
    width, b = lanes.width, lanes.builder
    extent = None if count is None else (count << 1) - 1
    low, high = (
        lanes.load(lanes.element_pointer(start, I64(first), dtype), dtype,
                   None if extent is None else lanes.first_lanes(extent - first))
        for first in (0, width - 1))
    return b.shuffle_vector(low, high, constants(I32, [*range(0, width, 2), *range(width + 1, 2 * width, 2)]))


def emit_copy(module: ir.Module, tile: RegisterTile) -> ir.Function:
    """`void (source, distance, lines, k, target, pitch)`: `k` elements of each line, at `target` `pitch` apart."""
    code = Code(module, "copy_lines", [POINTER, I64, I64, I64, POINTER, I64], tile.lanes)
    source, distance, lines, k, target, pitch = code.args
    with code.count(0, lines) as line:
        start, there = (code.element_pointer(pointer, line * apart, tile.dtype)
                        for pointer, apart in ((source, distance), (target, pitch)))
        with code.count(0, k, tile.lanes) as at:
            vector = code.load(code.element_pointer(start, at, tile.dtype), tile.dtype, code.first_lanes(k - at))
            code.store(vector, code.element_pointer(there, at, tile.dtype), tile.dtype)
    return code.finish()


def emit_packing(module: ir.Module, tile: RegisterTile, size: int) -> ir.Function:
    """`void (source, distance, lines, k, target)`: a strip of `size` adjacent lines, of which there are `lines`; from one term
    to the next it is `distance`.
    """
    code = Code(module, f"pack_{size}", [POINTER, I64, I64, I64, POINTER], tile.lanes)
    source, distance, lines, k, target = code.args
    counts = [(first, lines - first) for first in firsts(tile, size)]
    with code.count(0, k) as at:
        start = code.element_pointer(source, at * distance, tile.dtype)
        packed = code.element_pointer(target, at * size, tile.dtype)
        for first, count in counts:  # all of a cache line at once: lines a page apart, of which few fit, would be read again
            here = code.element_pointer(start, I64(first), tile.term)
            second = code.element_pointer(here, distance, tile.term)
            # The excess of a long vector is overwritten by the next element's.
            vector = lines_at(code, tile, here, second, count=count)
            code.store(vector, code.element_pointer(packed, I64(first), tile.dtype), tile.dtype)
            for term in (here, second)[: 1 + tile.pairs]:
                code.prefetch(code.element_pointer(term, I64(size), tile.term))  # of the next strip
    return code.finish()


def emit_transposing(module: ir.Module, tile: RegisterTile) -> ir.Function:
    """`void (source, distance, lines, first, k, target, size)`: one vector of lines, from `first` on, of a strip of `size`
    lines, of which there are `lines`, `distance` apart.
    """
    code = Code(module, "pack_transposed", [POINTER, I64, I64, I64, I64, POINTER, I64], tile.lanes)
    source, distance, lines, first, k, target, size = code.args
    present = [code.least(first + n, lines - 1) for n in range(tile.lanes)]
    starts = [code.element_pointer(source, line * distance, tile.dtype) for line in present]
    with code.count(0, k, tile.lanes) as at:
        mask = code.first_lanes(k - at)
        vectors = [code.load(code.element_pointer(start, at, tile.dtype), tile.dtype, mask) for start in starts]
        # Zen 4, one thread, AVX2 code, B transposed, 8 products of 24 and 64 rows, 144 and 576 terms, 3136 columns: 4.3 to 2.6
        # and 25.7 to 20.7 ms. Vectors of whole lines are loaded far enough ahead.
        for start in starts if tile.lanes * tile.itemsize < LINE else ():  # of the next vector of lines
            coming = at + distance * tile.lanes
            code.prefetch(code.element_pointer(start, coming, tile.dtype))
        for n, vector in enumerate(transposed(code.builder, vectors)):
            offset = (at + n) * size + first
            code.store(vector, code.element_pointer(target, offset, tile.dtype), tile.dtype)
    return code.finish()
