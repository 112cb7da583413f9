"""The user's line of a call."""

from __future__ import annotations

import bisect
import contextlib
import functools
import os
from collections.abc import Sequence
from operator import itemgetter
from sys import _getframe
from types import CodeType
from typing import Any

from genesis.runtime.notebook import cell_name
from genesis.tracing.thread import Scope

CallLine = tuple[int, CodeType | None, int, Scope | None, Any]  # a call: first position, code, instruction's offset, scope, key

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Files of decorators, whose frames are between ours and the user's: they contain no user calls.
_BETWEEN = contextlib.contextmanager.__code__.co_filename, functools.wraps.__code__.co_filename


class _Inside(dict[str, bool]):
    """File -> whether it is ours, or one of these."""

    def __missing__(self, name: str) -> bool:
        is_inside = self[name] = name.startswith(_PACKAGE) or name in _BETWEEN
        return is_inside


inside = _Inside()


def user_line(depth: int = 3) -> tuple[CodeType | None, int]:
    """The code object and instruction of the nearest caller outside genesis, from the caller's caller's caller on."""
    try:
        frame = _getframe(depth)
        code = frame.f_code
        while inside[code.co_filename]:
            frame = frame.f_back  # type: ignore[assignment]
            code = frame.f_code
    except (AttributeError, ValueError):  # there are none but ours
        return None, 0
    return code, frame.f_lasti


def error_line(problem: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost frame outside genesis in an error's traceback."""
    found, trace = None, problem.__traceback__
    while trace is not None:
        if not inside[trace.tb_frame.f_code.co_filename]:
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return found


def line_name(line: tuple[str, int], short: bool = False) -> str:
    """A file and line for people: `path/model.py:7`, without the path if `short`, or `Cell In[7]:1`."""
    file, number = line
    return f"{cell_name(file) or (os.path.basename(file) if short else file)}:{number}"


def resolve_line(code: CodeType | None, offset: int) -> tuple[str, int] | None:
    """File and line of an instruction."""
    if code is None:
        return None
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def call_at(lines: Sequence[CallLine], index: int) -> CallLine | None:
    """The entry in a trace's `lines` of the call that added the node at `index`; None before the first."""
    following = bisect.bisect_right(lines, index, key=itemgetter(0))
    return lines[following - 1] if following else None


def line_of(lines: Sequence[CallLine], index: int) -> tuple[str, int] | None:
    """The user's file and line of that call."""
    call = call_at(lines, index)
    return None if call is None else resolve_line(call[1], call[2])
