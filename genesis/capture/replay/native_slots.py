"""What programs are given in a replay by instructions, and what is read of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from genesis.capture.record.records import Source
from genesis.capture.replay.host_program import HostProgram
from genesis.capture.replay.python_calls import Compute
from genesis.tracing.trace import Array


class BufferOf(NamedTuple):
    """A buffer of one of a call's programs."""

    program: int
    number: int


class NativeRead(NamedTuple):
    """A value that has to be what it was: which of the arrays that the check returns, or which buffer; and its bytes."""

    place: int | BufferOf
    values: bytes


class NativeSlots(NamedTuple):
    """What a program's slots are filled with.

    Attributes:
        inputs: of each input, which of the arrays that the check returns it is, or a constant, or a buffer; and the bytes
            before its first element.
        numbers: as they were; of those that change, `sources` says what they are.
        compute: what returns these, for all programs, of a call's leaves; left out where they are leaves.
        first: of these, the first one that is this program's.
    """

    inputs: Sequence[tuple[int | Array | BufferOf, int]]
    numbers: Sequence[float]
    sources: Mapping[int, Source]
    compute: Compute | None
    first: int


class NativeStep(NamedTuple):
    """A program, what it is given, and the values that are known after it and have to be what they were."""

    program: HostProgram
    slots: NativeSlots
    reads: Sequence[NativeRead]
