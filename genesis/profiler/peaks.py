"""This machine's peaks, measured: bytes to and from memory, and operations of matrix products."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from genesis.debug.costs import timing
from genesis.execution.flush import flush_all
from genesis.functions.creation import ones
from genesis.tensor.handle import Tensor

LARGE = 1 << 23  # elements of arrays in memory
ROUNDS = 5


class Peaks(NamedTuple):
    """Memory bytes per second and matrix product flops per second, of all threads together."""

    memory: float
    products: float


@functools.cache
def peaks(threads: int) -> Peaks:
    """The peaks of so many threads, the number in use: the best of a few rounds each."""
    far, square = ones(LARGE), ones(512, 512)
    return Peaks(8 * LARGE / _best(lambda: far + far * 2.0), 2.0 * 512**3 / _best(lambda: square @ square))


def _best(call: Callable[[], Tensor]) -> float:
    """The seconds of the single stage of `call`."""
    with timing() as times:
        for _ in range(ROUNDS):
            result = call()
            flush_all()
            del result
    return min(stage.seconds for stages in times.programs[-1:] for stage in stages) or 1e-9
