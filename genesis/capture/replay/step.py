"""The steps of a recorded call: each is a program and what a replay looks up for it. (Steps of optimizers are `TakenSteps`.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import InputSource, Leaves, Program, Source, Write
from genesis.capture.replay.program import ReplayProgram
from genesis.capture.replay.taken_steps import TakenSteps
from genesis.tensor.handle import Tensor


class ReplayStep(NamedTuple):
    """A program, and what a replay looks up for it."""

    program: ReplayProgram
    inputs: list[InputSource]
    numbers: list[float]
    slots: list[tuple[int, Source]]
    variables: list[tuple[int, Source]]
    writes: list[Write]
    roots: list[Tensor]  # the overwritten tensors, if they are the same in all calls; else none
    versions: list[int]  # by how much their versions rise
    is_plain: bool  # its inputs are exactly the arrays that `check` returns

    def scalars(self, taken: TakenSteps, leaves: Leaves) -> list[float]:
        """The numbers for the program's slots in a call with these leaves."""
        scalars = self.numbers.copy()
        for k, number in zip([k for k, _ in self.slots], taken.numbers(leaves, [s for _, s in self.slots]), strict=True):
            scalars[k] = number
        return scalars


def step_of(recorder: Recorder, position: int, given: Mapping[InputSource, int]) -> ReplayStep:
    """The step of the program at `position`; `given` numbers the arrays that the check returns."""
    program: Program = recorder.programs[position]
    later = {root for following in recorder.programs[position + 1 :] for root, _ in following.writes}
    program.replay.seal()
    writes = []
    for root, index in program.writes:
        state, source = recorder.states[root], recorder.source_of(root)
        if source is None:
            recorder.refuse(f"a tensor of shape {root.shape} is written that no argument, name or attribute leads to")
            continue
        assert state.array.memory is not None
        recorder.wholes.add(source)
        final, change = root not in later, state.array.memory.buffer.change
        writes.append(Write(
            source, program.replay.plan.number_of[index],
            root._changes - state.version if final else 0, state.notes if final else 0,
            change if change is None else change.again(),
        ))
    plain = len(recorder.programs) == 1 and [*given] == program.inputs
    roots = [write.source[1].tensor for write in writes] if all(write.source[0] == "tensor" for write in writes) else []
    return ReplayStep(
        program.replay, program.inputs, program.numbers, program.slots, program.variables, writes, roots,
        [write.versions for write in writes], plain)
