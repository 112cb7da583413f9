"""Compiled functions as objects: what they print, how they are copied and pickled."""

import copy
import functools
import pickle
import re

import pytest

import genesis
from genesis import nn
from genesis.capture import compiled
from genesis.capture.record.records import SplitError

SCALE = genesis.ones(2)


@genesis.compile
def scaled(x):
    return x * SCALE


def shifted(x):
    return x + 1


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(genesis.ones(2))
        self.total = genesis.compile(self.added, fullgraph=True)

    def added(self, x):
        with genesis.no_grad():
            self.weight.add_(x)
        return self.weight.detach() * 1

    @genesis.compile
    def forward(self, x):
        return self.weight * x


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


def test_a_function_that_a_name_finds_is_copied_by_that_name():
    for again in (through_pickle(scaled), copy.deepcopy(scaled), copy.copy(scaled)):
        assert again is scaled
    assert through_pickle(Network.forward) is Network.forward


@pytest.mark.parametrize("again", [through_pickle, copy.deepcopy, copy.copy])
def test_other_functions_are_recorded_anew(again):
    function = genesis.compile(shifted, check=True, fullgraph=True)
    for _ in range(3):
        function(genesis.zeros(2))
    other = again(function)
    assert other is not function and other.entries == [] and (other.check, other.fullgraph) == (True, True)
    assert other(genesis.zeros(2)).tolist() == [1, 1] and function.entries[0].replays == 2


def test_a_copy_of_a_function_of_names_reads_and_writes_what_they_name():
    weight = genesis.ones(2)

    def step(x):
        weight.add_(x)
        return weight * 2

    function = genesis.compile(step)
    for _ in range(3):
        function(genesis.ones(2))
    other = copy.deepcopy(function)
    assert [other(genesis.ones(2)).tolist() for _ in range(3)] == [[10, 10], [12, 12], [14, 14]] and weight.tolist() == [7, 7]


@pytest.mark.parametrize("again", [through_pickle, copy.deepcopy])
def test_a_copied_module_computes_with_its_own_parameters(again):
    network = Network()
    for _ in range(3):
        network.total(genesis.ones(2))
    other = again(network)
    assert [other.total(genesis.ones(2)).tolist() for _ in range(3)] == [[5, 5], [6, 6], [7, 7]]
    assert network.weight.tolist() == [4, 4] and other(genesis.ones(2)).tolist() == [7, 7]


@pytest.mark.parametrize("again", [through_pickle, copy.deepcopy])
def test_a_compiled_module_stays_one(again):
    linear = nn.Linear(2, 2)
    compiled = genesis.compile(linear)
    x = genesis.ones(1, 2)
    want = compiled(x).tolist()
    other = again(compiled)
    assert isinstance(other, nn.Linear) and other.weight is not linear.weight and other(x).tolist() == want
    with genesis.no_grad():
        other.weight.zero_()
        other.bias.fill_(3)
    assert [other(x).tolist() for _ in range(3)] == [[[3, 3]]] * 3 and compiled(x).tolist() == want
    assert type(other) is not nn.Linear and type(other).__name__ == "Linear"


def test_what_is_printed():
    function = genesis.compile(shifted)
    assert repr(function) == "<compiled shifted, entries: 0, replays: 0>"
    for _ in range(3):
        function(genesis.zeros(2))
    assert repr(function) == "<compiled shifted, entries: 1, replays: 2>"
    looking = genesis.compile(lambda x: x + len(x.tolist()))
    looking(genesis.ones(100))
    assert re.fullmatch(r"<compiled .*, called each time: a value is looked at .* \(at .*objects.py:\d+\)>", repr(looking))
    assert repr(genesis.compile(functools.partial(shifted))) == "<compiled partial, entries: 0, replays: 0>"


def test_a_call_that_looks_at_values_is_recorded_ever_more_rarely(monkeypatch):
    recorded, calls, given = [], [], genesis.ones(100)

    def noting(*arguments, **named):
        recorded.append(len(calls))
        return record(*arguments, **named)

    record = compiled.record
    monkeypatch.setattr(compiled, "record", noting)
    listed = genesis.compile(lambda x: x * len(x.tolist()))
    while len(calls) < 600:
        calls.append(None)
        listed(given)
    assert recorded == [1, 2, 3, 4, 8, 64, 512]
    assert "looked at" in str(listed.refusals[0])


def test_replays_of_dropped_entries_have_paid_for_their_recordings():
    total = genesis.compile(lambda x: x.sum())
    for length in range(1, 2 * compiled.ENTRY_LIMIT):
        for _ in range(3):
            assert total(genesis.ones(length)).item() == length
    assert len(total.entries) == compiled.ENTRY_LIMIT and all(entry.replays == 2 for entry in total.entries)
    for length in (200, 300):
        for _ in range(2):
            total(genesis.ones(length))
        assert total.entries[0].replays == 1


class Many:
    def __init__(self):
        self.numbers = [*range(compiled.MANY)]


def test_a_call_whose_recordings_have_many_guards_is_recorded_ever_more_rarely():
    function = genesis.compile(lambda x, one: x * one.numbers[1] * len(one.numbers))
    for _ in range(12):
        one = Many()
        assert all(function(SCALE, one).tolist() == [compiled.MANY] * 2 for _ in range(4))
    assert len(function.entries) == 4, function  # not 12


@pytest.mark.parametrize("function", [lambda x: x * len(x.tolist()), lambda x: x * float(x.sum().item())])
def test_with_fullgraph_each_call_that_cannot_be_replayed_raises(function):
    split = genesis.compile(function, fullgraph=True)
    for _ in range(12):
        with pytest.raises(SplitError):
            split(genesis.ones(100))
