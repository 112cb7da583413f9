"""Random programs around a function with state, as Python source that can lose any statement.

A `Script` has three lists of statements: what is there before, the function's body, and what calls it. Values are small
integers in every dtype, so sums in any order are equal to the bit, and any two ways to run a script can be compared exactly.
Any statement may fail; it then has to fail alike in all ways. So `shrinking` can leave statements out one by one.
`statements` writes what is in the function, `scenes` what is around it.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

T = TypeVar("T")
Shape = tuple[int, ...]

# From 1 byte to 4 MiB: below and above what pools keep (16 and 64 KiB) and what threads share out. Most are tiny, and of few
# sizes, so that programs share plans and kernels.
LENGTHS = [1, 2, 3, 3, 3, 4, 8, 33, 2100, 5000, 9000, 17_000, 17_000, 40_000]
LARGE = [70_000, 131_072, 300_000, 524_288]
FLOATS, INTEGERS = ["float32", "float32", "float32", "float64"], ["int64", "int32", "int16", "int8", "uint8"]
_SOMETIMES = re.compile(r"\b(?:net|optimizer|inner)\b")  # names that not every script has


@dataclass(frozen=True)
class Value:
    """An expression for a tensor, and what is known of it."""

    text: str
    shape: Shape
    is_leaf: bool = False  # one that requires a gradient

    @property
    def length(self) -> int:
        return self.shape[0] if self.shape else 0


@dataclass
class Script:
    """A program: what is there `before`, the `body` of its function, and the statements `after` that call it."""

    parameters: str = "a, b, n=1"
    packing: str = "{}, {}"  # of the two tensors that are arguments
    before: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # what to look at in the end
    rebound: list[str] = field(default_factory=list)  # names outside that the function binds
    is_closure: bool = False  # the function reads cells, otherwise globals
    is_dynamic: bool = False

    def source(self) -> str:
        """The program, which runs with the names that `worlds.run` gives it."""
        scope = f"{'nonlocal' if self.is_closure else 'global'} {', '.join(self.rebound)}"
        body = [*([scope] if self.rebound else []), *self.body, "pass"]
        after = [part for line in self.after for part in ("try:", f"    {line}", "except Exception as error: see(error)")]
        lines = [*self.before, "@wrap", f"def f({self.parameters}):", *[f"    {line}" for line in body], *after]
        lines += [f"settle({{{', '.join(f'{name!r}: {name}' for name in self.names)}}})"]
        if not self.is_closure:
            return "\n".join(lines) + "\n"
        return "def program():\n" + "\n".join([f"    {line}" for line in lines]) + "\nprogram()\n"

    def without(self, part: str, positions: set[int]) -> Script:
        """The same with fewer statements."""
        return replace(self, **{part: [line for k, line in enumerate(getattr(self, part)) if k not in positions]})


class Writer:
    """A script being written: what there is, and the choices, which are all the seed's."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.script = Script(is_closure=self.chance(0.3), is_dynamic=self.chance(0.2))
        length = self.one_of(LARGE if self.chance(0.02) else LENGTHS)
        columns = self.one_of([0, 0, 0, 2, 4]) if length < 5000 else 0
        self.shape: Shape = (length, columns) if columns else (length,)  # of the first parameter
        self.doubled: Shape = (2 * length, *self.shape[1:])
        self.b_shape = self.one_of([self.shape, self.shape, self.doubled])
        self.dtype = self.one_of(INTEGERS) if self.chance(0.1) else self.one_of(FLOATS)
        self.outside: list[Value] = []  # that the function may read and write
        self.pool: list[Value] = []  # in the function
        self.given: list[Value] = []  # what may be an argument
        self.known: set[str] = set()  # of the names that not every script has
        self._count = 0

    # ---- choices ----

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one_of(self, options: Sequence[T]) -> T:
        return options[self.random.randrange(len(options))]

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def statement(self, options: Sequence[str]) -> str:
        """One of these whose names are there."""
        return self.one_of([text for text in options if self.known.issuperset(_SOMETIMES.findall(text))])

    def value(self, values: Sequence[Value], want: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value as wanted, if there is one; the newest are likelier."""
        fit = [value for value in values if want(value)] or [*values]
        return fit[max(self.random.randrange(len(fit)), self.random.randrange(len(fit)))]

    def operand(self, shape: Shape | None = None) -> Value:
        """What the function computes with: its own values, now and then one from outside."""
        values = self.outside if self.chance(0.3) else self.pool
        return self.value(values, lambda value: shape is None or value.shape == shape)

    def leaf(self) -> Value | None:
        leaves = [value for value in self.outside if value.is_leaf]
        return self.one_of(leaves) if leaves else None

    # ---- writing ----

    def name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def bind(self, text: str, shape: Shape) -> Value:
        """A new name in the function."""
        value = Value(self.name("t"), shape)
        self.script.body.append(f"{value.text} = {text}")
        self.pool.append(value)
        return value

    def fresh(self, shape: Shape) -> str:
        """An expression for a new tensor: of numbers, of memory that NumPy sees, pending, or a constant."""
        numbers = f"numbers({self.random.randrange(9)}, {shape}, {self.dtype!r})"
        made = f"lib.tensor({numbers})"
        return self.one_of([
            made, made, made, f"({made} + 1)", f"lib.from_numpy({numbers})", f"lib.ones({shape}, dtype=lib.{self.dtype})",
            f"({made} + {made})",
        ])

    def parts(self, base: str) -> list[str]:
        """Views of the first parameter's shape on a tensor of twice its length."""
        length = self.shape[0]
        spans = [f":{length}", f"{length}:", "::2", f"1:{length + 1}", f"{length // 2}:{length + length // 2}"]
        return [f"{base}[{span}]" for span in spans]

    def viewed(self, x: Value) -> Value:
        """A view of a value."""
        count, rest = x.length, x.shape[1:]
        options = [
            Value(f"{x.text}.reshape(-1)", (math.prod(x.shape),)), Value(f"{x.text}.detach()", x.shape),
            Value(f"{x.text}.unsqueeze(0)", (1, *x.shape)),
        ]
        if count > 1:
            options += [
                Value(f"{x.text}[1:]", (count - 1, *rest)), Value(f"{x.text}[:-1]", (count - 1, *rest)),
                Value(f"{x.text}[::2]", (-(-count // 2), *rest)), Value(f"{x.text}[0]", rest),
                Value(f"{x.text}[{count // 2}:]", (count - count // 2, *rest)),
            ]
        if x.shape == self.doubled:
            options += [Value(part, self.shape) for part in self.parts(x.text)]
        if len(x.shape) == 2:
            options += [Value(f"{x.text}.T", x.shape[::-1]), Value(f"{x.text}[:, 0]", x.shape[:1])]
        return self.one_of(options)
