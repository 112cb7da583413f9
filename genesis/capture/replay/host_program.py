"""A program on the host that a replay runs as one native call, and its slots and values in a replay by instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from genesis.capture.record.records import InputSource, Source
from genesis.capture.record.results import Recipe
from genesis.capture.replay.program import ReplayProgram
from genesis.capture.replay.taken_steps import Compute
from genesis.execution.result_words import ResultWords
from genesis.ops.layout import Layout
from genesis.runtime.native import NativeProgram
from genesis.tracing.trace import Array


class HostProgram:
    """A program that runs without a trace: its slots are filled, and its results are in the buffers of its pool.

    Attributes:
        recorded, program, pool: the recorded program, the native program, and the pool of its results.
        inputs: the indices of the arguments that it reads; None for all in order.
        arena_bytes: of temporaries.
        outputs: the locations of its values in its buffers.
        value_at: position in the recorded trace -> number of the value.
        verify: checks the program's slots before a run, if verification is on.
    """

    def __init__(self, program: ReplayProgram, inputs: Sequence[InputSource]) -> None:
        plan = program.plan
        self.recorded = program
        self.pool = program.pool.keeping_large()
        self._device = program.device
        self.program = cast(NativeProgram, plan.segments[0].program)
        self.inputs = None if [*plan.inputs] == [*range(len(inputs))] else plan.inputs
        self.arena_bytes, self.outputs = plan.arena_bytes, plan.outputs
        self.value_at = plan.number_of
        self.verify = getattr(self.program, "verify_filled", None)

    def words(self, views: Sequence[Recipe]) -> ResultWords:
        """A run for instructions; `views` are results that share memory of others."""
        at = self.value_at
        return ResultWords(self.pool, self._device, self.reused, [
            (at[view.key[1]], at[view.base.key[1]], cast(Layout, view.layout)) for view in views])

    def reused(self) -> Mapping[int, Array]:
        """The arrays that large results overwrite, by the number of the result's buffer."""
        return {}


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
