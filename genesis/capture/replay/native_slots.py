"""What the slots of a program are filled with in a replay by instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from genesis.capture.record.records import Source
from genesis.capture.replay.python_calls import Compute
from genesis.tracing.trace import Array


class NativeSlots(NamedTuple):
    """What a program's slots are filled with.

    Attributes:
        inputs: of each input, which of the arrays that the check returns it is, or a constant, and the bytes before its first
            element.
        numbers: as they were; of those that change, `sources` says what they are.
        compute: what returns these of a call's leaves; left out where they are leaves.
    """

    inputs: Sequence[tuple[int | Array, int]]
    numbers: Sequence[float]
    sources: Mapping[int, Source]
    compute: Compute | None
