"""Transposition of matrices in memory, by squares of registers."""

from __future__ import annotations

from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code
from genesis.codegen.cpu.nest import LINE
from genesis.codegen.cpu.registers import I8, I64, POINTER
from genesis.codegen.cpu.tiling import vector_bytes
from genesis.codegen.cpu.vectors import transposed
from genesis.runtime.kernel_cache import KernelSource

MOST_LINES = 16  # vectors of a square


FUNCTION = ir.FunctionType(ir.VOID, [POINTER, I64, POINTER, I64, I64, I64, I64])


def transposition(size: int) -> KernelSource:
    """`void (source, distance, target, pitch, rows, columns, past caches)`: element (r, c) of the source, whose rows are
    `distance` elements apart, becomes element (c, r) of the target, all of `size` bytes.

    The last squares overlap the previous ones, so that no element outside is touched. Matrices smaller than a square are copied
    element by element.
    """
    # Shared by all kernels, as it takes 14 ms to compile, as long as a small kernel.
    name, register = f"genesis_transpose_{size}", vector_bytes()
    return KernelSource(name, f"{name} {register}", partial(_transposition, name, size, register))


def _transposition(name: str, size: int, register: int) -> str:
    module = ir.Module(name)
    code = Code(module, name, FUNCTION.args, 1, internal=False)
    source, distance, target, pitch, rows, columns, past_caches = code.args
    lines = max(2, min(MOST_LINES, register // size))
    square = _Square(code.builder, size, lines)
    with code.builder.if_else(code.least(rows, columns) >= lines) as (by_squares, one_by_one):
        with by_squares, code.count(0, rows, lines) as n, code.count(0, columns, lines) as m:
            row, column = code.least(n, rows - lines), code.least(m, columns - lines)
            square.move(square.at(source, distance, row, column), distance, square.at(target, pitch, column, row), pitch,
                        past_caches)
        with one_by_one, code.count(0, rows) as row, code.count(0, columns) as column:
            square.move_element(square.at(source, distance, row, column), square.at(target, pitch, column, row))
    code.finish()
    return str(module)


class _Square:
    """Squares of `lines` x `lines` elements of `size` bytes, of which each is one or two machine words."""

    def __init__(self, builder: ir.IRBuilder, size: int, lines: int) -> None:
        self.builder, self.size, self.lines = builder, size, lines
        self.word = ir.IntType(8 * min(size, 8))
        self.parts = max(1, size // 8)
        self.line = ir.VectorType(self.word, lines * self.parts)

    def at(self, base: ir.Value, distance: ir.Value, row: ir.Value, column: ir.Value) -> ir.Value:
        b = self.builder
        offset = (row * distance + column) * self.size
        return b.gep(base, [offset], inbounds=True, source_etype=I8)

    def move_element(self, source: ir.Value, target: ir.Value) -> None:
        one = ir.VectorType(self.word, self.parts)
        align = self.word.width // 8
        self.builder.store(self.builder.load(source, align=align, typ=one), target, align=align)

    def move(self, source: ir.Value, distance: ir.Value, target: ir.Value, pitch: ir.Value, past_caches: ir.Value) -> None:
        """Transpose one square; past the caches if requested and if each target line is a whole cache line."""
        b, align = self.builder, self.word.width // 8
        zero = I64(0)
        lines = [b.load(self.at(source, distance, I64(n), zero), align=align, typ=self.line) for n in range(self.lines)]
        lines = transposed(b, lines, self.parts)

        def store(align: int, past_caches: bool = False) -> None:
            for n, line in enumerate(lines):
                b.store(line, self.at(target, pitch, I64(n), zero), align, past_caches)

        if self.lines * self.size < LINE:
            store(align)
            return
        unaligned = (b.ptrtoint(target, I64) | (pitch * self.size)) & (LINE - 1)
        with b.if_else(b.icmp_unsigned(">", past_caches, unaligned)) as (streamed, cached):
            with streamed:
                store(LINE, past_caches=True)
            with cached:
                store(align)
