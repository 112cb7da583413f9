"""Products of quantised rows with int8 weights: the first launch quantises rows, the second divides columns among workers.

Rows are stored as int16, so that one instruction multiplies pairs with weights that are widened as they are loaded, and
adds the products in 32 bits (`vpmaddwd`; LLVM makes it `vpdpwssd` where there is VNNI). Weights are read as bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import FLOAT, I8, I16, I32, I64, constants, zero
from genesis.codegen.cpu.tiling import lanes_of
from genesis.codegen.cpu.word_kernel import WordKernel, word_types
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.stages import PARALLEL_COST, HostCall
from genesis.ops.quantization import LEAST, LEVELS
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import Addresses, Block, NativeLaunch

QUANTIZE = "source", "integers", "scales", "terms", "padded"
PRODUCT = "integers", "scales", "weight", "scale", "bias", "result", "terms", "padded", "rows", "columns"
POINTERS = {"source", "integers", "scales", "weight", "scale", "bias", "result"}
ITEM = 16  # columns
ALONE, TOGETHER = (1, 4), (4, 2)  # rows and columns of a tile: its sums fill 8 of 16 registers
LINE = 64  # bytes
AHEAD = 2048  # bytes: rows of a tile are short streams, which processors see late. Measured, 768 x 2304: 6 to 11 GB/s


def sources(nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
    """The kernels of the call: of its rows, and of the product with or without a bias."""
    return [_quantize_source(), _product_source(len(call.operands) > 3)]


def launches(nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int) -> list[NativeLaunch]:
    """The two launches of a call; products of a batch, each with weights of its own, are blocks of them."""
    *batch, rows, columns = nodes[call.node].shape
    count, terms = numel(batch), call.operands[0][1].shape[-1]
    padded = -(-terms // _chunk()) * _chunk()
    room = rows * (2 * padded + 4)
    workspace = slots.workspace(count * room)
    quantize, product = (addresses[found.symbol] for found in sources(nodes, call))
    first, second = [], []
    for number in range(count):
        source, weight, scale, *bias = [
            slots.address(value, (layout.offset + number * numel(layout.shape[len(batch):])) * nodes[value].dtype.itemsize)
            for value, layout in call.operands]
        integers = workspace._replace(offset=workspace.offset + number * room)
        scales = integers._replace(offset=integers.offset + rows * 2 * padded)
        result = slots.address(call.node, number * rows * columns * 4)
        first.append(Block((source, integers, scales, terms, padded), rows))
        second.append(Block((integers, scales, weight, scale, bias[0] if bias else 0, result, terms, padded, rows, columns),
                            -(-columns // ITEM)))
    return [NativeLaunch(quantize, first, threads if count * rows * terms > PARALLEL_COST else 1),
            NativeLaunch(product, second, threads if count * rows * columns * terms > 3 * PARALLEL_COST else 1)]


def _chunk() -> int:
    """The terms of one instruction."""
    return 2 * lanes_of("float32")


def _quantize_source() -> KernelSource:
    name, width = "genesis_quantized_rows", lanes_of("float32")
    return KernelSource(name, f"{name} {width}", partial(_quantize_ir, name, width))


def _product_source(biased: bool) -> KernelSource:
    name, width = "genesis_int8_product" + "_bias" * biased, lanes_of("float32")
    return KernelSource(name, f"{name} {width} {ITEM} {ALONE} {TOGETHER}", partial(_product_ir, name, width, biased))


# ---- rows become integers ----
def _quantize_ir(name: str, width: int) -> str:
    kernel = WordKernel(name, word_types(QUANTIZE, POINTERS), width)
    builder, terms, padded = kernel.builder, kernel.words["terms"], kernel.words["padded"]
    whole = builder.sdiv(terms, I64(width)) * width

    def numbers(row: ir.Value, end: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
        """A row's columns and numbers by vectors, in two loops: whole ones, and the rest up to `end`, with zeros."""
        for is_rest, bounds in enumerate([(I64(0), whole), (whole, end)]):
            with kernel.count(*bounds, width) as column:
                mask = kernel.first_lanes(terms - column) if is_rest else None
                yield column, kernel.load(kernel.element("source", row * terms + column, "float32"), "float32", mask)

    with kernel.items() as row:
        # The bits of floats' magnitudes, as integers, have the same order, and NaN is the largest.
        most = kernel.variable(kernel.splat(I32(0)))
        for _, x in numbers(row, terms):
            most.set(kernel.maximum(most.get(), kernel.bitcast_to_int(kernel.absolute(x)), "int32"))
        largest = kernel.bitcast_to_float(kernel.horizontal_reduce(lambda a, b: kernel.maximum(a, b, "int32"), most.get()))
        finite = kernel.compare("<", largest, math.inf, "float32")
        step = kernel.select(kernel.compare(">=", largest, LEAST, "float32"), FLOAT(LEVELS) / largest, 0.0)
        scale = kernel.select(finite, largest / FLOAT(LEVELS), math.nan)
        kernel.store_uniform(scale, kernel.element("scales", row, "float32"), "float32")
        for column, x in numbers(row, padded):
            x = kernel.select(finite, x, kernel.splat(FLOAT(0.0)))
            rounded = kernel.intrinsic("rint", x.type, [kernel.multiply(x, step)])
            found = builder.trunc(builder.fptosi(rounded, ir.VectorType(I32, width)), ir.VectorType(I16, width))
            kernel.store(found, kernel.element("integers", row * padded + column, "int16"), "int16")
    return kernel.text()


# ---- the product ----
def _product_ir(name: str, width: int, biased: bool) -> str:
    kernel = WordKernel(name, word_types(PRODUCT, POINTERS), width)
    builder, rows, columns = kernel.builder, kernel.words["rows"], kernel.words["columns"]
    single, several = _Tile(kernel, *ALONE, biased), _Tile(kernel, *TOGETHER, biased)
    whole = builder.sdiv(rows, I64(TOGETHER[0])) * TOGETHER[0]
    with kernel.items() as item:
        start = item * ITEM
        end = kernel.least(start + ITEM, columns)
        for tile, first, last in ((several, I64(0), whole), (single, whole, rows)):
            with kernel.count(first, last, tile.rows) as row, kernel.count(start, end, tile.columns) as column:
                tile.emit(row, column)
    return kernel.text()


class _Tile:
    """Emits a few rows times a few columns; columns past the end repeat the last one."""

    def __init__(self, kernel: WordKernel, rows: int, columns: int, biased: bool) -> None:
        self.kernel, self.builder = kernel, kernel.builder
        self.rows, self.columns, self.biased = rows, columns, biased
        self.chunk = 2 * kernel.width
        self.bytes, self.shorts, self.wide = (ir.VectorType(kind, self.chunk) for kind in (I8, I16, I32))
        self.sums = [self.builder.alloca(ir.VectorType(I32, kernel.width)) for _ in range(rows * columns)]
        self.rests = [self.builder.alloca(I8, self.chunk) for _ in range(columns)]
        for rest in self.rests:
            for n in range(self.chunk):
                self.kernel.put(I8(0), rest, n)

    def emit(self, row: ir.Value, column: ir.Value) -> None:
        builder, words = self.builder, self.kernel.words
        last = words["columns"] - 1
        rows = [row + r for r in range(self.rows)]
        columns = [column, *[self.kernel.least(column + c, last) for c in range(1, self.columns)]]
        integers = [self.kernel.element("integers", r * words["padded"], "int16") for r in rows]
        weights = [self.kernel.element("weight", c * words["terms"], "int8") for c in columns]
        for total in self.sums:
            builder.store(zero(ir.VectorType(I32, self.kernel.width)), total)
        whole = builder.sdiv(words["terms"], I64(self.chunk)) * self.chunk
        with self.kernel.count(0, whole, self.chunk) as term:
            self._ask_for(weights[0], term)
            self._add(term, integers, [self.kernel.element_pointer(weight, term, "int8") for weight in weights])
        with self.kernel.count(whole, words["terms"], self.chunk) as term:  # the rest; rows are padded with zeros
            for weight, rest in zip(weights, self.rests, strict=True):
                with self.kernel.count(term, words["terms"]) as at:
                    self.kernel.put(self.kernel.get(weight, at, I8), rest, at - term)
            self._add(term, integers, self.rests)
        for n, total in enumerate(self.sums):
            number = self.kernel.horizontal_reduce(builder.add, builder.load(total))
            self._store(number, rows[n // self.columns], columns[n % self.columns])

    def _ask_for(self, weights: ir.Value, term: ir.Value) -> None:
        """Prefetch a chunk's bytes of all columns, which are contiguous."""
        start = term * self.columns + AHEAD
        for line in range(0, self.columns * self.chunk, LINE):
            self.kernel.prefetch(self.kernel.element_pointer(weights, start + line, "int8"))

    def _add(self, term: ir.Value, integers: Sequence[ir.Value], weights: Sequence[ir.Value]) -> None:
        """Add the products of a chunk of terms."""
        builder = self.builder
        factors = [builder.sext(builder.load(w, align=1, typ=self.bytes), self.wide) for w in weights]
        even, odd = (constants(I32, range(start, self.chunk, 2)) for start in (0, 1))
        for r, line in enumerate(integers):
            pair = self.kernel.element_pointer(line, term, "int16")
            x = builder.sext(builder.load(pair, align=2, typ=self.shorts), self.wide)
            for factor, total in zip(factors, self.sums[r * self.columns :], strict=False):
                products = x * factor
                pairs = [builder.shuffle_vector(products, products, which) for which in (even, odd)]
                builder.store(builder.load(total) + (pairs[0] + pairs[1]), total)

    def _store(self, total: ir.Value, row: ir.Value, column: ir.Value) -> None:
        y = self.builder.sitofp(total, FLOAT) * self._number("scale", column) * self._number("scales", row)
        if self.biased:
            y = y + self._number("bias", column)
        index = row * self.kernel.words["columns"] + column
        self.kernel.store_uniform(y, self.kernel.element("result", index, "float32"), "float32")

    def _number(self, word: str, index: ir.Value) -> ir.Value:
        return self.kernel.load_uniform(self.kernel.element(word, index, "float32"), "float32")
