"""Entries: a traced call made ready to be replayed.

A replay checks the guards, puts the traces of the recorded programs down as a whole - nodes and path are those of the
recording, inputs and numbers are this call's - and flushes them. So what holds for any flush holds here too: memory is
taken over from inputs that die, an index out of range undoes what depends on it, an interrupt loses nothing.
A call that is one program of the host's has a shorter way (see `single_program`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import add, attrgetter
from typing import Any, NamedTuple

from genesis.capture.guards.entry_check import check_of
from genesis.capture.record.arguments import Arguments
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import InputSource, Program, Write, signed
from genesis.capture.record.results import Results, copied, find
from genesis.capture.record.steps import later_schedules
from genesis.capture.replay.program import ReplayProgram
from genesis.capture.replay.single_program import FAULT, Commit, SingleProgramReplay
from genesis.execution.failure import LOSSES
from genesis.execution.flush import FLUSH_HOOKS, flush
from genesis.runtime import rng
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, hold_gradient
from genesis.tensor.in_place import note
from genesis.tracing.trace import Array

__all__ = ["Entry"]

_device, _version = attrgetter("memory.buffer.device"), attrgetter("_version")


class _Launch(NamedTuple):
    """A program with what a replay has to look up for it."""

    replay: ReplayProgram
    inputs: list[InputSource]
    numbers: list[float]
    slots: list[tuple[int, Any]]
    variables: list[tuple[int, Any]]
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
        replays: how many there were.
    """

    def __init__(self, recorder: Recorder, arguments: Arguments, results: Results, modes: tuple[Any, ...]) -> None:
        self.modes = modes
        self.labels = recorder.guards.labels
        self.replays = 0
        self.lines = [program.line for program in recorder.programs]
        self._steps = recorder.steps
        self._draws = recorder.drawn_in_all if recorder.starts else None
        self._results = results
        states = recorder.states.values()
        self._cleared = [s.source for s in states if s.source and s.reads_gradient is False]
        given: dict[InputSource, int] = {}
        for program in recorder.programs:
            for one in program.inputs:
                if one.source[0] not in ("output", "constant"):
                    given.setdefault(InputSource(one.source), len(given))
        self._given = given
        recorder.wholes.update([one.source for one in given])
        self._launches = [_launch(recorder, place, given) for place in range(len(recorder.programs))]
        self._unread = [w.source for launch in self._launches for w in launch.writes if InputSource(w.source) not in given]
        only = self._launches[0] if len(self._launches) == 1 else None
        self._single = SingleProgramReplay(only.replay, only.inputs, only.writes, self._cleared, results) if (
            only is not None and only.is_plain and only.replay.is_single) else None
        self.check: Callable[[Any, Any], Any] = check_of(recorder, arguments, given)
        self.slots = [(s.label, f"{s.array.node.dtype.name}{list(s.array.node.shape)}") for s in states if s.source in {
            one.source for one in given}]
        self.slots += [(f"number of leaf {j}", repr(arguments.leaves[j])) for j in sorted(arguments.numbers)
                       if ("leaf", j) not in recorder.fixed]

    @property
    def programs(self) -> list[ReplayProgram]:
        """What runs, in order."""
        return [launch.replay for launch in self._launches]

    def is_elsewhere(self, arrays: Sequence[Array], leaves: Sequence[Any]) -> bool:
        """Whether a tensor that a replay would read or write is on another device than the programs."""
        places = {*map(_device, arrays), *[array_of(find(source, leaves)).device for source in self._unread]}
        return bool(self._launches) and not places <= {self._launches[0].replay.device}

    def replay(self, arrays: list[Array], leaves: Sequence[Any]) -> tuple[bool, Any]:
        """(True, what the recorded call would return), or (False, None) if a step would be another.

        FAULT in place of a result: the function has to be called, to fail where it fails.
        """
        undo: list[Callable[[], None]] = []
        start, single = None, None if FLUSH_HOOKS else self._single
        commit = single or Commit()
        commit.done = False
        try:
            settings = []
            for step in self._steps:
                numbers = step.again(undo)
                if numbers is None:
                    self._take_back(undo, start)
                    return False, None
                settings.append(numbers)
            start = None if self._draws is None else rng.reserve(self._draws)
            if single is None:
                result = self._flushed(arrays, leaves, partial(_number, settings, leaves, start), undo, commit)
            else:
                launch = self._launches[0]
                scalars = launch.numbers.copy()
                for k, source in launch.slots:
                    scalars[k] = settings[source[1]][source[2]] if source[0] == "setting" else _number(
                        settings, leaves, start, source)
                result = single.replay(arrays, scalars, leaves)
        except BaseException:
            if not commit.done:
                self._take_back(undo, start)
            raise
        if result is FAULT:
            self._take_back(undo, start)
        else:
            self.replays += 1
        return True, result

    def _take_back(self, undo: Sequence[Callable[[], None]], start: int | None) -> None:
        for restore in reversed(undo):
            restore()
        if start is not None:
            rng.set_state((rng.initial_seed(), start))

    def _flushed(
        self, arrays: list[Array], leaves: Sequence[Any], number: Callable[[Any], Any], undo: Sequence[Callable[[], None]],
        commit: Commit,
    ) -> Any:
        """Put all programs down, and flush them."""
        for source in self._cleared:
            find(source, leaves)._grad = None
        values: dict[tuple[int, int], Array] = {}
        made: dict[int, Tensor] = {}
        last = len(self._launches) - 1
        for place, launch in enumerate(self._launches):
            inputs = arrays if launch.is_plain else [self._input(one, arrays, values) for one in launch.inputs]
            if place == last and inputs is not arrays:
                arrays.clear()  # inputs that nobody holds any more give their memory away
            scalars = launch.numbers.copy()
            for k, source in launch.slots:
                scalars[k] = number(source)
            trace, handles = launch.replay.put_down(inputs, scalars)
            for array in handles:
                values[place, array.index] = array
            for index, source in launch.variables:
                trace.variables[index] = find(source, leaves)
            roots = launch.roots or [find(write.source, leaves) for write in launch.writes]
            graded = self._gradients(values, leaves, made) if place == last else []
            for root, write in zip(roots, launch.writes, strict=True):
                for _ in range(write.notes):
                    note(root._array, write.change)
                trace.written.append((root, root._array))
            tensors = [*roots, *roots, *[tensor for tensor, _ in graded], commit]
            names = [*["_array"] * len(roots), *["_version"] * len(roots), *["_grad"] * len(graded), "done"]
            news = [*[handles[write.output] for write in launch.writes], *map(add, map(_version, roots), launch.versions),
                    *[gradient for _, gradient in graded], True]
            any(map(setattr, tensors, names, news))  # in one breath: no interrupt comes between
            del news
            for tensor, gradient in graded:
                if not tensor._is_holder:
                    hold_gradient(tensor, gradient)
            try:
                flush(trace, launch.replay.begin(handles))
            except LOSSES:
                for number_of_step in later_schedules(self._steps):
                    undo[number_of_step]()
                raise
        return self._results.build(values, leaves, made)

    def _gradients(self, values: Any, leaves: Sequence[Any], made: dict[int, Tensor]) -> list[tuple[Tensor, Tensor | None]]:
        """The tensors whose `.grad` is new, and what it is."""
        return [
            (find(source, leaves), None if recipe is None else self._results.tensor(recipe, values, leaves, made))
            for source, recipe in self._results.gradients
        ]

    def _input(self, given: InputSource, arrays: list[Array], values: dict[tuple[int, int], Array]) -> Array:
        kind = given.source[0]
        if kind == "output":
            return values[given.source[1:]]
        if kind == "constant":
            constant: Array = given.source[1]
            return constant
        array = arrays[self._given[InputSource(given.source)]]
        if given.within is not None:
            assert array.memory is not None
            at = given.within._replace(offset=given.within.offset + array.memory.layout.offset)
            array = Array.realized(array.memory.buffer, at, array.node.dtype)
        return copied(array) if given.copied else array


def _number(settings: Sequence[Sequence[Any]], leaves: Sequence[Any], start: Any, source: Any) -> Any:
    """The number that `source` names, in a call with these leaves and steps whose random numbers begin at `start`."""
    kind = source[0]
    if kind == "setting":
        return settings[source[1]][source[2]]
    if kind == "leaf":
        return leaves[source[1]]
    if kind == "seed":
        return signed(rng.initial_seed())
    if kind == "draw":
        return signed((start + source[1]) & rng.MASK)
    return source[1] if kind == "given" else source[1](*[_number(settings, leaves, start, operand) for operand in source[2:]])


def _launch(recorder: Recorder, place: int, given: dict[InputSource, int]) -> _Launch:
    program: Program = recorder.programs[place]
    later = {root for following in recorder.programs[place + 1 :] for root, _ in following.writes}
    outputs = {index: k for k, index in enumerate(program.replay.outputs)}
    writes = []
    for root, index in program.writes:
        state, source = recorder.states[root], recorder.source_of(root)
        if source is None:
            recorder.refuse(f"a tensor of shape {root.shape} is written that no argument, name or attribute leads to")
            continue
        assert state.array.memory is not None
        recorder.wholes.add(source)
        final = root not in later
        writes.append(Write(
            source, outputs[index], root._version - state.version if final else 0, state.notes if final else 0,
            state.array.memory.buffer.change,
        ))
    plain = len(recorder.programs) == 1 and [*given] == program.inputs
    roots = [write.source[1].tensor for write in writes] if all(write.source[0] == "tensor" for write in writes) else []
    return _Launch(
        program.replay, program.inputs, program.numbers, program.slots, program.variables, writes, roots,
        [write.versions for write in writes], plain)

