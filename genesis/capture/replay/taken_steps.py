"""The Python effects that a replay repeats, and undoes on failure: steps of optimizers and schedulers, and random draws."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from genesis.capture.record.records import Leaves, Settings, Source, signed
from genesis.capture.record.steps import ScheduleStep, Undo, UpdateStep
from genesis.capture.replay.program import Program
from genesis.execution.failure import take_back_notes
from genesis.ir.annotations import Scalar
from genesis.runtime import rng
from genesis.tensor.in_place import note
from genesis.tracing.trace import Array, Change


class TakenSteps:
    """The steps that a call has taken so far.

    Attributes:
        undo: functions that undo each of them.
        done: whether the call's changes are committed; before that they can be undone.
    """

    def __init__(self) -> None:
        self.done = False
        self.undo: Undo = []
        self._settings: list[Settings] = []
        self._start: int | None = None

    def take(self, steps: Sequence[UpdateStep | ScheduleStep], draws: int | None) -> bool:
        """Take the steps and draw `draws` numbers; False, without any effect, if a step would differ."""
        for step in steps:
            settings = step.again(self.undo)
            if settings is None:
                self.take_back()
                return False
            self._settings.append(settings)
        if draws is not None:
            self._start = rng.get_state()[1]  # before numbers are drawn, as an interrupt may follow
            self._start = rng.reserve(draws)
        return True

    def take_back(self) -> None:
        """Undo everything, at most once."""
        while self.undo:
            self.undo.pop()()
        if self._start is not None:
            rng.set_state((rng.initial_seed(), self._start))
            self._start = None

    def scalars(self, program: Program, leaves: Leaves) -> list[float]:
        """The numbers for a program's slots, in a call with these leaves."""
        scalars = program.numbers.copy()
        for (k, _), number in zip(program.slots, self.numbers(leaves, [s for _, s in program.slots]), strict=True):
            scalars[k] = number
        return scalars

    def numbers(self, leaves: Leaves, sources: Sequence[Source]) -> list[Any]:
        """The numbers that `sources` name, in a call with these leaves."""
        settings = self._settings
        return [settings[source[1]][source[2]] if source[0] == "setting" else self._number(leaves, source)
                for source in sources]

    def _number(self, leaves: Leaves, source: Source) -> Any:
        kind = source[0]
        if kind == "leaf":
            return leaves[source[1]]
        if kind == "seed":
            return signed(rng.initial_seed())
        if kind == "draw":
            assert self._start is not None
            return signed((self._start + source[1]) & rng.MASK)
        return source[1] if kind == "given" else source[1](*self.numbers(leaves, source[2:]))


# Fills TakenSteps, and returns the numbers of a program's slots; None if the call would differ.
Compute = Callable[..., Sequence[Scalar] | None]

NOTHING = TakenSteps()


class PythonCalls:
    """The Python effects of a call, which an interrupt or a failing program undoes.

    Attributes:
        done: 1 once the program has run, and the call counts.
        noted: the notified overwrites: (array, version before, change). A new list for each call.
        taken: the steps taken; `NOTHING` at first.
    """

    def __init__(self, compute: Compute | None) -> None:
        self._compute = compute
        self.taken = NOTHING
        self.noted: list[tuple[Array, int, Change | None]] = []
        self.done = array("q", [0])

    def note(self, times: int, change: Change | None, before: Array) -> None:
        """Notify backwards that still have to read `before` of so many overwrites."""
        assert before.memory is not None
        self.noted.append((before, before.memory.buffer.version, change))
        for _ in range(times):
            note(before, change)

    def compute(self, *leaves: Any) -> Sequence[Scalar] | None:
        """The numbers of the program's slots, after the optimizers' steps."""
        assert self._compute is not None
        self.taken = TakenSteps()
        return self._compute(self.taken, *leaves)

    def take_back(self) -> None:
        """Undo everything, unless the call has been made."""
        if self.done[0]:
            return
        self.taken.take_back()
        while self.noted:
            before, version, change = self.noted.pop()
            take_back_notes(before, version, change)
