"""The Python part of steps of optimizers and schedulers, which a replay repeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter, setitem
from typing import Any

from genesis.capture.guards.python_state import Guards
from genesis.capture.record.records import Settings
from genesis.ir.annotations import Attributes, Options
from genesis.optim.lr_scheduler import LRScheduler
from genesis.optim.optimizer import Optimizer
from genesis.tensor.composite import differentiated
from genesis.tensor.handle import Tensor
from genesis.tensor.versions import own_versions

Undo = list[Callable[[], None]]


def is_literal(value: object) -> bool:
    """Whether a number is part of a call's key in the trie: 0, 1, -1 and bools are.

    >>> is_literal(1.0), is_literal(0.1), is_literal(True)
    (True, False, True)
    """
    return type(value) not in (int, float) or value in (0, 1, -1)


class ScheduleStep:
    """A scheduler's step, with the arguments that it was given."""

    settings: Settings = ()

    def __init__(self, scheduler: LRScheduler, arguments: Options) -> None:
        self.scheduler = scheduler
        self._arguments = dict(arguments)
        self.take_back = self._restoring()  # undoes the recorded step

    def _restoring(self) -> Callable[[], None]:
        """The function that restores the schedule's present state."""
        scheduler: Any = self.scheduler
        before = [(part, dict(vars(part))) for part in _parts(scheduler)]
        groups = [dict(group) for group in scheduler.optimizer.param_groups]

        def restore() -> None:
            for part, attributes in before:
                vars(part).clear()
                vars(part).update(attributes)
            for group, settings in zip(scheduler.optimizer.param_groups, groups, strict=True):
                group.clear()
                group.update(settings)

        return restore

    def again(self, undo: Undo) -> Settings | None:
        """Take the step; returns its numbers, of which there are none."""
        undo.append(self._restoring())
        self.scheduler.step(**self._arguments)
        return ()


def _parts(scheduler: Any) -> list[Any]:
    """A scheduler and its parts."""
    return [scheduler, *[part for inner in getattr(scheduler, "_schedulers", ()) for part in _parts(inner)]]


class UpdateStep:
    """An optimizer's update of parameters of one group, all with the same number of steps."""

    def __init__(self, optimizer: Optimizer, group: Attributes, parameters: Sequence[Tensor], settings: Settings) -> None:
        self.optimizer = optimizer
        self.settings = settings
        self.parameter = parameters[0]  # stands for the others
        self._group = group
        self._states = [optimizer.state[p] for p in parameters]
        self._kinds = optimizer.slots(group)
        self.kept: list[Tensor] = [state[kind] for state in self._states for kind in self._kinds if kind in state]
        self._version = _version_of(self.parameter)
        self._types = [*map(type, settings)]
        self._literals = [(k, value) for k, value in enumerate(settings) if is_literal(value)]

    def guard(self, guards: Guards, parameters: Sequence[Tensor]) -> None:
        """Guard what makes it the same step: groups, parameters, the state's tensors."""
        optimizer, constant, name = self.optimizer, guards.constant, type(self.optimizer).__name__
        owner, state_of = constant(optimizer), constant(optimizer.state)
        guards.fail_if(f"len({owner}.param_groups) != {len(optimizer.param_groups)}", f"the groups of {name}")
        for index, group in enumerate(optimizer.param_groups):
            guards.fail_if(f"{owner}.param_groups[{index}] is not {constant(group)}", f"the groups of {name}")
            guards.visit(f"{constant(group)}['params']", group["params"], f"the parameters of {name}")
        guards.fail_if(f"{owner}.state is not {state_of}", f"the state of {name}")
        # First its size: a look at the state of a parameter that has lost it would make an empty one.
        guards.fail_if(f"len({state_of}) != {len(optimizer.state)}", f"the state of {name}")
        for parameter, state in zip(parameters, self._states, strict=True):
            guards.fail_if(f"{state_of}[{constant(parameter)}] is not {constant(state)}", f"the state of {name}")
            for kind in filter(state.__contains__, self._kinds):  # Adafactor keeps others of matrices than of vectors
                guards.fail_if(f"{constant(state)}[{kind!r}] is not {constant(state[kind])}", f"{kind} of {name}")

    def is_undone(self) -> bool:
        """Whether what the recorded step wrote has been taken back."""
        return _version_of(self.parameter) <= self._version

    def take_back(self) -> None:
        """Undo the recorded step."""
        for state in self._states:
            state["step"] -= 1

    def again(self, undo: Undo) -> Settings | None:
        """Count the step; returns its numbers, or None if slots, ages or literals differ from the recorded ones."""
        optimizer, group, states = self.optimizer, self._group, self._states
        # The program has one bias correction for all: parameters of different ages were recorded as separate steps.
        ages = [*map(_age_of, states)]
        before = ages[0]
        if optimizer.slots(group) != self._kinds or ages.count(before) != len(ages):
            return None
        settings = optimizer.settings(group, before + 1)
        # A float instead of an int is a scalar of another dtype, and literals are part of the program: both mean another
        # program.
        if [*map(type, settings)] != self._types:
            return None
        for k, value in self._literals:
            if settings[k] != value:
                return None
        undo.append(partial(_count, states, before))
        _count(states, before + 1)
        return settings


def _version_of(parameter: Tensor) -> int:
    return own_versions(differentiated(parameter)).count


_age_of = itemgetter("step")


def _count(states: Sequence[Attributes], age: int) -> None:
    """Set all ages in one C call, which an interrupt cannot split."""
    any(map(setitem, states, repeat("step"), repeat(age)))


def steps_not_taken(steps: Sequence[UpdateStep | ScheduleStep], is_undone: Callable[[UpdateStep], bool]) -> list[int]:
    """The indices, last first, of updates whose program has failed, so that their writes are undone, and of schedulers' steps
    after the first of these, which would not have been reached.
    """
    updates = [index for index, step in enumerate(steps) if isinstance(step, UpdateStep) and is_undone(step)]
    return [index for index in range(len(steps) - 1, min(updates, default=len(steps)) - 1, -1)
            if index in updates or isinstance(steps[index], ScheduleStep)]
