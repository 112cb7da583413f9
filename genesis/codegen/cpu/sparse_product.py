"""A sparse matrix, compressed by rows, times a dense one: each row's sums stay in registers while its terms are read.

Any free worker takes a row. The terms of a row are added in order, so results do not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import I64, REGISTER_TYPE
from genesis.codegen.cpu.tiling import lanes_of
from genesis.codegen.cpu.word_kernel import WordKernel, word_types
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.stages import PARALLEL_COST, HostCall
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import Addresses, Block, BlockWord, NativeLaunch

POINTERS = "pointers", "columns", "values", "dense", "result"
TYPES = word_types((*POINTERS, "terms", "width", "distance"), POINTERS)
VECTORS = 8, 2  # of sums at a time; a row is read once per stretch of columns
AHEAD = 8  # terms to prefetch ahead, as rows of the dense factor are scattered
LINE = 64  # bytes
DTYPES = "float32", "float64"


def sources(nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
    """The kernel of the call, if there is one for its dtype."""
    dtype = nodes[call.node].dtype.name
    return [source(dtype)] if dtype in DTYPES else []


def source(dtype: str) -> KernelSource:
    """The kernel of products of one of `DTYPES`."""
    width = lanes_of(dtype)
    name = f"genesis_sparse_product_{dtype}"
    return KernelSource(name, f"{name} {width} {VECTORS} {AHEAD}", partial(_product_ir, name, dtype, width))


def launches(
    nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int
) -> list[NativeLaunch] | None:
    """The launch of a call; None if the kernel does not support its layouts."""
    node = nodes[call.node]
    operands = dict(zip(("pointers", "rows", "columns", "values", "dense"), call.operands, strict=True))
    layouts = {name: layout for name, (_, layout) in operands.items()}
    dense = layouts["dense"]
    if len(node.shape) != 2 or node.dtype.name not in DTYPES or dense.strides[1] != 1 or any(
        layouts[name].strides != (1,) for name in ("pointers", "columns", "values")
    ):
        return None
    size = {"pointers": 8, "columns": 8, "values": node.dtype.itemsize, "dense": node.dtype.itemsize}
    addresses_of = [slots.address(operands[name][0], layouts[name].offset * nbytes) for name, nbytes in size.items()]
    terms, (rows, width) = layouts["columns"].shape[0], node.shape
    words: tuple[BlockWord, ...] = (*addresses_of, slots.address(call.node), terms, width, dense.strides[0])
    workers = threads if terms * width > PARALLEL_COST else 1
    return [NativeLaunch(addresses[source(node.dtype.name).symbol], [Block(words, rows)], workers)]


def _product_ir(name: str, dtype: str, width: int) -> str:
    kernel = _Kernel(name, dtype, width)
    with kernel.items() as row:
        kernel.row(row)
    return kernel.text()


class _Kernel(WordKernel):
    """Emits a kernel whose items are rows of the result."""

    def __init__(self, name: str, dtype: str, width: int) -> None:
        super().__init__(name, TYPES, width)
        self.dtype = dtype
        self.sums = [self.builder.alloca(ir.VectorType(REGISTER_TYPE[dtype], width)) for _ in range(max(VECTORS))]

    def row(self, row: ir.Value) -> None:
        builder, width = self.builder, self.words["width"]
        terms = [self._clamped(self.get(self.words["pointers"], at)) for at in (row, row + 1)]
        target = self.element("result", row * width, self.dtype)
        start: ir.Value = I64(0)
        for vectors in VECTORS:
            stretch = I64(vectors * self.width)
            whole = start + builder.sdiv(width - start, stretch) * stretch
            with self.count(start, whole, vectors * self.width) as column:
                self._stretch(terms, column, target, vectors)
            start = whole
        with self.count(start, width, self.width) as column:
            self._stretch(terms, column, target, 1, self.first_lanes(width - column))

    def _clamped(self, index: ir.Value) -> ir.Value:
        """An index clamped to the terms: row pointers are the user's, and may be wrong."""
        index = self.least(index, self.words["terms"])
        return self.builder.select(index < 0, I64(0), index)

    def _stretch(
        self, terms: Sequence[ir.Value], column: ir.Value, target: ir.Value, vectors: int, mask: ir.Value | None = None
    ) -> None:
        """The sums of a stretch of columns, over all terms of the row."""
        builder, dtype = self.builder, self.dtype
        zero = self.splat(self.constant(dtype, 0.0))
        for total in self.sums[:vectors]:
            builder.store(zero, total)
        with self.count(*terms) as term:
            if vectors > 1:
                self._prefetch(term + AHEAD, column, vectors)
            value = self.splat(self.load_uniform(self.element("values", term, dtype), dtype))
            dense = self._dense_row(term, column)
            for k, total in enumerate(self.sums[:vectors]):
                x = self.load(self.element_pointer(dense, I64(k * self.width), dtype), dtype, mask)
                builder.store(self.fma(value, x, builder.load(total)), total)
        for k, total in enumerate(self.sums[:vectors]):
            to = self.element_pointer(target, column + k * self.width, dtype)
            self.store(builder.load(total), to, dtype, mask)

    def _dense_row(self, term: ir.Value, column: ir.Value) -> ir.Value:
        """The address of a term's row of the dense factor, from `column` on."""
        line = self.get(self.words["columns"], term)
        return self.element("dense", line * self.words["distance"] + column, self.dtype)

    def _prefetch(self, term: ir.Value, column: ir.Value, vectors: int) -> None:
        start = self._dense_row(self.least(term, self.words["terms"] - 1), column)
        per_line = LINE // (4 if self.dtype == "float32" else 8)
        for k in range(0, vectors * self.width, per_line):
            self.prefetch(self.element_pointer(start, I64(k), self.dtype))
