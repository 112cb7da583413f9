"""Instructions over Python objects: each does what Python does, owns what it should, and says MISSED where a guard fails."""

import operator
import sys

import pytest

from genesis.runtime.instructions import MISSED, Constant, Instructions, Register, are_possible

pytestmark = pytest.mark.skipif(not are_possible(), reason="another interpreter than CPython of 64 bits")


class Thing:
    value = 3


def guarded(operation, *operands, arguments=1):
    """The function of `arguments` that says whether the guard holds."""
    code = Instructions(arguments)
    code.emit(operation, Register(0), *operands)
    code.emit("RETURN", code.constant(True))
    return code.function()


THING = Thing()


@pytest.mark.parametrize("guard, holding, failing", [
    (("IS", Constant(THING)), THING, Thing()),
    (("IS_NOT", Constant(THING)), Thing(), THING),
    (("CLASS", Constant(int)), 7, True),
    (("SIZE", 2), [1, 2], (1,)),
    (("SIZE", 0), {}, 5),
    (("EQUAL", Constant((2, 3))), (2, 3), (2, 4)),
    (("FALSE",), [], [0]),
])
def test_guards_hold_or_are_missed(guard, holding, failing):
    function = guarded(*guard)
    assert function(holding) is True and function(failing) is MISSED


@pytest.mark.parametrize("operation", ["SAME", "APART"])
def test_two_arguments_are_one_object_or_two(operation):
    function = guarded(operation, Register(1), arguments=2)
    assert (function(THING, THING) is True) == (operation == "SAME")
    assert (function(THING, Thing()) is True) == (operation == "APART")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_tuple_owns_its_members_and_is_new_in_each_call(count):
    code, member = Instructions(1), Thing()
    code.emit("RETURN", code.tuple(*[Register(0)] * count))
    function = code.function()
    before = sys.getrefcount(member)
    made = [function(member) for _ in range(4)]
    assert sys.getrefcount(member) == before + 4 * count
    assert all(type(one) is tuple and one == (member,) * count for one in made)
    assert not count or len({id(one) for one in made}) == 4
    del made
    assert sys.getrefcount(member) == before


def test_values_are_looked_up_as_python_looks_them_up():
    code = Instructions(2)
    total = code.call(operator.add, code.attribute(Register(0), "value"), code.item(Register(1), "key"))
    code.emit("RETURN", total)
    function = code.function()
    assert function(THING, {"key": 4}) == 7
    assert function(THING, {}) is MISSED and function(object(), {"key": 4}) is MISSED  # what raises does not hold


@pytest.mark.parametrize("result", [7, None], ids=["returned", "missed"])
def test_no_reference_is_kept_or_lost(result):
    thing, holder = Thing(), {"key": 5}
    code = Instructions(2)
    code.attribute(Register(0), "value")
    code.emit("MOVE", code.register(), Register(0))
    code.emit("IS", Register(0), Constant(thing if result else holder))
    code.emit("RETURN", Register(1))
    function = code.function()
    before = sys.getrefcount(thing), sys.getrefcount(holder), sys.getrefcount(MISSED)
    for _ in range(100):
        function(thing, holder)
    assert (sys.getrefcount(thing), sys.getrefcount(holder), sys.getrefcount(MISSED)) == before


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_what_a_handler_raises_is_no_guard_that_fails(kind):
    def interrupted():
        raise kind

    code = Instructions()
    code.emit("RETURN", code.call(interrupted))
    with pytest.raises(kind):
        code.function()()


def test_a_call_that_comes_in_is_missed_and_a_failure_frees_the_table():
    def again(kind):
        found.append(function(None))
        if kind:
            raise kind

    found = []
    code = Instructions(1)
    code.emit("ENTER")
    code.emit("RETURN", code.call(again, Register(0)))
    function = code.function()
    with pytest.raises(ZeroDivisionError):
        function(ZeroDivisionError)
    assert found == [MISSED] and function(None) is None and found == [MISSED, MISSED]


def test_skips_go_over_what_they_say():
    code = Instructions(1)
    skip = code.emit("SKIP_IS", Register(0), Constant(THING), 0)
    code.emit("RETURN", code.constant("another"))
    code.skip_from(skip)
    code.emit("RETURN", code.constant("the thing"))
    function = code.function()
    assert function(THING) == "the thing" and function(None) == "another"
