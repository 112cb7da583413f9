"""Counts of what the runtime did."""

from __future__ import annotations

import pytest

from genesis.runtime import counters


def test_counts_add_up_and_reset():
    before = counters.stats()
    try:
        counters.count("flushes")
        counters.count("flushes", 2)
        assert counters.stats()["flushes"] == before["flushes"] + 3
        counters.reset()
        assert set(counters.stats().values()) == {0}
    finally:
        for name, amount in before.items():
            counters.count(name, amount - counters.stats()[name])


def test_a_copy_of_the_counters_is_handed_out():
    counters.stats()["flushes"] = -1
    assert counters.stats()["flushes"] >= 0


def test_an_unknown_counter_is_an_error():
    with pytest.raises(KeyError):
        counters.count("flashes")
