"""Packing by tables of offsets: operands whose lines or terms are no equal steps apart, as the windows of a convolution.

Element k of line j is at `source[lines[j] + terms[k]]`. A line is a row of A or a column of B, as in `packing.py`. Along lines
or along terms elements are neighbours, or every other one is, in runs of equal length: these move as vectors. A run of 1 says
that there are none: elements move one by one. So windows are read where they lie, and the matrix of all windows exists one
strip at a time. Where an element is a pair of terms, offsets are of single ones, runs along terms are of whole pairs, and the
last pair may be a term and zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import WORD, Code
from genesis.codegen.cpu.product.interface import STEPS
from genesis.codegen.cpu.product.packing import firsts, lines_at, terms_at
from genesis.codegen.cpu.registers import I1, I64, POINTER, zero
from genesis.codegen.cpu.tiling import RegisterTile
from genesis.codegen.cpu.vectors import transposed

Range = Sequence[ir.Value]  # the first and the one after the last
Operand = Sequence[ir.Value]  # its first element, the offsets of its lines and of its terms, the number of terms


class Offsets:
    """The functions of a module that pack by offsets, and calls of them at the position of `builder`."""

    def __init__(self, module: ir.Module, tile: RegisterTile, copy: ir.Function) -> None:
        self.tile = tile
        self.copy = copy
        self.runs = {
            vectors: [emit_run(module, tile, vectors, step) for step in STEPS] for vectors in range(1, tile.vectors + 1)}
        self.transposing = [emit_transposing_runs(module, tile, step) for step in STEPS]
        self.gathering = {size: emit_gathering(module, tile, size) for size in {tile.rows, tile.columns}}

    def pack(
        self, code: Code, operand: Operand, runs: tuple[ir.Value, ir.Value], is_transposed: ir.Value, columns: Range,
        terms: Range, target: ir.Value,
    ) -> None:
        """A strip of columns of B; `runs`, of a length and a step, go along terms if `is_transposed`, else along columns."""
        b, (source, lines, offsets, count_of_terms), (run, step) = code.builder, operand, runs
        is_apart = step.equals(STEPS[1])

        def call(functions: Sequence[ir.Function], arguments: Sequence[ir.Value]) -> None:
            chosen = b.select(is_apart, functions[1], functions[0])
            chosen.type = ir.FunctionPointer(functions[0].function_type)
            chosen(*arguments)

        with b.if_else(run.equals(1)) as (apart, near):
            with apart:
                self.gather(code, operand, self.tile.columns, columns, terms, target)
            with near, b.if_else(is_transposed) as (along_terms, along_columns):
                with along_terms:
                    here, count = code.at(lines, columns[0], WORD), columns[1] - columns[0]
                    for first in firsts(self.tile, self.tile.columns):
                        call(self.transposing, [source, here, count, I64(first), offsets, run, *terms, target])
                with along_columns, _runs(code, columns, run) as (low, high):
                    start = code.element_pointer(source, code.get(lines, low), self.tile.term)
                    packed = code.element_pointer(target, low - columns[0], self.tile.dtype)
                    arguments = [start, high - low, offsets, count_of_terms, *terms, packed]
                    with b.if_else(high - low > self.tile.lanes) as sides:
                        for side, vectors in zip(sides, (self.tile.vectors, 1), strict=True):
                            with side:
                                call(self.runs[vectors], arguments)

    def gather(self, code: Code, operand: Operand, size: int, lines: Range, terms: Range, target: ir.Value) -> None:
        """A strip of `size` lines, element by element."""
        source, lines_at, *terms_at = operand
        here = code.at(lines_at, lines[0], WORD)
        self.gathering[size](source, here, lines[1] - lines[0], *terms_at, *terms, target)

    def copy_runs(
        self, code: Code, source: ir.Value, distance: ir.Value, count: ir.Value, offsets: ir.Value, run: ir.Value,
        terms: Range, target: ir.Value, pitch: ir.Value,
    ) -> None:
        """`count` lines, `distance` apart, to lines `pitch` apart; runs go along terms."""
        with _runs(code, terms, run) as (low, high):
            start = code.element_pointer(source, code.get(offsets, low), self.tile.dtype)
            copied = code.element_pointer(target, low - terms[0], self.tile.dtype)
            self.copy(start, distance, count, high - low, copied, pitch)


@contextmanager
def _runs(code: Code, within: Range, run: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The intersection of each run with a range."""
    first, last = within
    with code.count(code.builder.sdiv(first, run) * run, last, run) as start:
        low = code.builder.select(start > first, start, first)
        yield low, code.least(start + run, last)


def _terms(
    code: Code, tile: RegisterTile, table: ir.Value, count: ir.Value, element: ir.Value
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The offsets of an element's first and second term, of `count`; and whether there is a second one."""
    first = element * (1 + tile.pairs)
    second = first + 1
    exists = second < count if tile.pairs else ir.Constant(I1, False)
    return code.get(table, first), code.get(table, code.builder.select(exists, second, first)), exists


def emit_run(module: ir.Module, tile: RegisterTile, vectors: int, step: int) -> ir.Function:
    """`void (source, lines, terms, count, first, last, target)`: a run of `lines` lines, no more than in so many vectors, of a
    strip; the elements [first, last) of `count` terms.

    What the strip holds of other lines stays, for vectors are stored whole.
    """
    code = Code(module, f"pack_run_{vectors}_{step}", [POINTER, I64, POINTER, I64, I64, I64, POINTER], tile.lanes)
    source, lines, terms, all_terms, first, last, target = code.args
    count = lines - (vectors - 1) * tile.lanes
    mask = code.first_lanes(count)
    whole = count >= tile.lanes
    with code.builder.if_else(whole) as sides:
        for side, masked in zip(sides, (False, True), strict=True):
            with side, code.count(first, last) as element:
                *offsets, is_pair = _terms(code, tile, terms, all_terms, element)
                starts = [code.element_pointer(source, offset, tile.term) for offset in offsets]
                row = (element - first) * tile.columns
                for n in range(vectors):
                    here, second = (code.element_pointer(start, I64(n * step * tile.lanes), tile.term) for start in starts)
                    at_target = code.element_pointer(target, row + n * tile.lanes, tile.dtype)
                    is_edge = masked and n == vectors - 1
                    value = lines_at(code, tile, here, second, step, count if is_edge else None, is_pair)
                    if is_edge:  # masked stores are slow before AVX-512
                        value = code.select(mask, value, code.load(at_target, tile.dtype))
                    code.store(value, at_target, tile.dtype)
    return code.finish()


def emit_transposing_runs(module: ir.Module, tile: RegisterTile, step: int) -> ir.Function:
    """`void (source, lines, count, first, terms, run, low, high, target)`: one vector of lines, from `first` on, of a strip
    whose `count` lines are at the offsets `lines`; the terms [low, high) make up runs.
    """
    parameters = [POINTER, POINTER, I64, I64, POINTER, I64, I64, I64, POINTER]
    code = Code(module, f"pack_transposed_runs_{step}", parameters, tile.lanes)
    source, lines, count, first, terms, run, low, high, target = code.args
    line_offsets = _line_offsets(code, lines, count, [first + n for n in range(tile.lanes)])
    with _runs(code, (low, high), run) as (start, end):
        begin = code.get(terms, start * (1 + tile.pairs))
        here = code.element_pointer(source, begin, tile.term)
        starts = [code.element_pointer(here, offset, tile.term) for offset in line_offsets]
        following = code.least(end, high - 1) * (1 + tile.pairs)
        next_run = code.get(terms, following) - begin
        with code.count(0, end - start, tile.lanes) as at:
            left, distance = end - start - at, at * (step * (1 + tile.pairs))
            vectors = [terms_at(code, tile, code.element_pointer(start, distance, tile.term), step, left) for start in starts]
            for start_of_line in starts:  # the next run lies elsewhere, which no processor foresees
                code.prefetch(code.element_pointer(start_of_line, distance + next_run, tile.term))
            row = start - low + at
            for n, vector in enumerate(transposed(code.builder, vectors)):  # the next run overwrites those beyond this one
                offset = (row + n) * tile.columns + first
                code.store(vector, code.element_pointer(target, offset, tile.dtype), tile.dtype)
    return code.finish()


def emit_gathering(module: ir.Module, tile: RegisterTile, size: int) -> ir.Function:
    """`void (source, lines, count, terms, all_terms, low, high, target)`: a strip of `size` lines, of which there are `count`,
    at the offsets `lines`, and of the elements [low, high) of `all_terms` terms.
    """
    code = Code(module, f"pack_gathered_{size}", [POINTER, POINTER, I64, POINTER, I64, I64, I64, POINTER], 1)
    source, lines, count, terms, all_terms, low, high, target = code.args
    line_offsets = _line_offsets(code, lines, count, [I64(n) for n in range(size)])
    with code.count(low, high) as element:
        row = code.element_pointer(target, (element - low) * size, tile.dtype)
        *offsets, is_pair = _terms(code, tile, terms, all_terms, element)
        starts = [code.element_pointer(source, at, tile.term) for at in offsets[: 1 + tile.pairs]]
        for n, (line, (second, start)) in enumerate(itertools.product(line_offsets, enumerate(starts))):
            value = code.load_uniform(code.element_pointer(start, line, tile.term), tile.term)
            value = code.builder.select(is_pair, value, zero(value.type)) if second else value
            code.builder.store(value, code.element_pointer(row, I64(n), tile.term))
    return code.finish()


def _line_offsets(code: Code, lines: ir.Value, count: ir.Value, numbers: Sequence[ir.Value]) -> list[ir.Value]:
    """The offsets of the lines with these numbers; beyond the last of `count`, its offset."""
    last = count - 1
    return [code.get(lines, code.least(number, last)) for number in numbers]
