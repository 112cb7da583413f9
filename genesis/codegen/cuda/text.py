"""Lines of Python that are being written."""

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
        """What is written inside is the block that `header` opens; `pass` if that is nothing."""
        self.line(header)
        empty = len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == empty:
            self.line("pass")
        self.depth -= 1

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"
