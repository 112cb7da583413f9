"""Generated checks: a function with a line for each guard, which returns the number of the first that fails."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import cast

import numpy as np

from genesis.capture.guards.kinds import is_scalar
from genesis.ir.annotations import AnyFunction
from genesis.runtime.instructions import FAILURES
from genesis.runtime.uninterrupted import is_of_handler

LIMIT = 20_000  # guards; a call with more is not replayed


def differs(now: object, then: object) -> bool:
    """Whether `now` differs from `then`, a number or a string, in any bit."""
    if type(now) is not type(then):
        return True
    return repr(now) != repr(then) if isinstance(then, float | complex | np.generic) else bool(now != then)


def same(now: object, then: object) -> bool:
    """Whether two values are one object, the same number or string, or tuples of the same values."""
    if type(then) is tuple:
        return type(now) is tuple and len(now) == len(then) and all(map(same, now, then))
    return now is then or (is_scalar(then) and not differs(now, then))


COMPARISONS = {"differs": differs, "same": same, "is_not": operator.is_not}  # functions that lines may call


def check_function(head: str, lines: Sequence[str], last: Sequence[str], names: dict[str, object]) -> AnyFunction:
    """`def check(..)`: `lines`, which return the number of the guard that fails, then `last`, which may fail in its own way."""
    body = ["    try:", *[f"        {line}" for line in [*lines, "pass"]], "    except FAILURES as problem:",
            "        if is_of_handler(problem): raise", "        return -1", *[f"    {line}" for line in last]]
    names |= {"FAILURES": FAILURES, "is_of_handler": is_of_handler}
    exec(_compiled("\n".join([head, *body])), names)  # safe: the text consists of generated names and attribute names
    return cast("AnyFunction", names["check"])


@lru_cache(64)
def _compiled(text: str) -> CodeType:
    """The code of a text: calls with arguments of other shapes differ in names alone, and 800 lines take 10 ms."""
    return compile(text, "<string>", "exec")


class Lines:
    """The lines of guards, such as `if g['scale'] is not k: return 7`, at about 30 ns each."""

    def __init__(self, refuse: Callable[[str], None]) -> None:
        self.lines: list[str] = []
        self.labels: list[str] = []
        self.constants: dict[str, object] = {**COMPARISONS}
        self._refuse = refuse
        self._is_full = False
        self._name_of: dict[int, str] = {}

    def constant(self, value: object) -> str:
        """The name of `value` in the function."""
        name = self._name_of.get(id(value))
        if name is None:
            name = self._name_of[id(value)] = f"k{len(self._name_of)}"
            self.constants[name] = value
        return name

    def fail_if(self, condition: str, label: str, lines: list[str] | None = None) -> None:
        """Add a guard called `label`, which fails if `condition` holds; `lines`, which bind names, have no limit."""
        if lines is not None or len(self.labels) < LIMIT:
            (self.lines if lines is None else lines).append(f"if {condition}: return {len(self.labels)}")
            self.labels.append(label)
        elif not self._is_full:
            self._is_full = True
            self._refuse(f"more than {LIMIT} values are read")
