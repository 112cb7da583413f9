"""Who watches this thread's backwards: recorders, and the search for the first NaN."""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol

from genesis.tensor.handle import Tensor

__all__ = ["GradientEvent", "Observer", "observers"]


class GradientEvent(NamedTuple):
    """A call's step of backward: the gradients that came to its results, and those that it passes on to its arguments.

    `line` is the file and line of the call.
    """

    name: str
    line: tuple[str, int] | None
    gradients: tuple[Tensor | None, ...]
    passed: tuple[Tensor | None, ...]


class Observer(Protocol):
    """Is shown every step of a backward, last call first, and then its end."""

    def observe(self, event: GradientEvent) -> None: ...

    def finish(self) -> None: ...


class _Watching(threading.local):
    def __init__(self) -> None:
        self.observers: list[Observer] = []


_watching = _Watching()


def observers() -> list[Observer]:
    """The observers of this thread's backwards, outermost first. To be appended to and removed from."""
    return _watching.observers
