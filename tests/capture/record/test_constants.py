"""Tensors that a compiled function makes of numbers: whoever gets one may write to it, and no later call sees that."""

import numpy as np
import pytest

import genesis


def table():
    return genesis.tensor([[0.0, 1.0], [2.0, 3.0]])


def both(x):
    made = table()
    return x + made[0], made


def part(x):
    row = table()[1]
    return x + row, row


def even(x):
    grid = genesis.linspace(0, 1, 2)
    return x + grid, grid


def large(x):
    grid = genesis.linspace(0, 1, 40_000).reshape(2, 20_000)
    return grid[0] * x[0], grid[1]


@pytest.mark.parametrize("write", [
    lambda made: made.mul_(5), lambda made: made.numpy().fill(77), lambda made: made.view(-1).zero_(),
    lambda made: np.from_dlpack(made).fill(7),
])
@pytest.mark.parametrize("function", [both, part, even, large])
def test_a_constant_that_was_returned_may_be_written_over(function, write):
    compiled = genesis.compile(function)
    for k in range(5):
        x = genesis.tensor([0.5 + k, 1.25])
        found = compiled(x)
        for y, z in zip(found, function(x), strict=True):
            np.testing.assert_array_equal(y.numpy(), z.numpy())
        write(found[1])
    assert sum(entry.replays for entry in compiled.entries) == 4


@pytest.mark.parametrize("function", [
    lambda x: x + table().t()[1] + table()[:, 1], lambda x: x[genesis.tril_indices(2, 2)[0][:2]],
    lambda x: x[genesis.triu_indices(2, 2)[1, 1:]] * genesis.logspace(0, 1, 2),
])
def test_views_of_constants_are_constants(function):
    compiled = genesis.compile(function)
    for k in range(4):
        x = genesis.tensor([0.5 + k, 1.25])
        np.testing.assert_array_equal(compiled(x).numpy(), function(x).numpy())
    assert sum(entry.replays for entry in compiled.entries) == 3


def test_a_constant_that_is_written_in_the_call_is_what_it_was_in_the_next():
    @genesis.compile
    def step(x):
        made = table()
        row = made[0]
        before = x + row
        row.add_(x)
        return before, x + made[0], x + made[1]

    for k in range(4):
        x = genesis.tensor([float(k), 1.0])
        before, after, other = step(x)
        np.testing.assert_array_equal(before.numpy(), [k, 2])
        np.testing.assert_array_equal(after.numpy(), [2 * k, 3])
        np.testing.assert_array_equal(other.numpy(), [k + 2, 4])
