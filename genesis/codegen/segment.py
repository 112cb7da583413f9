"""A backend's result: segments of launches, and host calls between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from genesis.lower.stages import HostCall
from genesis.runtime.native import Completion, Fault

__all__ = ["DeviceProgram", "Segment"]


class DeviceProgram(Protocol):
    """Launches in order.

    `sources` are the texts of their functions, if they have any; `refused` is the reason why a GPU submits them one by one, if
    no graph could capture them.
    """

    @property
    def sources(self) -> Sequence[str]: ...

    @property
    def refused(self) -> str: ...

    def run(self, values: Sequence[int | float], completion: Completion = ...) -> Fault | None:
        """Run all with these slot values; the fault that a kernel reported, if any. `completion` becomes true at the end."""

    def seconds(self) -> list[float]:
        """The seconds of each launch in the latest run."""


class Segment(NamedTuple):
    """A program, and the number of the stage of each launch; or one host call."""

    program: DeviceProgram | None
    host: HostCall | None
    stages: tuple[int, ...] = ()
