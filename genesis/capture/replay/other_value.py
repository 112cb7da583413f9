"""Raised by a replay in which a value that Python reads differs from the recorded call."""

from __future__ import annotations

from genesis.capture.record.reads import Read
from genesis.capture.record.records import Source


class OtherValueError(Exception):
    """A value that Python reads within a call differs from the recorded call's."""

    def __init__(self, read: Read, found: bytes, prefix: list[object]) -> None:
        super().__init__(read.label)
        self.source, self.found = named(read.source), found
        self.prefix = prefix  # the programs that have run


def named(source: Source) -> Source:
    """A source in a form that is comparable between recordings."""
    kind, *rest = source
    if kind == "tensor":
        return kind, id(rest[0].tensor)
    return (kind, named(rest[0])) if kind in ("gradient", "base") else source
