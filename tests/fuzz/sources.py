"""Random programs as Python source, written line by line: a line is kept if it runs, eagerly, on what the lines before made.

Lines that decide (compare, round, rank) are given exact operands only: small dyadic numbers made by steps that round
nothing, so that two right answers are one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import genesis
import genesis.nn.functional as F

REFUSALS = (ValueError, TypeError, RuntimeError, IndexError, NotImplementedError, ZeroDivisionError, OverflowError)
MOST = 1e4
HEAD = """import numpy as np
import genesis
import genesis.nn.functional as F
from tests.fuzz.sources import numbers
"""


@dataclass(frozen=True)
class Line:
    """A statement; `target` is the name that it binds, `rounds` whether another order of arithmetic may change its value."""

    text: str
    target: str = ""
    rounds: bool = False


def numbers(seed: int, shape: Sequence[int], dtype: str) -> np.ndarray:
    """Small numbers that every dtype holds exactly."""
    values = np.random.default_rng(seed).integers(-8, 9, shape)
    return np.asarray(values / 4 if dtype.startswith("float") else values % 2 if dtype == "bool" else values // 2, dtype)


def jittered(x: genesis.Tensor) -> genesis.Tensor:
    """`x` with every element off by a rounding error or two: what the same program may make of it in another order."""
    if not x.dtype.is_floating_point:
        return x
    step = 4e-7 if x.dtype is genesis.float32 else 1e-15
    return x * genesis.tensor(1 + step * np.cos(np.arange(x.numel()) * 1.7 + 1).reshape(x.shape), dtype=x.dtype)


class Writer:
    """A program being written. `integer(low, high)` chooses; every other choice is made of it."""

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.integer = integer
        self.inputs: list[Line] = []
        self.lines: list[Line] = []
        self.leaves: list[str] = []
        self.pool: list[str] = []
        self.storage: dict[str, int] = {}  # name -> number of the storage; a write concerns all that share one
        self.rounded: set[int] = set()
        self.scope: dict[str, Any] = {"genesis": genesis, "F": F, "np": np, "numbers": numbers, "row": 0, "seen": []}
        self._count = 0

    # ---- choices ----

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def value(self, name: str) -> genesis.Tensor:
        return self.scope[name]

    def operand(self, want: Callable[[str], bool] = lambda name: True) -> str | None:
        """A name of the pool that is as wanted, the newest most readily."""
        fit = [name for name in reversed(self.pool) if want(name)]
        return self.one_of(fit) if fit else None

    def floating(self, name: str) -> bool:
        return self.value(name).dtype.is_floating_point

    def exact(self, name: str) -> bool:
        if self.storage[name] in self.rounded:
            return False
        values = np.asarray(self.value(name).detach().numpy(), np.float64) * 1024
        return bool(np.all(np.abs(values) < 1 << 22) and np.all(values == np.rint(values)))

    def axis(self, name: str) -> int:
        return self.integer(-self.value(name).ndim, self.value(name).ndim - 1)

    # ---- writing ----

    def new_input(self, shape: Sequence[int], dtype: str, layout: int, grad: bool) -> str:
        name, seed = f"x{len(self.inputs)}", len(self.inputs)
        turned, doubled = tuple(shape)[::-1], (*shape[:-1], 2 * shape[-1]) if shape else ()
        made = [
            f"genesis.tensor(numbers({seed}, {tuple(shape)}, '{dtype}'))",
            f"genesis.from_numpy(numbers({seed}, {tuple(shape)}, '{dtype}'))",
            f"genesis.tensor(numbers({seed}, {turned}, '{dtype}')).permute({list(range(len(shape)))[::-1]})",
            f"genesis.from_numpy(numbers({seed}, {doubled}, '{dtype}')[..., ::2])",
            f"genesis.tensor(numbers({seed}, {(3, *shape)}, '{dtype}'))[row]",
        ][layout if shape else 0]
        grad = grad and dtype.startswith("float")
        line = Line(f"{name} = {made}.detach().requires_grad_()" if grad else f"{name} = {made}", name)
        exec(line.text, self.scope)
        self.inputs.append(line)
        self.keep(name)
        if grad:
            self.leaves.append(name)
        return name

    def keep(self, name: str, shares: str = "") -> None:
        self.pool.append(name)
        self.storage[name] = self.storage[shares] if shares else len(self.storage)

    def write(self, expression: str, *operands: str, rounds: bool = False, shares: str = "") -> str | None:
        """Bind a new name to the value of `expression`, computed from `operands`; None if it cannot be, or is out of bounds."""
        name = f"v{self._count}"
        grad = "with genesis.no_grad(): " if self.integer(0, 15) == 15 else ""
        line = Line(f"{grad}{name} = {expression}", name, rounds and not shares)
        if not self.runs(line):
            return None
        value = self.scope[name]
        if not isinstance(value, genesis.Tensor) or value.numel() > 20_000 or not _bounded(value):
            del self.scope[name]
            return None
        self._count += 1
        self.lines.append(line)
        self.keep(name, shares)
        if rounds or any(self.storage[operand] in self.rounded for operand in operands):
            self.rounded.add(self.storage[name])
        return name

    def act(self, text: str, written: str = "", *operands: str, rounds: bool = False) -> None:
        """A statement that binds nothing; `written` is what it writes over."""
        if not self.runs(Line(text)):
            return
        self.lines.append(Line(text))
        if written and (rounds or any(self.storage[operand] in self.rounded for operand in operands)):
            self.rounded.add(self.storage[written])

    def runs(self, line: Line) -> bool:
        try:
            exec(line.text, self.scope)
        except REFUSALS:
            return False
        return True

    # ---- the whole ----

    def __repr__(self) -> str:
        inputs = "\n".join(line.text for line in self.inputs)
        arguments = ", ".join(line.target for line in self.inputs)
        return f"\n{HEAD}\nrow = 0\n{inputs}\ngenesis.manual_seed(0)\n\n{self.source()}\nprint(program({arguments}))\n"

    def source(self, jitter: bool = False, closure: bool = False) -> str:
        """The program as a function of its inputs, or, as a closure, of none."""
        names = [line.target for line in self.inputs]
        body = [f"global {', '.join(names)}", "seen = []"] if closure and names else ["seen = []"]
        for line in self.lines:
            body.append(line.text)
            if jitter and line.rounds:
                body.append(f"{line.target} = jittered({line.target})")
        body.append(f"return {{{', '.join(f'{name!r}: {name}' for name in self.pool if name not in names)}}}, seen")
        return f"def program({'' if closure else ', '.join(names)}):\n    " + "\n    ".join(body) + "\n"


def _bounded(value: genesis.Tensor) -> bool:
    values = np.asarray(value.detach().numpy(), np.float64)
    return bool(np.all(np.abs(values) <= MOST)) if values.size else True  # what is not finite is not bounded either
