"""The kernel of transforms: an item is a block of columns of one transform of a batch, which goes through all passes.

Intermediate results go back and forth between two buffers of the worker; only the first pass reads the source, and only the
last one writes the target. Lengths are arguments, so that a dtype has one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.fourier import passes
from genesis.codegen.cpu.registers import DOUBLE, I64
from genesis.codegen.cpu.tiling import vector_bytes
from genesis.codegen.cpu.word_kernel import WordKernel, load_words

# The words of an argument block. `columns` of the `inner` ones of a transform are a block, the last block has the rest too.
# Steps lead to the next transform of a batch, rows to a transform's next number, columns to the next column: all in numbers, as
# `buffer`, the distance of a worker's two buffers, and `line`, that of two transforms in a buffer; `per_worker` is from one
# worker to the next. The columns of a block are side by side, or, if they are transforms `apart`, one after the other in each
# pass.
WORDS = ("source_at", "target_at", "workspace_at", "passes_at", "passes", "blocks", "columns", "inner", "source_step",
         "target_step", "source_row", "target_row", "source_column", "target_column", "per_worker", "buffer", "forward", "line",
         "apart")
PASS = ("kind", "radix", "m", "l", "twiddles_at", "second_at", "scale")  # a pass; see `plan.Pass`
PASS_TYPES = {word: passes.type_of(word) for word in PASS}
FETCHED, NEAR = 1 << 12, 64  # numbers: a longer transform would evict the one at work, whose next numbers are fetched instead
LINE_ROOM = 16  # numbers more than half of a spectrum has, where several lie one after the other
PRIMES = 13, 11, 7, 5, 3  # that an extent may be divided by, and 2
WIDE_RADICES = 2, 4, 8, 16, *PRIMES
NARROW_RADICES = *PRIMES[:-1], 4, 3, 2
TRANSPOSED_RADICES = 4, 8, 16  # of them those that the width divides
FAMILIES: dict[str, tuple[Callable[..., ir.Function], Sequence[str]]] = {  # of passes: the emitter, and the arguments
    "last": (partial(passes.emit_wide, last=True), passes.WIDE), "wide": (partial(passes.emit_wide, last=False), passes.WIDE),
    "narrow": (passes.emit_narrow, passes.NARROW), "transposed": (passes.emit_transposed, passes.TRANSPOSED),
    "twiddle": (passes.emit_matrix, passes.MATRIX),
    **dict.fromkeys(("gather", "part"), (partial(passes.emit_matrix, plain=True), passes.MATRIX)),
    "to half": (passes.emit_to_half, passes.HALF), "from half": (passes.emit_from_half, passes.HALF),
}
KINDS = (  # family, and radix, if it has several
    *(("last", r) for r in (1, *WIDE_RADICES)), *(("wide", r) for r in WIDE_RADICES), *(("narrow", r) for r in NARROW_RADICES),
    *(("transposed", r) for r in TRANSPOSED_RADICES),
    ("twiddle", 0), ("gather", 0), ("part", 0), ("to half", 0), ("from half", 0),
)


def width_of(dtype: str) -> int:
    """The complex numbers of a vector, whose parts have that dtype; two at least."""
    return max(2, vector_bytes() // (8 if dtype == "float32" else 16))


def transform_ir(name: str, dtype: str) -> str:
    """The module that defines the kernel `name` of transforms whose parts have that dtype."""
    return _Driver(name, dtype).text()


class _Driver(WordKernel):
    def __init__(self, name: str, dtype: str) -> None:
        module, width = ir.Module(name), width_of(dtype)
        self.dtype = dtype
        self.functions: list[ir.Function | None] = []  # None: the width does not divide the radix
        for family, radix in KINDS:
            if family == "transposed" and radix % width:
                self.functions.append(None)
                continue
            given = {"radix": radix} if radix else {}
            name_of = f"{family}_{radix}".replace(" ", "_")
            self.functions.append(FAMILIES[family][0](module, name_of, dtype, width, **given))
        super().__init__(name, {word: passes.type_of(word) for word in WORDS}, width, module)
        # Divided once: of 64 bits it takes up to 90 cycles, as long as a pass over a short transform.
        columns = self.words["columns"]
        self.twiddles_row = columns + self.builder.urem(self.words["inner"], columns)

    def _at(self, pointer: ir.Value, index: ir.Value) -> ir.Value:
        """The address of a complex number."""
        pair = ir.ArrayType(ir.FLOAT if self.dtype == "float32" else DOUBLE, 2)
        return self.builder.gep(pointer, [index], inbounds=True, source_etype=pair)

    def text(self) -> str:
        b, blocks = self.builder, self.words["blocks"]
        number, block = self.variable(b.udiv(self.first, blocks)), self.variable(b.urem(self.first, blocks))
        with self.items():  # blocks of each transform of a batch
            self._item(number.get(), block.get())
            following = block.get() + 1
            is_next = following.equals(blocks)
            number.set(number.get() + b.zext(is_next, I64))
            block.set(b.select(is_next, I64(0), following))
        return super().text()

    def _item(self, number: ir.Value, block: ir.Value) -> None:
        b, word = self.builder, self.words
        column = block * word["columns"]
        rest = word["inner"] - column
        columns = b.select(block.equals(word["blocks"] - 1), rest, word["columns"])
        source, target = (
            self._at(word[f"{end}_at"], number * word[f"{end}_step"] + column * word[f"{end}_column"])
            for end in ("source", "target"))
        here = self._at(word["workspace_at"], self.worker * word["per_worker"])
        buffers = here, self._at(here, word["buffer"])
        with self.count(0, word["passes"]) as n:
            words = load_words(b, b.gep(word["passes_at"], [n * len(PASS)], source_etype=I64), PASS_TYPES)
            is_first = n.equals(0)
            is_last = n.equals(word["passes"] - 1)
            odd = b.trunc(n, ir.IntType(1))
            is_apart = word["apart"].differs(0)
            beside, apart = b.select(is_apart, I64(1), columns), b.select(is_apart, columns, I64(1))
            from_row = b.select(is_first, word["source_row"], beside)
            to_row = b.select(is_last, word["target_row"], beside)
            # Lines of a block of transforms, one after the other, of which some are to be or have been half of a spectrum.
            lines = {
                "transforms": b.select(words["m"] > 0, columns, I64(1)), "apart": apart,
                "from_line": b.select(is_first, word["source_column"], word["line"]),
                "to_line": b.select(is_last, word["target_column"], word["line"]),
            }
            geometry = self._geometry(words, block, column, columns, beside, from_row, to_row)
            values = words | lines | geometry | self._ahead(is_first, is_last, geometry, lines) | {
                "in_at": b.select(is_first, source, b.select(odd, buffers[0], buffers[1])),
                "out_at": b.select(is_last, target, b.select(odd, buffers[1], buffers[0])), "forward": word["forward"],
            }
            self._call(words["kind"], values)

    def _geometry(
        self, words: Mapping[str, ir.Value], block: ir.Value, column: ir.Value, columns: ir.Value, beside: ir.Value,
        from_row: ir.Value, to_row: ir.Value,
    ) -> dict[str, ir.Value]:
        """The passes' arguments for a block of columns, given the distances of its rows before and after."""
        b, m, l, radix = self.builder, words["m"], words["l"], words["radix"]
        # Lines that lie end to end are one.
        adjacent = from_row.equals(beside) & to_row.equals(beside)
        side_by_side, whole = l * beside, m > 0
        in_p, out_k = l * from_row, l * to_row
        return {
            "in_j": m * in_p, "in_p": in_p, "in_l": from_row, "out_p": radix * out_k, "out_k": out_k,
            "out_l": to_row, "lines": b.select(adjacent, I64(1), l), "columns": b.select(adjacent, side_by_side, beside),
            "extent": m * side_by_side, "half": l, "first": b.select(whole, I64(0), column),
            "count": b.select(whole, m, columns), "rows": l, "in_row": from_row, "block_columns": columns,
            "twiddles_row": self.twiddles_row,
            "starts_at": self._at(words["second_at"], l * block),
        }

    def _ahead(
        self, is_first: ir.Value, is_last: ir.Value, geometry: Mapping[str, ir.Value], lines: Mapping[str, ir.Value]
    ) -> dict[str, ir.Value]:
        """The prefetch distances of reads and writes: a line, or a transform if all its lines are one.

        Nothing else knows what comes next: rows of a matrix lie in pages of their own, and a pass reads and writes all over.
        """
        b, apart = self.builder, self.words["apart"].differs(0)
        source_step, target_step = (
            b.select(self.words[f"{end}_step"] > FETCHED, I64(NEAR), self.words[f"{end}_step"])
            for end in ("source", "target"))
        following = b.select(apart, lines["to_line"], target_step)
        written = b.select(geometry["lines"].equals(1), following, geometry["out_l"])
        return {
            "next_in": b.select(apart, lines["apart"] * lines["from_line"], source_step),
            "next_out": following, "in_ahead": b.select(is_first, geometry["in_p"], I64(0)),
            "out_ahead": b.select(is_last, written, I64(0)),
        }

    def _call(self, kind: ir.Value, values: dict[str, ir.Value]) -> None:
        """The function of a kind of pass."""
        there = {number: function for number, function in enumerate(self.functions) if function is not None}
        for number in self.builder.cases(kind, there):
            family, _ = KINDS[number]
            given = values | {"in_row": values["from_line"], "out_row": values["to_line"]}
            if family in ("twiddle", "part"):
                given |= {"columns": values["block_columns"], "in_row": values["in_row"], "out_column": values["to_line"]}
            elif family == "gather":
                given |= {"rows": values["block_columns"], "columns": values["l"], "out_column": values["block_columns"]}
            there[number](*(given[argument] for argument in FAMILIES[family][1]))
