"""`python -m genesis.tune` measures this machine for the cost model, in a fifth of a second, and stores the results.

Without them the model uses round numbers. Running processes that have made a plan do not change.
"""

from __future__ import annotations

from collections.abc import Callable

from genesis.codegen.cpu.tiling import cache_bytes
from genesis.debug.costs import timing
from genesis.execution.flush import flush_all
from genesis.functions.creation import ones
from genesis.lower.stages import PARALLEL_COST
from genesis.runtime.number_of_threads import get_num_threads, set_num_threads
from genesis.runtime.speeds import Speeds, remember
from genesis.tensor.handle import Tensor

__all__ = ["measure"]
__dir__ = __all__.copy

LARGE, SMALL = 1 << 23, 1 << 15  # elements of arrays in memory, and in a thread's cache
ROUNDS = 5


def measure() -> Speeds:
    """The speeds of this machine, the best of a few rounds each.

    >>> from genesis.tune import measure
    >>> found = measure()
    >>> found.memory > 1e9 and found.operations > 1e8
    True
    """
    threads = get_num_threads()
    far, near, tiny, square = ones(LARGE), ones(SMALL), ones(16), ones(512, 512)
    worth_a_team = ones(PARALLEL_COST + 1)
    shared = _best(lambda: worth_a_team * 2.0)
    memory = _best(lambda: far + far * 2.0)
    try:
        set_num_threads(1)
        launch, alone = _best(lambda: tiny * 2.0), _best(lambda: worth_a_team * 2.0)
        return Speeds(
            memory=8 * LARGE / memory,
            cache=8 * SMALL / _best(lambda: near * 2.0),
            operations=2 * 32 * SMALL / _best(lambda: _chain(near)),
            products=2.0 * 512**3 / _best(lambda: square @ square),
            launch=launch,
            team=max(shared - alone / threads, launch),
            cached=float(cache_bytes()),
        )
    finally:
        set_num_threads(threads)


def _chain(x: Tensor) -> Tensor:
    """Thirty-two multiplications and additions."""
    y = x
    for _ in range(32):
        y = y * 0.5 + x
    return y


def _best(call: Callable[[], Tensor]) -> float:
    """The seconds of the single stage of `call`."""
    with timing() as times:
        for _ in range(ROUNDS):
            result = call()
            flush_all()
            del result
    return min(stage.seconds for stages in times.programs[-1:] for stage in stages) or 1e-9


if __name__ == "__main__":
    found = measure()
    for name, number in found._asdict().items():
        print(f"{name:<12}{number:12.3g}")
    print("kept in", remember(found) or "no file: there is no cache directory to write to")
