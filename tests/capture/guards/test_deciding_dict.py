"""Conditions that one dict decides are told from those that ask for more, and what they guard is noticed."""

import builtins
import functools
import sys

import numpy as np
import pytest

import genesis
from genesis.capture.guards.native_check import dict_that_decides

KNOWN = {"names": {"a": 1}, "more": {}, "items": [1], "value": object(), "found": ("a",)}


@pytest.mark.parametrize("condition", [
    "names['a'] is not value", "(v := names['a']) is not value and differs(v, value)", "not names.keys().isdisjoint(found)",
    "any(map(is_not, map(names.get, found), items))", "len(names) != 1 or any(map(is_not, names.values(), items))",
    "len(names) != 1 or any(map(is_not, names, items)) and not all(map(same, names, items))",
    "names.get('a') is not value",
])
def test_one_dict_decides(condition):
    assert dict_that_decides(condition, KNOWN) == "names"


@pytest.mark.parametrize("condition", [
    "items[0] is not value", "names['a'] is not more['a']", "names['a'].b is not value", "names['a'][0] is not value",
    "len(items) != 1", "value.a is not found", "names['a'] != value", "remembered(names['a']) is not value",
    "names['a'] is not a0 or a0 is not value", "names['a']() is not value",
])
def test_more_than_a_dict_decides(condition):
    assert dict_that_decides(condition, KNOWN) is None


X = genesis.tensor([1.0, -2.0])
SCALE = 2.0


def factor():
    return SCALE


def test_globals_functions_and_builtins_are_looked_at_when_they_change(monkeypatch):
    compiled = genesis.compile(lambda x: abs(x) * factor())

    def values():
        return [compiled(X).tolist() for _ in range(6)]

    assert values() == [[2.0, 4.0]] * 6
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert values() == [[3.0, 6.0]] * 6
    monkeypatch.setitem(globals(), "factor", lambda: 4.0)
    assert values() == [[4.0, 8.0]] * 6
    monkeypatch.setitem(globals(), "abs", lambda x: x)
    assert values() == [[4.0, -8.0]] * 6
    monkeypatch.undo()
    assert values() == [[2.0, 4.0]] * 6
    before = builtins.abs
    monkeypatch.setattr(builtins, "abs", lambda x: before(x) + 1)
    assert values() == [[4.0, 6.0]] * 6


def test_code_and_defaults_of_a_function_are_looked_at():
    def scaled(x, by=2.0):
        return x * by

    compiled = genesis.compile(lambda x: scaled(x))
    for by in (2.0, 5.0):
        scaled.__defaults__ = (by,)
        assert [compiled(X).tolist() for _ in range(6)] == [(np.array([1.0, -2.0]) * by).tolist()] * 6
    scaled.__code__ = (lambda x, by: x + by).__code__
    assert [compiled(X).tolist() for _ in range(6)] == [[6.0, 3.0]] * 6


@functools.lru_cache
def doubled(number):
    return 2 * number


def test_replays_compare_neither_the_names_of_all_modules_nor_all_remembered_results_by_python():
    """As einops does: its backend is looked up among the modules, and its recipes are remembered."""
    for number in range(100):
        doubled(number)
    compiled = genesis.compile(lambda x: x * doubled(3) if "numpy" in sys.modules else x)
    for _ in range(6):
        compiled(X)
    called = []
    sys.setprofile(lambda frame, event, argument: called.append(frame.f_code) if event == "call" else None)
    try:
        found = compiled(X)
    finally:
        sys.setprofile(None)
    assert found.tolist() == [6.0, -12.0] and len(called) < 50
