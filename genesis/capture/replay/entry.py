"""Entries: recorded calls, ready to be replayed.

A replay checks the guards, then runs the recorded programs on this call's inputs and numbers; each takes its results from its
own pool. It recreates the traces of its programs and flushes them, with the guarantees of a flush: an index out of range undoes
what depends on it, an interrupt loses nothing, backward can continue from results. After the first replay instructions take
over calls of programs of up to 50 ms on the host (`native_replay`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

from genesis.capture.guards.entry_check import Check
from genesis.capture.record.arguments import Arguments
from genesis.capture.record.reads import Missed, OtherValueError, Read, named
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import InputSource, Leaves, Mode, Source, Values
from genesis.capture.record.results import Results, build, build_tensor, find
from genesis.capture.record.sources import copied
from genesis.capture.record.steps import UpdateStep, steps_not_taken
from genesis.capture.replay.changing_program import assign
from genesis.capture.replay.host_program import NotNativeError
from genesis.capture.replay.native_replay import NativeReplay
from genesis.capture.replay.program import Program
from genesis.capture.replay.settling import settled
from genesis.capture.replay.taken_steps import TakenSteps
from genesis.execution.failure import lost, take_back_notes
from genesis.execution.flush import flush
from genesis.execution.realize import realize
from genesis.ir.annotations import AnyFunction, Scalar
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import note
from genesis.tracing.trace import Array, Change, Trace

OTHER_MODES = -2  # in place of a guard's number, for a call in other modes; see `Entry.label_of`
Written = tuple[Tensor, Array, int]  # a tensor, what it has before it is written, and its version
Noted = tuple[Written, int, Change | None]  # the version of that memory, and the write
_device = attrgetter("memory.buffer.device")


class Entry:
    """A recorded call: `check` extracts the inputs of a call like it, `replay` does what that call would do.

    Attributes:
        check: the function of (args, kwargs) that returns (arrays, leaves), or the number of the guard that failed; -1 if an
            attribute or item is gone.
        labels: the descriptions of the guards, by number.
        slots: (description, shape or value) of the tensors and numbers that each call re-reads.
        programs: the programs that run, in order.
        native: the replay by instructions, once settled and if possible.
        results: the return value and the new gradients.
        reads: values that Python reads within the call.
    """

    def __init__(
        self, recorder: Recorder, arguments: Arguments, results: Results, modes: Mode, reads: Sequence[Read]
    ) -> None:
        self.modes = modes
        self.labels = recorder.guards.labels
        self.reads = reads
        self._pure = 1 + max([read.position for read in reads], default=-1)  # programs up to the last value that Python reads
        self._replays = 0
        self.strays = 0  # calls in which a value that Python reads differed
        self._optimizer_steps = recorder.steps
        self._draws = recorder.draws()
        self.results = results
        states = recorder.states.values()
        self._cleared = [s.source for s in states if s.source and s.reads_gradient is False]
        self._given = given = _given_to(recorder, reads)
        recorder.wholes.update([one.source for one in given])
        self.programs = programs = recorder.programs
        for position, program in enumerate(programs):
            recorder.sources.seal(program, programs[position + 1 :], recorder.refuse)
        self._prefixes: list[object] = [
            (one.plan, [each._replace(source=named(each.source)) for each in one.inputs], one.numbers, one.slots)
            for one in programs[: self._pure]]
        written = [write.source for program in programs for write in program.writes]
        recorder.wholes.update(written)
        self._unread = [source for source in written if InputSource(source) not in given]
        # The check is generated last: the look-ups so far decide which tensors it compares, and how closely.
        self._check = Check(recorder, arguments).made(given)
        self.native: NativeReplay | None = None
        self.refusal: str | None = None  # why instructions did not replay it at the last attempt
        self._is_settled = False  # `native` is decided
        sources = {one.source for one in given}
        self.slots = [(s.label, f"{s.array.node.dtype.name}{list(s.array.node.shape)}") for s in states if s.source in sources]
        self.slots += [(arguments.labels[j], repr(arguments.leaves[j])) for j in sorted(arguments.numbers)
                       if ("leaf", j) not in recorder.fixed]

    @cached_property
    def check(self) -> AnyFunction:
        return self._check.make()

    def label_of(self, number: int) -> str:
        """The condition that failed, given a guard's number, OTHER_MODES, or the number after the last guard's."""
        if number == OTHER_MODES:
            return "the mode: gradients, autocast, the default dtype or device, or threads"
        if number < 0:
            return "an attribute or item that is gone"
        return self.labels[number] if number < len(self.labels) else "the device of a tensor"

    def is_elsewhere(self, arrays: Sequence[Array], leaves: Leaves) -> bool:
        """Whether a tensor that a replay would read or write is on another device than the programs."""
        devices = {*map(_device, arrays), *[array_of(find(source, leaves)).device for source in self._unread]}
        return bool(self.programs) and not devices <= {self.programs[0].device}

    def contradicts(self, other: OtherValueError) -> bool:
        """Whether a replay would meet the value that another entry met, after the same programs, but requires another."""
        if self._prefixes[: len(other.prefix)] != other.prefix:
            return False
        return any(named(read.source) == other.source and read.values != other.found for read in self.reads)

    def replay(self, arrays: list[Array], leaves: Leaves) -> Any:
        """The return value. Raises Missed if the call would continue differently.

        Raises NothingDoneError if the function is to be called, to fail at its own line; gradients that it clears are gone.
        """
        if self.results.former_gradients:
            leaves = self.results.with_former_gradients(leaves)
        taken = TakenSteps()
        try:
            if not taken.take(self._optimizer_steps, self._draws):
                raise Missed("the settings of an optimizer")
            result = self._flushed(arrays, leaves, taken)
        except BaseException as raised:
            self.strays += isinstance(raised, OtherValueError)
            # Once committed, tensors hold their new arrays, computed or pending: the steps count.
            if not taken.done:
                taken.take_back()
            raise
        self._replays += 1
        return result

    @property
    def replays(self) -> int:
        """The number of replays."""
        return self._replays + (0 if self.native is None else self.native.replays)

    def settle(self) -> bool:
        """Have instructions replay this call, if possible; returns whether they do from now on. It has been replayed before, so
        its duration is known.

        A replay may have been too long because the machine was busy: it is tried again, ever more rarely.
        """
        if self._is_settled or self._replays & (self._replays - 1):
            return False
        sources = [source for program in self.programs for _, source in program.slots]
        draws = self._draws if self._draws_natively(sources) else None
        computes = draws is None and (
            any(source[0] != "leaf" for source in sources) or self._optimizer_steps or self._draws is not None)
        compute = partial(self._computed, sources) if computes else None
        try:
            self.native = settled(self._check, self.modes, self.programs, self._given, self.reads, self.results, self._cleared,
                                  compute, draws)
        except NotNativeError as reason:
            self.refusal, self._is_settled = str(reason), not reason.passes
        else:
            self._is_settled = True
        return self.native is not None

    def _draws_natively(self, sources: Sequence[Source]) -> bool:
        """Whether all numbers that change are leaves and random draws, of a single program: no Python comes between, and no
        value read of it may undo the draws."""
        single = len(self.programs) == 1 and not (self._pure or self._optimizer_steps or self.programs[0].plan.collectives)
        return single and all(source[0] in ("leaf", "seed", "draw") for source in sources)

    def _computed(self, sources: Sequence[Source], taken: TakenSteps, *leaves: Any) -> Sequence[Scalar] | None:
        """The numbers of slots, after the optimizers' steps; None if a step would differ."""
        if not taken.take(self._optimizer_steps, self._draws):
            return None
        return taken.numbers(leaves, sources)

    def _flushed(self, arrays: list[Array], leaves: Leaves, taken: TakenSteps) -> Any:
        """Recreate and flush the programs' traces in order."""
        values: dict[tuple[int, int], Array] = {}
        made: dict[int, Tensor] = {}
        noted: list[Noted] = []
        last = len(self.programs) - 1
        self._require(-1, arrays, values)
        for position, program in enumerate(self.programs):
            if position == self._pure:
                self._clear(leaves)
            inputs = [self._input(one, arrays, values) for one in program.inputs]
            trace, handles, roots = _recreated(program, inputs, taken.scalars(program, leaves), leaves, noted)
            # Only the trace may own inputs that die: the pool takes over arrays without another owner.
            inputs.clear()
            if position == last >= self._pure:
                arrays.clear()
            for array in handles:
                values[position, array.index] = array
            if position < self._pure:
                flush(trace, program.task(handles))
                self._require(position, arrays, values)
                continue
            graded = self._gradients(values, leaves, made) if position == last else []
            former = [(tensor, tensor._grad) for tensor, _ in graded]
            try:
                written, rises = [handles[write.output] for write in program.writes], [one.versions for one in program.writes]
                assign(roots, written, rises, graded, taken)
                flush(trace, program.task(handles, is_whole=position == self._pure))
                if trace.lost:  # a signal handler has met the failure first
                    raise lost(trace)
            except BaseException:
                new = frozenset(values.values())
                begun = position > self._pure or trace.done or trace.run is not None
                if begun or any([root._array in new for root in roots]):
                    for index in steps_not_taken(self._optimizer_steps, partial(_is_undone, new)):
                        taken.undo[index]()
                else:
                    taken.done = False  # nothing has happened
                    for tensor, gradient in former:
                        tensor._grad = gradient
                _take_back(noted, new)
                raise
        if self._pure > last:  # nothing to compute: gradients are views of former values, or None
            self._clear(leaves)
            assign((), (), (), self._gradients(values, leaves, made), taken)
        return build(self.results.tree, values, leaves, made)

    def _clear(self, leaves: Leaves) -> None:
        for source in self._cleared:
            find(source, leaves)._grad = None

    def _require(self, position: int, arrays: Sequence[Array], values: Values) -> None:
        """Raise OtherValueError unless the values read after the program at `position` are unchanged."""
        for read in self.reads:
            if read.position == position:
                array = values[read.source[1:]] if position >= 0 else arrays[self._given[InputSource(read.source)]]
                found = realize(array).numpy(array.node.dtype).tobytes()
                if found != read.values:
                    raise OtherValueError(read, found, self._prefixes[: position + 1])

    def _gradients(self, values: Values, leaves: Leaves, made: dict[int, Tensor]) -> list[tuple[Tensor, Tensor | None]]:
        """The tensors with a new `.grad`, and the gradients."""
        return [
            (find(source, leaves), None if recipe is None else build_tensor(recipe, values, leaves, made))
            for source, recipe in self.results.gradients
        ]

    def _input(self, given: InputSource, arrays: list[Array], values: Values) -> Array:
        kind = given.source[0]
        if kind == "constant":
            constant: Array = given.source[1]
            return constant
        array: Array = values[given.source[1:]] if kind == "output" else (  # type: ignore[index]
            arrays[self._given[InputSource(given.source)]])
        if given.within is not None:
            assert array.memory is not None
            at = given.within._replace(offset=given.within.offset + array.memory.layout.offset)
            array = Array.realized(array.memory.buffer, at, array.node.dtype)
        if given.derived is not None:
            output = values[given.derived]
            array = Array(output.trace, output.index, output.node, array.memory)
        return copied(array) if given.copied else array


def _given_to(recorder: Recorder, reads: Sequence[Read]) -> dict[InputSource, int]:
    """The tensors from before the call whose arrays programs or Python read, numbered."""
    given = [one.source for program in recorder.programs for one in program.inputs
             if one.source[0] not in ("output", "constant")]
    given += [read.source for read in reads if read.position < 0]
    return {InputSource(source): number for number, source in enumerate(dict.fromkeys(given))}


def _recreated(
    program: Program, inputs: list[Array], scalars: list[float], leaves: Leaves, noted: list[Noted]
) -> tuple[Trace, Sequence[Array], Sequence[Tensor]]:
    """The trace of a program with its leaves and writes, the arrays of its results, and the roots that it writes to; notifies
    backwards of the writes, and adds what it has `noted`."""
    trace, handles = program.put_down(inputs, scalars)
    for index, source in program.variables:
        trace.variables[index] = find(source, leaves)
    roots = [find(write.source, leaves) for write in program.writes]
    for root, write in zip(roots, program.writes, strict=True):
        written = root, root._array, root._changes
        memory = realize(written[1])  # another thread may have written since the check
        if write.notes:
            noted.append((written, memory.buffer.version, write.change))
        for _ in range(write.notes):
            note(written[1], write.change)
        trace.written.append(written)
    return trace, handles, roots


def _take_back(noted: Sequence[Noted], new: Collection[Array]) -> None:
    """Undo the notes of writes that have been taken back: the tensor has none of the `new` arrays."""
    for (tensor, before, _), version, change in noted:
        if tensor._array not in new:
            take_back_notes(before, version, change)


def _is_undone(new: Collection[Array], step: UpdateStep) -> bool:
    return step.parameter._array not in new
