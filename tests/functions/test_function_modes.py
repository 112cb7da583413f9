"""Modes see what their thread calls, and take its place."""

import threading

import genesis
from genesis.tensor.call_modes import OVERRIDES, FunctionMode


class Names(FunctionMode):
    def __init__(self):
        self.seen = []

    def intercept(self, function, args, kwargs):
        self.seen.append(function)
        return function(*args, **kwargs)


def test_operators_methods_and_functions_come_to_the_innermost_mode():
    x, before = genesis.ones(2, 2), dict(OVERRIDES)
    with Names() as outer:
        with Names() as inner:
            y = x + 1
            y.exp().sum(0)
            genesis.nn.functional.softmax(x, 0)
            x.reshape(4)
            genesis.nn.Linear(2, 3)(x)
        x * 2
    expected = [genesis.add, genesis.exp, genesis.sum, genesis.softmax, genesis.reshape, genesis.nn.functional.linear]
    assert inner.seen == expected and outer.seen == [*expected, genesis.mul]
    x + 1
    assert len(outer.seen) == len(expected) + 1 and before == OVERRIDES


def test_a_mode_takes_the_place_of_a_call():
    class Doubles(FunctionMode):
        def intercept(self, function, args, kwargs):
            return function(*args, **kwargs) * 2 if function is genesis.add else function(*args, **kwargs)

    with Doubles():
        assert (genesis.ones(1) + 1).item() == 4
        with Doubles():
            assert (genesis.ones(1) + 1).item() == 8
    assert (genesis.ones(1) + 1).item() == 2


def test_other_threads_do_not_see_it_and_compiled_functions_are_called():
    seen = []
    with Names() as mode:
        other = threading.Thread(target=lambda: seen.append((genesis.ones(1) + 1).item()))
        other.start()
        other.join()
        assert seen == [2] and mode.seen == []
        compiled = genesis.compile(lambda x: x * 3)
        for _ in range(4):
            compiled(genesis.ones(1))
        assert mode.seen == [genesis.ones, genesis.mul] * 4
