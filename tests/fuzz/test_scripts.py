"""Random functions with state show the same, to the bit, however they run; `tools/fuzz.py` runs as many as one has time for."""

import ast
from contextlib import suppress

import pytest

import genesis
from tests.fuzz.scenes import script
from tests.fuzz.scripts import Script
from tests.fuzz.shrinking import shrunk
from tests.fuzz.worlds import InexactError, difference, unlike_torch


def of_seed(seed, differs, **more):
    found = ""
    with suppress(InexactError):
        found = differs(script(seed), **more)
    if found:
        smaller, told = shrunk(script(seed), differs)
        pytest.fail(f"seed {seed}: {found}\n{smaller.source()}\n{told}")


@pytest.mark.parametrize("seeds", [range(k, k + 10) for k in range(0, 20, 10)], ids=str)
def test_every_way_to_run_a_script_shows_the_same_and_calls_are_replayed(seeds):
    made = []
    for seed in seeds:
        of_seed(seed, difference, made=made)
    assert sum(entry.replays for one in made for entry in one.entries) > 10


@pytest.mark.parametrize("seeds", [range(k, k + 20) for k in range(0, 40, 20)], ids=str)
def test_scripts_show_what_torch_shows(seeds):
    for seed in seeds:
        of_seed(seed, unlike_torch)


def stale(function, **settings):
    """What a compiler would do that took the first result for that of all calls."""
    results = []

    def call(*args, **kwargs):
        if not results:
            results.append(function(*args, **kwargs))
        return results[0]

    return call


def test_a_wrong_way_is_told_and_the_script_shrinks_to_what_it_takes(monkeypatch):
    monkeypatch.setattr(genesis, "compile", stale)
    whole = script(3)
    assert difference(whole).startswith("compiled")
    small, told = shrunk(whole)
    assert told.startswith("compiled")
    for part in ("before", "body", "after"):
        assert len(getattr(small, part)) <= len(getattr(whole, part))
    assert len(small.after) <= 2 < len(whole.after)  # a call, and another that it is to differ from, or one in a loop
    ast.parse(small.source())


def test_sources_are_valid_as_globals_and_as_cells():
    for seed in range(200):
        ast.parse(script(seed).source())
    simple = Script(before=["x = 1"], body=["return x"], after=["r = f(1, 2)"], names=["x"], is_closure=True)
    assert "def program():" in simple.source()
