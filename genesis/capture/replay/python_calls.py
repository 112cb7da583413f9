"""The Python calls that instructions make before a program that changes tensors, and their undoing."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from genesis.capture.replay.taken_steps import TakenSteps
from genesis.execution.failure import take_back_notes
from genesis.ir.annotations import Scalar
from genesis.tensor.in_place import note
from genesis.tracing.trace import Array, Change

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
            take_back_notes(before, version, 0, change)
