"""What was once found wrong with compiled functions."""

import numpy as np

import genesis


def agrees(function, *arguments, calls=4):
    """Whether several calls of the compiled function give what as many of the function itself give."""
    compiled = genesis.compile(function)
    return [compiled(*arguments).tolist() for _ in range(calls)] == [function(*arguments).tolist() for _ in range(calls)]


def test_memory_that_numpy_sees_is_read_as_it_lies():
    x = genesis.from_numpy(np.arange(12.0).reshape(3, 4)[:, ::2])
    assert agrees(lambda x: x * 2 + x[1:].sum(), x)
    assert agrees(lambda: x.t().exp())


def test_memory_that_numpy_sees_is_written_by_every_call():
    array = np.ones(3, np.float32)
    part = genesis.from_numpy(array).detach()

    @genesis.compile
    def halve(x):
        x.mul_(0.5)

    for _ in range(3):
        halve(part)
    assert array.tolist() == [0.125] * 3


def test_nothing_is_replayed_under_eager():
    x, step = genesis.ones(3), genesis.compile(lambda x: x * 3)
    for _ in range(3):
        step(x)
    genesis.debug.reset_stats()
    with genesis.eager():
        assert step(x).tolist() == [3, 3, 3]
    assert genesis.debug.stats()["native_calls"] == 0
