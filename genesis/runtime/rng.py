"""The random number generator's state: a 64-bit seed, and a 64-bit counter of the draws handed out.

The numbers themselves are a function of (seed, counter, index), computed inside kernels (Threefry); the host only
reserves ranges of the counter, so that no two draws share one.
"""

from __future__ import annotations

import secrets

from genesis.runtime.fork import fork_safe_lock

MASK = (1 << 64) - 1


class Generator:
    """A stream of random numbers.

    >>> generator = Generator(7)
    >>> generator.reserve(100), generator.reserve(1), generator.state()
    (0, 100, (7, 101))
    """

    __slots__ = ("_counter", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed, self._counter = seed & MASK, 0

    def manual_seed(self, seed: int) -> None:
        """Start the stream of `seed` (taken modulo 2**64) from its beginning."""
        with _lock:
            self._seed, self._counter = seed & MASK, 0

    def seed(self) -> int:
        """Start a stream nobody can foresee, and return its seed."""
        self.manual_seed(secrets.randbits(64))
        return self._seed

    def initial_seed(self) -> int:
        """The seed of the present stream."""
        return self._seed

    def reserve(self, draws: int) -> int:
        """Set aside `draws` numbers of the stream; return the first one's place in it. Any thread may ask."""
        if draws < 0:
            raise ValueError(f"reserve: draws is {draws}; want 0 or more")
        with _lock:
            start = self._counter
            self._counter = (start + draws) & MASK
        return start

    def state(self) -> tuple[int, int]:
        """(seed, counter): what `set_state` needs to continue from here."""
        with _lock:
            return self._seed, self._counter

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue from a state that `state` returned."""
        seed, counter = state
        with _lock:
            self._seed, self._counter = seed & MASK, counter & MASK


_lock = fork_safe_lock()
default_generator = Generator(secrets.randbits(64))

manual_seed = default_generator.manual_seed
seed = default_generator.seed
initial_seed = default_generator.initial_seed
reserve = default_generator.reserve
get_state = default_generator.state
set_state = default_generator.set_state
