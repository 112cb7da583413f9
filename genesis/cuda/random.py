"""Random numbers under the names of `torch.cuda`. One generator serves all devices."""

from __future__ import annotations

from collections.abc import Sequence

from genesis import random
from genesis.cuda.gpus import GpuLike
from genesis.random import initial_seed, manual_seed, seed

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]

manual_seed_all = manual_seed
seed_all = seed


def get_rng_state(device: GpuLike = None) -> tuple[int, int]:
    """The state of the stream, whichever the device."""
    return random.get_rng_state()


def set_rng_state(new_state: tuple[int, int], device: GpuLike = None) -> None:
    """Continue the stream from a state, on all devices."""
    random.set_rng_state(new_state)


def get_rng_state_all() -> list[tuple[int, int]]:
    """The state of the stream, as a list of one.

    >>> states = genesis.cuda.get_rng_state_all()
    >>> x = genesis.rand(3)
    >>> genesis.cuda.set_rng_state_all(states)
    >>> genesis.rand(3).tolist() == x.tolist()
    True
    """
    return [get_rng_state()]


def set_rng_state_all(new_states: Sequence[tuple[int, int]]) -> None:
    """Continue the stream from the first of some states."""
    for state in new_states[:1]:
        set_rng_state(state)
