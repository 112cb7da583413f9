"""Objects of classes of the user's: arguments are compared part by part, results are made anew, of the same parts."""

import collections
import copy
import dataclasses
import enum

import pytest

import genesis

ONE = genesis.ones(2)


class Labelled(dict):
    """A dict with attributes."""


class Encoding(collections.UserDict):
    def __getattr__(self, name):
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """Has its fields as items, too, as transformers' outputs do."""

    loss: object = None
    cache: object = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            self[field.name] = getattr(self, field.name)

    def __getitem__(self, key):
        return [*self.values()][key] if isinstance(key, int) else super().__getitem__(key)


class Cache:
    def __init__(self):
        self.layers = []


class Stack(list):
    pass


class Colour(enum.Enum):
    RED = 2


def labelled(x, by=2.0):
    made = Labelled(x=x)
    made.by = by
    return made


class Outer:
    def __init__(self, inner):
        self.inner = inner


GIVEN = {
    "a dict with attributes": (lambda d: d["x"] * d.by, lambda x: labelled(x), lambda x: labelled(x, 3.0)),
    "another item": (lambda d: d["x"] * len(d), lambda x: labelled(x), lambda x: Labelled(x=x, y=1, by=2.0)),
    "an encoding": (lambda d: d.x * d["by"], lambda x: Encoding(x=x, by=2.0), lambda x: Encoding(x=x, by=3.0)),
    "an output": (lambda o: o.loss * 2 + o[0], lambda x: Output(x), lambda x: Output(x, 2)),
    "a list with attributes": (lambda s: s[0] * len(s), lambda x: Stack([x]), lambda x: Stack([x, x])),
    "within others": (lambda d: d["o"].loss * d["o"].cache["by"], lambda x: {"o": Output(x, Encoding(by=2.0))},
                      lambda x: {"o": Output(x, Encoding(by=4.0))}),
}


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("dynamic", [None, True])
def test_what_is_given_is_compared_part_by_part(kind, dynamic):
    function, first, second = GIVEN[kind]
    compiled = genesis.compile(function, dynamic=dynamic)
    for k, make in enumerate([first, first, first, second, second, first]):
        assert compiled(make(ONE * k)).tolist() == function(make(ONE * k)).tolist()
    assert len(compiled.entries) == 2 and not compiled.refusals, compiled.refusals


def test_what_a_call_changes_in_an_argument_prevents_replays():
    def call(d):
        d.by = d.by + 1
        return d["x"] * d.by

    compiled, given = genesis.compile(call), labelled(ONE)
    assert [compiled(given).tolist()[0] for _ in range(3)] == [3, 4, 5]
    assert compiled.refusals


def both(x):
    cache = Cache()
    cache.layers.append(x * 3)
    return Output(x * 2, cache)


MADE = {
    "an output": both, "a dict with attributes": lambda x: labelled(x * 2), "a list": lambda x: Stack([x * 2, 3.0]),
    "an encoding": lambda x: Encoding(x=x * 2, y="text"), "an object of objects": lambda x: Outer(Outer(x + 1)),
    "one twice": lambda x: [one := Outer(x + 1), one],
}


def described(value):
    """A value in comparable form, with the classes and the order of what it contains."""
    if isinstance(value, genesis.Tensor):
        return value.tolist()
    items = [[key, described(item)] for key, item in dict.items(value)] if isinstance(value, dict) else (
        [described(item) for item in value] if isinstance(value, list) else [])
    attributes = [[name, described(item)] for name, item in getattr(value, "__dict__", {}).items()]
    return [type(value), items, attributes] if items or attributes else value


@pytest.mark.parametrize("kind", MADE)
def test_what_is_returned_is_made_anew(kind):
    function = MADE[kind]
    compiled, seen = genesis.compile(function), []
    for k in range(5):
        seen.append(compiled(ONE * k))
        assert described(seen[-1]) == described(function(ONE * k))
    assert len({*map(id, seen)}) == 5
    assert len(compiled.entries) == 1 and compiled.entries[0].replays == 4, compiled.refusals


def test_what_is_returned_in_two_places_is_one_object():
    compiled = genesis.compile(both)
    for _ in range(4):
        made = compiled(ONE)
        assert made.cache is made["cache"] and made.loss is made["loss"]
    compiled = genesis.compile(MADE["one twice"])
    for _ in range(4):
        first, second = compiled(ONE)
        assert first is second


def test_objects_that_are_more_than_their_parts_are_not_made_anew():
    class Closing(Outer):
        def __del__(self):
            pass

    class Slotted:
        __slots__ = ("inner",)

        def __init__(self, inner):
            self.inner = inner

    for kind in (Closing, Slotted, lambda x: ValueError(x)):
        compiled = genesis.compile(lambda x, kind=kind: kind(x * 2))
        for _ in range(3):
            made = compiled(ONE)
        assert type(made) is type(kind(ONE)) and not compiled.entries
    compiled = genesis.compile(lambda x: (x * 2, Colour(2)))
    assert all(compiled(ONE)[1] is Colour.RED for _ in range(3))


def test_a_copy_of_what_is_given_is_the_calls_own():
    settings = Outer(2.0)

    def call(x):
        mine = copy.deepcopy(settings)
        mine.inner += 1
        return x * mine.inner

    compiled = genesis.compile(call)
    assert [compiled(ONE).tolist() for _ in range(3)] == [[3, 3]] * 3 and len(compiled.entries) == 1
    settings.inner = 4.0
    assert compiled(ONE).tolist() == [5, 5]
