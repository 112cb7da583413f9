"""Numbers within lists and dicts are data, those within tuples are compared, and all stay the objects that were given."""

import collections
import copy
import sys
import threading

import pytest

import genesis

HALVES = genesis.tensor([0.5, 1.5])
LIST, DICT, TUPLE = [HALVES, 2.5], {"x": HALVES, "s": 2.5}, (HALVES, 2.5)
ALONE = {0: None}  # the frames of a process with one thread: there may be others here
WAYS = pytest.mark.parametrize("dynamic", [None, True, False])


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    monkeypatch.setattr(sys, "_current_frames", lambda: ALONE)


def as_called(function, calls, dynamic):
    """Compare a compiled function with the function, for calls with new arguments; returns the compiled one."""
    compiled = genesis.compile(function, dynamic=dynamic)
    for make in calls:
        given, other = make(), make()
        found, wanted = compiled(*given), function(*other)
        assert found.tolist() == wanted.tolist()
        assert repr(given) == repr(other)
    return compiled


@WAYS
@pytest.mark.parametrize("named", [LIST, DICT, TUPLE])
def test_whether_an_argument_is_an_object_with_a_name(named, dynamic):
    copied = (lambda: dict(named)) if isinstance(named, dict) else (lambda: type(named)([*named]))
    calls = [lambda: (named,)] * 3 + [lambda: (copied(),)] * 3 + [lambda: (named,)] * 2
    as_called(lambda given: HALVES * (2.0 if given is named else 1.0), calls, dynamic)


@WAYS
def test_whether_two_arguments_are_one_tuple(dynamic):
    def pair(one):
        first = tuple([HALVES, 2.5])
        return first, first if one else tuple([HALVES, 2.5])

    calls = [lambda one=one: pair(one) for one in (True, True, False, False, True, False)]
    as_called(lambda a, b: HALVES * (2.0 if a is b else 1.0), calls, dynamic)


def add(given, scales):
    given.append(1.0)
    return given[0] * given[1] * scales["s"]


def replace(given, scales):
    scales["s"] = scales["s"] + given[1]
    return given[0] * scales["s"]


@WAYS
@pytest.mark.parametrize("change", [add, replace])
def test_changes_of_what_is_given_are_kept(change, dynamic):
    calls = [lambda k=k: ([HALVES, 0.5 + k], {"s": 1.5 * k}) for k in range(5)]
    compiled = as_called(change, calls, dynamic)
    assert "changes" in str(compiled.refusals[0])


def test_numbers_within_arguments_are_data():
    compiled = genesis.compile(lambda x, rates, both: x * rates["lr"] * rates["all"][0] * both[0], dynamic=True)
    for k in range(6):
        rates, both = {"lr": 0.5 + k, "all": [1.5 * k]}, (2.5 + (k > 3), "a")
        assert compiled(HALVES, rates, both).tolist() == (HALVES * (0.5 + k) * (1.5 * k) * both[0]).tolist()
    assert sum(entry.replays for entry in compiled.entries) >= 3  # each tuple is recorded anew


def test_numbers_that_other_threads_may_look_at_are_compared(monkeypatch):
    monkeypatch.undo()
    compiled = genesis.compile(lambda x, rates, scale: x * rates["lr"] * scale, dynamic=True)
    other, rates = threading.Thread(target=(done := threading.Event()).wait, daemon=True), {}
    other.start()
    for k in (0, 0, 1, 1):
        rates["lr"] = 0.5 + k
        assert compiled(HALVES, rates, 1.5 + k).tolist() == (HALVES * (0.5 + k) * (1.5 + k)).tolist()
    done.set()
    other.join()
    assert [[label for label, _ in entry.slots] for entry in compiled.entries] == [["argument 0", "arguments[2]"]] * 2
    assert compiled.missed == "arguments[1]['lr']"


def test_what_a_call_returns_or_keeps_is_what_was_given():
    kept = []

    def both(x, given):
        kept.append(given)
        return x * given[0], given

    compiled = genesis.compile(both, dynamic=True)
    for k in range(4):
        given = (1.5 + k, 2.5)
        value, returned = compiled(HALVES, given)
        assert returned is given is kept.pop() and value.tolist() == (HALVES * (1.5 + k)).tolist()


def is_named(given):
    return 2.0 if given is TUPLE else 1.0


@WAYS
def test_a_branch_that_is_taken_later_compares_the_tuple_that_is_given(dynamic):
    calls = [lambda k=k, n=n: (n, TUPLE if n else (HALVES, 1.5 + k)) for k, n in enumerate((0, 0, 0, 1, 1, 0, 1))]
    as_called(lambda n, given: given[0] * given[1] * (is_named(given) if n else 1.0), calls, dynamic)


@WAYS
@pytest.mark.parametrize("kept", [
    lambda one: (one, "a"), lambda one: {one}, lambda one: [{"a": (one,)}], lambda one: frozenset([one]),
    lambda one: collections.deque([one]),
])
@pytest.mark.parametrize("fails", [False, True])
def test_what_a_call_keeps_are_numbers(kept, fails, dynamic):
    store = []

    def keep(x, given):
        store.append(kept(given[1] * 2))
        if fails:
            raise ValueError(given[1])
        return x * given[1], kept(given[1])

    compiled = genesis.compile(keep, dynamic=dynamic)
    for k in range(3):
        try:
            found = compiled(HALVES, [HALVES, 1.5 + k])[1]
        except ValueError as problem:
            found = kept(*problem.args)
        assert found == kept(1.5 + k) and type(number_in(found)) is float
        assert store[-1] == kept(3.0 + 2 * k) and type(number_in(store[-1])) is float


def number_in(kept):
    """The first of all parts of containers that is none."""
    return kept if isinstance(kept, float) else number_in(next(iter(kept.values() if isinstance(kept, dict) else kept)))


def has_type(kept):
    return 2.0 if type(number_in(kept)) is float and type(kept) is not set else 1.0


@WAYS
@pytest.mark.parametrize("make", [
    lambda k: [1.5 + k], lambda k: {"a": 1.5 + k}, lambda k: (1.5 + k,), lambda k: {"a": [(1.5 + k,)]},
])
def test_code_that_asks_for_types_finds_numbers_in_what_was_given(make, dynamic):
    def of_type(given, kept):
        if type(given) is list:
            given.append(1.0)
        return HALVES * number_in(given) * has_type(given) * (2.0 if copy.copy(kept) is kept else 1.0)

    as_called(of_type, [lambda k=k: (make(k), 2.5 + k) for k in range(4)], dynamic)


@WAYS
def test_a_copy_of_a_number_is_the_number(dynamic):
    def copies(given, number):
        are_same = copy.copy(number) is number and copy.deepcopy(given)[0] is given[0]
        return HALVES * (number if are_same else given[0])

    as_called(copies, [lambda k=k: ([1.5 + k], 2.5 + k) for k in range(4)], dynamic)


class Slot:
    """Something of the user's without a dict."""

    __slots__ = ("value",)


def test_an_attribute_without_a_dict_gets_the_number():
    slot = Slot()

    def keep(x, given):
        slot.value = given[1] * 2
        return x * given[1]

    compiled = genesis.compile(keep, dynamic=True)
    for k in range(3):
        compiled(HALVES, [HALVES, 1.5 + k])
        assert type(slot.value) is float and slot.value == 3.0 + 2 * k
