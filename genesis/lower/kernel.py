"""The kernel IR: a loop nest, and straight-line instructions at each of its levels.

A kernel is polymorphic in extents and strides: these, the base pointers and the scalars are *words* of its argument block.
Its text names words by number only, so kernels of one structure have one text, compiled once. The program fills the words.
A `Kernel` does not depend on the backend that emits it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from genesis.ir.dtypes import DType
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.digest import digest

T = TypeVar("T")

REDUCTIONS = frozenset(("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"))
EFFECTS = frozenset(("store", "scatter", "scan"))  # a scan stores a running reduction at each point
# Host primitives that kernels compute by scans of these modes: a reduction, or factor * result + term for each element.
SCANS = {"cumsum": "sum", "cumprod": "prod", "running_max": "max", "running_min": "min", "recurrence": "recurrence"}
VALUE_WORDS = frozenset(("pointer", "site", "stream"))  # kinds of words that name a value of the graph
# The cost from which a value is kept for the next pass over a row rather than recomputed: softmax then computes each
# exponential once, 1.64 to 1.08 ms together with more registers for its reductions (2048 x 2048).
EXPENSIVE = 8


class KernelArg(NamedTuple):
    """One word of an argument block: its kind, and what fills it.

    pointer (storage, byte offset), extent (value), stride (value), block (elements of the lane axis in one item),
    blocks (items along it), stream (the storage, to which stores go past the caches if it is 1), scalar (slot, dtype),
    constant (value, dtype), fault, site (number), partials, items, shares, scratch (the value it keeps between passes, its
    dtype: one row for each worker), tile (None, the dtype of its elements: one for each worker), transposition
    (bytes of an element: a function).
    """

    kind: str
    value: Any = None
    extra: Any = None

    @property
    def is_double(self) -> bool:
        """Whether the word is a number in float64; the others are integers and addresses."""
        return self.kind in ("scalar", "constant") and self.extra.category == 2

    @property
    def role(self) -> str:
        """The kind that the code depends on: the same for literals and for numbers that each run passes."""
        return ("double" if self.is_double else "integer") if self.kind in ("scalar", "constant") else self.kind


@functools.lru_cache(1 << 13)
def shared_word(kind: str, value: int, extra: int | None = None) -> KernelArg:
    """A word of integers, one object for all equal ones: plans have tens of thousands, and the collector visits each."""
    return KernelArg(kind, value, extra)


class Access(NamedTuple):
    """The memory access of an instruction: the word of the pointer, and each axis' stride, a word or a known number."""

    pointer: int
    strides: tuple[int | str, ...]  # a known small number (0, 1, along lanes -1 to 4), or "wN" for word N
    dtype: DType


InstructionAttrs = tuple[tuple[str, Any], ...]  # (name, value), in the order of the text


class Instruction(NamedTuple):
    """`name(args)`, with its level (full, row, column, final), the axes it varies over and its pass."""

    name: str
    args: tuple[int, ...]
    dtype: DType
    level: str
    varies: frozenset[int]
    step: int
    access: Access | None = None
    attrs: InstructionAttrs = ()

    def attr(self, name: str) -> Any:
        return dict(self.attrs)[name]

    def text(self, number: int) -> str:
        parts = [f"%{a}" for a in self.args] + [f"{k}={v}" for k, v in self.attrs]
        where = ""
        if self.access is not None:
            where = f" @w{self.access.pointer}[{', '.join(map(str, self.access.strides))}]:{self.access.dtype.name}"
        return f"%{number} = {self.name}({', '.join(parts)}){where} : {self.dtype.name} {self.level} {self.step}"


def of_code(ask: Callable[..., T]) -> Callable[..., T]:
    """Make `ask(kernel, ..)` a question that is answered once for all kernels of one code: of its axes, lanes, instructions and
    the kinds of its words, not of what its words hold."""
    # Layers repeat their kernels, and an optimizer's step is one for all parameters of a shape.
    name = f"{ask.__module__}.{ask.__qualname__}"

    @functools.wraps(ask)
    def answer(kernel: Kernel, *more: Any) -> T:
        key = name, more
        if key not in kernel.answers:
            kernel.answers[key] = ask(kernel, *more)
        found: T = kernel.answers[key]
        return found

    return answer


_Answers = dict[tuple[str, tuple[Any, ...]], Any]  # of `of_code`


@functools.lru_cache(1 << 12)
def _code(
    axes: tuple[tuple[int, bool], ...], lane: int | None, instructions: tuple[Instruction, ...], roles: tuple[str, ...],
    unrolled: tuple[tuple[int, int], ...], tiled: int | None,
) -> tuple[str, str, tuple[Instruction, ...], _Answers]:
    """What all kernels of one code share: its text and name, its instructions, and what is known of it."""
    known = dict(unrolled)
    extents = [str(known[a]) if a in known else f"w{word}" for a, (word, _) in enumerate(axes)]
    shape = ", ".join(f"{'reduce' if r else 'keep'} {e}" for e, (_, r) in zip(extents, axes, strict=True))
    across = "" if tiled is None else f" tiled {tiled}"
    lines = [f"axes [{shape}] lane {lane}{across}", "words " + " ".join(roles)]
    text = "\n".join([*lines, *(i.text(n) for n, i in enumerate(instructions))])
    return text, "genesis_" + digest(text.encode()).hexdigest()[:16], instructions, {}


class Kernel:
    """A loop nest over `axes` (word of the extent, reduced) with `lane` the innermost one, run as vectors.

    Short axes are `unrolled` (axis: known extent): they cover the elements that a strided vector skips. Loads and stores with a
    word `tile` are contiguous along the axis `tiled`, not along lanes: a block of both axes is transposed into a tile before
    loads, or out of it after stores. `origins` are the values that the instructions belong to.
    """

    __slots__ = ("answers", "axes", "instructions", "lane", "name", "origins", "text", "tiled", "unrolled", "words")

    def __init__(
        self, axes: Sequence[tuple[int, bool]], lane: int | None, instructions: Sequence[Instruction],
        words: Sequence[KernelArg], unrolled: Mapping[int, int], tiled: int | None, origins: Sequence[int],
    ) -> None:
        self.axes, self.lane, self.unrolled, self.tiled = tuple(axes), lane, unrolled, tiled
        self.words, self.origins = tuple(words), tuple(origins)
        roles = tuple([w.role for w in words])
        code = _code(self.axes, lane, tuple(instructions), roles, tuple(unrolled.items()), tiled)
        self.text, self.name, self.instructions, self.answers = code

    def __reduce__(self) -> tuple[Any, ...]:
        # Its text is not stored: it follows from the others, and is shared by all kernels of one code.
        return Kernel, (self.axes, self.lane, self.instructions, self.words, self.unrolled, self.tiled, self.origins)

    def renamed(self, names: Mapping[int, int]) -> Kernel:
        """The same code over other values: `names` maps each value to its replacement."""
        other = self.filled([shared_word(w.kind, names[w.value], w.extra) if w.kind in VALUE_WORDS else w for w in self.words])
        other.origins = tuple([names[value] for value in self.origins])
        return other

    def filled(self, words: Sequence[KernelArg]) -> Kernel:
        """The same code with other words, of the same kinds."""
        other = Kernel.__new__(Kernel)  # the text is the same: reused with its hash
        other.axes, other.lane, other.unrolled, other.tiled = self.axes, self.lane, self.unrolled, self.tiled
        other.text, other.name, other.words = self.text, self.name, tuple(words)
        other.instructions, other.origins, other.answers = self.instructions, self.origins, self.answers
        return other

    def strides(self, access: Access) -> tuple[int, ...]:
        """The strides of an access, as numbers."""
        return tuple([self.words[int(s[1:])].value if isinstance(s, str) else s for s in access.strides])

    @property
    @of_code
    def outer(self) -> list[int]:
        """The kept axes other than the lane axis and the unrolled."""
        return [a for a, (_, reduced) in enumerate(self.axes) if not reduced and a != self.lane and a not in self.unrolled]

    @property
    @of_code
    def inner(self) -> list[int]:
        """The reduced axes other than the lane axis and the unrolled."""
        return [a for a, (_, reduced) in enumerate(self.axes) if reduced and a != self.lane and a not in self.unrolled]

    @property
    def lane_is_reduced(self) -> bool:
        return self.lane is not None and self.axes[self.lane][1]

    @property
    @of_code
    def lane_is_innermost(self) -> bool:
        """Whether the lane loop is inside the loops over other reduced axes.

        Not where lanes are kept and something accumulates: a vector of sums stays in registers over its reduction.
        """
        # Scatter-add of 2048 rows of as many numbers: 3.6 to 1.35 ms.
        names = {self.instructions[n].name for n in self.targets()}
        return self.lane_is_reduced or (self.lane is not None and names == {"scatter"})

    @property
    @of_code
    def place(self) -> int | None:
        """The instruction that computes where a scatter into a large result writes, if that is one place for all lanes.

        An item then writes whole rows, to a share of the places by their hash, instead of a block of each row.
        """
        # Zen 4, two threads, 1024 rows of 1024 numbers into 4 MB 71 to 49 us; 4096 of 256 into 66 KB would take 120, not 90.
        places = [i.args[0] for i in self.instructions if "rows" in dict(i.attrs)]
        return places[0] if places and self.lane is not None and self.lane not in self.instructions[places[0]].varies else None

    @property
    @of_code
    def steps(self) -> list[int]:
        """The passes over the reduced axes, numbered by the reductions that precede them."""
        return sorted({self.instructions[n].step - (self.instructions[n].name in REDUCTIONS) for n in self.targets()})

    def targets(self, step: int | None = None) -> list[int]:
        """The reductions and effects of pass `step` (None: of all), except those of row values."""
        found = []
        for n, i in enumerate(self.instructions):
            if i.name in REDUCTIONS:
                if i.attr("over") == "row":
                    continue
                at = i.step - 1
            elif i.name in EFFECTS and i.level == "full":
                at = i.step
            else:
                continue
            if step is None or at == step:
                found.append(n)
        return found

    def needed(self, targets: Sequence[int]) -> list[int]:
        """The instructions that the targets depend on, in order, up to results of reductions."""
        needed: set[int] = set()
        stack = [a for t in targets for a in self.instructions[t].args]
        while stack:
            n = stack.pop()
            if n not in needed:
                needed.add(n)
                if self.instructions[n].name not in REDUCTIONS:
                    stack.extend(self.instructions[n].args)
        return sorted(needed)

    def kept(self) -> list[int]:
        """The values that one pass over a row computes, a later one needs, and that are expensive enough to keep."""
        if not self.lane_is_reduced or self.inner or self.unrolled:
            return []
        counts: dict[int, int] = {}
        for step in self.steps:
            for n in self.needed(self.targets(step)):
                counts[n] = counts.get(n, 0) + 1
        return [n for n, count in counts.items() if count > 1 and self.lane in self.instructions[n].varies
                and self.instructions[n].name in PRIMITIVES and PRIMITIVES[self.instructions[n].name].cost >= EXPENSIVE]

    @property
    @of_code
    def factors(self) -> tuple[int, int] | None:
        """The two factors, if the kernel stores one sum of products, of one pass, and nothing else.

        Such a kernel may compute points twice, which is harmless: its blocks of sums overlap at the end of an axis.
        """
        sums = [i for i in self.instructions if i.name in REDUCTIONS]
        whole = any(i.name in EFFECTS and i.level == "full" for i in self.instructions)
        if [i.name for i in sums] != ["sum"] or whole or self.has_totals:
            return None
        source = self.instructions[sums[0].args[0]]
        return (source.args[0], source.args[1]) if source.name == "mul" else None

    @property
    @of_code
    def is_product(self) -> bool:
        """Whether each factor of a sum of products varies along kept axes of its own."""
        if self.factors is None:
            return False
        x, y = (self.instructions[n].varies for n in self.factors)
        return all(any(not self.axes[axis][1] for axis in own) for own in (x - y, y - x))

    @property
    @of_code
    def work(self) -> int:
        """The cost of the elementwise values at one point of the nest, in simple operations."""
        return sum(PRIMITIVES[i.name].cost for i in self.instructions if i.name in PRIMITIVES and i.level == "full")

    @property
    @of_code
    def has_totals(self) -> bool:
        """Whether some values are complete only when all workers are done; the finishing function computes these."""
        return any(i.level in ("column", "final") for i in self.instructions)
