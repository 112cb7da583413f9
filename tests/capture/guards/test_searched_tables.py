"""What a call names and does not use: tables that it only searches or fills once, functions on branches not taken."""

import abc
import functools
import sys
from random import random, randrange
from types import ModuleType

import pytest

import genesis
from genesis.capture import SplitError


@pytest.fixture
def module():
    sys.modules["a_module"] = ModuleType("a_module")
    sys.modules["a_module"].factor = 2.0
    yield sys.modules["a_module"]
    sys.modules.pop("a_module", None)


def test_modules_that_are_only_searched_for_are_not_looked_into(module):
    @genesis.compile(fullgraph=True)
    def scaled(x):
        return x * 2 if "a_module" in sys.modules else x

    x = genesis.arange(3.0)
    assert [scaled(x).tolist() for _ in range(3)] == [[0.0, 2.0, 4.0]] * 3
    assert (len(scaled.entries), scaled.entries[0].replays) == (1, 2)
    sys.modules.pop("a_module")
    assert scaled(x).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("later", [False, True])
def test_modules_that_are_found_in_the_table_are_compared(module, later):
    def factor():
        return sys.modules["a_module"].factor

    @genesis.compile
    def scaled(x):
        return x * factor() if "a_module" in sys.modules else x

    @genesis.compile
    def scaled_at_once(x):
        return x * sys.modules["a_module"].factor

    scale, x = scaled if later else scaled_at_once, genesis.ones(2)
    assert [scale(x).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    module.factor = 5.0
    assert scale(x).tolist() == [5.0, 5.0]


def test_a_first_call_may_fill_a_table():
    found = {}

    @genesis.compile(fullgraph=True)
    def looked_up(x):
        kind = type(x)
        if kind not in found:
            __import__("math")
            found[kind] = 3.0
        return x * found[kind]

    x = genesis.ones(2)
    assert [looked_up(x).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    assert looked_up.entries[0].replays == 1


def test_a_call_that_always_fills_a_table_is_refused_from_the_second_on():
    seen = {}

    @genesis.compile(fullgraph=True)
    def noting(x):
        seen[len(seen)] = True
        return x + 1

    x = genesis.ones(2)
    assert noting(x).tolist() == [2.0, 2.0]
    with pytest.raises(SplitError, match="seen"):
        noting(x)


def test_a_call_that_changes_what_is_in_a_table_is_refused_at_once():
    counts = {"calls": 0}

    @genesis.compile(fullgraph=True)
    def counting(x):
        counts["calls"] += 1
        return x + 1

    with pytest.raises(SplitError, match="counts"):
        counting(genesis.ones(2))


def test_a_random_function_on_a_branch_not_taken_is_no_reason_to_call_each_time():
    @genesis.compile
    def dropped(x, training):
        if training and random() < 2.0:
            return x * 0
        return x * 2

    x = genesis.ones(2)
    assert [dropped(x, False).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    assert dropped.entries[0].replays == 2
    assert [dropped(x, True).tolist() for _ in range(3)] == [[0.0, 0.0]] * 3
    assert len(dropped.entries) == 1 and "random" in str(dropped.refusals[0])


def test_a_random_function_that_is_handed_on_is_refused():
    handed = genesis.compile(lambda x: x * next(map(randrange, [7])))
    x = genesis.ones(())
    found = [handed(x).item() for _ in range(60)]
    assert len(set(found)) > 1 and not handed.entries


def test_a_call_may_wrap_functions():
    def unless_none(function):
        @functools.wraps(function)
        def inner(x):
            return None if x is None else function(x)
        return inner

    class Scale(abc.ABC):
        def __init__(self):
            self.factor = 2.0

        @abc.abstractmethod
        def by(self, x):
            return x * self.factor

    class Scaled(Scale):
        def by(self, x):
            return super().by(x)

    scale = Scaled()

    @genesis.compile
    def scaled(x):
        return unless_none(scale.by)(x)

    x = genesis.ones(2)
    assert [scaled(x).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    assert scaled.entries[0].replays == 2
    scale.factor = 3.0
    assert scaled(x).tolist() == [3.0, 3.0]


class Shape:
    sides = 3


class Square(Shape):
    sides = 4


class Round:
    sides = 0


KNOWN = {Square, Round}


def test_classes_in_a_set_that_is_only_searched_are_not_looked_into():
    def searched(x, kind):
        if kind not in KNOWN:
            KNOWN.add(kind)
            return x * 5
        return x * 2

    def counted(x):
        return x * sum(kind.sides for kind in KNOWN)

    one, both = genesis.ones(2), genesis.compile(lambda x, kind: searched(x, kind) + counted(x))
    found = genesis.compile(searched)
    for function, times in ((found, 2.0), (both, 6.0)):
        assert [function(one, Square).tolist() for _ in range(3)] == [[times, times]] * 3 and function.entries[0].replays == 2
    for label, function in ((False, found), (True, both)):
        assert ("the class Round" in function.entries[0].labels) is label
    KNOWN.add(Shape)
    assert found(one, Shape).tolist() == [2.0, 2.0] and both(one, Square).tolist() == [9.0, 9.0]
    Square.sides = 5
    assert both(one, Square).tolist() == [10.0, 10.0]
