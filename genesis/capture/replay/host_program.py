"""A program of the host's that a replay runs as one native call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from genesis.capture.record.records import InputSource
from genesis.capture.replay.program import ReplayProgram
from genesis.runtime.native import NativeProgram
from genesis.tracing.trace import Array

_NONE: dict[int, Array] = {}


class HostProgram:
    """A program without traces: its slots are filled, it runs, and its results lie in the buffers of its pool.

    Attributes:
        recorded, program, pool: what was recorded, what runs, and where its results lie.
        inputs: which of the arrays that it is given it reads; None if all of them in order.
        arena_bytes: of temporaries.
        outputs: where its values lie in its buffers.
        value_at: which of its values the one at a position of the recorded trace is.
        verify: what looks at the program's slots before a run, if it is to be looked at.
    """

    def __init__(self, program: ReplayProgram, inputs: Sequence[InputSource]) -> None:
        plan = program.plan
        self.recorded = program
        self.pool, self._device = program.pool, program.device
        self.program = cast(NativeProgram, plan.segments[0].program)
        self.inputs = None if [*plan.inputs] == [*range(len(inputs))] else plan.inputs
        self.arena_bytes, self.outputs = plan.arena_bytes, plan.outputs
        self.value_at = {index: k for k, index in enumerate(program.outputs)}
        self.verify = getattr(self.program, "verify_filled", None)

    def reused(self) -> Mapping[int, Array]:
        """The arrays that large results lie over, by the number of the result's buffer."""
        return _NONE
