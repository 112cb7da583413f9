"""The state of the random number generator."""

from __future__ import annotations

import threading

import pytest

from genesis.runtime import rng
from genesis.runtime.rng import Generator


def test_reserved_ranges_follow_each_other():
    generator = Generator(1)
    assert [generator.reserve(n) for n in (10, 0, 5, 1)] == [0, 10, 10, 15]
    with pytest.raises(ValueError, match="want 0 or more"):
        generator.reserve(-1)


def test_a_seed_starts_the_stream_anew():
    generator = Generator(1)
    generator.reserve(100)
    generator.manual_seed(-1)
    assert generator.initial_seed() == 2**64 - 1
    assert generator.reserve(1) == 0


def test_seed_is_not_foreseeable():
    generator = Generator(1)
    seeds = {generator.seed() for _ in range(10)}
    assert len(seeds) == 10 and generator.initial_seed() in seeds


def test_a_state_can_be_returned_to():
    generator = Generator(5)
    generator.reserve(7)
    state = generator.state()
    generator.seed()
    generator.set_state(state)
    assert generator.initial_seed() == 5 and generator.reserve(1) == 7


def test_the_counter_wraps():
    generator = Generator(0)
    generator.set_state((0, 2**64 - 1))
    assert generator.reserve(3) == 2**64 - 1
    assert generator.reserve(1) == 2


def test_threads_reserve_disjoint_ranges():
    generator, starts = Generator(0), []

    def work() -> None:
        starts.extend([generator.reserve(3) for _ in range(2000)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(starts) == list(range(0, 24000, 3))


def test_the_process_has_a_generator():
    state = rng.get_state()
    try:
        rng.manual_seed(3)
        assert (rng.initial_seed(), rng.reserve(2), rng.get_state()) == (3, 0, (3, 2))
    finally:
        rng.set_state(state)
