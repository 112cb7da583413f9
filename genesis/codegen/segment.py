"""What a backend makes of a schedule: stretches of launches, and calls back into Python between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from genesis.lower.stages import HostCall
from genesis.runtime.native import Completion, Fault

__all__ = ["DeviceProgram", "Segment"]


class DeviceProgram(Protocol):
    """Launches in order.

    `sources` are the texts of the functions that they launch, where they have any; `refused` tells why a GPU begins them one
    by one, if no graph could hold them.
    """

    @property
    def sources(self) -> Sequence[str]: ...

    @property
    def refused(self) -> str: ...

    def run(self, values: Sequence[int | float], completion: Completion = ...) -> Fault | None:
        """Run all with these slot values; the fault that a kernel reported, if any. `completion` becomes true at the end."""

    def seconds(self) -> list[float]:
        """How long each launch took in the latest run."""


class Segment(NamedTuple):
    """A stretch of launches, and the number of the stage that each belongs to; or one host call."""

    program: DeviceProgram | None
    host: HostCall | None
    stages: tuple[int, ...] = ()
