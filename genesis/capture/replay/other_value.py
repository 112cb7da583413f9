"""What a replay finds that reads another value in its middle than the recorded call did."""

from __future__ import annotations

from genesis.capture.record.reads import Read
from genesis.capture.record.records import Source


class OtherValueError(Exception):
    """A value that is read in the middle of a call is another one than in the recorded call."""

    def __init__(self, read: Read, found: bytes, prefix: list[object]) -> None:
        super().__init__(read.label)
        self.source, self.found = named(read.source), found
        self.prefix = prefix  # what has run before


def named(source: Source) -> Source:
    """A source as other recordings would have it."""
    kind, *rest = source
    if kind == "tensor":
        return kind, id(rest[0].tensor)
    return (kind, named(rest[0])) if kind in ("gradient", "base") else source
