"""Lines of Python, written one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Text"]


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
