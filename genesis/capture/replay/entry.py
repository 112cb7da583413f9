"""Entries: a traced call made ready to be replayed.

A replay checks the guards, then runs the recorded programs on this call's inputs and numbers; each takes its results from
its own pool. There are two ways to the same effect. A call that is one program of the host's runs it at once
(`single_program`). Any other puts the traces of its programs down as a whole and flushes them, so all that holds for a flush
holds for it: an index out of range undoes what depends on it, an interrupt loses nothing, backward can go on from results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import add, attrgetter
from typing import Any, NamedTuple

from genesis.capture.guards.entry_check import check_of
from genesis.capture.record.arguments import Arguments
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import InputSource, Leaves, Mode, Program, Source, Values, Write
from genesis.capture.record.results import Results, copied, find, tensor_builder
from genesis.capture.record.steps import steps_not_taken
from genesis.capture.replay.collective_run import is_replayable
from genesis.capture.replay.native_replay import LONGEST, NativeReplay, is_native
from genesis.capture.replay.native_slots import NativeSlots
from genesis.capture.replay.program import ReplayProgram
from genesis.capture.replay.single_program import FAULT, Commit, SingleProgramReplay
from genesis.capture.replay.taken_steps import TakenSteps
from genesis.execution.failure import take_back_notes
from genesis.execution.flush import FLUSH_HOOKS, flush
from genesis.ir.annotations import AnyFunction, Scalar
from genesis.runtime.executor_ir import PATIENCE
from genesis.runtime.instructions import are_possible
from genesis.runtime.timeline import timeline
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, hold_gradient
from genesis.tensor.in_place import note
from genesis.tracing.trace import Array

_device, _changes = attrgetter("memory.buffer.device"), attrgetter("_changes")
LOOKS = 4  # at a replay, which a busy machine may have slowed down


class _Step(NamedTuple):
    """A program, and what a replay looks up for it."""

    program: ReplayProgram
    inputs: list[InputSource]
    numbers: list[float]
    slots: list[tuple[int, Source]]
    variables: list[tuple[int, Source]]
    writes: list[Write]
    roots: list[Tensor]  # that are written over, if they are the same ones in all calls; else none
    versions: list[int]  # by how many theirs rise
    is_plain: bool  # its inputs are the arrays that `check` returns, in their order


class Entry:
    """A recorded call: `check` takes what it needs out of a call like it, `replay` does what that call would do.

    Attributes:
        check: the function of (args, kwargs) that returns (arrays, leaves), or the number of the guard that failed.
        labels: what the guards are about, by their numbers.
        slots: (what it is, its shape or value) of the tensors and numbers that are read anew by each call.
        programs: those that run, in order.
        native: what does it without Python, once there was one, if it can.
        results: what the call returns, and the gradients that it leaves.
    """

    def __init__(self, recorder: Recorder, arguments: Arguments, results: Results, modes: Mode) -> None:
        self.modes = modes
        self.labels = recorder.guards.labels
        self._replays = 0
        self.lines = [program.line for program in recorder.programs]
        self._optimizer_steps = recorder.steps
        self._draws = recorder.drawn_in_all if recorder.starts else None
        self.results = results
        self._build = results.builder(lambda key: key)
        self._gradient_builders = [
            (source, None if recipe is None else tensor_builder(recipe, lambda key: key))
            for source, recipe in results.gradients]
        states = recorder.states.values()
        self._cleared = [s.source for s in states if s.source and s.reads_gradient is False]
        given: dict[InputSource, int] = {}
        for program in recorder.programs:
            for one in program.inputs:
                if one.source[0] not in ("output", "constant"):
                    given.setdefault(InputSource(one.source), len(given))
        self._given = given
        recorder.wholes.update([one.source for one in given])
        self._steps = [_step(recorder, position, given) for position in range(len(recorder.programs))]
        self._unread = [w.source for step in self._steps for w in step.writes if InputSource(w.source) not in given]
        self._single = self._single_replay()
        # The check is generated last: what was looked up so far decides which tensors it compares, and how closely.
        self._check = check_of(recorder, arguments, given)
        self.check: AnyFunction = self._check.function
        self.native: NativeReplay | None = None
        self.is_settled = False  # `native` is there, or will not be
        self._looks = 0
        read = {one.source for one in given}
        self.slots = [(s.label, f"{s.array.node.dtype.name}{list(s.array.node.shape)}") for s in states if s.source in read]
        self.slots += [(f"number of leaf {j}", repr(arguments.leaves[j])) for j in sorted(arguments.numbers)
                       if ("leaf", j) not in recorder.fixed]

    def _single_replay(self) -> SingleProgramReplay | None:
        """The fast way, if the call is one program that fits, and takes no longer than an interrupt may wait."""
        if len(self._steps) != 1 or not self._steps[0].program.is_single:
            return None
        step = self._steps[0]
        if any(one.copied for one in step.inputs):  # nobody else would own the copies while the program runs
            return None
        program = step.program.plan.segments[0].program
        assert program is not None
        if step.program.plan.collectives:
            fits = is_replayable(step.program.plan, step.program.pool) and all(one.within is None for one in step.inputs)
        else:
            fits = sum(program.seconds()) <= 1e-9 * PATIENCE
        if not fits:
            return None
        return SingleProgramReplay(step.program, step.inputs, step.writes, self._cleared, self.results)

    @property
    def programs(self) -> list[ReplayProgram]:
        """What runs, in order."""
        return [step.program for step in self._steps]

    def is_elsewhere(self, arrays: Sequence[Array], leaves: Leaves) -> bool:
        """Whether a tensor that a replay would read or write is on another device than the programs."""
        devices = {*map(_device, arrays), *[array_of(find(source, leaves)).device for source in self._unread]}
        return bool(self._steps) and not devices <= {self._steps[0].program.device}

    def replay(self, arrays: list[Array], leaves: Leaves) -> tuple[bool, Any]:
        """(True, what the recorded call would return), or (False, None) if a step would be another.

        FAULT in place of a result: the function has to be called, to fail where it fails.
        """
        if self.results.held:
            leaves = self.results.with_held(leaves)
        taken, single = TakenSteps(), self._single
        if FLUSH_HOOKS or (single is not None and single.communicates):  # hooks want to see traces
            single = None
        commit = single or Commit()
        commit.done = False
        try:
            if not taken.take(self._optimizer_steps, self._draws):
                return False, None
            if single is None:
                result = self._flushed(arrays, leaves, taken, commit)
            else:
                only = self._steps[0]
                scalars = only.numbers
                if only.slots:
                    scalars = scalars.copy()
                for k, source in only.slots:
                    scalars[k] = taken.number(leaves, source)
                if not only.is_plain:  # in the same list: the caller's is not to own what dies
                    arrays[:] = [self._input(one, arrays, {}) for one in only.inputs]
                began = timeline.spans is not None and timeline.start()
                result = single.replay(arrays, scalars, leaves)
                if began:
                    timeline.note_programs(began, only.program.plan, only.program.without_data)
        except BaseException:
            # Once committed, tensors hold their new arrays, computed or pending: the step has been taken.
            if not commit.done:
                taken.take_back()
            raise
        if result is FAULT:
            taken.take_back()
        else:
            self._replays += 1
        return True, result

    @property
    def replays(self) -> int:
        """How many there were."""
        return self._replays + (0 if self.native is None else self.native.replays)

    def settle(self) -> None:
        """Have `native` replay this call, if instructions can. It has been replayed: what that takes is known."""
        self._looks += 1
        self.is_settled = self._looks == LOOKS
        single = self._single
        if single is None or not are_possible() or not is_native(self.results):
            return
        if not single.communicates and sum(single.program.seconds()) > LONGEST:
            return
        changes, step = single.same_changes(), self._steps[0]
        if changes is not None:
            computes = any(source[0] != "leaf" for _, source in step.slots) or self._optimizer_steps or self._draws is not None
            numbers = partial(self._computed, step.slots) if computes else None
            nodes = [step.program.nodes[position] for position in step.program.positions]
            inputs = [
                (self._given[InputSource(one.source)] if one.source[0] != "constant" else one.source[1],
                 0 if one.within is None else one.within.offset * node.dtype.itemsize)
                for one, node in zip(step.inputs, nodes, strict=True)]
            slots = NativeSlots(inputs, step.numbers, {k: source for k, source in step.slots}, numbers)
            self.is_settled = True
            self.native = NativeReplay(self._check, self.modes, step.program, single, self.results, changes, slots)

    def _computed(self, slots: Sequence[tuple[int, Source]], taken: TakenSteps, *leaves: Any) -> tuple[Scalar, ...] | None:
        """The numbers of slots, after the optimizers' steps; None if one of these would be another."""
        if not taken.take(self._optimizer_steps, self._draws):
            return None
        return tuple([taken.number(leaves, source) for _, source in slots])

    def _flushed(self, arrays: list[Array], leaves: Leaves, taken: TakenSteps, commit: Commit) -> Any:
        """Put the programs down one after the other, and flush each."""
        for source in self._cleared:
            find(source, leaves)._grad = None
        values: dict[tuple[int, int], Array] = {}
        made: dict[int, Tensor] = {}
        last = len(self._steps) - 1
        for position, step in enumerate(self._steps):
            inputs = arrays if step.is_plain else [self._input(one, arrays, values) for one in step.inputs]
            if position == last and inputs is not arrays:
                arrays.clear()  # the trace alone is to own inputs that die: the pool takes over what has no other owner
            scalars = step.numbers.copy()
            for k, source in step.slots:
                scalars[k] = taken.number(leaves, source)
            trace, handles = step.program.put_down(inputs, scalars)
            for array in handles:
                values[position, array.index] = array
            for index, source in step.variables:
                trace.variables[index] = find(source, leaves)
            roots = step.roots or [find(write.source, leaves) for write in step.writes]
            for root, write in zip(roots, step.writes, strict=True):
                for _ in range(write.notes):
                    note(root._array, write.change)
                trace.written.append((root, root._array, root._changes))
            graded = self._gradients(values, leaves, made) if position == last else []
            _commit(step, roots, handles, graded, commit)
            try:
                flush(trace, step.program.begin(handles))
            except BaseException:
                new = frozenset(values.values())
                if position or trace.done or trace.run is not None or not all(map(partial(_is_former, new), roots)):
                    for index in steps_not_taken(self._optimizer_steps, partial(_is_former, new)):
                        taken.undo[index]()
                else:
                    commit.done = False  # nothing has happened
                    for root, write in zip(roots, step.writes, strict=True):
                        take_back_notes(root._array, None, 0 if step.program.plan.keeps else write.notes, write.change)
                raise
        if not self._steps:  # nothing was to compute: gradients are views of what was there, or None
            for tensor, gradient in self._gradients(values, leaves, made):
                hold_gradient(tensor, gradient)
            commit.done = True
        return self._build(values, leaves, made)

    def _gradients(self, values: Values, leaves: Leaves, made: dict[int, Tensor]) -> list[tuple[Tensor, Tensor | None]]:
        """The tensors whose `.grad` is new, and what it is."""
        return [
            (find(source, leaves), None if build is None else build(values, leaves, made))
            for source, build in self._gradient_builders
        ]

    def _input(self, given: InputSource, arrays: list[Array], values: Values) -> Array:
        kind = given.source[0]
        if kind == "output":
            return values[given.source[1:]]  # type: ignore[index]
        if kind == "constant":
            constant: Array = given.source[1]
            return constant
        array = arrays[self._given[InputSource(given.source)]]
        if given.within is not None:
            assert array.memory is not None
            at = given.within._replace(offset=given.within.offset + array.memory.layout.offset)
            array = Array.realized(array.memory.buffer, at, array.node.dtype)
        return copied(array) if given.copied else array


def _is_former(new: Collection[Array], tensor: Tensor) -> bool:
    """Whether a tensor holds what it held before a call that has computed `new`."""
    return tensor._array not in new


def _commit(
    step: _Step, roots: Sequence[Tensor], handles: Sequence[Array], graded: Sequence[tuple[Tensor, Tensor | None]],
    commit: Commit,
) -> None:
    """Put what a program will have computed where it belongs: arrays, versions and, after the last one, gradients."""
    tensors = [*roots, *roots, *[tensor for tensor, _ in graded], commit]
    names = [*["_array"] * len(roots), *["_changes"] * len(roots), *["_grad"] * len(graded), "done"]
    news = [*[handles[write.output] for write in step.writes], *map(add, map(_changes, roots), step.versions),
            *[gradient for _, gradient in graded], True]
    any(map(setattr, tensors, names, news))  # one C call: no interrupt comes between, so a call is taken whole or not at all
    for tensor, gradient in graded:
        if not tensor._is_holder:
            hold_gradient(tensor, gradient)


def _step(recorder: Recorder, position: int, given: Mapping[InputSource, int]) -> _Step:
    program: Program = recorder.programs[position]
    later = {root for following in recorder.programs[position + 1 :] for root, _ in following.writes}
    program.replay.seal()
    outputs = {index: k for k, index in enumerate(program.replay.outputs)}
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
            source, outputs[index], root._changes - state.version if final else 0, state.notes if final else 0,
            change if change is None else change.again(),
        ))
    plain = len(recorder.programs) == 1 and [*given] == program.inputs
    roots = [write.source[1].tensor for write in writes] if all(write.source[0] == "tensor" for write in writes) else []
    return _Step(
        program.replay, program.inputs, program.numbers, program.slots, program.variables, writes, roots,
        [write.versions for write in writes], plain)

