"""The matrix product's kernel: a block of threads computes a tile of the result from tiles of both operands in shared memory.

Each thread keeps some rows and columns of the tile in registers, and while a tile's terms are summed the next one's are on
their way from memory. Operands lie with any strides: where an element is, is told by digits of its row, column and term,
each with a stride of its own; that serves windows of a convolution, and batches that are added up, which are more terms.
"""

from __future__ import annotations

from typing import NamedTuple

from genesis.codegen.cuda.registers import FLOATING, accumulated, loaded, memory_type, stored
from genesis.codegen.cuda.target import SIMULATED

__all__ = ["Form", "Tile", "join_source", "parameters", "product_source"]

POINTERS = ("a", "b", "c")
NUMBERS = ("m", "n", "k", "row_tiles", "column_tiles", "parts", "share", "c_row", "c_part")
AXES = ("batch_a", "batch_b", "batch_c", "rows", "a_terms", "b_terms", "columns")


class Tile(NamedTuple):
    """Rows and columns of the result that a block computes, terms at a time, and what a thread has of each; powers of two."""

    rows: int
    columns: int
    terms: int
    own_rows: int
    own_columns: int

    @property
    def across(self) -> int:
        """Threads side by side along a row."""
        return self.columns // self.own_columns

    @property
    def threads(self) -> int:
        return self.across * (self.rows // self.own_rows)


class Form(NamedTuple):
    """What tells kernels of products apart: dtypes, the tile, the number of digits, whether terms are neighbours in memory."""

    dtype: str
    stored: str  # the result's dtype, or that of partial sums
    tile: Tile
    digits: tuple[int, ...]  # of the axes in AXES
    a_along_terms: bool
    b_along_terms: bool
    adds: bool = False  # to what is there


def parameters(form: Form) -> tuple[str, ...]:
    """The types of a kernel's parameters: three pointers, and integers."""
    pointers = tuple(f"{memory_type(dtype)}*" for dtype in (form.dtype, form.dtype, form.stored))
    return pointers + ("int64",) * (len(NUMBERS) + len(_digit_names(form)))


def product_source(name: str, form: Form) -> str:
    """The kernel as text: c[z, i, j] = the sum over a share of the terms of a[z, i, t] * b[z, t, j]."""
    t, sums = form.tile, accumulated(form.dtype)
    a = _Bringing.of(form, "a", t.rows, form.a_along_terms)
    b = _Bringing.of(form, "b", t.columns, form.b_along_terms)
    aligned = "" if SIMULATED else ", alignment=16"
    row, column = _own("down", "i", t.own_rows, t.rows), _own("across", "j", t.own_columns, t.columns)
    return f"""\
def {name}({', '.join([*POINTERS, *NUMBERS, *_digit_names(form)])}):
    a_tiles = cuda.shared.array((2, {t.terms}, {t.rows}), {sums}{aligned})
    b_tiles = cuda.shared.array((2, {t.terms}, {t.columns}), {sums}{aligned})
    a_terms = cuda.shared.array((2, {t.terms}), int64)  # how far into the operand each term is
    b_terms = cuda.shared.array((2, {t.terms}), int64)
    a_at = cuda.local.array({a.elements}, int64)  # how far the rows and columns are that this thread brings from memory
    b_at = cuda.local.array({b.elements}, int64)
    a_next = cuda.local.array({a.elements}, {sums})
    b_next = cuda.local.array({b.elements}, {sums})
    sums = cuda.local.array(({t.own_rows}, {t.own_columns}), {sums})
    thread = cuda.threadIdx.x & {t.threads - 1}
    across = thread & {t.across - 1}
    down = thread >> {_log2(t.across)}
    block = cuda.blockIdx.x
    first_column = block % column_tiles * {t.columns}
    block //= column_tiles
    first_row = block % row_tiles * {t.rows}
    block //= row_tiles
    part = block % parts
    z = block // parts
    begin = part * share
    end = min(k, begin + share)
    a_matrix = {_offset(form, "batch_a", "z")}
    b_matrix = {_offset(form, "batch_b", "z")}
    c_matrix = {_offset(form, "batch_c", "z")} + part * c_part
    for s in range({a.elements}):
        place = first_row + {a.place}
        a_at[s] = a_matrix + {_offset(form, "rows", "place")}
    for s in range({b.elements}):
        place = first_column + {b.place}
        b_at[s] = b_matrix + {_offset(form, "columns", "place")}
    for i in range({t.own_rows}):
        for j in range({t.own_columns}):
            sums[i, j] = {sums}(0)
    if thread < {t.terms}:
        term = begin + thread
        a_terms[1, thread] = {_offset(form, "a_terms", "term")}
        b_terms[1, thread] = {_offset(form, "b_terms", "term")}
    cuda.syncthreads()
    now = 0
    for first in range(begin - {t.terms}, end, {t.terms}):  # the terms in hand; those after them are on their way
        then = (now + 1) & 1
        for s in range({a.elements}):
            here = first_row + {a.place} < m and first + {t.terms} + {a.term} < end
            a_next[s] = {a.element} if here else {sums}(0)
        for s in range({b.elements}):
            here = first_column + {b.place} < n and first + {t.terms} + {b.term} < end
            b_next[s] = {b.element} if here else {sums}(0)
        if first >= begin:
            for term in range({t.terms}):
                for i in range({t.own_rows}):
                    x = a_tiles[now, term, {row}]
                    for j in range({t.own_columns}):
                        sums[i, j] += x * b_tiles[now, term, {column}]
        for s in range({a.elements}):
            a_tiles[then, {a.term}, {a.place}] = a_next[s]
        for s in range({b.elements}):
            b_tiles[then, {b.term}, {b.place}] = b_next[s]
        if thread < {t.terms}:
            term = first + {2 * t.terms} + thread
            a_terms[now, thread] = {_offset(form, "a_terms", "term")}
            b_terms[now, thread] = {_offset(form, "b_terms", "term")}
        cuda.syncthreads()
        now = then
    for i in range({t.own_rows}):
        row = first_row + {row}
        for j in range({t.own_columns}):
            column = first_column + {column}
            if row < m and column < n:
                at = c_matrix + row * c_row + column
                c[at] = {_result('c[at] + sums[i, j]' if form.adds else 'sums[i, j]', form.stored)}
"""


def join_source(name: str, dtype: str, adds: bool = False) -> str:
    """The kernel that adds up the parts of the terms: c[i] = the sum over p of partial[p, i], or is added to."""
    return "\n".join([
        f"def {name}(partial, c, parts, count):",
        "    for i in range(cuda.grid(1), count, cuda.gridsize(1)):",
        f"        total = {'c[i]' if adds else f'{accumulated(dtype)}(0)'}",
        "        for part in range(parts):",
        "            total += partial[part * count + i]",
        f"        c[i] = {_result('total', dtype)}",
    ]) + "\n"


# ---- pieces ----

def _digit_names(form: Form) -> list[str]:
    """Names of the numbers that say where elements are: for each axis its digits' strides, and extents of all but the first."""
    return [name for axis, digits in zip(AXES, form.digits, strict=True)
            for name in (*(f"{axis}_stride{d}" for d in range(digits)), *(f"{axis}_extent{d}" for d in range(1, digits)))]


def _offset(form: Form, axis: str, index: str) -> str:
    """How far from the first element lies what has this index along an axis."""
    digits = form.digits[AXES.index(axis)]
    terms = []
    for d in range(digits - 1, 0, -1):
        terms.append(f"{index} % {axis}_extent{d} * {axis}_stride{d}")
        index = f"({index} // {axis}_extent{d})"
    return " + ".join([*terms, f"{index} * {axis}_stride0" if digits else "0"])


class _Bringing(NamedTuple):
    """What a thread brings of an operand's tile: so many elements, the row (or column) and the term of number `s` of them,
    and the element. Neighbouring threads bring neighbours in memory.
    """

    elements: int
    place: str
    term: str
    element: str

    @classmethod
    def of(cls, form: Form, operand: str, extent: int, along_terms: bool) -> _Bringing:
        t = form.tile
        inner, outer = (t.terms, extent) if along_terms else (extent, t.terms)
        if t.threads >= inner:
            fast, slow = f"(thread & {inner - 1})", f"(thread >> {_log2(inner)}) + s * {t.threads // inner}"
        else:
            repeats = inner // t.threads
            fast, slow = f"thread + s % {repeats} * {t.threads}", f"s // {repeats}"
        place, term = (slow, fast) if along_terms else (fast, slow)
        element = loaded(f"{operand}[{operand}_at[s] + {operand}_terms[then, {term}]]", form.dtype)
        return cls(inner * outer // t.threads, place, term, element)


def _own(thread: str, number: str, own: int, extent: int) -> str:
    """The place in a tile of a thread's rows (or columns): four neighbours at a time, which are one load."""
    together = min(4, own)
    return f"{number} // {together} * {extent * together // own} + {thread} * {together} + {number} % {together}"


def _result(value: str, dtype: str) -> str:
    return stored(value, dtype) if dtype in FLOATING else f"{dtype}({value})"


def _log2(size: int) -> int:
    return size.bit_length() - 1
