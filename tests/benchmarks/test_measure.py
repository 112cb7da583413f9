"""The stopwatch behind the benchmarks."""

import time

import pytest

from benchmarks.measure import Bar, Limits, Result, Settings, averaged, compare, format_seconds
from benchmarks.table import draw


def test_contestants_take_turns_and_the_absent_say_why(monkeypatch):
    order, now = [], [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def takes(name, seconds):
        order.append(name)
        now[0] += seconds

    result = compare("turns", {
        "genesis": lambda: takes("a", 1e-3),
        "other": lambda: takes("b", 4e-3),
        "absent": "not installed",
    }, Settings(rounds=4), least_seconds=0.02)
    turn = ["a"] * 3 + ["a"] * 20 + ["b"] + ["b"] * 5  # calls for 3 ms that are not timed, then for 20 ms that are
    assert order[-2 * len(turn) :] == turn * 2
    assert result.ratio("other") == pytest.approx(0.25)
    assert "absent: not installed" in str(result) and "genesis / it" in str(result)


def test_a_bar_is_only_set_against_those_who_took_part():
    result = Result("title", {"genesis": 2.0, "torch": 1.0})
    result.no_slower_than("torch", "jax")
    assert result.bars == [Bar("ratio to torch at most 1", 2.0, False)]
    assert result.as_dict()["ratios"] == {"genesis": 1.0, "torch": 2.0}


def test_averages_name_what_missed_its_bar():
    ratios = 0.5, 2.0, 4.0
    results = [Result(f"case {ratio}", {"genesis": 0.5, "genesis compiled": ratio, "torch eager": 1.0}) for ratio in ratios]
    for result in results:
        result.hold_to(Limits(compiled=1.0, eager=1.0))
    summary = averaged("mean", results, Limits(compiled=1.0, eager=1.0))
    assert [bar.value for bar in summary.bars] == pytest.approx([4 ** (1 / 3), 0.5])
    assert summary.facts == {"compiled, missed": "case 4.0 4.00; case 2.0 2.00"}


def test_seconds_are_printed_in_their_unit():
    printed = [format_seconds(seconds).split() for seconds in (2.5, 0.0025, 2.5e-6)]
    assert printed == [["2.500", "s"], ["2.500", "ms"], ["2.500", "us"]]


def test_a_picture_leaves_out_who_took_no_part(tmp_path):
    draw([Result("title", {"genesis": 2.0, "torch eager": 1.0}), Result("alone", {"genesis": 2.0})], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000
