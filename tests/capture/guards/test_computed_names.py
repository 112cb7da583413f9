"""Attributes that are looked up by computed names: what was asked for is guarded, wherever the name comes from."""

import builtins
import functools
import operator
import sys
import types

import numpy as np
import pytest

import genesis
from genesis.capture.guards.opcodes import names_in
from genesis.nn import functional as F

X = genesis.arange(3).float()
LAST, INNER, LEVEL = "b", "inner", 3


class Point:
    """Has an attribute of each kind."""

    __slots__ = ("__dict__", "slot")
    shared = 2.0

    def __init__(self):
        self.a, self.b, self.c3, self.slot = 1.0, 2.0, 4.0, 3.0

    def gain(self):
        return 2.0

    def of_each(self, names):
        return sum(self.__dict__.get(name) for name in names)

    def of_another(self, names):
        self = holder.inner
        return sum(self.__dict__.get(name) for name in names)


class Slotted:
    """Has no attributes of its own."""

    __slots__ = ()


class Pointed:
    @property
    def place(self):
        return point

    def __neg__(self):
        return point


class Holder(Pointed):
    def read(self, name):
        return getattr(-self, name)

    def read_super(self, name):
        return getattr(super().place, name)

    def read_bound(self, name):
        def bind():
            nonlocal self
            self = point

        bind()
        return getattr(self, name)


point, holder, slotted = Point(), Holder(), Slotted()
not_understood = iter([1])  # would be refused, if any attribute of any object could be looked up
points, names_of = [point], types.SimpleNamespace(last="b", all=["a", "b"])
holder.inner = point
asked, attribute_of, getter = getattr, object.__getattribute__, operator.attrgetter
asking, of_point = [getattr], functools.partial(getattr, point)


def the_point():
    return point


def change():
    point.b = 5.0


def gained():
    Point.gain = lambda self: 5.0


def in_a_loop(x):
    for name in ("a", "b"):
        x = x * getattr(point, name)
    return x


def rebound_by_the_name(x, one=slotted):
    return x * getattr(one, (one := LAST) and "c", getattr(point, one))


def rebound_by_a_default(x):
    name = "b"

    def other():
        nonlocal name
        name = "a"
        return 0.0

    return x * getattr(point, name, other())


def written(x):
    for name in ("a", "b"):
        setattr(point, name, getattr(point, name))
    return x * point.b


WAYS = {
    "by an attribute's path": (lambda x: x * operator.attrgetter("inner.b")(holder), change),
    "a method by its name": (lambda x: x * operator.methodcaller("gain")(point), gained),
    "vars": (lambda x: x * vars(point)["b"], change),
    "__dict__": (lambda x: x * point.__dict__["b"], change),
    "object.__getattribute__": (lambda x: x * object.__getattribute__(point, "b"), change),
    "a module's attribute by its name": (lambda x: x * getattr(sys.modules[__name__], "hol" + "der").inner.b, change),
    "an attribute of a module by its name": (lambda x: getattr(F, "re" + "lu")(x - 1), lambda: setattr(
        F, "relu", lambda x: x * 7)),
    "an attribute of an item by its name": (lambda x: x * getattr([point][0], LAST), change),
    "an attribute of a global's item by its name": (lambda x: x * getattr([holder][0], INNER).b, change),
    "an attribute of a result by its name": (lambda x: x * getattr(the_point(), LAST), change),
    "an attribute of an operator's result by its name": (lambda x: x * holder.read(LAST), change),
    "an attribute by its name, of what super() has": (lambda x: x * holder.read_super(LAST), change),
    "an attribute by its name, of what a closure binds anew": (lambda x: x * holder.read_bound(LAST), change),
    "getattr by another name": (lambda x: x * asked(point, LAST), change),
    "getattr by an item": (lambda x: x * asking[0](point, LAST), change),
    "getattr of a partial": (lambda x: x * of_point(LAST), change),
    "getattr by a default": (lambda x, ask=getattr: x * ask(point, LAST), change),
    "object.__getattribute__ by another name": (lambda x: x * attribute_of(point, LAST), change),
    "attrgetter by another name": (lambda x: x * getter(LAST)(point), change),
    "in a loop": (in_a_loop, change),
    "in a joined string": (lambda x: x * getattr(point, f"c{LEVEL}"), lambda: setattr(point, "c3", 5.0)),
    "by an attribute's value": (lambda x: x * getattr(point, names_of.last), change),
    "by an attribute's other value": (lambda x: x * getattr(point, names_of.last), lambda: setattr(names_of, "last", "a")),
    "by an item": (lambda x: x * getattr(point, names_of.all[1]), change),
    "by a name that a method makes": (lambda x: x * getattr(point, LAST.lower()), change),
    "a slot": (lambda x: x * getattr(point, "".join(["sl", "ot"])), lambda: setattr(point, "slot", 5.0)),
    "of the class": (lambda x: x * getattr(point, f"{'shared'}"), lambda: setattr(Point, "shared", 5.0)),
    "a method": (lambda x: x * getattr(point, ["gain"][0])(), gained),
    "that is missing": (lambda x: x * getattr(point, "mis" + LAST, 1.0), lambda: setattr(point, "misb", 5.0)),
    "that is missing in the class": (lambda x: x * getattr(slotted, "mis" + LAST, 1.0), lambda: setattr(Slotted, "misb", 5.0)),
    "that is there": (lambda x: x * (2 if hasattr(point, LAST + "b") else 3), lambda: setattr(point, "bb", 5.0)),
    "of a name bound anew meanwhile": (rebound_by_the_name, change),
    "of a variable bound anew meanwhile": (rebound_by_a_default, change),
    "where others are set": (written, change),
    "of arguments that are unpacked": (lambda x: x * getattr(*(point, LAST)), change),
    "mapped": (lambda x: x * sum(map(getattr, points, [LAST])), change),
    "of a dict within an expression": (lambda x: x * point.of_each(names_of.all), change),
    "of a dict within an expression, of another": (lambda x: x * holder.inner.of_another(names_of.all), change),
    "by a condition": (lambda x: x * getattr(point, "a" if LEVEL == 2 else "b"), change),
    "by a module's own getattr": (lambda x: x * builtins.getattr(point, LAST), change),
    "dir": (lambda x: x * len(dir(point)), lambda: setattr(point, "zz", 1.0)),
}


@pytest.fixture(autouse=True)
def _as_it_was():
    """What the cases change is put back."""
    gain, shared, relu, names = Point.gain, Point.shared, F.relu, {**vars(names_of)}
    yield
    Point.gain, Point.shared, F.relu = gain, shared, relu
    vars(names_of).update(names)
    point.__dict__.clear()
    point.__init__()
    if hasattr(Slotted, "misb"):
        del Slotted.misb


def compared(function, *changes):
    """A compiled function, called before and after each change beside the plain one."""
    compiled = genesis.compile(function)
    for act in (lambda: None, lambda: None, lambda: None, *changes, lambda: None, lambda: None):
        act()
        np.testing.assert_array_equal(compiled(X).numpy(), function(X).numpy())
    return compiled


@pytest.mark.parametrize("way", WAYS)
def test_a_change_of_what_is_asked_for_is_seen(way):
    compared(*WAYS[way])


@pytest.mark.parametrize("way", ["in a loop", "in a joined string", "by an attribute's value", "by an item",
                                 "that is missing", "of a dict within an expression"])
def test_nothing_else_is_guarded(way, monkeypatch):
    """An object that would be refused, if any attribute could be meant, does not matter."""
    monkeypatch.setattr(Holder, "moves", not_understood, raising=False)
    function, _ = WAYS[way]
    compiled = compared(lambda x: function(x) * holder.inner.a)
    assert len(compiled.entries) == 1 and not compiled.refusals, compiled.refusals


def test_a_getattr_of_the_users_own_is_a_function_like_others(monkeypatch):
    monkeypatch.setitem(globals(), "getattr", functools.partial(builtins.getattr, point))
    compared(lambda x: x * getattr(LAST), change)
    monkeypatch.setitem(globals(), "getattr", lambda owner, name: owner.c3)
    compared(lambda x: x * getattr(point, LAST), lambda: setattr(point, "c3", 7.0))


@pytest.mark.parametrize("function", [
    lambda a, n: getattr(a, "b", n), lambda a, n: hasattr(a, n), lambda a, n: setattr(a, n, 1), lambda a, n: vars(a),
    lambda a, n: getattr(a, f"x{n}_", 1) + getattr(a, n + "y", None), lambda a, n: getattr(a.b, "c", n),
])
def test_calls_are_known_by_their_offsets(function):
    """A profiler hook is called at them."""
    seen, owner = [], types.SimpleNamespace(b=2.0, ny=2)
    sys.setprofile(lambda frame, event, argument: seen.append(frame.f_lasti) if event == "c_call" and (
        frame.f_code is function.__code__) else None)
    try:
        function(owner, "n")
    finally:
        sys.setprofile(None)
    assert seen == [*names_in(function.__code__).asks] and seen


class Watched(genesis.nn.Module):
    """Looks its attributes up by computed names through `super()`."""

    def __init__(self):
        super().__init__()
        self.factor = 2.0

    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def forward(self, x):
        return x * self.factor


class Table:
    moves = not_understood


table = Table()


def test_a_class_that_asks_super_for_computed_names_reads_its_own_attributes_alone():
    module = Watched()

    def call(x):
        table.__class__  # noqa: B018
        return module(x)

    compiled, x = genesis.compile(call), genesis.ones(2)
    assert [compiled(x).tolist() for _ in range(3)] == [[2, 2]] * 3
    assert len(compiled.entries) == 1 and not compiled.refusals
    module.factor = 3.0
    assert compiled(x).tolist() == [3, 3]
