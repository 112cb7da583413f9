"""Settling: builds the replay by instructions of a recorded call, or says why Python keeps replaying it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from genesis.capture.guards.entry_check import EntryCheck
from genesis.capture.record.reads import Read
from genesis.capture.record.records import InputSource, Mode, Source
from genesis.capture.record.results import Results
from genesis.capture.replay.changing_program import ChangingProgram, TensorChanges
from genesis.capture.replay.collective_run import is_replayable
from genesis.capture.replay.host_program import BufferOf, HostProgram, NativeRead, NativeSlots, NativeStep
from genesis.capture.replay.native_replay import NativeReplay
from genesis.capture.replay.native_results import is_native
from genesis.capture.replay.step import ReplayStep
from genesis.capture.replay.taken_steps import Compute
from genesis.runtime.executor_ir import PATIENCE
from genesis.runtime.instructions import HOLDING, are_possible
from genesis.tracing.trace import Array

LONGEST = 1e-9 * PATIENCE  # seconds that programs may let signals wait


class Refused(Exception):
    """Instructions cannot replay a call; says why, and whether a later attempt may succeed."""

    def __init__(self, why: str, passes: bool = False) -> None:
        super().__init__(why)
        self.passes = passes


class Settling:
    """A recorded call that has been replayed, as the input of settling.

    Attributes:
        given: the number of each input among the arrays that the check returns.
        cleared: the sources of tensors whose gradients are lost.
        compute: returns the numbers that change; None where they are leaves, or random draws of instructions.
        draws: how many numbers instructions draw; None where Python does, or nothing.
    """

    def __init__(
        self, steps: Sequence[ReplayStep], given: Mapping[InputSource, int], reads: Sequence[Read], results: Results,
        cleared: Sequence[Source], compute: Compute | None, draws: int | None,
    ) -> None:
        self._steps, self._given, self._reads, self._results = steps, given, reads, results
        self._cleared, self._compute, self._draws = cleared, compute, draws
        self._firsts = [0, *accumulate(len(step.slots) for step in steps)]

    def replay(self, check: EntryCheck, modes: Mode) -> NativeReplay:
        """The replay by instructions. Raises Refused."""
        self._require()
        programs = self._programs()
        changes = programs[-1].same_changes() if isinstance(programs[-1], ChangingProgram) else TensorChanges([], [])
        if changes is None:
            raise Refused("the tensors that it changes are not the same ones in all calls, or hold gradients of another kind",
                          passes=True)
        steps = [self._step(position, step, programs) for position, step in enumerate(self._steps)]
        reads = [
            NativeRead(self._given[InputSource(read.source)], read.values) for read in self._reads if read.position < 0]
        return NativeReplay(check, modes, steps, reads, self._results, changes, self._seconds() > HOLDING)

    def _seconds(self) -> float:
        """How long the programs took."""
        programs = [step.program.plan.segments[0].program for step in self._steps]
        return sum([sum(program.seconds()) for program in programs if program is not None])

    def _programs(self) -> list[HostProgram]:
        """The programs of the call. Only the last may change tensors; then no value is read after it."""
        *before, last = self._steps
        earlier = [HostProgram(step.program, step.inputs) for step in before]
        if not (self._cleared or self._results.gradients or any(step.writes for step in self._steps)):
            return [*earlier, HostProgram(last.program, last.inputs)]
        if any(step.writes for step in before) or any(read.position == len(before) for read in self._reads):
            raise Refused("it changes tensors in a program that is not its last one, or reads a value after all have run")
        return [*earlier, ChangingProgram(last.program, last.inputs, last.writes, self._cleared, self._results, earlier)]

    def _require(self) -> None:
        if not are_possible():
            raise Refused("this interpreter's objects are none that instructions know")
        if not self._steps:
            raise Refused("it computes nothing")
        if not is_native(self._results):
            raise Refused("it returns former gradients, or views of tensors that were there before")
        for step in self._steps:
            if not step.program.is_single:
                raise Refused("a program is no single native call of the host's, or keeps values for a backward, or views")
            if any(one.copied for one in step.inputs):
                raise Refused("it reads memory that NumPy sees")
        communicates = any(step.program.plan.collectives for step in self._steps)
        if communicates and not self._communicates_alone():
            raise Refused("it takes part in collectives, and is several programs or more than instructions know")
        if (seconds := self._seconds()) > LONGEST and not communicates:
            raise Refused(f"its programs take {1e3 * seconds:.1f} ms, more than {1e3 * LONGEST:.0f}", passes=True)

    def _communicates_alone(self) -> bool:
        """Whether the call is a single program, whose collectives `CollectiveRun` can run."""
        step, *others = self._steps
        return not (others or self._reads) and all(one.within is None for one in step.inputs) and is_replayable(
            step.program.plan, step.program.pool)

    def _step(self, position: int, step: ReplayStep, programs: Sequence[HostProgram]) -> NativeStep:
        nodes = [step.program.nodes[at] for at in step.program.positions]
        inputs = [self._input(one, node.dtype.itemsize, programs) for one, node in zip(step.inputs, nodes, strict=True)]
        reads = [NativeRead(_buffer(read.source, programs), read.values) for read in self._reads if read.position == position]
        slots = NativeSlots(inputs, step.numbers, dict(step.slots), self._compute, self._firsts[position], self._draws)
        return NativeStep(programs[position], slots, reads)

    def _input(
        self, one: InputSource, itemsize: int, programs: Sequence[HostProgram]
    ) -> tuple[int | Array | BufferOf, int]:
        if one.source[0] == "output":
            if one.within is not None and one.within.offset:
                raise Refused("a program reads a part of what another one has computed")
            return _buffer(one.source, programs), 0
        source = one.source[1] if one.source[0] == "constant" else self._given[InputSource(one.source)]
        return source, 0 if one.within is None else one.within.offset * itemsize


def _buffer(source: Source, programs: Sequence[HostProgram]) -> BufferOf:
    """The buffer of an output."""
    _, which, position = source
    program = programs[which]
    output = program.outputs[program.value_at[position]]
    if output.is_input or output.start or not output.layout.is_contiguous:
        raise Refused("a program reads a part of what another one has computed")
    return BufferOf(which, output.number)
