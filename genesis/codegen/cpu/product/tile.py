"""The register tile of matrix products, and the loop that computes one from packed strips.

A strip of B has for each k the elements of `columns` columns side by side; A's elements are read one by one, from a strip of
rows or with any strides. One step of the loop multiplies each row's element, broadcast, with the columns' vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.product.interface import FIRST_CACHE, depth_of
from genesis.codegen.cpu.product.packing import LINE, lines_at
from genesis.codegen.cpu.registers import I1, I64, POINTER, REGISTER_TYPE
from genesis.codegen.cpu.spacing import Spacing, opaque
from genesis.codegen.cpu.tiling import RegisterTile

TERMS = 2  # of k in one round of the tile's loop: with one, 1 to 3% slower
FOLDED = 3  # of so many adjacent rows, multiplications broadcast one's element themselves: two loads replace an instruction
AHEAD = 8  # terms: so long before a tile reads a row of B, or of a strip longer than a first-level cache, it asks for it


def emit_tile(
    module: ir.Module, tile: RegisterTile, rows: int, vectors: int, packs: bool = False, a_in_strips: bool = False
) -> ir.Function:
    """`void (k, a, a_row, a_step, b, c, ldc, m, n, add)`: c[:m, :n] = a @ b, or += if `add`, over k terms.

    `a_row` and `a_step` are the strides of a's rows and columns, in elements; they are constants if `a_in_strips`. b is a
    packed strip. If it `packs`, it has two more arguments, where rows of B begin and the distance of these, and writes the
    strip as it reads them.
    """
    parameters = [I64, POINTER, I64, I64, POINTER, POINTER, I64, I64, I64, I1, *((POINTER, I64) if packs else ())]
    code = Code(module, f"tile_{rows}_{vectors}" + "_packing" * packs + "_strips" * a_in_strips, parameters, tile.lanes)
    k, a, a_row, a_step, b, c, ldc, m, n, add, *source = code.args
    strides = None if a_in_strips else (a_row, a_step)
    # A whole tile is stored unmasked, `add` known to each of the two copies; edges, which are rare, share one masked copy.
    sums = _sums(code, tile, (rows, vectors), k, (a, strides), b, (c, ldc), source)
    if (rows, vectors) != (tile.rows, tile.vectors):
        _store(code, tile, sums, (c, ldc), add, (m, n))
    else:
        whole = (m >= rows) & (n >= tile.columns)
        with code.builder.if_else(whole) as (inside, edge):
            with inside, code.builder.if_else(add) as (adding, writing):
                for way, adds in ((adding, True), (writing, False)):
                    with way:
                        _store(code, tile, sums, (c, ldc), ir.Constant(I1, adds), None)
            with edge:
                _store(code, tile, sums, (c, ldc), add, (m, n))
    return code.finish()


def _prefetch(lanes: Lanes, tile: RegisterTile, pointer: ir.Value, vectors: int, writing: bool = False, level: int = 3) -> None:
    """Prefetch the lines of so many vectors at `pointer`; 3 for `level` is the first-level cache, 2 the second."""
    for first in range(0, vectors * tile.lanes, LINE // tile.itemsize):
        lanes.prefetch(lanes.element_pointer(pointer, I64(first), tile.dtype), to_write=writing, level=level)


def _store(
    lanes: Lanes, tile: RegisterTile, sums: Sequence[Sequence[ir.Value]], target: tuple[ir.Value, ir.Value], add: ir.Value,
    limits: tuple[ir.Value, ir.Value] | None,
) -> None:
    """Store the sums to rows of `target` (pointer, distance), or add them, up to the `limits` of rows and columns."""
    builder, (c, ldc) = lanes.builder, target
    firsts = [v * tile.lanes for v in range(len(sums[0]))]
    masks = [None if limits is None else lanes.first_lanes(limits[1] - first) for first in firsts]
    done = builder.append_basic_block("done")
    for row, vectors in enumerate(sums):
        for first, value, mask in zip(firsts, vectors, masks, strict=True):
            pointer = lanes.element_pointer(c, ldc * row + first, tile.dtype)
            if mask is not None:
                there = lanes.load(pointer, tile.dtype, mask & lanes.splat(add))
                value = lanes.select(add, lanes.add(value, there), value)
            elif add.constant:  # type: ignore[attr-defined]
                value = lanes.add(value, lanes.load(pointer, tile.dtype))
            lanes.store(value, pointer, tile.dtype, mask)
        if limits is not None and row < len(sums) - 1:
            following = builder.append_basic_block("row")
            builder.cbranch(limits[0] > row + 1, following, done)
            builder.position_at_end(following)
    builder.branch(done)
    builder.position_at_end(done)


def _sums(
    lanes: Lanes, tile: RegisterTile, shape: tuple[int, int], k: ir.Value,
    a: tuple[ir.Value, tuple[ir.Value, ir.Value] | None], b: ir.Value, target: tuple[ir.Value, ir.Value],
    source: Sequence[ir.Value] = (),
) -> Sequence[Sequence[ir.Value]]:
    """The loops over k; the builder is left behind them. Returns sums[row][vector].

    C's lines arrive meanwhile, a row with each of the first rounds: all at once they take the buffers that A and B need.
    """
    builder, (rows, vectors) = lanes.builder, shape
    is_long = depth_of(tile) * tile.columns * tile.itemsize > FIRST_CACHE
    start_of_a, strides = a
    rows_of_a = Spacing(builder, strides[0], tile.itemsize, rows) if strides else None
    # AVX-512's instructions can; LLVM does not let those of pairs, of 1024 x 1024 10.0 ms and so 10.9.
    folds = strides is None and tile.lanes * tile.itemsize == LINE and not tile.pairs
    multiply = lanes.add_products_of_pairs if tile.pairs else lanes.fma
    nothing = ir.Constant(ir.VectorType(REGISTER_TYPE[tile.dtype], tile.lanes), "zeroinitializer")

    def terms(state: Sequence[ir.Value], count: int, prefetching: bool) -> list[ir.Value]:
        (b_now, a_now, c_now, source_now), sums = state[:4], [*state[4:]]
        if prefetching:
            _prefetch(lanes, tile, c_now, vectors, writing=True)
            c_now = lanes.element_pointer(c_now, target[1], tile.dtype)
        again = opaque(builder, a_now)  # LLVM does not know that both are one address, and loads what is folded twice
        for term in range(count):
            firsts = [term * tile.columns + v * tile.lanes for v in range(vectors)]
            strip = [lanes.element_pointer(b_now, I64(first), tile.dtype) for first in firsts]
            if source:
                columns = _packed(lanes, tile, source_now, source[1], strip)
                source_now = opaque(builder, lanes.element_pointer(source_now, source[1], tile.dtype))
            else:
                columns = [lanes.load(pointer, tile.dtype) for pointer in strip]
                if is_long:  # without asking, a fifth of the time of many terms is waiting
                    _prefetch(lanes, tile, lanes.element_pointer(strip[0], I64(AHEAD * tile.columns), tile.dtype), vectors)
            for row in range(rows):
                for v, column in enumerate(columns):
                    if v == 0 or (folds and row % FOLDED == FOLDED - 1):
                        start, index = again if v else a_now, I64(term * tile.rows + row)
                        at = rows_of_a.after(start, row) if rows_of_a else lanes.element_pointer(start, index, tile.dtype)
                        element = lanes.splat(lanes.load_uniform(at, tile.dtype))
                    sums[row * vectors + v] = multiply(element, column, sums[row * vectors + v])
            if strides:
                a_now = opaque(builder, lanes.element_pointer(a_now, strides[1], tile.dtype))
        if not strides:
            a_now = opaque(builder, lanes.element_pointer(a_now, I64(count * tile.rows), tile.dtype))
        return [lanes.element_pointer(b_now, I64(count * tile.columns), tile.dtype), a_now, c_now, source_now, *sums]

    starts = b, opaque(builder, start_of_a), target[0], source[0] if source else b
    state: Sequence[ir.Value] = (*starts, *[nothing] * (rows * vectors))
    rounds = k & -TERMS
    first = builder.select(rounds < rows * TERMS, rounds, I64(rows * TERMS))
    for last, count, prefetching in ((first, TERMS, True), (rounds, TERMS, False), (k, 1, False)):
        end = lanes.element_pointer(b, last * tile.columns, tile.dtype)
        state = _repeated(builder, state, end, functools.partial(terms, count=count, prefetching=prefetching))
    sums = state[4:]
    return [sums[row * vectors : (row + 1) * vectors] for row in range(rows)]


def _packed(
    lanes: Lanes, tile: RegisterTile, source: ir.Value, distance: ir.Value, strip: Sequence[ir.Value]
) -> list[ir.Value]:
    """The vectors of a row of B, which are stored to a strip; a later row is prefetched, and the row of the next strip."""
    columns = []
    for v, pointer in enumerate(strip):
        here = lanes.element_pointer(source, I64(v * tile.lanes), tile.term)
        columns.append(lines_at(lanes, tile, here, lanes.element_pointer(here, distance, tile.term)))
        lanes.store(columns[-1], pointer, tile.dtype)
    # Zen 4, 8 products of 2, 8 and 64 rows, 32, 32 and 576 terms, 16384, 16384 and 3136 columns, without and with the next
    # strip's: 2.1 to 1.1, 2.1 to 1.1, 17.6 to 16.7 ms; straight to the first level, 1.5, 1.5 and 18.9.
    coming = (distance * AHEAD, tile.dtype, 3), (I64(tile.columns), tile.term, 2)
    rows = [source, lanes.element_pointer(source, distance, tile.term)] if tile.pairs else [source]
    for there, dtype, level in coming:
        for row in rows:
            _prefetch(lanes, tile, lanes.element_pointer(row, there, dtype), len(strip) // len(rows), level=level)
    return columns


def _repeated(
    builder: ir.IRBuilder, state: Sequence[ir.Value], end: ir.Value, body: Callable[[Sequence[ir.Value]], list[ir.Value]]
) -> Sequence[ir.Value]:
    """`while state[0] < end: state = body(state)`, for a pointer state[0]."""
    def step(*now: ir.Value) -> tuple[ir.Value, Sequence[ir.Value]]:
        following = body(now)
        return builder.icmp_unsigned("<", following[0], end), following

    return builder.replaced(builder.icmp_unsigned("<", state[0], end), state, lambda: builder.repeated(state, step))
