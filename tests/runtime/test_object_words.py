"""Words of objects hold what Python's look-ups find, and versions of dicts tell each change."""

import sys
import types
from functools import partial

import pytest

from genesis.runtime import object_words
from genesis.runtime.instructions import MISSED, Constant, Instructions, Register, are_possible
from genesis.runtime.object_words import attribute_word, size_word, slot_offset, word_at
from genesis.tracing.trace import Array

pytestmark = pytest.mark.skipif(not are_possible(), reason="another interpreter than CPython of 64 bits")
has_versions = pytest.mark.skipif(object_words.VERSION is None, reason="dicts have no versions from CPython 3.13 on")


class Slotted:
    __slots__ = ("item", "unset")

    def __init__(self, item):
        self.item = item


class Plain:
    pass


def with_defaults(first=(1, 2), *, second="b"):
    return lambda: first


@pytest.mark.parametrize("owner, name", [
    (with_defaults, "__code__"), (with_defaults, "__defaults__"), (with_defaults, "__kwdefaults__"),
    (with_defaults().__closure__[0], "cell_contents"), (Slotted([3]), "item"),
])
def test_a_word_is_the_address_of_the_attribute(owner, name):
    assert word_at(attribute_word(owner, name)) == id(getattr(owner, name))


def test_what_is_not_there_is_no_object():
    assert word_at(attribute_word(lambda: 0, "__defaults__")) == 0 == word_at(attribute_word(Slotted(1), "unset"))


def test_other_attributes_have_no_word():
    plain = Plain()
    plain.item = 1
    assert attribute_word(plain, "item") is None and attribute_word(Slotted(1), "__init__") is None
    assert attribute_word(types.SimpleNamespace(item=1), "item") is None and slot_offset(Array, "shape") is None


@pytest.mark.parametrize("container, more", [
    ([1, 2], lambda c: c.append(3)), ({1: 2}, lambda c: c.update({5: 6})), ({1, 2, 3}, lambda c: c.add(7))])
def test_lengths(container, more):
    address = size_word(container)
    before = word_at(address)
    more(container)
    assert before == len(container) - 1 and word_at(address) == len(container)
    container.clear()
    assert word_at(address) == 0 and size_word((1,)) is None


@pytest.fixture
def passing():
    """A function of a dict that is missed unless its "key" is 5, and what it appends to where it looks."""
    looks = []
    code = Instructions(1)
    with code.unless_passed(Register(0)):
        code.call(partial(looks.append, 1))
        code.emit("EQUAL", code.item(Register(0), "key"), Constant(5))
    code.emit("RETURN", code.constant(True))
    return code.function(), looks


CHANGES = {
    "another value": lambda names: names.update(key=6),
    "the value removed": lambda names: names.pop("key"),
    "all removed": lambda names: names.clear(),
}


@has_versions
@pytest.mark.parametrize("change", CHANGES)
def test_a_dict_is_looked_at_again_once_it_has_changed(passing, change):
    function, looks = passing
    names = {"key": 5, "other": 1}
    assert [function(names) for _ in range(3)] == [True] * 3 and len(looks) == 1
    names["other"] = 2
    assert function(names) is True and function(names) is True and len(looks) == 2
    CHANGES[change](names)
    assert function(names) is MISSED and function(names) is MISSED and len(looks) == 4
    names["key"] = 5
    assert function(names) is True and len(looks) == 5


def test_another_dict_is_another(passing):
    function, _ = passing
    assert function({"key": 5}) is True and function({"key": 6}) is MISSED and function({"key": 5}) is True


def test_attributes_are_read_from_slots_by_class():
    code = Instructions(1, (Slotted,))
    code.emit("RETURN", code.attribute(Register(0), "item"))
    function, plain = code.function(), Plain()
    plain.item = "plain"
    assert function(Slotted("slot")) == "slot" and function(plain) == "plain"
    empty = Slotted(0)
    del empty.item
    assert function(empty) is MISSED and function(7) is MISSED


def test_new_objects_belong_to_the_caller():
    code = Instructions()
    code.emit("RETURN", code.new(Plain))
    function = code.function()
    before = sys.getrefcount(Plain)
    one, other = function(), function()
    assert type(one) is Plain and one is not other and sys.getrefcount(one) == 2
    del one, other
    assert sys.getrefcount(Plain) == before


def test_words_of_what_is_the_same_in_all_calls_are_compared():
    def function(x=1):
        return x

    slotted, many = Slotted("first"), [1, 2]
    code = Instructions()
    code.require_attribute(function, "__defaults__", function.__defaults__)
    code.require_attribute(function, "__kwdefaults__", None)
    code.require_attribute(slotted, "item", "first")
    code.require_size(many, 2)
    code.emit("RETURN", code.constant(True))
    holds = code.function()
    assert holds() is True
    many.append(3)
    assert holds() is MISSED
    many.pop()
    slotted.item = "second"
    assert holds() is MISSED
    slotted.item = "first"
    assert holds() is True
    function.__defaults__ = (2,)
    assert holds() is MISSED
