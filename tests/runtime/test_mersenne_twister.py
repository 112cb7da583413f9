"""What is drawn from a Mersenne Twister, word for word and bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from genesis.functions import sequential_draws
from genesis.ir.dtypes import NAMED, float32
from genesis.runtime.mersenne_twister import STATE_BYTES, MersenneTwister


def test_words_are_numpys_however_many_are_taken_at_once():
    for seed in (0, 7, 2**32 + 1):
        ours, theirs = MersenneTwister(seed), np.random.RandomState(seed & 0xFFFFFFFF)
        for count in (1, 0, 7, 615, 1, 624, 1300, 3, 100_003):
            np.testing.assert_array_equal(ours.words(count), theirs.randint(0, 1 << 32, count, dtype=np.uint32))


def test_a_state_between_two_words_is_pytorchs():
    ours, theirs = MersenneTwister(3), torch.Generator().manual_seed(3)
    for count in (1, 622, 1, 1, 700):
        torch.randint(9, (count,), generator=theirs)
        ours.words(count)
        state = bytes(theirs.get_state().tolist())
        assert ours.state(3, 0)[:16] == state[:16]
        here, there = MersenneTwister(0), MersenneTwister(0)
        here.set_state(ours.state(3, 0))
        there.set_state(state)
        np.testing.assert_array_equal(here.words(700), there.words(700))


def test_a_state_of_any_bytes_stays_within_the_key():
    twister = MersenneTwister(0)
    for fill in (b"\xff", b"\x7f", b"\x00"):
        twister.set_state(fill * STATE_BYTES)
        assert twister.words(2000).size == 2000


@pytest.mark.parametrize("count", [16, 17, 40, 1000, 100_000])
def test_normal_numbers_have_pytorchs_bits(count):
    torch.manual_seed(5)
    theirs = torch.empty(count).normal_(0.5, 2.0).numpy()
    ours = sequential_draws.normal(MersenneTwister(5), count, float32, 0.5, 2.0)
    if torch.backends.cpu.get_cpu_capability() == "AVX2":  # other processors' are rounded otherwise
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.4330127, 0.4330127), (0.1, 0.9), (-2.0, 7.3)])
def test_uniform_numbers_between_any_bounds_have_pytorchs_bits(dtype, low, high):
    torch.manual_seed(5)
    theirs = torch.empty(5003, dtype=getattr(torch, dtype)).uniform_(low, high).double().numpy()
    ours = sequential_draws.uniform(MersenneTwister(5), 5003, NAMED[dtype], low, high).astype(np.float64)
    if torch.backends.cpu.get_cpu_capability() == "AVX2":
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-2 if "16" in dtype else 1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65, 66, 1000])
def test_shuffles_are_fishers_and_yates(count):
    order, words = [*range(count)], MersenneTwister(2).words(max(count - 1, 0)).tolist()
    for place, word in enumerate(words):
        other = place + word % (count - place)
        order[place], order[other] = order[other], order[place]
    assert sequential_draws.permutation(MersenneTwister(2), count).tolist() == order
    torch.manual_seed(2)
    assert torch.randperm(count).tolist() == order
