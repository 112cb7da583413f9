"""However a function comes by what it reads, a change of it is seen: it is guarded, or the call is not replayed.

Each case is compiled and called before and after a change, beside the plain function.
"""

import abc
import builtins
import collections
import contextlib
import copy
import ctypes
import dataclasses
import enum
import functools
import importlib
import os
import sqlite3
import sys
import types
import weakref

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn import functional as F

X = genesis.arange(3).float()


def plain(x):
    return x * plain.by if hasattr(plain, "by") else x


class Meta(type):
    level = 2.0

    @property
    def depth(cls):
        return cls.level + 1


class Base(metaclass=Meta):
    kind = "base"

    def gain(self):
        return 2.0

    @classmethod
    def named(cls):
        return len(cls.kind)


class Fixed:
    """A descriptor of the user's."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner=None):
        return self.value


class Derived(Base):
    fixed = Fixed(3.0)

    def gain(self):
        return super().gain() + 1


class Colour(enum.Enum):
    RED = 2
    BLUE = 3


@dataclasses.dataclass
class Point:
    a: float = 1.0
    b: float = 2.0


class Slotted:
    __slots__ = ("gain", "maybe")


class Numbered:
    def __init__(self, by):
        self.by = by

    def __add__(self, other):
        return self.by + other

    def __len__(self):
        return 2

    def __getattr__(self, name):
        if name == "made":
            return 4.0
        raise AttributeError(name)


class World:
    """What the cases read and change: new for each."""

    def __init__(self):
        self.derived, self.point, self.numbered = Derived(), Point(), Numbered(2.0)
        self.members, self.by_key = {Point.__new__(Point)}, {Derived(): 1.0}
        for point in self.members:
            point.__dict__.update(a=3.0, b=1.0)
        self.slotted = Slotted()
        self.slotted.gain = 2.0
        self.weak = weakref.WeakValueDictionary(d=self.derived)
        self.pointer = ctypes.c_double(2.0)
        self.database = sqlite3.connect(":memory:")
        self.database.execute("create table t (v real)")
        self.database.execute("insert into t values (2)")
        self.path = None
        self.ordered = collections.OrderedDict(a=1.0, b=2.0)
        self.numbers = {1.5, 2.5}
        self.attributes = collections.ChainMap({"by": 2.0}, {"other": 1.0})
        self.named = collections.namedtuple("Named", "by")([2.0])
        self.held = functools.partial(lambda by, x: x * by, 3.0)
        self.bound = self.derived.gain


Point.__hash__ = lambda self: 1
world = World()


@functools.lru_cache
def cached(name):
    return world.point.a


@functools.cache
def cached_list():
    return [2.0]


def missing_global(x):
    try:
        return x * not_there
    except NameError:
        return x


def missing_attribute(x):
    try:
        return x * world.derived.not_there
    except AttributeError:
        return x


def missing_slot(x):
    try:
        return x * world.slotted.maybe
    except AttributeError:
        return x


def missing_key(x):
    try:
        return x * world.ordered["c"]
    except KeyError:
        return x


def suppressed(x):
    with contextlib.suppress(AttributeError):
        x = x * world.derived.not_there
    return x


def emptied():
    by = 2.0

    def f(x):
        try:
            return x * by
        except NameError:
            return x

    def change():
        nonlocal by
        del by

    return f, change


def filled():
    def f(x):
        try:
            return x * by
        except NameError:
            return x

    def change():
        nonlocal by
        by = 5.0

    if X is None:
        by = 1.0
    return f, change


def matched(x):
    match world.point:
        case Point(1.0, b):
            return x * b
        case Point(a=a):
            return x * a


def matched_mapping(x):
    match {"k": world.derived}:
        case {"k": Base(kind="base")}:
            return x * 2
    return x


def imported(x):
    import helpers_of_this_test

    return x * helpers_of_this_test.by


def imported_name(x):
    from helpers_of_this_test import by

    return x * by


def local_class(x):
    class Local(Base):
        by = 2.0

    return x * Local.by * Local().gain()


def generated(x):
    return sum((x * by for by in world.ordered.values()), x)


def set_global(name, value):
    return lambda: globals().__setitem__(name, value)


def put(owner, name, value):
    return lambda: setattr(owner() if callable(owner) and not isinstance(owner, type) else owner, name, value)


def the(name):
    return lambda: getattr(world, name)


class Relu(nn.Module):
    def forward(self, x):
        return F.relu(x - 1)


relu = Relu()

WAYS = {
    "an attribute of a function": (plain, lambda: setattr(plain, "by", 3.0)),
    "an attribute of a function, by its name": (lambda x: x * getattr(plain, "to", 1.0), lambda: setattr(plain, "to", 3.0)),
    "a global that is missing": (missing_global, set_global("not_there", 4.0)),
    "a builtin that is missing": (missing_global, put(builtins, "not_there", 4.0)),
    "a global that hides a builtin": (lambda x: x * max(1, 2), set_global("max", min)),
    "a builtin replaced": (lambda x: x * divmod(7, 2)[0], put(builtins, "divmod", lambda a, b: (7, 7))),
    "an attribute that is missing": (missing_attribute, put(the("derived"), "not_there", 4.0)),
    "an attribute that is missing, in the class": (missing_attribute, put(Derived, "not_there", 4.0)),
    "an attribute that is missing, in a base": (missing_attribute, put(Base, "not_there", 4.0)),
    "an attribute that is missing, suppressed": (suppressed, put(the("derived"), "not_there", 4.0)),
    "a slot that is empty": (missing_slot, put(the("slotted"), "maybe", 4.0)),
    "a slot that is emptied": (
        lambda x: x * getattr(world.slotted, "gain", 1.0), lambda: delattr(world.slotted, "gain")),
    "a key that is missing": (missing_key, lambda: world.ordered.update(c=4.0)),
    "a variable of a closure that is emptied": emptied(),
    "a variable of a closure that is filled": filled(),
    "an object in a set": (lambda x: x * sum(p.a for p in world.members), lambda: setattr(next(iter(world.members)), "a", 7.0)),
    "an object that is a key": (lambda x: x * sum(k.gain() for k in world.by_key), lambda: setattr(
        next(iter(world.by_key)), "gain", lambda: 9.0)),
    "the order of a set": (lambda x: x * functools.reduce(lambda a, b: a * 10 + b, world.numbers), lambda: (
        world.numbers.clear(), world.numbers.update([2.5, 1.25]))),
    "the order of a dict": (lambda x: x * functools.reduce(lambda a, b: a * 10 + b, world.ordered.values()),
                            lambda: world.ordered.move_to_end("a")),
    "asdict": (lambda x: x * dataclasses.asdict(world.point)["b"], put(the("point"), "b", 5.0)),
    "astuple": (lambda x: x * dataclasses.astuple(world.point)[1], put(the("point"), "b", 5.0)),
    "replace": (lambda x: x * dataclasses.replace(world.point, a=3.0).b, put(the("point"), "b", 5.0)),
    "a copy": (lambda x: x * copy.copy(world.point).b, put(the("point"), "b", 5.0)),
    "a deep copy": (lambda x: x * copy.deepcopy(world.point).b, put(the("point"), "b", 5.0)),
    "a comparison of dataclasses": (lambda x: x * (world.point == Point()), put(the("point"), "b", 5.0)),
    "a class pattern": (matched, put(the("point"), "a", 5.0)),
    "the names of a class pattern": (matched, put(Point, "__match_args__", ("b", "a"))),
    "a class pattern by keywords": (matched_mapping, put(Base, "kind", "other")),
    "a descriptor of the user's": (lambda x: x * world.derived.fixed, put(lambda: vars(Derived)["fixed"], "value", 5.0)),
    "how a descriptor is read": (lambda x: x * world.derived.fixed, put(Fixed, "__get__", lambda *_: 6.0)),
    "a descriptor replaced by a number": (lambda x: x * world.derived.fixed, put(Derived, "fixed", 6.0)),
    "a method that becomes a property": (lambda x: x * world.derived.gain(), put(
        Derived, "gain", property(lambda self: lambda: 8.0))),
    "an attribute of a metaclass": (lambda x: x * Base.level, put(Meta, "level", 5.0)),
    "an attribute of a metaclass, hidden": (lambda x: x * Base.level, put(Base, "level", 5.0)),
    "a property of a metaclass": (lambda x: x * Base.depth, put(Meta, "level", 5.0)),
    "a method of super()": (lambda x: x * world.derived.gain(), put(Base, "gain", lambda self: 5.0)),
    "a class method": (lambda x: x * Derived.named(), put(Derived, "kind", "longer")),
    "the bases of a class": (lambda x: x * world.derived.gain(), lambda: setattr(
        Derived, "__bases__", (type("Other", (Base,), {"gain": lambda self: 11.0}),))),
    "the class of an object": (lambda x: x * world.derived.gain(), lambda: setattr(world.derived, "__class__", Base)),
    "the name of a class": (lambda x: x * len(type(world.derived).__name__), put(Derived, "__name__", "D")),
    "the attributes of an object, all at once": (lambda x: x * world.point.a, lambda: setattr(
        world.point, "__dict__", {"a": 6.0, "b": 1.0})),
    "an operator of the user's": (lambda x: x * (world.numbered + 1), put(Numbered, "__add__", lambda *_: 9.0)),
    "a length of the user's": (lambda x: x * len(world.numbered), put(Numbered, "__len__", lambda *_: 9)),
    "a truth of the user's": (lambda x: x * (3 if world.derived else 4), put(Base, "__bool__", lambda *_: False)),
    "what __getattr__ makes": (lambda x: x * world.numbered.made, put(the("numbered"), "made", 5.0)),
    "__getattr__ itself": (lambda x: x * world.numbered.made, put(Numbered, "__getattr__", lambda *_: 5.0)),
    "a file": (lambda x: x * float(world.path.read_text()), lambda: world.path.write_text("5")),
    "an opened file": (lambda x: x * float(open(world.path).read())  # noqa: SIM115
                      , lambda: world.path.write_text("5")),
    "whether a file is there": (lambda x: x * (2 if os.path.exists(world.path) else 3), lambda: world.path.unlink()),
    "a database": (lambda x: x * world.database.execute("select v from t").fetchone()[0],
                   lambda: world.database.execute("update t set v = 5")),
    "the environment": (lambda x: x * float(os.environ.get("BY_OF_A_TEST", 2)), lambda: os.environ.update(BY_OF_A_TEST="5")),
    "the environment, asked otherwise": (lambda x: x * float(os.getenv("BY_OF_A_TEST", 2)), lambda: os.environ.update(
        BY_OF_A_TEST="5")),
    "what a cache remembers": (lambda x: x * cached("a"), lambda: (setattr(world.point, "a", 5.0), cached.cache_clear())),
    "a list that a cache remembers": (lambda x: x * cached_list()[0], lambda: cached_list().__setitem__(0, 5.0)),
    "a number of ctypes": (lambda x: x * world.pointer.value, lambda: setattr(world.pointer, "value", 5.0)),
    "a weak dictionary": (lambda x: x * len(world.weak), lambda: world.weak.clear()),
    "a method of Tensor": (lambda x: x.negative(), put(genesis.Tensor, "negative", lambda self: self * 7)),
    "an operator of Tensor": (lambda x: x + 2, put(genesis.Tensor, "__add__", lambda self, other: self * 7)),
    "a property of Tensor": (lambda x: x * x.ndim, put(genesis.Tensor, "ndim", 7)),
    "a functional": (lambda x: F.relu(x), put(F, "relu", lambda x: x * 7)),
    "a functional in a layer": (lambda x: relu(x), put(F, "relu", lambda x: x * 7)),
    "a function of genesis": (lambda x: genesis.exp(x), put(genesis, "exp", lambda x: x * 7)),
    "how modules are called": (lambda x: relu(x), put(nn.Module, "__call__", lambda self, x: x * 7)),
    "how often a tensor was written": (lambda x: x * x._version, lambda: X.add_(1)),
    "where a tensor lies": (lambda x: x * (x.data_ptr() % 7), lambda: setattr(X, "data", genesis.arange(3).float() * 2)),
    "the name of a member": (lambda x: x * Colour.RED.value, lambda: setattr(Colour.RED, "_value_", 9)),
    "a member by its value": (lambda x: x * Colour(2)._value_, lambda: setattr(Colour.RED, "_value_", 9)),
    "a member of a named tuple": (lambda x: x * world.named.by[0], lambda: world.named.by.__setitem__(0, 5.0)),
    "a chain of dicts": (lambda x: x * world.attributes["by"], lambda: world.attributes.maps.insert(0, {"by": 5.0})),
    "a partial function's defaults": (lambda x: world.held(x), lambda: setattr(world.held.func, "__code__", (
        lambda by, x: x).__code__)),
    "a bound method's object": (lambda x: x * world.bound(), put(Base, "gain", lambda self: 5.0)),
    "a default": (lambda x: Point(4.0).b * x, lambda: setattr(Point.__init__, "__defaults__", (1.0, 9.0))),
    "an imported module": (imported, lambda: sys.modules.update(helpers_of_this_test=types.SimpleNamespace(by=5.0))),
    "a name imported from a module": (imported_name, lambda: setattr(sys.modules["helpers_of_this_test"], "by", 5.0)),
    "a class made inside": (local_class, put(Base, "gain", lambda self: 5.0)),
    "a generator made inside": (generated, lambda: world.ordered.update(a=9.0)),
    "an abstract class": (lambda x: x * (2 if isinstance(world.point, collections.abc.Sized) else 3),
                          put(Point, "__len__", lambda self: 3)),
    "what is registered as abstract": (lambda x: x * (2 if isinstance(world.point, Registered) else 3),
                                       lambda: Registered.register(Point)),
    "mapped": (lambda x: x * sum(map(os.path.exists, [world.path])), lambda: world.path.unlink()),
    "globals()": (lambda x: x * globals()["scale_of_ways"], set_global("scale_of_ways", 5.0)),
    "the frame": (lambda x: x * sys._getframe().f_globals["scale_of_ways"], set_global("scale_of_ways", 5.0)),
    "eval": (lambda x: x * eval("scale_of_ways"), set_global("scale_of_ways", 5.0)),
    "importlib": (lambda x: x * importlib.import_module("helpers_of_this_test").by, lambda: setattr(
        sys.modules["helpers_of_this_test"], "by", 5.0)),
    "a property's setter": (lambda x: x * Kept.shown.fset(3.0), lambda: setattr(Kept, "shown", property(None, lambda v: 9.0))),
    "a default dictionary's factory": (lambda x: x * factory(), set_global("factory", lambda: 3.0)),
}
scale_of_ways = 2.0


def factory():
    return 2.0


class Kept:
    shown = property(None, lambda value: value)


class Registered(abc.ABC):  # noqa: B024
    """What classes may be registered for."""


@pytest.fixture(autouse=True)
def _as_it_was(tmp_path):
    """Everything that the cases change is put back."""
    world.__init__()
    world.path = tmp_path / "by.txt"
    world.path.write_text("2")
    helpers = types.ModuleType("helpers_of_this_test")
    helpers.by = 2.0
    sys.modules["helpers_of_this_test"] = helpers
    cached.cache_clear()
    cached_list.cache_clear()
    owners = [Meta, Base, Derived, Fixed, Numbered, Point, Kept, plain, builtins, genesis.Tensor, F, genesis, nn.Module]
    before = [dict(vars(owner)) for owner in owners]
    names, value, defaults = dict(globals()), X.clone(), Point.__init__.__defaults__
    yield
    Point.__init__.__defaults__ = defaults
    for owner, attributes in zip(owners, before, strict=True):
        for name in [*vars(owner)]:
            if name not in attributes:
                delattr(owner, name)
        for name, kept in attributes.items():
            if vars(owner)[name] is not kept:
                setattr(owner, name, kept)
    Derived.__name__, Derived.__bases__, Colour.RED._value_, vars(Derived)["fixed"].value = "Derived", (Base,), 2, 3.0
    for name in [*globals()]:
        if name not in names:
            del globals()[name]
    globals().update(names)
    X.data = value
    os.environ.pop("BY_OF_A_TEST", None)


@pytest.mark.parametrize("way", WAYS)
def test_a_change_of_what_is_read_is_seen(way):
    function, change = WAYS[way]
    compiled = genesis.compile(function)
    for act in (lambda: None, lambda: None, lambda: None, change, lambda: None, lambda: None):
        act()
        got, want = compiled(X), function(X)
        np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.parametrize("kind", [Base, Meta, type("Alone", (), {}), type("Kind", (type,), {})])
def test_a_class_that_was_given_what_it_had_is_looked_at_again(kind):
    """Equal values leave a class without a number of its state, until it is looked up."""
    kind.size = 0.0
    compiled = genesis.compile(lambda x: x + kind.size)
    for value in (0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0):
        kind.size = value
        np.testing.assert_array_equal(compiled(X).numpy(), X.numpy() + np.float32(value))
    del kind.size
