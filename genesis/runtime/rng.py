"""The random number generator's state: a 64-bit seed, and a 64-bit counter of the draws handed out.

The numbers themselves are a function of (seed, counter, index), computed inside kernels (Threefry); the host only
reserves ranges of the counter, so that no two draws share one. When genesis stands in for PyTorch, calls that are not compiled
draw from a Mersenne Twister of the same seed instead.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterator
from random import SystemRandom
from typing import Any, ClassVar, Protocol, Self

from genesis.ir.errors import ArgumentTypeError
from genesis.runtime.devices import DeviceLike, device_of
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.mersenne_twister import STATE_BYTES, MersenneTwister

MASK = (1 << 64) - 1
SEED, COUNTER, CHANGING = range(3)  # of a generator's words

_entropy = SystemRandom()
PYTORCHS_SEED = 67280421310721  # of a torch.Generator that is given none
_lock = fork_safe_lock()


class Generator:
    """A stream of random numbers, from a seed (taken modulo 2**64) or an unpredictable one.

    >>> generator = Generator(7)
    >>> generator.reserve(100), generator.reserve(1), generator.state()
    (0, 100, (7, 101))
    """

    __slots__ = ("_twister", "device", "words")

    words: array[int]
    """The seed, the counter, and 1 while a thread changes them: instructions draw from the default generator by its words."""

    in_pytorchs_order: ClassVar[bool] = False
    """Whether numbers on the CPU are PyTorch's of the same seed; `genesis.as_torch.install` sets it."""

    def __init__(self, seed: int | DeviceLike = None, device: DeviceLike = None) -> None:
        if not isinstance(seed, int):  # PyTorch's first argument is the device, whose numbers are those of any other
            seed, device = None, seed or device
        self.device, self.words = device_of(device or "cpu"), array("Q", [0, 0, 0])
        if seed is None:
            seed = PYTORCHS_SEED if Generator.in_pytorchs_order else _entropy.getrandbits(64)
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Self:
        """Start the stream of `seed` from its beginning; returns the generator."""
        if not hasattr(seed, "__index__"):
            raise ArgumentTypeError(f"manual_seed: seed is a {type(seed).__name__}; want an int")
        with _lock:
            self.words[:2] = array("Q", [seed.__index__() & MASK, 0])
            self._twister: MersenneTwister | None = None
        return self

    def seed(self) -> int:
        """Start a stream from an unpredictable seed, and return the seed."""
        return self.manual_seed(_entropy.getrandbits(64)).initial_seed()

    def initial_seed(self) -> int:
        """The seed of the present stream."""
        return self.words[SEED]

    def reserve(self, draws: int) -> int:
        """Set aside `draws` numbers of the stream; return the first one's position in it. Any thread may ask."""
        if draws < 0:
            raise ValueError(f"reserve: draws is {draws}; want 0 or more")
        # A range of the counter per draw, even in a program that replays: no two draws share a number.
        words = self.words
        with _lock:
            words[CHANGING] = 1
            try:
                start = words[COUNTER]
                words[COUNTER] = (start + draws) & MASK
            finally:
                words[CHANGING] = 0
        return start

    def twister(self) -> MersenneTwister:
        """The Mersenne Twister of PyTorch's generator with this seed."""
        if self._twister is None:
            with _lock:
                self._twister = self._twister or MersenneTwister(self.words[SEED])
        return self._twister

    def state(self) -> tuple[int, int]:
        """(seed, counter): what `set_state` needs to continue from here."""
        with _lock:
            return self.words[SEED], self.words[COUNTER]

    def stored(self) -> bytes:
        """The state as bytes: 16, or as many as PyTorch's has where numbers come in its order."""
        if Generator.in_pytorchs_order:
            return self.twister().state(*self.state())
        return b"".join(word.to_bytes(8, "little") for word in self.state())

    def set_state(self, new_state: tuple[int, int] | bytes | SupportsList) -> None:
        """Continue from a state that `state`, `stored` or `get_state` returned; the first does not move a Mersenne Twister."""
        state = new_state
        if not isinstance(state, tuple):
            words = state if isinstance(state, bytes) else bytes(state.tolist())
            if len(words) not in (16, STATE_BYTES):
                raise RuntimeError(f"set_state: a state of {len(words)} bytes; want those that get_state gives")
            if len(words) == 16:
                state = int.from_bytes(words[:8], "little"), int.from_bytes(words[8:], "little")
            else:
                state = self.twister().set_state(words)
        seed, counter = state
        with _lock:
            self.words[:2] = array("Q", [seed & MASK, counter & MASK])


class SupportsList(Protocol):
    """A tensor of bytes."""

    def tolist(self) -> Any: ...


default_generator = Generator()

manual_seed = default_generator.manual_seed
seed = default_generator.seed
initial_seed = default_generator.initial_seed
reserve = default_generator.reserve
get_state = default_generator.state
stored = default_generator.stored
set_state = default_generator.set_state


@contextlib.contextmanager
def drawing_from(state: tuple[int, int] | bytes | None) -> Iterator[None]:
    """A context with the random numbers from `state` on, unless it is None; the stream is restored after it."""
    if state is None:
        yield
        return
    now = get_state() if isinstance(state, tuple) else stored()
    set_state(state)
    try:
        yield
    finally:
        set_state(now)
