"""A program on the host that a replay runs as one native call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from genesis.capture.record.results import Recipe
from genesis.capture.replay.program import Program
from genesis.execution.result_words import ResultWords
from genesis.ops.layout import Layout
from genesis.runtime.native import NativeProgram
from genesis.tracing.trace import Array


class NotNativeError(Exception):
    """Instructions cannot replay a call; says why, and whether a later attempt may succeed."""

    def __init__(self, why: str, passes: bool = False) -> None:
        super().__init__(why)
        self.passes = passes


class HostProgram:
    """A program that runs without a trace: its slots are filled, and its results are in the buffers of its pool.

    Attributes:
        recorded, program, pool: the recorded program, the native program, and the pool of its results.
        value_at: position in the recorded trace -> number of the value.
        verify: checks the program's slots before a run, if verification is on.
    """

    def __init__(self, program: Program) -> None:
        plan = program.plan
        self.recorded = program
        self.pool = program.pool.keeping_large()
        self.program = cast(NativeProgram, plan.segments[0].program)
        self.value_at = plan.number_of
        self.verify = getattr(self.program, "verify_filled", None)

    def words(self, views: Sequence[Recipe]) -> ResultWords:
        """A run for instructions; `views` are results that share memory of others."""
        at = self.value_at
        return ResultWords(self.pool, self.recorded.device, self.reused, [
            (at[view.key[1]], at[view.base.key[1]], cast(Layout, view.layout)) for view in views])

    def reused(self) -> Mapping[int, Array]:
        """The arrays that large results overwrite, by the number of the result's buffer."""
        return {}

    def buffer_of(self, position: int, within: Layout | None = None) -> int:
        """The number of the buffer that begins with the value, or the part of it, at a position of the recorded trace. Raises
        NotNativeError if none does."""
        output = self.recorded.plan.outputs[self.value_at[position]]
        if output.is_input or output.start or not output.layout.is_contiguous or (within is not None and within.offset):
            raise NotNativeError("a program reads a part of what another one has computed")
        return output.number
