"""A script with as few statements as still show a difference."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.scripts import Script
from tests.fuzz.worlds import InexactError, difference


def shrunk(script: Script, differs: Callable[[Script], str] = difference) -> tuple[Script, str]:
    """The script without what can be left out, one after the other and many at a time, and its difference."""
    told, changed = _told(script, differs), True
    while changed:
        changed = False
        for part in ("after", "body", "before", "names", "rebound"):
            size = max(len(getattr(script, part)) // 2, 1)
            while size:
                position = 0
                while position < len(getattr(script, part)):
                    smaller = script.without(part, {*range(position, position + size)})
                    if found := _told(smaller, differs):
                        script, told, changed = smaller, found, True
                    else:
                        position += size
                size //= 2
    return script, told


def _told(script: Script, differs: Callable[[Script], str]) -> str:
    try:
        return differs(script)
    except (InexactError, Exception):
        return ""  # a name is gone that is needed
