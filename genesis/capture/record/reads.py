"""Values that Python reads within a recorded call: a replay goes on only if it computes the same values.

They are guards, checked after the program that computes them. Before the last of them a call only computes, without effects: if
a guard fails, another recording or the function itself can still take the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.capture.record.records import Refusal, Source
from genesis.capture.record.sources import SourceTable
from genesis.capture.replay.program import Program
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array

LOOK = "a value is looked at"
MOST_BYTES = 64  # of a value: longer ones are data, which rarely repeat

Line = tuple[str, int] | None


class Read(NamedTuple):
    """A value that Python read.

    Attributes:
        source: where a replay finds it: an output, or a tensor from before the call.
        position: the program that computes it; -1 for a value from before the call.
        values: its bytes, in row-major order. Bits are compared, so NaN equals itself.
        label: its description in messages.
    """

    source: Source
    position: int
    values: bytes
    label: str


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


class _Found(NamedTuple):
    array: Array  # kept alive, as its id is a key
    values: bytes | None
    line: Line


class Reads:
    """The values read so far."""

    def __init__(self, sources: SourceTable) -> None:
        self._sources = sources
        self._found: dict[int, _Found] = {}

    def add(self, array: Array, memory: Memory, line: Line) -> None:
        """Note that `array` is read at a line of the user's."""
        if id(array) not in self._found:
            few = array.node.nbytes <= MOST_BYTES
            values = memory.numpy(array.node.dtype).tobytes() if few else None
            self._found[id(array)] = _Found(array, values, line)

    def release(self) -> None:
        """Drop all data."""
        self._found.clear()

    def resolved(self, programs: Sequence[Program], refusals: list[Refusal]) -> list[Read]:
        """The guards, at the end of a call; adds to `refusals` why a value cannot be one."""
        reads = []
        for array, values, line in self._found.values():
            if self._sources.constant_of(array) is not None:
                continue
            source = self._source(array)
            if values is None:
                refusals.append(Refusal(f"{LOOK} of {array.node.nbytes} bytes, which is more than {MOST_BYTES}", line))
            elif source is None:
                refusals.append(Refusal(f"{LOOK} that no argument, name, attribute or program leads to", line))
            else:
                position = source[1] if source[0] == "output" else -1
                reads.append(Read(source, position, values, str(Refusal(LOOK, line))))
                if any(program.written for program in programs[: position + 1]):
                    refusals.append(Refusal(f"{LOOK} after a tensor was written over", line))
                if any(program.plan.collectives for program in programs[: position + 1]):
                    refusals.append(Refusal(f"{LOOK} after other processes took part", line))
        return sorted(reads, key=lambda read: read.position)

    def _source(self, array: Array) -> Source | None:
        sources = self._sources
        if id(array) in sources.outputs:
            return ("output", *sources.outputs[id(array)])
        for tensor, state in sources.states.items():
            if state.array is array and (source := sources.source_of(tensor)) is not None:
                return source
        return None
