"""Where in the user's program a call stands."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["resolve_line", "user_line"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_internal: dict[str, bool] = {}


def user_line(depth: int = 2) -> tuple[Any, int]:
    """The code object and instruction of the nearest caller outside genesis."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        inside = _internal.get(name)
        if inside is None:
            inside = _internal[name] = name.startswith(_PACKAGE)
        if not inside:
            return code, frame.f_lasti
        frame = frame.f_back
    return None, 0


def resolve_line(code: Any, offset: int) -> tuple[str, int] | None:
    """File and line of an instruction."""
    if code is None:
        return None
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno
