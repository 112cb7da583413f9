"""Whether arguments are one object, or one that a name leads to, and all that tells them apart, is as in the call itself."""

import collections
import dataclasses
import enum
import types
import typing

import pytest

import genesis

ONE = genesis.ones(2)
WHOLE = genesis.tensor([1, 2])


@dataclasses.dataclass(eq=False)
class Settings:
    rate: float = 2.0


class Pair(typing.NamedTuple):
    first: object
    second: object = 1.0

    def total(self):
        return self.first + self.second


class Tagged(Pair):
    """A named tuple with attributes."""


class Swapped(Pair):
    __slots__ = ()

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return tuple.__getitem__(self, 1 - index)


@dataclasses.dataclass(init=False, slots=True)
class Slotted:
    number: int
    by: float

    def __init__(self, number, *by):
        self.number = number
        if by:
            [self.by] = by


class Making(collections.defaultdict):
    def __missing__(self, key):
        return self.default_factory()


class Name(str):
    pass


class Mode(enum.StrEnum):
    FAST = "fast"


class Key:
    def __init__(self, name, weight):
        self.name, self.weight = name, weight

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


@dataclasses.dataclass
class Listing:
    first: object
    _fields: tuple = ("first",)


def with_attributes(value, **attributes):
    vars(value).update(attributes)
    return value


KNOWN, LISTED = Settings(), ["one"]
BY_OBJECT = {KNOWN: 7.0}


def chosen(condition):
    return ONE * (2 if condition else 5)


TOLD = {  # functions, and arguments that they tell apart
    "an object of a name": (lambda c: chosen(c is KNOWN), [KNOWN], [Settings()]),
    "an object as a key": (lambda c: ONE * BY_OBJECT.get(c, 3.0), [KNOWN], [Settings()]),
    "a list of a name": (lambda c: chosen(c is LISTED), [LISTED], [["one"]]),
    "one list twice": (lambda a, b: chosen(a is b), [LISTED, LISTED], [["one"], ["one"]]),
    "one object twice": (lambda a, b: chosen(a is b), [KNOWN, KNOWN], [Settings(), Settings()]),
    "one object within": (lambda a: chosen(a[0] is a[1]["x"]), [[KNOWN, {"x": KNOWN}]], [[Settings(), {"x": Settings()}]]),
    "keys that are equal": (lambda d: sum(k * v for k, v in d.items()), [{1: WHOLE}], [{1.0: WHOLE}]),
    "keys that are equal strings": (lambda d: chosen(isinstance(next(iter(d)), Mode)), [{Mode.FAST: ONE}], [{"fast": ONE}]),
    "keys of user dicts": (lambda d: sum(k * v for k, v in d.items()), [collections.UserDict({1: WHOLE})],
                           [collections.UserDict({True: WHOLE, 2: WHOLE})]),
    "tuples as keys": (lambda d: sum(k[0] * v for k, v in d.items()), [{(1, "a"): WHOLE}], [{(1.0, "a"): WHOLE}]),
    "objects as keys": (lambda d: sum(k.weight * v for k, v in d.items()), [{Key("a", 2.0): ONE}], [{Key("a", 3.0): ONE}]),
    "attributes of a named tuple": (lambda p: p.first * p.by, [with_attributes(Tagged(ONE), by=2.0)],
                                    [with_attributes(Tagged(ONE), by=3.0)]),
    "items that a named tuple hides": (lambda p: p[0] * 2 + p.first, [Swapped(ONE, ONE)], [Swapped(ONE * 3, ONE)]),
    "a dataclass with _fields": (lambda d: d.first * 2, [Listing(ONE)], [Listing(ONE * 2)]),
    "a default's factory": (lambda d: chosen(d.default_factory is int), [collections.defaultdict(int)],
                            [collections.defaultdict(list)]),
    "what a factory makes": (lambda d: ONE * d["x"], [Making(lambda: 2.0)], [Making(lambda: 3.0)]),
    "attributes of a string": (lambda s: ONE * s.by, [with_attributes(Name("a"), by=2.0)],
                               [with_attributes(Name("a"), by=3.0)]),
    "a slot without a value": (lambda s: ONE * getattr(s, "by", 5.0), [Slotted(1)], [Slotted(1, 2.0)]),
    "a member that is a string": (lambda s: chosen(isinstance(s, Mode)), [Mode.FAST], ["fast"]),
}


@pytest.mark.parametrize("kind", TOLD)
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("dynamic", [None, True])
def test_what_is_told_apart_is_guarded(kind, back, dynamic):
    function, first, second = TOLD[kind]
    compiled = genesis.compile(function, dynamic=dynamic)
    every = [first] * 3 + [second] * 3 + [first, second]
    for given in [[second] * 3 + every] if back else [every]:
        for arguments in given:
            found, wanted = compiled(*arguments), function(*arguments)
            assert found.tolist() == wanted.tolist() and found.dtype is wanted.dtype


def test_classes_of_named_tuples_and_attributes_of_strings_are_guarded():
    name = with_attributes(Name("a"), by=2.0)
    compiled = genesis.compile(lambda p: p.first * p.by * name.by)
    Tagged.by = 2.0
    for by in (2.0, 3.0):
        Tagged.by = by
        for _ in range(3):
            assert compiled(Tagged(ONE)).tolist() == [by * name.by] * 2
        name.by = by + 2
        assert compiled(Tagged(ONE)).tolist() == [by * name.by] * 2
        name.by = 2.0
    del Tagged.by


class Single:
    """Has one instance, which each call of the class begins anew."""

    _only = None

    def __new__(cls):
        cls._only = cls._only or object.__new__(cls)
        return cls._only

    def __init__(self):
        pass

    def scale(self, name):
        return getattr(self, name.lower())


def test_an_object_that_begins_anew_is_from_before_the_call():
    compiled = genesis.compile(lambda x: x * Single().scale("RATE"))
    for rate in (2.0, 3.0):
        Single().rate = rate
        for _ in range(3):
            assert compiled(ONE).tolist() == [rate, rate]


def test_what_a_modules_getattr_answers_is_guarded():
    module = types.ModuleType("settings")
    module.rates = {"rate": 2.0}
    exec("def __getattr__(name): return rates[name]", vars(module))
    compiled = genesis.compile(lambda x: x * module.rate)

    def changed(change, rate):
        change()
        assert [compiled(ONE).tolist() for _ in range(3)] == [[rate, rate]] * 3

    changed(lambda: None, 2.0)
    changed(lambda: module.rates.update(rate=3.0), 3.0)
    changed(lambda: setattr(module, "__getattr__", lambda name: 4.0), 4.0)
    changed(lambda: setattr(module, "rate", 5.0), 5.0)


class Bare:
    def finish(self):
        return self


def finished(x):
    made = Bare()
    made.value = x * 2
    return made.finish()


def totalled(x):
    pair = Pair(x * 2, x)
    return pair if pair.total() is not None else None


RETURNED = {
    "a named tuple": (totalled, lambda p: p.first, True), "an object without __init__": (finished, lambda b: b.value, False),
    "attributes of a named tuple": (lambda x: with_attributes(Tagged(x), by=x * 2), lambda p: p.by, False),
    "attributes of a string": (lambda x: with_attributes(Name("a"), by=x * 2), lambda s: s.by, False),
    "a class": (lambda x: type("Made", (), {"by": x * 2}), lambda kind: kind.by, False),
}


@pytest.mark.parametrize("kind", RETURNED)
def test_what_is_returned_after_its_methods_ran_is_of_this_call(kind):
    function, value_of, is_replayed = RETURNED[kind]
    compiled = genesis.compile(function)
    for k in range(4):
        assert value_of(compiled(ONE * k)).tolist() == [2.0 * k] * 2
    assert bool(compiled.entries) is is_replayed


def test_keys_that_a_call_makes_are_of_this_call():
    compiled = genesis.compile(lambda x: {(1, Key("a", x * 2)): 1})
    for k in range(3):
        [(_, key)] = compiled(ONE * k)
        assert key.weight.tolist() == [2.0 * k] * 2


def test_code_that_checks_types_gets_plain_numbers_for_all_its_arguments():
    def typed(x, a, others, b):
        return x * (a * b if type(a) is float and type(b) is float else 99) + len(others)

    compiled = genesis.compile(lambda x, a, b: typed(x, a, [], b))
    assert [compiled(ONE, k, k + 1).tolist()[0] for k in (2.0, 3.0, 4.0, 2.0)] == [6.0, 12.0, 20.0, 6.0]
