"""The inputs of programs in a replay by instructions, and the guards of values that they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from genesis.capture.record.records import Source
from genesis.capture.replay.host_program import HostProgram
from genesis.capture.replay.taken_steps import Compute
from genesis.tracing.trace import Array


class BufferOf(NamedTuple):
    """A buffer of one of a call's programs."""

    program: int
    number: int


class NativeRead(NamedTuple):
    """A value that must be unchanged: `source` is the index of an array that the check returns, or a buffer; and its bytes."""

    source: int | BufferOf
    values: bytes


class NativeSlots(NamedTuple):
    """The instructions that fill a program's slots.

    Attributes:
        inputs: for each input, the index of an array that the check returns, a constant or a buffer; and the byte offset of
            its first element.
        numbers: the numbers of the recorded call; `sources` are those of numbers that change.
        compute: computes these from a call's leaves, for all programs; None if they are leaves themselves.
        first: the first of the computed numbers that is this program's.
        draws: how many random numbers the call draws, if instructions reserve them: then `compute` is None.
    """

    inputs: Sequence[tuple[int | Array | BufferOf, int]]
    numbers: Sequence[float]
    sources: Mapping[int, Source]
    compute: Compute | None
    first: int
    draws: int | None = None


class NativeStep(NamedTuple):
    """A program, its slots, and the values that must be unchanged after it."""

    program: HostProgram
    slots: NativeSlots
    reads: Sequence[NativeRead]
