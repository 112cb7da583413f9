"""A function of the device as text: its lines, and its parameters, which are a kernel's words by value or from a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from genesis.codegen.cuda.arithmetic import memory_type
from genesis.lower.kernel import Kernel, KernelArg

ATOMIC = frozenset(("float32", "float64", "int32", "int64"))  # dtypes of atomic additions


class Function(NamedTuple):
    """A function of the device: its text, and the words that fill its parameters.

    A parameter's type is `int64`, `float64`, a pointer such as `float32*`, or `float32[]`: an array of one axis, which is seven
    raw parameters (0, 0, items, bytes of an item, address, items, bytes of an item). `words` numbers the kernel's words that
    the parameters are. A function with a `row` serves one call per layer of the grid (z): all its parameters are the address of
    one table, in which each call has a row with the words numbered in `row`, eight bytes each. `threads`, if not 0, is the size
    of a block that needs registers to be limited.
    """

    name: str
    source: str
    parameters: tuple[str, ...]
    words: tuple[int, ...]
    row: tuple[int, ...] = ()
    threads: int = 0


class Machine(NamedTuple):
    """A function's machine code, the registers per thread, and the bytes spilled."""

    cubin: bytes
    registers: int
    spilled: int


class Parameter(NamedTuple):
    """A name in a function's text, its type, and the word that it is."""

    name: str
    type: str
    word: int


def words_of(kernel: Kernel) -> tuple[KernelArg, ...]:
    """A kernel's words, followed by the address and number of partial results if the kernel has no such words."""
    return kernel.words if kernel.has_totals else (*kernel.words, KernelArg("partials"), KernelArg("shares"))


class Signature:
    """A function's references to its kernel's words; the words that it uses are its parameters."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.words = words_of(kernel)
        self.used: dict[tuple[str, str], Parameter] = {}
        self.accesses = {i.access.pointer: i for i in kernel.instructions if i.access is not None}

    def name(self, word: int | str) -> str:
        """The text for a word: a number, or its parameter's name."""
        if isinstance(word, str):
            word = int(word[1:])
        kind = self.words[word]
        if kind.kind == "pointer":
            i = self.accesses[word]
            assert i.access is not None
            # numba's atomics take arrays, not pointers.
            if i.name == "scatter" and self.is_atomic:
                return self._used(f"y{word}", f"{i.access.dtype.name}[]", word)
            letter = "x" if i.name in ("load", "load_at") else "y"
            return self._used(f"{letter}{word}", memory_type(i.access.dtype.name) + "*", word)
        # A scalar changes from run to run: its address does not, so a captured graph stays valid.
        if kind.kind == "scalar":
            return self._used(f"scalar{word}", "float64*" if kind.is_double else "int64*", word) + "[0]"
        if kind.kind == "constant":
            return self._used(f"c{word}", "float64" if kind.is_double else "int64", word)
        if kind.kind == "fault":
            return self._used("fault", "int64*", word)
        letter = {"extent": "n", "stride": "s"}.get(kind.kind, kind.kind)
        return self._used(f"{letter}{word}", "int64", word)

    def partials(self, dtype: str) -> str:
        """The partial results, as numbers of `dtype`."""
        return self._used(f"{dtype}_partials", dtype + "*", self._word("partials"))

    def shares(self) -> str:
        return self.name(self._word("shares"))

    def _word(self, kind: str) -> int:
        return next(n for n, word in enumerate(self.words) if word.kind == kind)

    @property
    def is_atomic(self) -> bool:
        """Whether the kernel scatters by atomic additions, since threads may meet."""
        scatters = [i for i in self.kernel.instructions if i.name == "scatter"]
        return bool(scatters) and all(i.attr("mode") == "add" and i.dtype.name in ATOMIC for i in scatters)

    @property
    def adds_in_any_order(self) -> bool:
        """Whether sums may differ from run to run, as of floats that are added atomically."""
        return self.is_atomic and any(i.name == "scatter" and i.dtype.category == 2 for i in self.kernel.instructions)

    def _used(self, name: str, type_: str, word: int) -> str:
        self.used[name, type_] = Parameter(name, type_, word)
        return name

    def parameters(self) -> list[Parameter]:
        """The words that the text uses, in order."""
        return sorted(self.used.values(), key=lambda p: (p.word, p.name))

    def by_value(self, name: str, body: str) -> Function:
        """The function whose parameters are its words."""
        own = self.parameters()
        header = f"def {name}({', '.join(p.name for p in own)}):\n"
        return Function(name, header + body, tuple(p.type for p in own), tuple(p.word for p in own))

    def by_table(self, name: str, body: str) -> Function:
        """The function that serves one call per layer of the grid."""
        own = self.parameters()
        row = tuple(dict.fromkeys(p.word for p in own))
        tables = {p.type: _table(p.type) for p in own}
        header = f"def {name}({', '.join(tables.values())}):\n"
        return Function(name, header + "".join(self._rows(own, row, tables)) + body, tuple(t + "*" for t in tables), (), row)

    def _rows(self, own: list[Parameter], row: tuple[int, ...], tables: dict[str, str]) -> Iterator[str]:
        yield f"    call = cuda.blockIdx.z * {len(row)}\n"
        for p in own:
            yield f"    {p.name} = {tables[p.type]}[call + {row.index(p.word)}]\n"


def _table(type_: str) -> str:
    return type_.replace("*", "_pointer") + "s"


class Text:
    """Lines of Python, at the depth of the blocks that are open."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """The block that `header` opens: what is written inside, or `pass`."""
        self.line(header)
        empty = len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == empty:
            self.line("pass")
        self.depth -= 1

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"
