"""The steps of a recorded call: each is a program and what a replay looks up for it. (Steps of optimizers are `TakenSteps`.)"""

from __future__ import annotations

from typing import NamedTuple

from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import InputSource, Leaves, Program, Source, Write
from genesis.capture.replay.program import ReplayProgram
from genesis.capture.replay.taken_steps import TakenSteps


class ReplayStep(NamedTuple):
    """A program, and what a replay looks up for it."""

    program: ReplayProgram
    inputs: list[InputSource]
    numbers: list[float]
    slots: list[tuple[int, Source]]
    variables: list[tuple[int, Source]]
    writes: list[Write]

    def scalars(self, taken: TakenSteps, leaves: Leaves) -> list[float]:
        """The numbers for the program's slots in a call with these leaves."""
        scalars = self.numbers.copy()
        for k, number in zip([k for k, _ in self.slots], taken.numbers(leaves, [s for _, s in self.slots]), strict=True):
            scalars[k] = number
        return scalars


def step_of(recorder: Recorder, position: int) -> ReplayStep:
    """The step of the program at `position`."""
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
    return ReplayStep(program.replay, program.inputs, program.numbers, program.slots, program.variables, writes)
