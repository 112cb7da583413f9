"""Steps of optimizers and schedulers, taken again: what Python does of them, a replay does too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import is_, setitem
from typing import Any

from genesis.optim.lr_scheduler import LRScheduler
from genesis.optim.optimizer import Optimizer
from genesis.tensor import Tensor

__all__ = ["ScheduleStep", "UpdateStep", "is_literal", "later_schedules"]

Undo = list[Callable[[], None]]


def is_literal(value: Any) -> bool:
    """Whether a number is part of a step's key: 0, 1, -1 and bools are.

    >>> is_literal(1.0), is_literal(0.1), is_literal(True)
    (True, False, True)
    """
    return type(value) not in (int, float) or value in (0, 1, -1)


class ScheduleStep:
    """A scheduler's step, with the arguments that it was given."""

    settings: tuple[Any, ...] = ()

    def __init__(self, scheduler: LRScheduler, arguments: Mapping[str, Any]) -> None:
        self.scheduler = scheduler
        self._arguments = dict(arguments)
        self._before: Undo = []
        self._note(self._before)

    def _note(self, undo: Undo) -> None:
        """Add to `undo` what brings the schedule back to where it is."""
        scheduler: Any = self.scheduler
        before = [(part, dict(vars(part))) for part in _parts(scheduler)]
        groups = [dict(group) for group in scheduler.optimizer.param_groups]

        def restore() -> None:
            for part, attributes in before:
                vars(part).clear()
                vars(part).update(attributes)
            for group, held in zip(scheduler.optimizer.param_groups, groups, strict=True):
                group.clear()
                group.update(held)

        undo.append(restore)

    def take_back(self) -> None:
        """Undo the recorded step."""
        self._before[0]()

    def again(self, undo: Undo) -> tuple[Any, ...] | None:
        """Take the step; returns its numbers, of which there are none."""
        self._note(undo)
        self.scheduler.step(**self._arguments)
        return ()


def _parts(scheduler: Any) -> list[Any]:
    """A scheduler, and those that it is made of."""
    return [scheduler, *[part for inner in getattr(scheduler, "_schedulers", ()) for part in _parts(inner)]]


class UpdateStep:
    """An optimizer's update of some parameters of one group, all of one age."""

    def __init__(
        self, optimizer: Optimizer, group: dict[str, Any], parameters: Sequence[Tensor], settings: tuple[Any, ...]
    ) -> None:
        self.optimizer = optimizer
        self.settings = settings
        self._group = group
        self._place = next(i for i, g in enumerate(optimizer.param_groups) if g is group)
        self._sizes = [len(g["params"]) for g in optimizer.param_groups]
        self._members = list(group["params"])
        self._parameters = list(parameters)
        self._states = [optimizer.state[p] for p in parameters]
        self._kinds = optimizer.slots(group)
        self._kept = [[state[kind] for state in self._states] for kind in self._kinds]
        self._types = [type(value) for value in settings]
        self._literals = [(k, value) for k, value in enumerate(settings) if is_literal(value)]

    @property
    def kept(self) -> list[Tensor]:
        """The tensors of the optimizer's state."""
        return [tensor for tensors in self._kept for tensor in tensors]

    def take_back(self) -> None:
        """Undo the recorded step."""
        for state in self._states:
            state["step"] -= 1

    def again(self, undo: Undo) -> tuple[Any, ...] | None:
        """Count the step; returns its numbers, or None if it would be another: of other tensors, or with other literals."""
        optimizer, group, states, members = self.optimizer, self._group, self._states, self._group["params"]
        groups = optimizer.param_groups
        if (
            [len(g["params"]) for g in groups] != self._sizes or groups[self._place] is not group
            or not all(map(is_, members, self._members))
            or not all(map(is_, map(optimizer.state.get, self._parameters), states))
            or optimizer.slots(group) != self._kinds
        ):
            return None
        for kind, tensors in zip(self._kinds, self._kept, strict=True):
            if not all(map(is_, [state[kind] for state in states], tensors)):
                return None
        ages = [state["step"] for state in states]
        age = ages[0] + 1
        if ages.count(ages[0]) != len(ages):
            return None
        settings = optimizer.settings(group, age)
        if [*map(type, settings)] != self._types or any([settings[k] != value for k, value in self._literals]):
            return None
        undo.append(lambda: _count(states, age - 1))
        _count(states, age)
        return settings


def _count(states: Sequence[dict[str, Any]], age: int) -> None:
    """Set all ages, in one breath: no interrupt comes between."""
    any(map(setitem, states, repeat("step"), repeat(age)))


def later_schedules(steps: Sequence[UpdateStep | ScheduleStep]) -> list[int]:
    """The places of schedulers' steps after the first update, last first: if that one's program fails, they are not taken."""
    first = next((place for place, step in enumerate(steps) if isinstance(step, UpdateStep)), len(steps))
    return [place for place in range(len(steps) - 1, first, -1) if isinstance(steps[place], ScheduleStep)]
