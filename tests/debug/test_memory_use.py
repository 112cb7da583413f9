"""genesis.debug.memory: what is held, and the peak of a block."""

import re

import numpy as np
import pytest

import genesis
from genesis.debug import memory
from tests.collector import without_collector

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _what_other_tests_left_stays():
    with without_collector():
        yield


def test_held_memory_comes_and_goes_with_tensors():
    before = memory().held
    x = genesis.tensor(np.zeros(MIB // 4, np.float32))
    assert memory().held == before + MIB
    del x
    assert memory().held == before


def test_the_peak_of_a_block_counts_what_died_within_it():
    with memory() as used:
        start = memory().held
        for _ in range(3):
            genesis.tensor(np.zeros(MIB, np.float32))
    assert used.held == start and start + 4 * MIB <= used.peak < start + 8 * MIB


def test_the_peak_of_a_block_knows_nothing_of_earlier_ones():
    genesis.tensor(np.zeros(2 * MIB, np.float32))
    with memory() as used:
        pass
    assert used.peak == used.held


def test_pending_values_count_in_the_block_that_wrote_them():
    before = genesis.ones(MIB, dtype=genesis.int8) + 1
    with memory() as used:
        start = memory().held
        within = genesis.ones(MIB, dtype=genesis.int8) + 2
    assert used.held - start == MIB
    with memory() as later:
        assert before[0].item() == 2 and within[0].item() == 3
    assert later.peak - later.held < MIB


def test_an_inner_block_leaves_the_outer_peak_alone():
    with memory() as outer:
        start = memory().held
        genesis.tensor(np.zeros(MIB, np.float32))
        with memory() as inner:
            genesis.tensor(np.zeros(MIB // 4, np.float32))
    assert outer.peak - start >= 4 * MIB > inner.peak - start


def test_reset_begins_the_peak_anew():
    genesis.tensor(np.zeros(MIB, np.float32))
    assert memory(reset=True).peak >= 4 * MIB
    assert memory().peak == memory().held


def test_an_exception_in_a_block_is_not_hidden():
    with pytest.raises(ZeroDivisionError), memory() as used:
        _ = 1 / 0
    assert used.peak >= used.held


def test_it_reads_well():
    assert re.fullmatch(r"held [\d.]+ \w?i?B, peak [\d.]+ \w?i?B, idle [\d.]+ \w?i?B", repr(memory()))
