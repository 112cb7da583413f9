"""The kernel of matrix products: items are panels of C; inside are blocks of k, of columns and of rows, strips, tiles.

A panel packs the operands' blocks into its worker's workspace. A block of A, `rows` by `k`, stays in the second-level cache
while the strips of B pass. A block of B, `columns` by `k`, is packed strip by strip when the first rows reach it, and the
other rows reuse it; where B's rows are contiguous, the first tile packs a strip while it computes. A is packed in strips of
rows, or read in place if few tiles use it. Epilogues are kernels that run over a block of rows as soon as it is complete.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.product.interface import ONLY, POINTERS, WORDS, heights
from genesis.codegen.cpu.product.offsets import Offsets
from genesis.codegen.cpu.product.packing import emit_copy, emit_packing, emit_transposing, firsts, strip_elements
from genesis.codegen.cpu.product.tile import emit_tile
from genesis.codegen.cpu.registers import I1, I64, POINTER
from genesis.codegen.cpu.tiling import RegisterTile
from genesis.codegen.cpu.word_kernel import WordKernel, word_types

# Terms of k packed from a strip before the next strip has its turn. Strips share cache lines, and of lines a page apart a
# first-level cache holds eight: with 32 instead of 8, weight gradients ran at 200 GFlop/s instead of 205.
CHUNK = 8


def product_ir(name: str, tile: RegisterTile) -> str:
    """The module that defines the kernel `name`: C = A @ B on the panels that are its items."""
    return _Driver(name, tile).text()


class _Driver(WordKernel):
    def __init__(self, name: str, tile: RegisterTile) -> None:
        self.tile, module = tile, ir.Module(name)
        # Tiles of a third, two thirds and all of the rows, of one and two vectors, so that edges of a matrix waste little.
        self.tiles = {(rows, v): emit_tile(module, tile, rows, v) for rows in heights(tile) for v in range(1, tile.vectors + 1)}
        self.packing_tiles = {rows: emit_tile(module, tile, rows, tile.vectors, packs=True) for rows in heights(tile)}
        self.tile_on_strips = emit_tile(module, tile, tile.rows, tile.vectors, a_in_strips=True)
        self.packing = {size: emit_packing(module, tile, size) for size in {tile.rows, tile.columns}}
        self.transposing = emit_transposing(module, tile)
        self.by_offsets = Offsets(module, tile, emit_copy(module, tile))
        super().__init__(name, word_types(WORDS, POINTERS), tile.lanes, module)

    def text(self) -> str:
        with self.items() as item:
            self._panel(item)
        return super().text()

    def _panel(self, item: ir.Value) -> None:
        b, word = self.builder, self.words
        number = b.urem(item, word["panels"])
        by_columns = word["by_columns"].differs(0)
        low = number * word["height"]
        high = low + word["height"]
        rows = b.select(by_columns, I64(0), low), self.least(b.select(by_columns, word["m"], high), word["m"])
        columns = b.select(by_columns, low, I64(0)), self.least(b.select(by_columns, high, word["n"]), word["n"])
        left, right, c = (self._matrix(name, item) for name in "abc")
        strips = self._moved(word["workspace"], self.worker * word["per_worker"])
        a_blocks = self._moved(strips, word["a_block"])
        with self.count(0, word["k"], word["depth"]) as k_first:
            along = k_first, self.least(word["k"] - k_first, word["depth"])
            add = k_first.differs(0) | (item >= word["adds_from"])
            with self.count(*columns, word["columns"]) as column:
                last_column = self.least(column + word["columns"], columns[1])
                with self.count(*rows, word["rows"]) as row:
                    block = (row, self.least(row + word["rows"], rows[1])), (column, last_column)
                    packed = self._left(left, block[0], along, a_blocks)
                    fresh = row.equals(rows[0])
                    self._tiles(c, block, along, packed, (right, strips, fresh, rows), add)
                    all_terms = (k_first + along[1]).equals(word["k"])
                    with b.if_then(all_terms & last_column.equals(columns[1])):
                        self._followers(block[0])

    def _followers(self, rows: Sequence[ir.Value]) -> None:
        """Call the epilogues on these rows of the result, which are complete and in cache."""
        b = self.builder
        kernel_type = ir.FunctionPointer(self.function.function_type)
        # In blocks of 256 KB: an update finds the gradient in the second-level cache. Kernels with column sums gained nothing.
        with self.count(0, self.words["followers"]) as number:
            entry = b.gep(self.words["table"], [number * 3], source_etype=I64)
            kernel, words, items = (
                b.load(b.gep(entry, [I64(at)], source_etype=I64), typ=typ)
                for at, typ in enumerate((kernel_type, POINTER, I64)))
            kernel(*(row * items for row in rows), words, self.worker)

    def _matrix(self, name: str, item: ir.Value) -> ir.Value:
        b, word = self.builder, self.words
        batch = b.udiv(item, word["panels"])
        outer, inner = b.udiv(batch, word["batch_inner"]), b.urem(batch, word["batch_inner"])
        return self._moved(self._moved(word[name], outer * word[f"{name}_outer"]), inner * word[f"{name}_inner"])

    def _left(
        self, source: ir.Value, rows: Sequence[ir.Value], along: Sequence[ir.Value], target: ir.Value
    ) -> tuple[ir.Value, ...]:
        """Rows [rows[0], rows[1]) of A and along[1] of its columns from along[0] on: where they begin, the elements from one
        tile's rows to the next, from row to row, and from column to column.
        """
        b, size, (k_first, k), distance = self.builder, I64(self.tile.rows), along, self.words["lda"]
        # Contiguous rows become strips, too: tiles on strips take fewer instructions, which count beside a busy sibling thread.
        is_transposed = self.words["a_transposed"].differs(0)
        in_place = self.words["a_in_place"].differs(0)
        row, step = b.select(is_transposed, I64(1), distance), b.select(is_transposed, distance, I64(1))
        start = self._element(source, rows[0] * row + k_first * step)
        pitch = self.words["depth"] + self.tile.lanes
        run, *tables = (self.words[f"a_{name}"] for name in ("run", "lines", "terms"))
        by_offsets = run.differs(0)
        in_runs = by_offsets & ~is_transposed
        with b.if_then(~in_place), b.if_else(in_runs) as (lines, strips):
            with lines:
                first = self._element(source, rows[0] * distance)
                count, terms = rows[1] - rows[0], (k_first, k_first + k)
                self.by_offsets.copy_runs(self, first, distance, count, tables[1], run, terms, target, pitch)
            with strips, b.if_else(by_offsets) as (apart, near):
                with apart:
                    self._gather_strips(source, tables, rows, along, target)
                with near, b.if_else(is_transposed) as (adjacent, across):
                    with adjacent:
                        self._pack_strips(source, distance, rows, along, target, self.tile.rows, I64(CHUNK))
                    with across:
                        self._transpose_strips(start, distance, rows[1] - rows[0], k, target)
        length = strip_elements(self.tile, self.tile.rows, k, b)
        packed = [b.select(in_runs, *pair) for pair in ((pitch * size, length), (pitch, I64(1)), (I64(1), size))]
        pairs = zip((row * size, row, step), packed, strict=True)
        return b.select(in_place, start, target), *(b.select(in_place, *pair) for pair in pairs)

    def _right(self, source: ir.Value, column: ir.Value, last: ir.Value, along: Sequence[ir.Value], target: ir.Value) -> None:
        """The strip that begins at a column of B, of columns before `last` and of along[1] of its rows from along[0] on."""
        b, size, (k_first, k), distance = self.builder, self.tile.columns, along, self.words["ldb"]
        end = self.least(column + size, last)
        run, *tables = (self.words[f"b_{name}"] for name in ("run", "lines", "terms"))
        is_transposed = self.words["b_transposed"].differs(0)
        with b.if_else(run.differs(0)) as (by_offsets, in_steps):
            with by_offsets:
                terms = k_first, k_first + k
                runs, operand = (run, self.words["b_step"]), (source, *tables, self.words["terms"])
                self.by_offsets.pack(self, operand, runs, is_transposed, (column, end), terms, target)
            with in_steps, b.if_else(is_transposed) as (far, near):
                with near:
                    self._pack_strips(source, distance, (column, end), along, target, size, k)
                with far:
                    start = self._element(source, column * distance + k_first)
                    for first in firsts(self.tile, size):
                        self.transposing(start, distance, end - column, I64(first), k, target, I64(size))

    def _pack_strips(
        self, source: ir.Value, distance: ir.Value, lines: Sequence[ir.Value], along: Sequence[ir.Value], target: ir.Value,
        size: int, terms: ir.Value,
    ) -> None:
        """Pack strips of `size` adjacent lines, whose terms are `distance` apart, `terms` elements of k at a time."""
        b, (k_first, k) = self.builder, along
        pitch = strip_elements(self.tile, size, k, b)
        with self.count(0, k, terms) as chunk, self.count(lines[0], lines[1], size) as line:
            start = self._line(self._element(source, (k_first + chunk) * distance), line)
            offset = b.sdiv(line - lines[0], I64(size)) * pitch + chunk * size
            strip = self._element(target, offset)
            left, length = self.least(lines[1] - line, I64(size)), self.least(k - chunk, terms)
            self.packing[size](start, distance, left, length, strip)

    def _transpose_strips(self, start: ir.Value, distance: ir.Value, rows: ir.Value, k: ir.Value, target: ir.Value) -> None:
        """Pack `k` terms of so many contiguous rows in strips."""
        b, size = self.builder, self.tile.rows
        pitch = strip_elements(self.tile, size, k, b)
        with self.count(0, rows, size) as row:
            strip = self._element(target, b.udiv(row, I64(size)) * pitch)
            lines, left = self._element(start, row * distance), self.least(rows - row, I64(size))
            for first in firsts(self.tile, size):
                self.transposing(lines, distance, left, I64(first), k, strip, I64(size))

    def _gather_strips(
        self, source: ir.Value, tables: Sequence[ir.Value], rows: Sequence[ir.Value], along: Sequence[ir.Value],
        target: ir.Value,
    ) -> None:
        """Pack strips of rows whose elements are not adjacent."""
        b, size = self.builder, self.tile.rows
        pitch, terms = strip_elements(self.tile, size, along[1], b), (along[0], along[0] + along[1])
        with self.count(rows[0], rows[1], size) as line:
            strip = self._element(target, b.sdiv(line - rows[0], I64(size)) * pitch)
            self.by_offsets.gather(self, (source, *tables, self.words["terms"]), size, (line, rows[1]), terms, strip)

    def _tiles(
        self, c: ir.Value, block: Sequence[Sequence[ir.Value]], along: Sequence[ir.Value], left: Sequence[ir.Value],
        strips: tuple[ir.Value, ir.Value, ir.Value, Sequence[ir.Value]], add: ir.Value,
    ) -> None:
        """The tiles of a block (rows, columns). `strips`: the matrix B, its packed strips, whether they must be packed, the
        rows that use them."""
        b, tile, (rows, columns), (k_first, k), (a, a_strip, a_row, a_step) = self.builder, self.tile, block, along, left
        right, packed_b, fresh, all_rows = strips
        # Strips that no further block of rows will read take one another's place, in a cache.
        once = all_rows[1] - all_rows[0] <= self.words["rows"]
        b_strip = b.select(once, I64(0), strip_elements(tile, tile.columns, k, b))
        in_strips = self.words["b_strips"].differs(0)
        fresh = fresh & ~in_strips
        strips_of_a = a_strip.differs(a_row * tile.rows)
        unlike = functools.reduce(b.or_, [self.words[name] for name in ("b_transposed", "b_run", "only")])
        by_rows = fresh & unlike.equals(0)  # rows of B, of which tiles need all terms
        with self.count(columns[0], columns[1], tile.columns) as column:
            strip_b = self._element(packed_b, b.sdiv(column - columns[0], I64(tile.columns)) * b_strip)
            there = b.udiv(column, I64(tile.columns)) * self.words["b_strips"] + k_first * tile.columns
            strip_b = b.select(in_strips, self._element(right, there), strip_b)
            n = columns[1] - column
            # The first block of rows packs the strip, its first tile where that can; the others reuse it.
            by_tile = by_rows & (n >= tile.columns)
            apart = fresh & ~by_tile
            with b.if_then(apart):
                first, length = self._terms_of_strip(all_rows, column, k_first, k)
                target = self._element(strip_b, first * tile.columns)
                self._right(right, column, columns[1], (k_first + first, length), target)
            with self._tiles_of_rows(rows, ~strips_of_a) as (row, m, shorter):
                number = row - rows[0]
                in_strip = b.udiv(number, I64(tile.rows)) * a_strip
                strip_a = self._element(a, b.select(strips_of_a, in_strip, number * a_row))
                corner = self._element(c, row * self.words["ldc"] + column)
                ends = row + tile.rows, column + tile.columns
                first, length = self._terms((row, column), ends, k_first, k)
                start_a = self._element(strip_a, first * a_step)
                start_b = self._element(strip_b, first * tile.columns)
                # Without terms there is nothing to add, but the first to write still stores zeros.
                arguments = [length, start_a, a_row, a_step, start_b, corner, self.words["ldc"], m, n, add]
                with b.if_else(by_tile & row.equals(rows[0])) as (packs, reads):
                    with packs:
                        source = self._line(self._element(right, k_first * self.words["ldb"]), column)
                        self._call(self.packing_tiles, m, shorter, [*arguments, source, self.words["ldb"]])
                    with reads, b.if_then((length > 0) | ~add):
                        self._tile(m, n, shorter, strips_of_a, arguments)

    @contextmanager
    def _tiles_of_rows(self, rows: Sequence[ir.Value], anywhere: ir.Value) -> Iterator[tuple[ir.Value, ...]]:
        """The first row of each tile, the rows from it on, and whether the tile is a shorter one, after which another follows.

        A rest that fills two of the middle height is two of those, if tiles may begin `anywhere`: in the lowest one each sum
        waits for its own last product.
        """
        b, (_, middle, high) = self.builder, heights(self.tile)
        with b.loop([rows[0]], lambda row: rows[1] - row > 0) as carried:
            [row] = carried.now
            left = rows[1] - row
            shorter = (left > high) & (left <= 2 * middle) & anywhere
            yield row, left, shorter
            carried.following = [row + b.select(shorter, I64(middle), I64(high))]

    def _terms_of_strip(
        self, rows: Sequence[ir.Value], column: ir.Value, k_first: ir.Value, k: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """The terms that tiles of `rows` read of the strip at a column, of the `k` from `k_first` on: the first, how many."""
        # From a whole vector of terms on, as strips are written. Keys behind a causal mask are not packed.
        b, tile = self.builder, self.tile
        ends = rows[1] + tile.rows, column + tile.columns
        first, length = self._terms((rows[0], column), ends, k_first, k)
        aligned = first & -tile.lanes
        return aligned, b.select(length > 0, length + (first - aligned), I64(0))

    def _terms(
        self, starts: Sequence[ir.Value], ends: Sequence[ir.Value], k_first: ir.Value, k: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """The terms that count in rows and columns from `starts` to `ends`, of `k` from `k_first` on: the first, how many."""
        # The promise ONLY[word] says which products are not zero: causal attention skips half of its terms, 7 ms of a GPT step.
        b = self.builder
        low, high = (dict(zip("mn", corner, strict=True)) for corner in (starts, ends))
        first, last = I64(0), k
        for number, (x, y) in enumerate((only[0], only[-1]) for only in ONLY if only):
            here = self.words["only"].equals(number + 1)
            if y == "k":
                first = b.select(here, low[x] - k_first, first)
            elif x == "k":
                last = b.select(here, high[y] - k_first, last)
            else:
                last = b.select(here & (low[x] >= high[y]), I64(0), last)
        last = self.least(last, k)
        first = b.select(first > 0, first, I64(0))
        return first, last - first

    def _tile(self, m: ir.Value, n: ir.Value, shorter: ir.Value, strips_of_a: ir.Value, arguments: Sequence[ir.Value]) -> None:
        """Call the smallest tile that holds m rows and n columns, or the largest; the middle one if it is to be `shorter`."""
        b, whole = self.builder, self.tile.vectors
        with b.if_else(n > self.tile.lanes) as (wide, narrow):
            for side, vectors in ((wide, whole), (narrow, 1)):
                tiles = {rows: self.tiles[rows, vectors] for rows in heights(self.tile)}
                with side, b.if_else(strips_of_a & ir.Constant(I1, vectors == whole)) as (strips, apart):
                    with strips:
                        self._call({**tiles, self.tile.rows: self.tile_on_strips}, m, shorter, arguments)
                    with apart:
                        self._call(tiles, m, shorter, arguments)

    def _call(self, tiles: dict[int, ir.Function], m: ir.Value, shorter: ir.Value, arguments: Sequence[ir.Value]) -> None:
        """Call the one of `tiles`, by their rows, that `m` rows take."""
        b = self.builder
        low, middle, high = heights(self.tile)
        with b.if_else((m > middle) & ~shorter) as (tall, rest):
            with tall:
                tiles[high](*arguments)
            with rest, b.if_else(m > low) as (medium, flat):
                with medium:
                    tiles[middle](*arguments)
                with flat:
                    tiles[low](*arguments)

    def _moved(self, pointer: ir.Value, nbytes: ir.Value) -> ir.Value:
        return self.builder.gep(pointer, [nbytes], inbounds=True, source_etype=ir.IntType(8))

    def _element(self, pointer: ir.Value, index: ir.Value) -> ir.Value:
        return self.element_pointer(pointer, index, self.tile.dtype)

    def _line(self, pointer: ir.Value, number: ir.Value) -> ir.Value:
        """The line of this number, of adjacent ones."""
        return self.element_pointer(pointer, number, self.tile.term)
