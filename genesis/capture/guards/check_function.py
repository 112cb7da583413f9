"""Generated checks: a function with a line for each guard, which returns the number of the first that fails."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import CodeType
from typing import cast

import numpy as np

from genesis.capture.guards.kinds import is_scalar
from genesis.ir.annotations import AnyFunction
from genesis.runtime.instructions import FAILURES
from genesis.runtime.uninterrupted import is_of_handler


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


COMPARISONS = {"differs": differs, "same": same}  # functions that lines may call


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
