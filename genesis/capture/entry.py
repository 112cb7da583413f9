"""Entries: a traced call made ready to be replayed.

A replay checks the guards, puts the traces of the recorded programs down as a whole - nodes and path are those of the
recording, inputs and numbers are this call's - and flushes them. So what holds for any flush holds here too: memory is
taken over from inputs that die, an index out of range undoes what depends on it, an interrupt loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.capture.arguments import Arguments
from genesis.capture.outcome import Outcome, find
from genesis.capture.recorder import Given, Program, Recorder, State, Step, is_literal, signed
from genesis.capture.signature import check_of
from genesis.execute import flush
from genesis.optim.optimizer import Optimizer
from genesis.runtime import rng
from genesis.storage import note
from genesis.tensor import Tensor, hold_gradient
from genesis.trace import Array, Trace

__all__ = ["Entry"]


class Entry:
    """A recorded call: `check` takes what it needs out of a call like it, `replay` does what that call would do.

    Attributes:
        check: the function of (args, kwargs) that returns (arrays, leaves), or the number of the guard that failed.
        labels: what the guards are about, by their numbers.
        programs: those that run, in order.
        states: the tensors that were there before and are read or written, with where they are found.
    """

    def __init__(self, recorder: Recorder, arguments: Arguments, outcome: Outcome, modes: tuple[Any, ...]) -> None:
        self.modes = modes
        self.labels = recorder.guards.labels
        self.programs = recorder.programs
        self.states = recorder.states
        self.steps = recorder.steps
        self.replays = 0
        self._draws = recorder.drawn_in_all
        self._outcome = outcome
        self._cleared = [s.source for s in recorder.states.values() if s.source and s.reads_gradient is False]
        self._changed = _changes(recorder)
        self.given: dict[Given, int] = {}
        for program in self.programs:
            for given in program.inputs:
                if given.source[0] not in ("output", "constant"):
                    self.given.setdefault(given._replace(within=None), len(self.given))
        self.check: Callable[[Any, Any], Any] = check_of(recorder, arguments, self.given)

    def replay(self, arrays: list[Array], leaves: Sequence[Any]) -> tuple[bool, Any]:
        """(True, what the recorded call would return), or (False, None) if a step would be another."""
        undo: list[Callable[[], None]] = []
        settings = []
        for step in self.steps:
            numbers = _again(step, undo)
            if numbers is None:
                for restore in reversed(undo):
                    restore()
                return False, None
            settings.append(numbers)
        start = rng.reserve(self._draws) if self._draws else 0

        def number(source: Any) -> Any:
            kind = source[0]
            if kind == "setting":
                return settings[source[1]][source[2]]
            if kind == "leaf":
                return leaves[source[1]]
            if kind == "seed":
                return signed(rng.initial_seed())
            if kind == "draw":
                return signed((start + source[1]) & rng.MASK)
            return source[1] if kind == "given" else source[1](*map(number, source[2:]))

        for source in self._cleared:
            find(source, leaves)._grad = None
        values: dict[tuple[int, int], Array] = {}
        made: dict[int, Tensor] = {}
        last = len(self.programs) - 1
        for place, program in enumerate(self.programs):
            inputs = [self._input(given, arrays, values) for given in program.inputs]
            if place == last:
                arrays.clear()  # inputs that nobody holds any more give their memory away
            trace = _put_down(program, inputs, [number(source) for _, source in program.slots])
            del inputs
            handles = {index: Array(trace, index, trace.nodes[index]) for index in program.outputs}
            trace.arrays += handles.values()
            for index, array in handles.items():
                values[place, index] = array
            for index, source in program.variables if program.plan.keeps else ():
                trace.variables[index] = find(source, leaves)
            for source, index, versions, change, notes in self._changed[place]:
                root = find(source, leaves)
                for _ in range(notes):
                    note(root._array, change)
                trace.written.append((root, root._array))
                root._array = handles[index]
                root._version += versions
            if place == last:
                self._put_gradients(values, leaves, made)
            try:
                flush(trace)
            except IndexError:
                _undo_schedules(self.steps, undo)
                raise
        self.replays += 1
        return True, self._outcome.build(values, leaves, made)

    def _input(self, given: Given, arrays: list[Array], values: dict[tuple[int, int], Array]) -> Array:
        kind = given.source[0]
        if kind == "output":
            return values[given.source[1:]]
        if kind == "constant":
            constant: Array = given.source[1]
            return constant
        if given.within is None:
            return arrays[self.given[given]]
        whole = arrays[self.given[given._replace(within=None)]]
        assert whole.memory is not None
        at = given.within._replace(offset=given.within.offset + whole.memory.layout.offset)
        return Array.realized(whole.memory.buffer, at, whole.node.dtype)

    def _put_gradients(self, values: dict[tuple[int, int], Array], leaves: Sequence[Any], made: dict[int, Tensor]) -> None:
        for source, recipe in self._outcome.gradients:
            tensor = find(source, leaves)
            if recipe is None:
                tensor._grad = None
            else:
                hold_gradient(tensor, self._outcome.tensor(recipe, values, leaves, made))


def _put_down(program: Program, inputs: list[Array], numbers: Sequence[Any]) -> Trace:
    """A trace that has come to where the recorded one ended, with its own inputs and numbers."""
    then = program.trace
    trace = Trace(then.device)
    trace.step, trace.nodes, trace.lines = then.step, then.nodes, then.lines
    trace.inputs = inputs
    trace.released = set(program.released)
    trace.scalars = program.numbers.copy()
    for (k, _), value in zip(program.slots, numbers, strict=True):
        trace.scalars[k] = value
    if program.plan.keeps:
        trace.input_at = dict(zip(program.positions, inputs, strict=True))
        trace.versions = {i: a.memory.buffer.version for i, a in trace.input_at.items()}  # type: ignore[union-attr]
    return trace


def _again(step: Step, undo: list[Callable[[], None]]) -> tuple[Any, ...] | None:
    """Count a step of an optimizer or a scheduler; returns its numbers, or None if it is another than the recorded one."""
    owner = step.owner
    if not isinstance(owner, Optimizer):
        before, groups = dict(vars(owner)), [dict(group) for group in owner.optimizer.param_groups]
        undo.append(lambda: _restore(owner, before, groups))
        owner.step(**step.arguments)
        return ()
    group, states = step.group, [owner.state.get(p) for p in step.parameters]
    members = group["params"]
    if None in states or not any(g is group for g in owner.param_groups) or len(members) != len(step.members) or not all(
        map(_is, members, step.members)
    ):
        return None
    held: list[Any] = states
    age = held[0]["step"] + 1
    kinds = owner.slots(group)
    if len(kinds) != len(step.kept) or any([state["step"] + 1 != age for state in held]):
        return None
    for kind, tensors in zip(kinds, step.kept, strict=True):
        if any([state[kind] is not tensor for state, tensor in zip(held, tensors, strict=True)]):
            return None
    settings = owner.settings(group, age)
    for now, then in zip(settings, step.settings, strict=True):
        if type(now) is not type(then) or (is_literal(then) and now != then):
            return None
    for state in held:
        state["step"] = age
    undo.append(lambda: _count_back(held))
    return settings


def _is(a: Any, b: Any) -> bool:
    return a is b


def _count_back(states: Sequence[dict[str, Any]]) -> None:
    for state in states:
        state["step"] -= 1


def _restore(scheduler: Any, before: dict[str, Any], groups: Sequence[dict[str, Any]]) -> None:
    vars(scheduler).clear()
    vars(scheduler).update(before)
    for group, held in zip(scheduler.optimizer.param_groups, groups, strict=True):
        group.clear()
        group.update(held)


def _undo_schedules(steps: Sequence[Step], undo: Sequence[Callable[[], None]]) -> None:
    """The program failed where the optimizer's step would have: schedulers that come after it have not stepped."""
    first = next((i for i, step in enumerate(steps) if isinstance(step.owner, Optimizer)), 0)
    for place in range(len(steps) - 1, first, -1):
        if not isinstance(steps[place].owner, Optimizer):
            undo[place]()


def _changes(recorder: Recorder) -> list[list[tuple[Any, int, int, Any, int]]]:
    """For each program the tensors that it writes over: where they are found, what they get, how their versions rise."""
    changes: list[list[tuple[Any, int, int, Any, int]]] = [[] for _ in recorder.programs]
    last = {root: place for place, program in enumerate(recorder.programs) for root, _ in program.writes}
    for place, program in enumerate(recorder.programs):
        for root, index in program.writes:
            state: State = recorder.states[root]
            source = recorder.source_of(root)
            if source is None:
                recorder.refuse(f"a tensor of shape {root.shape} is written that no argument, name or attribute leads to")
                continue
            memory = state.array.memory
            assert memory is not None
            final = last[root] == place
            versions = root._version - state.version if final else 0
            changes[place].append((source, index, versions, memory.buffer.change, state.notes if final else 0))
    return changes

