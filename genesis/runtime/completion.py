"""How the run of a program ended: completed, suspended by an interrupt, or stopped by a fault."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from operator import setitem
from typing import NamedTuple


class Fault(NamedTuple):
    """A fault that a kernel reported: a flag other than 0, the site in the program, the offending value, the extent."""

    flag: int
    site: int
    value: int
    extent: int


class UnfinishedError(RuntimeError):
    """Launch number `launch` failed when the program may already have overwritten inputs."""

    def __init__(self, said: str, launch: int) -> None:
        super().__init__(said)
        self.launch = launch


class Completion:
    """Whether a run is complete, or how far it got. Native code records it, so an interrupt right after the run cannot hide it.
    """

    __slots__ = ("_word", "address")

    def __init__(self) -> None:
        self._word = array("q", [0])
        self.address = self._word.buffer_info()[0]

    @property
    def note(self) -> Callable[[], None]:
        """A C call that records completion for runs that are not native code; no interrupt splits it."""
        return partial(setitem, self._word, 0, 1)

    def clear(self) -> None:
        self._word[0] = 0

    def set(self) -> None:
        """Record completion; an interrupt may come before."""
        self._word[0] = 1

    def __bool__(self) -> bool:
        return self._word[0] & 1 != 0

    @property
    def launches(self) -> int:
        """The number of launches done when the run was suspended; 0 if it was not, or is not running."""
        return self._word[0] >> 1


UNOBSERVED = Completion()
