"""Settling: builds the replay by instructions of a recorded call, or says why Python keeps replaying it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.capture.guards.entry_check import EntryCheck
from genesis.capture.record.reads import Read
from genesis.capture.record.records import InputSource, Mode, Source
from genesis.capture.record.results import Results
from genesis.capture.replay.changing_program import ChangingProgram, TensorChanges
from genesis.capture.replay.collective_run import is_replayable
from genesis.capture.replay.host_program import HostProgram, NotNativeError
from genesis.capture.replay.native_replay import NativeReplay
from genesis.capture.replay.native_results import KNOWN_BEFORE
from genesis.capture.replay.program import Program
from genesis.capture.replay.taken_steps import Compute
from genesis.runtime.executor_ir import PATIENCE
from genesis.runtime.instructions import HOLDING, are_possible

LONGEST = 1e-9 * PATIENCE  # seconds that programs may let signals wait


def settled(
    check: EntryCheck, modes: Mode, programs: Sequence[Program], given: Mapping[InputSource, int], reads: Sequence[Read],
    results: Results, cleared: Sequence[Source], compute: Compute | None, draws: int | None,
) -> NativeReplay:
    """The replay by instructions of a recorded call that has been replayed. Raises NotNativeError.

    Args:
        given: the number of each input among the arrays that the check returns.
        cleared: the sources of tensors whose gradients are lost.
        compute: returns the numbers that change; None where they are leaves, or random draws of instructions.
        draws: how many numbers instructions draw; None where Python does, or nothing.
    """
    _require(programs, reads, results)
    hosts = _hosts(programs, reads, results, cleared)
    changes = hosts[-1].same_changes() if isinstance(hosts[-1], ChangingProgram) else TensorChanges([], [])
    if changes is None:
        raise NotNativeError(
            "the tensors that it changes are not the same ones in all calls, or hold gradients of another kind", passes=True)
    is_long = _seconds(programs) > HOLDING
    return NativeReplay(check, modes, hosts, given, reads, results, changes, compute, draws, is_long)


def _seconds(programs: Sequence[Program]) -> float:
    """How long the programs took."""
    natives = [program.plan.segments[0].program for program in programs]
    return sum([sum(native.seconds()) for native in natives if native is not None])


def _hosts(
    programs: Sequence[Program], reads: Sequence[Read], results: Results, cleared: Sequence[Source]
) -> list[HostProgram]:
    """The programs of the call. Only the last may change tensors; then no value is read after it."""
    *before, last = programs
    earlier = [*map(HostProgram, before)]
    if not (cleared or results.gradients or any(program.writes for program in programs)):
        return [*earlier, HostProgram(last)]
    if any(program.writes for program in before) or any(read.position == len(before) for read in reads):
        raise NotNativeError("it changes tensors in a program that is not its last one, or reads a value after all have run")
    return [*earlier, ChangingProgram(last, cleared, results, earlier)]


def _require(programs: Sequence[Program], reads: Sequence[Read], results: Results) -> None:
    if not are_possible():
        raise NotNativeError("this interpreter's objects are none that instructions know")
    if not programs:
        raise NotNativeError("it computes nothing")
    if results.former_gradients:
        raise NotNativeError(KNOWN_BEFORE)
    for program in programs:
        if not program.is_single:
            raise NotNativeError("a program is no single native call of the host's, or keeps values for a backward, or views")
        if any(one.copied for one in program.inputs):
            raise NotNativeError("it reads memory that NumPy sees")
    communicates = any(program.plan.collectives for program in programs)
    if communicates and not _communicates_alone(programs, reads):
        raise NotNativeError("it takes part in collectives, and is several programs or more than instructions know")
    if (seconds := _seconds(programs)) > LONGEST and not communicates:
        raise NotNativeError(f"its programs take {1e3 * seconds:.1f} ms, more than {1e3 * LONGEST:.0f}", passes=True)


def _communicates_alone(programs: Sequence[Program], reads: Sequence[Read]) -> bool:
    """Whether the call is a single program, whose collectives `CollectiveRun` can run."""
    program, *others = programs
    return not (others or reads) and all(one.within is None for one in program.inputs) and is_replayable(
        program.plan, program.pool)
