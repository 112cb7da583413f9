"""The kernel of matrix products: panels of C as items, blocks of k, of columns and of rows, strips, tiles.

A panel packs the operands' blocks into its worker's workspace: of B `columns` by `k`, which tiles of every row reuse, of A
`rows` by `k`, which stays in the second-level cache while the strips of B come past.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.product.packing import emit_packing, firsts, strip_elements
from genesis.codegen.cpu.product.tile import VECTORS, Tile, counted, emit_tile
from genesis.codegen.cpu.registers import I64, POINTER

__all__ = ["WORDS", "product_ir"]

# The words of an argument block. Distances are in elements, batch strides in bytes; what is stored of a transposed
# operand is its transpose. A panel is `height` rows, or columns if `by_columns`; blocks are `rows` or `columns` by `depth`;
# items from `adds_from` on are added to what is there; `only` is the number of the promise in ONLY; the workspace is a
# `share` for each worker, B's block in front, A's `a_block` bytes further on.
WORDS = (
    "m", "n", "k", "a", "lda", "a_transposed", "b", "ldb", "b_transposed", "c", "ldc", "batch_inner", "a_outer", "a_inner",
    "b_outer", "b_inner", "c_outer", "c_inner", "panels", "height", "by_columns", "adds_from", "only", "rows", "columns",
    "depth", "workspace", "share", "a_block",
)
ONLY = ("", "n<=m", "k<=m", "n<=k", "m<=n", "k<=n", "m<=k")  # what products may be promised (see `ops/contraction.py`)


CHUNK = 32  # of k that is packed of every strip before the next: lines of which each strip takes a part stay in cache


def product_ir(name: str, tile: Tile) -> str:
    """The module that defines the kernel `name`: C = A @ B on the panels that are its items."""
    return _Driver(name, tile).text()


class _Driver:
    def __init__(self, name: str, tile: Tile) -> None:
        self.tile = tile
        self.module = ir.Module(name)
        self.tiles = {(rows, v): emit_tile(self.module, tile, rows, v) for rows in tile.heights for v in range(1, VECTORS + 1)}
        self.packing = {turned: emit_packing(self.module, tile, turned=turned) for turned in (False, True)}
        kind = ir.FunctionType(ir.VoidType(), [I64, I64, POINTER, I64])
        self.function = ir.Function(self.module, kind, name)
        self.first, self.end, words, self.worker = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.lanes = Lanes(self.builder, tile.lanes)
        self.word = {name: self._word(words, number, name) for number, name in enumerate(WORDS)}

    def _word(self, words: ir.Value, number: int, name: str) -> ir.Value:
        at = self.builder.gep(words, [I64(number)], inbounds=True, source_etype=I64)
        return self.builder.load(at, typ=POINTER if name in ("a", "b", "c", "workspace") else I64)

    def text(self) -> str:
        with counted(self.builder, self.first, self.end) as item:
            self._panel(item)
        self.builder.ret_void()
        return str(self.module)

    def _panel(self, item: ir.Value) -> None:
        b, word = self.builder, self.word
        batch, number = b.udiv(item, word["panels"]), b.urem(item, word["panels"])
        outer, inner = b.udiv(batch, word["batch_inner"]), b.urem(batch, word["batch_inner"])
        a, b_, c = (
            self._moved(self._moved(word[name], b.mul(outer, word[f"{name}_outer"])), b.mul(inner, word[f"{name}_inner"]))
            for name in "abc"
        )
        by_columns = b.icmp_signed("!=", word["by_columns"], I64(0))
        low = b.mul(number, word["height"])
        high = b.add(low, word["height"])
        rows = b.select(by_columns, I64(0), low), self._least(b.select(by_columns, word["m"], high), word["m"])
        columns = b.select(by_columns, low, I64(0)), self._least(b.select(by_columns, high, word["n"]), word["n"])
        base = self._moved(word["workspace"], b.mul(self.worker, word["share"]))
        a_blocks = self._moved(base, word["a_block"])
        with counted(b, I64(0), word["k"], word["depth"]) as k_first:
            k = self._least(b.sub(word["k"], k_first), word["depth"])
            add = b.or_(b.icmp_signed("!=", k_first, I64(0)), b.icmp_signed(">=", item, word["adds_from"]))
            with counted(b, *columns, word["columns"]) as column:
                last_column = self._least(b.add(column, word["columns"]), columns[1])
                self._pack("b", b_, (column, last_column), (k_first, k), base)
                with counted(b, *rows, word["rows"]) as row:
                    last_row = self._least(b.add(row, word["rows"]), rows[1])
                    self._pack("a", a, (row, last_row), (k_first, k), a_blocks)
                    self._tiles(c, (row, last_row), (column, last_column), (k_first, k), (a_blocks, base), add)

    def _pack(
        self, name: str, source: ir.Value, lines: Sequence[ir.Value], along: Sequence[ir.Value], target: ir.Value
    ) -> None:
        """The strips of lines [lines[0], lines[1]) and of along[1] elements from along[0] on."""
        b, k_first, k = self.builder, *along
        size = self.tile.rows if name == "a" else self.tile.columns
        distance, transposed = self.word[f"ld{name}"], self.word[f"{name}_transposed"]
        lines_apart = b.icmp_signed("==" if name == "a" else "!=", transposed, I64(0))
        pitch = strip_elements(self.tile, size, k, b)
        with b.if_else(lines_apart) as (far, near):
            for branch, turned in ((far, True), (near, False)):
                step = k if turned else I64(CHUNK)
                with branch, counted(b, I64(0), k, step) as chunk, counted(b, lines[0], lines[1], size) as line:
                    k_now = b.add(k_first, chunk)
                    at = (line, k_now) if turned else (k_now, line)
                    start = self._element(source, b.add(b.mul(at[0], distance), at[1]))
                    place = b.add(b.mul(b.sdiv(b.sub(line, lines[0]), I64(size)), pitch), b.mul(chunk, I64(size)))
                    left = self._least(b.sub(lines[1], line), I64(size))
                    length = self._least(b.sub(k, chunk), step)
                    strip = self._element(target, place)
                    for first in firsts(self.tile, size):
                        b.call(self.packing[turned], [start, distance, left, I64(first), length, strip, I64(size)])

    def _tiles(
        self, c: ir.Value, rows: Sequence[ir.Value], columns: Sequence[ir.Value], along: Sequence[ir.Value],
        packed: Sequence[ir.Value], add: ir.Value,
    ) -> None:
        b, tile, (k_first, k) = self.builder, self.tile, along
        pitches = [strip_elements(tile, size, k, b) for size in (tile.rows, tile.columns)]
        with counted(b, columns[0], columns[1], tile.columns) as column:
            strip_b = self._element(packed[1], b.mul(b.sdiv(b.sub(column, columns[0]), I64(tile.columns)), pitches[1]))
            n = b.sub(columns[1], column)
            with counted(b, rows[0], rows[1], tile.rows) as row:
                strip_a = self._element(packed[0], b.mul(b.sdiv(b.sub(row, rows[0]), I64(tile.rows)), pitches[0]))
                m = b.sub(rows[1], row)
                place = self._element(c, b.add(b.mul(row, self.word["ldc"]), column))
                first, length = self._terms(row, column, k_first, k)
                strips = [self._element(strip, b.mul(first, I64(size)))
                          for strip, size in ((strip_a, tile.rows), (strip_b, tile.columns))]
                with b.if_then(b.or_(b.icmp_signed(">", length, I64(0)), b.not_(add))):
                    self._tile(m, n, [length, *strips, place, self.word["ldc"], m, n, add])

    def _terms(self, row: ir.Value, column: ir.Value, k_first: ir.Value, k: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Of the `k` terms from `k_first` on, those that count in the tile at (row, column): the first, and how many."""
        b, tile = self.builder, self.tile
        low = {"m": row, "n": column}
        high = {"m": b.add(row, I64(tile.rows)), "n": b.add(column, I64(tile.columns))}
        first, last = I64(0), k
        for number, (x, y) in enumerate((only[0], only[-1]) for only in ONLY if only):
            here = b.icmp_signed("==", self.word["only"], I64(number + 1))
            if y == "k":
                first = b.select(here, b.sub(low[x], k_first), first)
            elif x == "k":
                last = b.select(here, b.sub(high[y], k_first), last)
            else:
                last = b.select(b.and_(here, b.icmp_signed(">=", low[x], high[y])), I64(0), last)
        last = self._least(last, k)
        first = b.select(b.icmp_signed(">", first, I64(0)), first, I64(0))
        return first, b.sub(last, first)

    def _tile(self, m: ir.Value, n: ir.Value, arguments: Sequence[ir.Value]) -> None:
        """Call the smallest tile that holds m rows and n columns, or the largest."""
        b = self.builder
        low, middle, high = self.tile.heights
        with b.if_else(b.icmp_signed(">", n, I64(self.tile.lanes))) as sides:
            for side, vectors in zip(sides, (VECTORS, 1), strict=True):
                with side, b.if_else(b.icmp_signed(">", m, I64(middle))) as (tall, rest):
                    with tall:
                        b.call(self.tiles[high, vectors], arguments)
                    with rest, b.if_else(b.icmp_signed(">", m, I64(low))) as (medium, flat):
                        with medium:
                            b.call(self.tiles[middle, vectors], arguments)
                        with flat:
                            b.call(self.tiles[low, vectors], arguments)

    def _least(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.builder.select(self.builder.icmp_signed("<", x, y), x, y)

    def _moved(self, pointer: ir.Value, nbytes: ir.Value) -> ir.Value:
        return self.builder.gep(pointer, [nbytes], inbounds=True, source_etype=ir.IntType(8))

    def _element(self, pointer: ir.Value, index: ir.Value) -> ir.Value:
        return self.lanes.element_pointer(pointer, index, self.tile.dtype)
