"""The kernel of matrix products: a block of threads computes a tile of the result from tiles of both operands in shared memory.

Each thread keeps some rows and columns of the tile in registers. Operands have any strides: a row, column or term is a number
of several digits, each with a stride of its own. That covers windows of a convolution, and summed batches as more terms.
"""

from __future__ import annotations

from typing import NamedTuple

from genesis.codegen.cuda.arithmetic import FLOATING, accumulated, loaded, memory_type, stored
from genesis.codegen.cuda.target import SIMULATED

POINTERS = ("a", "b", "c")
NUMBERS = ("m", "n", "k", "row_tiles", "column_tiles", "parts", "share", "c_row", "c_part")
AXES = ("batch_a", "batch_b", "batch_c", "rows", "a_terms", "b_terms", "columns")


class BlockTile(NamedTuple):
    """The tile of a block of threads: its rows, columns and terms per step; a thread's rows and columns. All powers of two."""

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
    """A product kernel's parameters: dtypes, the tile, the number of digits, whether terms are adjacent in memory."""

    dtype: str
    stored: str  # the result's dtype, or that of partial sums
    tile: BlockTile
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
    a = _Fetch.of(form, "a", form.tile.rows, form.a_along_terms)
    b = _Fetch.of(form, "b", form.tile.columns, form.b_along_terms)
    return _declarations(name, form, a, b) + _positions(form, a, b) + _loop(form, a, b) + _results(form)


def _declarations(name: str, form: Form, a: _Fetch, b: _Fetch) -> str:
    """The parameters, and the arrays: two halves of shared memory, so that one barrier per step is enough."""
    t, sums, aligned = form.tile, accumulated(form.dtype), "" if SIMULATED else ", alignment=16"
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
"""


def _positions(form: Form, a: _Fetch, b: _Fetch) -> str:
    """The block's tile, the thread's part of it, and how far into the operands these are."""
    t, sums = form.tile, accumulated(form.dtype)
    return f"""\
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
        line = first_row + {a.line}
        a_at[s] = a_matrix + {_offset(form, "rows", "line")}
    for s in range({b.elements}):
        line = first_column + {b.line}
        b_at[s] = b_matrix + {_offset(form, "columns", "line")}
    for i in range({t.own_rows}):
        for j in range({t.own_columns}):
            sums[i, j] = {sums}(0)
    if thread < {t.terms}:
        term = begin + thread
        a_terms[1, thread] = {_offset(form, "a_terms", "term")}
        b_terms[1, thread] = {_offset(form, "b_terms", "term")}
    cuda.syncthreads()
"""


def _loop(form: Form, a: _Fetch, b: _Fetch) -> str:
    """The loop over terms: while a step's terms are multiplied, the loads of the next step are in flight."""
    # Offsets of terms take divisions: one thread computes each, two steps ahead, for all threads of the block.
    t, sums, row, column = form.tile, accumulated(form.dtype), *_own_indices(form.tile)
    return f"""\
    now = 0
    for first in range(begin - {t.terms}, end, {t.terms}):  # these terms are multiplied while the next ones are loaded
        then = (now + 1) & 1
        for s in range({a.elements}):
            here = first_row + {a.line} < m and first + {t.terms} + {a.term} < end
            a_next[s] = {a.element} if here else {sums}(0)
        for s in range({b.elements}):
            here = first_column + {b.line} < n and first + {t.terms} + {b.term} < end
            b_next[s] = {b.element} if here else {sums}(0)
        if first >= begin:
            for term in range({t.terms}):
                for i in range({t.own_rows}):
                    x = a_tiles[now, term, {row}]
                    for j in range({t.own_columns}):
                        sums[i, j] += x * b_tiles[now, term, {column}]
        for s in range({a.elements}):
            a_tiles[then, {a.term}, {a.line}] = a_next[s]
        for s in range({b.elements}):
            b_tiles[then, {b.term}, {b.line}] = b_next[s]
        if thread < {t.terms}:
            term = first + {2 * t.terms} + thread
            a_terms[now, thread] = {_offset(form, "a_terms", "term")}
            b_terms[now, thread] = {_offset(form, "b_terms", "term")}
        cuda.syncthreads()
        now = then
"""


def _results(form: Form) -> str:
    t, (row, column) = form.tile, _own_indices(form.tile)
    return f"""\
    for i in range({t.own_rows}):
        row = first_row + {row}
        for j in range({t.own_columns}):
            column = first_column + {column}
            if row < m and column < n:
                at = c_matrix + row * c_row + column
                c[at] = {_result('c[at] + sums[i, j]' if form.adds else 'sums[i, j]', form.stored)}
"""


def combine_source(name: str, dtype: str, adds: bool = False) -> str:
    """The kernel that combines the parts of the terms: c[i] = the sum over p of partial[p, i], plus c[i] if `adds`."""
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
    """The names of the numbers that locate elements: each axis' digits' strides, and the extents of all but the first."""
    return [name for axis, digits in zip(AXES, form.digits, strict=True)
            for name in (*(f"{axis}_stride{d}" for d in range(digits)), *(f"{axis}_extent{d}" for d in range(1, digits)))]


def _offset(form: Form, axis: str, index: str) -> str:
    """The offset of an index along an axis, in elements."""
    digits = form.digits[AXES.index(axis)]
    terms = []
    for d in range(digits - 1, 0, -1):
        terms.append(f"{index} % {axis}_extent{d} * {axis}_stride{d}")
        index = f"({index} // {axis}_extent{d})"
    return " + ".join([*terms, f"{index} * {axis}_stride0" if digits else "0"])


class _Fetch(NamedTuple):
    """A thread's elements of an operand's tile: the number of elements; the row (or column), the term and the text of the
    `s`-th one. Neighbouring threads load neighbours in memory, so that loads coalesce.
    """

    elements: int
    line: str
    term: str
    element: str

    @classmethod
    def of(cls, form: Form, operand: str, extent: int, along_terms: bool) -> _Fetch:
        t = form.tile
        inner, outer = (t.terms, extent) if along_terms else (extent, t.terms)
        if t.threads >= inner:
            fast, slow = f"(thread & {inner - 1})", f"(thread >> {_log2(inner)}) + s * {t.threads // inner}"
        else:
            repeats = inner // t.threads
            fast, slow = f"thread + s % {repeats} * {t.threads}", f"s // {repeats}"
        line, term = (slow, fast) if along_terms else (fast, slow)
        element = loaded(f"{operand}[{operand}_at[s] + {operand}_terms[then, {term}]]", form.dtype)
        return cls(inner * outer // t.threads, line, term, element)


def _own_indices(tile: BlockTile) -> tuple[str, str]:
    """The rows and columns of a thread within the tile."""
    return _own("down", "i", tile.own_rows, tile.rows), _own("across", "j", tile.own_columns, tile.columns)


def _own(thread: str, number: str, own: int, extent: int) -> str:
    """The position in a tile of a thread's row (or column): groups of four neighbours, which are one load of 16 bytes."""
    group = min(4, own)
    return f"{number} // {group} * {extent * group // own} + {thread} * {group} + {number} % {group}"


def _result(value: str, dtype: str) -> str:
    return stored(value, dtype) if dtype in FLOATING else f"{dtype}({value})"


def _log2(size: int) -> int:
    return size.bit_length() - 1
